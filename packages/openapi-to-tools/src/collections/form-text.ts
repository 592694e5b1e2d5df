import type { BodyField } from './request-bodies.ts';

/**
 * Parses the pairs of an `application/x-www-form-urlencoded` text. Ignores line breaks, because in `.http` files each
 * `&name=value` may be on a line of its own.
 */
export function parseUrlencoded(text: string): BodyField[] {
  const singleLine = text.replaceAll(/\s*\r?\n\s*/g, '');
  return [...new URLSearchParams(singleLine)].map(([name, value]) => ({ name, value, isFile: false }));
}

/** Parses the parts of a multipart text. Returns undefined if the media type has no boundary. */
export function parseMultipart(mediaType: string, text: string): BodyField[] | undefined {
  const [, quoted, unquoted] = /;\s*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(mediaType) ?? [];
  const boundary = quoted ?? unquoted;
  if (boundary === undefined) return undefined;
  return text.split(`--${boundary}`).flatMap((part) => parseField(part));
}

function parseField(part: string): BodyField[] {
  const [headers = '', ...bodyParts] = part.replace(/^\r?\n/, '').split(/\r?\n\r?\n/);
  const disposition = /^content-disposition:[^\n]*/im.exec(headers)?.[0] ?? '';
  const name = /[;\s]name="([^"]*)"/i.exec(disposition)?.[1] ?? /[;\s]name=([^\s;"]+)/i.exec(disposition)?.[1];
  if (name === undefined || name === '') return [];
  const mediaType = /^content-type:\s*([^\r\n]+)/im.exec(headers)?.[1]?.trim();
  const value = bodyParts.join('\n\n').replace(/\r?\n$/, '');
  const isFile = /[;\s]filename\*?=/i.test(disposition) || /^<@?\s+\S/.test(value);
  return [{ name, value: isFile ? '' : value, isFile, ...(mediaType !== undefined && { mediaType }) }];
}
