import assert from 'node:assert/strict';
import { getTenantId } from '@toolhost/credentials/ids';
import { OutboundError } from '@toolhost/errors/errors';
import { createFairCache } from '@toolhost/limits/fair-cache';
import { parseEgressAllow } from '@toolhost/safe-http/egress';
import type { Exchange } from '@toolhost/safe-http/exchange';
import { HttpClient } from '@toolhost/safe-http/http-client';
import { hopHeader } from '@toolhost/tool-config/http/headers';
import { decodeOnThread } from '../decode-inline.ts';

type ClientOptions = Partial<ConstructorParameters<typeof HttpClient>[0]>;

/** Creates the HTTP client of the service. It may call `allow`, a list in the form of EGRESS_ALLOW. */
export const createTestClient = (allow: string, options: ClientOptions = {}): HttpClient =>
  new HttpClient({
    decodeOnThread,
    createCache: createFairCache,
    getTenant: getTenantId,
    allow: parseEgressAllow(allow),
    getResolver: () => (_name, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
    hopHeader,
    ...options,
  });

export const createExchange = (origin: string, more: Partial<Exchange> = {}): Exchange => ({
  workspaceId: 'w',
  origin,
  credentialHash: '',
  path: '/',
  method: 'GET',
  headers: [],
  body: undefined,
  timeoutMs: 15_000,
  limitBytes: 2_000_000,
  ...more,
});

/** Returns the error of a request that must fail. */
export async function getFailure(sent: Promise<unknown>): Promise<OutboundError> {
  const error = await sent.catch((thrown: unknown) => thrown);
  return error instanceof OutboundError ? error : assert.fail(String(error));
}
