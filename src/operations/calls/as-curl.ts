import type { UpstreamRequest } from '../../domain/request/request-template.ts';

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A request as a curl command for a POSIX shell. `hasBody` false: the body is too long and is read from a file. */
export function asCurl(request: UpstreamRequest, hasBody = true): string {
  const parts = ['curl'];
  if (request.method !== 'GET') parts.push('-X', request.method);
  parts.push(quoted(request.origin + request.path));
  for (let i = 0; i < request.headers.length; i += 2) {
    parts.push('-H', quoted(`${request.headers[i]}: ${request.headers[i + 1]}`));
  }
  const { body } = request;
  if (body !== undefined && !hasBody) parts.push(typeof body === 'string' ? '--data-binary @body' : '--config fields');
  else if (typeof body === 'string') parts.push('--data-raw', quoted(body));
  else if (body) for (const [name, value] of body.fields) parts.push('--form-string', quoted(`${name}=${value}`));
  return parts.join(' ');
}
