import { fitsCommandLine, quoteShellWord } from '@toolhost/mcp-clients/literals';
import type { ReadablePart, ReadableRequest } from '@toolhost/tool-config/request/upstream-request';

/**
 * Formats a request as a curl command for a POSIX shell. The command reads the body from a file if `hasBody` is false
 * because it is too long, and if it is bytes or a text that cannot be a program argument.
 */
export function toUpstreamCurl(request: ReadableRequest, hasBody = true): string {
  const words = ['curl'];
  if (request.method === 'HEAD') words.push('--head');
  else if (request.method !== 'GET' || request.body !== undefined) words.push('-X', request.method);
  const url = request.origin + request.path;
  // curl interprets brackets and braces in a URL as ranges and lists (curl(1), --globoff).
  if (/[[\]{}]/.test(url)) words.push('--globoff');
  words.push(quoteShellWord(url));
  for (let i = 0; i < request.headers.length; i += 2) {
    words.push('-H', quoteShellWord(formatHeader(String(request.headers[i]), String(request.headers[i + 1]))));
  }
  return [...words, ...getBodyOptions(request.body, hasBody)].join(' ');
}

/**
 * Formats a header. A header without a value ends with a semicolon, because curl omits one that ends with a colon
 * (curl(1), --header).
 */
function formatHeader(name: string, value: string): string {
  return value.trim() === '' ? `${name};` : `${name}: ${value}`;
}

function getBodyOptions(body: ReadableRequest['body'], hasBody: boolean): string[] {
  if (body === undefined) return [];
  if (typeof body === 'string')
    return hasBody && fitsCommandLine(body) ? ['--data-raw', quoteShellWord(body)] : ['--data-binary @body'];
  if ('byteCount' in body) return ['--data-binary @body'];
  const fitsCommand = hasBody && body.fields.every(([name, text]) => fitsCommandLine(name + text));
  return fitsCommand ? body.fields.flatMap(formatFormOption) : ['--config fields'];
}

/** Formats a form field. A file is read from the file of the same name. */
function formatFormOption([name, text, file]: ReadablePart): [option: string, value: string] {
  if (file === undefined) return ['--form-string', quoteShellWord(`${name}=${toFormLineBreaks(text)}`)];
  const type = file.mediaType === undefined ? '' : `;type=${file.mediaType}`;
  if (file.fileName === undefined)
    return ['-F', quoteShellWord(`${name}="${escapeQuoted(toFormLineBreaks(text))}"${type}`)];
  return ['-F', quoteShellWord(`${name}=@"${escapeQuoted(file.fileName)}"${type}`)];
}

/**
 * Converts line breaks to CR LF, as in HTML forms (HTML, multipart/form-data encoding algorithm). curl sends them
 * unchanged.
 */
function toFormLineBreaks(text: string): string {
  return text.replaceAll(/\r\n?|\n/g, '\r\n');
}

/** Escapes a text within the quotes of a form option (curl(1), --form). */
function escapeQuoted(text: string): string {
  return text.replaceAll(/["\\]/g, '\\$&');
}
