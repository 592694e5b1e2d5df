import type { ReadablePart, ReadableRequest } from '../../domain/request/upstream-request.ts';

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A request as a curl command for a POSIX shell. `hasBody` false: the body is too long and is read from a file. */
export function asCurl(request: ReadableRequest, hasBody = true): string {
  const parts = ['curl'];
  if (request.method === 'HEAD') parts.push('--head');
  else if (request.method !== 'GET' || request.body !== undefined) parts.push('-X', request.method);
  parts.push(quoted(request.origin + request.path));
  for (let i = 0; i < request.headers.length; i += 2) {
    parts.push('-H', quoted(`${request.headers[i]}: ${request.headers[i + 1]}`));
  }
  const { body } = request;
  if (typeof body === 'object' && 'byteCount' in body) parts.push('--data-binary @body');
  else if (body !== undefined && !hasBody)
    parts.push(typeof body === 'string' ? '--data-binary @body' : '--config fields');
  else if (typeof body === 'string') parts.push('--data-raw', quoted(body));
  else if (body) for (const part of body.fields) parts.push(...formOption(part));
  return parts.join(' ');
}

/** A file is read from the file that it is named after. */
function formOption([name, text, of]: ReadablePart): [option: string, value: string] {
  if (of === undefined) return ['--form-string', quoted(`${name}=${text}`)];
  const type = of.mediaType === undefined ? '' : `;type=${of.mediaType}`;
  if (of.fileName === undefined) return ['-F', quoted(`${name}="${escaped(text)}"${type}`)];
  return ['-F', quoted(`${name}=@"${escaped(of.fileName)}"${type}`)];
}

/** Inside the quotes of a form option (curl(1), --form). */
function escaped(text: string): string {
  return text.replaceAll(/["\\]/g, '\\$&');
}
