import type { Secrets } from '../config.ts';
import { holdsPlainCredential, isLongToSearch, piecesToSearch } from '../domain/credentials/own-credentials.ts';
import { hopHeader } from '../domain/http/headers.ts';
import type { MemoryBudget } from '../domain/work/memory-budget.ts';
import { nextTurn } from '../domain/work/next-turn.ts';
import { createOwnedMemory } from '../domain/work/owned-memory.ts';
import { afterRunning } from '../domain/work/running-time.ts';
import { OutboundError } from '../errors.ts';
import type { Log } from '../log.ts';
import type { DecodeOnThread } from '../outbound/decode.ts';
import type { Exchange } from '../outbound/exchange.ts';
import { createHttpClient, type HttpClient } from '../outbound/http-client.ts';
import { createLookups } from '../outbound/lookups.ts';
import type { FullConfig } from './full-config.ts';
import type { Observability } from './observability/observability.ts';
import type { Surroundings } from './surroundings.ts';

type ClientParts = {
  log: Log;
  observability: Observability;
  decodeOnThread: DecodeOnThread;
  memory: MemoryBudget;
};

/** Two HTTP clients: the operator's exceptions to the address guard hold for workspaces, not for client documents. */
export function outboundClients(
  { egressAllow }: FullConfig,
  { egressProxy: proxy }: Secrets,
  { resolve, lookups, publicAddresses }: Surroundings,
  { log, observability, decodeOnThread, memory }: ClientParts,
) {
  const message =
    'an upstream sent bytes that no request asked for; its connections are not used twice for ten minutes';
  const onUnasked = (workspaceId: string, origin: string) => log.warn({ workspaceId, origin }, message);
  const { ofWorkspace, ofStranger } = createLookups(resolve, lookups, afterRunning);
  const options = {
    decodeOnThread,
    memory,
    createMemory: createOwnedMemory,
    hopHeader,
    onBlocked: observability.onBlocked,
    onUnasked,
    proxy,
  };
  return {
    http: withheldCredentials(createHttpClient({ ...options, lookupsOf: ofWorkspace, allow: egressAllow })),
    documents: withheldCredentials(createHttpClient({ ...options, lookupsOf: ofStranger, allow: publicAddresses })),
  };
}

const message =
  'the request would hold an API key or a token of this service, which is never sent to an upstream; replace it where it comes from: an argument, a stored credential or the token of a login';

/**
 * A client that sends none of our credentials to another host, whatever put them there. Every request passes here when
 * it is finished, so a place that a rule of arguments or configurations forgets is searched as well. Forms other than the
 * plain one are refused where credentials, secrets and configurations come in.
 * @throws OutboundError own_credential, and errors of `client`
 */
function withheldCredentials(client: HttpClient): HttpClient {
  return {
    ...client,
    send(exchange) {
      const { path, headers, body } = exchange;
      if (holdsPlainCredential(path) || headers.some(holdsPlainCredential)) return refusal();
      if (body === undefined) return client.send(exchange);
      if (isLongToSearch(body)) return sendLong(client, exchange, body);
      const text = typeof body === 'string' ? body : body.toString('latin1');
      return holdsPlainCredential(text) ? refusal() : client.send(exchange);
    },
  };
}

/** A long body is searched in several turns of the event loop. */
async function sendLong(client: HttpClient, exchange: Exchange, body: string | Buffer) {
  for (const piece of piecesToSearch(body)) {
    if (holdsPlainCredential(piece)) return refusal();
    await nextTurn();
  }
  return client.send(exchange);
}

function refusal(): Promise<never> {
  return Promise.reject(new OutboundError('own_credential', message));
}
