import type { UpstreamRequest } from '../domain/request-template.ts';

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** A request as a curl command for a POSIX shell. */
export function asCurl(request: UpstreamRequest): string {
  const parts = ['curl'];
  if (request.method !== 'GET') parts.push('-X', request.method);
  parts.push(quoted(request.origin + request.path));
  for (let i = 0; i < request.headers.length; i += 2) {
    parts.push('-H', quoted(`${request.headers[i]}: ${request.headers[i + 1]}`));
  }
  if (typeof request.body === 'string') parts.push('--data-raw', quoted(request.body));
  else if (request.body)
    for (const [name, value] of request.body.fields) parts.push('--form-string', quoted(`${name}=${value}`));
  return parts.join(' ');
}
