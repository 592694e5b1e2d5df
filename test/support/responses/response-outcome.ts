import { createHash } from 'node:crypto';
import { OutboundError } from '@toolhost/errors/errors';
import type { Exchange, UpstreamResponse } from '@toolhost/safe-http/exchange';
import { Client } from 'undici';

/** Length above which a part of an outcome is replaced by its digest. */
const maxPartLength = 400;

/** Formats a response so that different responses have different texts. */
export function formatResponse({ status, statusText, headers, body }: UpstreamResponse): string {
  const parts = [statusText, headers, body.toString('latin1')].map((part) => JSON.stringify(part));
  return [status, ...parts.map(shorten)].join(' ');
}

function shorten(text: string): string {
  if (text.length <= maxPartLength) return text;
  return `${text.slice(0, 40)}… (${text.length} characters, ${createHash('sha256').update(text).digest('hex').slice(0, 8)})`;
}

/** Formats the outcome of an exchange: its response, or the reason of its failure. */
export function formatOutcome(sent: Promise<UpstreamResponse>): Promise<string> {
  return sent.then(formatResponse, (error: unknown) => {
    if (error instanceof OutboundError) return error.reason;
    throw error;
  });
}

/** Outcome of undici for every response that it refuses. */
const refused = 'refused';

/** Returns true if an outcome is a response. */
export const isResponse = (outcome: string): boolean => /^\d/.test(outcome);

/** Replaces the reason of a failure, which undici does not classify. */
export const withoutFailureReason = (outcome: string): string => (isResponse(outcome) ? outcome : refused);

/** Removes the reason phrase. Undici reports only the last piece of one that arrives in pieces. */
export const withoutReasonPhrase = (outcome: string): string => outcome.replace(/^(\d+) "(?:[^"\\]|\\.)*"/, '$1');

/** Sends a request with undici over a new connection. Returns the outcome as `formatOutcome` does. */
export async function getUndiciOutcome(
  origin: string,
  request: Pick<Exchange, 'path' | 'method'> & { body?: Buffer | undefined },
): Promise<string> {
  const client = new Client(origin, { headersTimeout: 0, bodyTimeout: 0, maxHeaderSize: 1024 * 1024, allowH2: false });
  const { promise, resolve } = Promise.withResolvers<string>();
  const response: UpstreamResponse = { status: 0, statusText: '', headers: {}, body: Buffer.alloc(0) };
  const chunks: Buffer[] = [];
  client.dispatch(
    { ...request, body: request.body ?? null },
    {
      onRequestStart: () => undefined,
      onResponseStart(_controller, status, headers, statusText = '') {
        if (status >= 200) Object.assign(response, { status, headers, statusText });
      },
      onResponseData: (_controller, chunk) => void chunks.push(chunk),
      onResponseEnd: () => resolve(formatResponse({ ...response, body: Buffer.concat(chunks) })),
      onResponseError: () => resolve(refused),
    },
  );
  const outcome = await promise;
  await client.destroy();
  return outcome;
}
