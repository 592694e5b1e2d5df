import type { IncomingMessage } from 'node:http';

/** A web address without user information, with the path where it has one (RFC 9110, 4.2.4). */
const webAddress = /^(https?):\/\/((?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?)(?=[/?]|$)/i;

/**
 * Gives requests to a service at this base URL one form, which everything behind compares: the target is a path, and the
 * Host header names the host, without the usual port of the scheme (RFC 9110, 4.2.3; some clients send it). A target that
 * is a web address replaces the Host header (RFC 9112, 3.2.2). Any other target stays, and is refused as a path.
 */
export function requestHostReader(baseUrl: string): (request: IncomingMessage) => void {
  const { protocol, port } = new URL(baseUrl);
  const usualPort = port !== '' ? undefined : protocol === 'https:' ? ':443' : ':80';
  return (request) => {
    if (request.url?.[0] !== '/') takeAddress(request, protocol === 'https:');
    const { host } = request.headers;
    if (usualPort !== undefined && host?.endsWith(usualPort)) setHost(request, host.slice(0, -usualPort.length));
  };
}

/** Without TLS in front, no request is for an https address (RFC 9110, 7.4). */
function takeAddress(request: IncomingMessage, isSecure: boolean): void {
  const [start = '', scheme = '', host = ''] = webAddress.exec(request.url ?? '') ?? [];
  if (start === '' || (scheme.length > 'http'.length && !isSecure)) return;
  const rest = (request.url ?? '').slice(start.length);
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  setHost(request, host);
}

function setHost({ headers, rawHeaders }: IncomingMessage, host: string): void {
  headers.host = host;
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (at < 0) rawHeaders.push('Host', host);
  else rawHeaders[at + 1] = host;
}
