import type { IncomingMessage } from 'node:http';

/**
 * The address of whoever really asks. Only the proxies in front of us may say so: with n of them, the n-th entry of
 * X-Forwarded-For from the right was written by the outermost, and anything further left is the client's own claim.
 */
export function clientAddress(request: IncomingMessage, trustedProxies: number): string {
  const direct = request.socket.remoteAddress ?? '';
  if (trustedProxies === 0) return direct;
  const forwarded = String(request.headers['x-forwarded-for'] ?? '')
    .split(',')
    .map((entry) => entry.trim());
  return forwarded.at(-trustedProxies) || direct;
}
