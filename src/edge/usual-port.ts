import type { IncomingMessage } from 'node:http';

/**
 * Takes the usual port out of the Host of requests to a service at this base URL: an address with it is the same address
 * (RFC 9110, 4.2.3), and some clients send it. Everything behind compares one form only.
 */
export function usualPortRemover(baseUrl: string): (request: IncomingMessage) => void {
  const { protocol, port } = new URL(baseUrl);
  if (port !== '') return () => undefined;
  const ending = protocol === 'https:' ? ':443' : ':80';
  return ({ headers, rawHeaders }) => {
    const { host } = headers;
    if (!host?.endsWith(ending)) return;
    const plain = host.slice(0, -ending.length);
    headers.host = plain;
    const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
    rawHeaders[at + 1] = plain;
  };
}
