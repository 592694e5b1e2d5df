import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { json } from 'node:stream/consumers';
import type { Json } from './toolhost.ts';

/** A request whose body has not been sent yet. */
export type HeldBody = {
  /** Sends the body and resolves with the response. */
  sendBody(): Promise<{ status: number; body: Json }>;
};

/**
 * Sends the headers of a POST, whose body is a value or JSON text, and waits until the service has begun to handle the
 * request (RFC 9110, 10.1.1: 100-continue).
 */
export async function holdBody(
  url: string,
  headers: Record<string, string>,
  body: Json | Json[] | string,
): Promise<HeldBody> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const request = httpRequest(url, {
    method: 'POST',
    agent: false,
    headers: {
      ...headers,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      expect: '100-continue',
    },
  });
  const responded = once(request, 'response');
  request.flushHeaders();
  await once(request, 'continue');
  return {
    async sendBody() {
      request.end(text);
      const [response] = await responded;
      return { status: response.statusCode, body: (await json(response)) as Json };
    },
  };
}
