import type { ReadablePart, ReadableRequest } from '../request/upstream-request.ts';
import { fitsCommandLine, shellWord } from './literals.ts';

/**
 * Formats a request as a curl command for a POSIX shell. If `hasBody` is false, the body is too long and is read from a
 * file, as are bytes and texts that cannot be a program argument.
 */
export function upstreamCurl(request: ReadableRequest, hasBody = true): string {
  const parts = ['curl'];
  if (request.method === 'HEAD') parts.push('--head');
  else if (request.method !== 'GET' || request.body !== undefined) parts.push('-X', request.method);
  const url = request.origin + request.path;
  // curl interprets brackets and braces in a URL as ranges and lists (curl(1), --globoff).
  if (/[[\]{}]/.test(url)) parts.push('--globoff');
  parts.push(shellWord(url));
  for (let i = 0; i < request.headers.length; i += 2) {
    parts.push('-H', shellWord(headerLine(String(request.headers[i]), String(request.headers[i + 1]))));
  }
  return [...parts, ...bodyOptions(request.body, hasBody)].join(' ');
}

/**
 * Formats a header. A header without a value ends with a semicolon, because curl would omit it with a colon (curl(1),
 * --header).
 */
function headerLine(name: string, value: string): string {
  return value.trim() === '' ? `${name};` : `${name}: ${value}`;
}

function bodyOptions(body: ReadableRequest['body'], hasBody: boolean): string[] {
  if (body === undefined) return [];
  if (typeof body === 'string')
    return hasBody && fitsCommandLine(body) ? ['--data-raw', shellWord(body)] : ['--data-binary @body'];
  if ('byteCount' in body) return ['--data-binary @body'];
  const isWhole = hasBody && body.fields.every(([name, text]) => fitsCommandLine(name + text));
  return isWhole ? body.fields.flatMap(formOption) : ['--config fields'];
}

/** Formats a form field. A file is read from the file of the same name. */
function formOption([name, text, of]: ReadablePart): [option: string, value: string] {
  if (of === undefined) return ['--form-string', shellWord(`${name}=${withFormLines(text)}`)];
  const type = of.mediaType === undefined ? '' : `;type=${of.mediaType}`;
  if (of.fileName === undefined) return ['-F', shellWord(`${name}="${escaped(withFormLines(text))}"${type}`)];
  return ['-F', shellWord(`${name}=@"${escaped(of.fileName)}"${type}`)];
}

/**
 * Converts line breaks to CR LF, as in HTML forms (HTML, multipart/form-data encoding algorithm). curl sends them
 * unchanged.
 */
function withFormLines(text: string): string {
  return text.replaceAll(/\r\n?|\n/g, '\r\n');
}

/** Escapes a text within the quotes of a form option (curl(1), --form). */
function escaped(text: string): string {
  return text.replaceAll(/["\\]/g, '\\$&');
}
