import { z } from 'zod';
import { type DocumentUse, type KnownDocument, knownDocuments } from '../domain/clients/client-documents.ts';
import type { OwnHosts } from '../domain/http/own-hosts.ts';
import { widestNetwork } from '../domain/limits.ts';
import { createOwnedMemory } from '../domain/work/owned-memory.ts';
import { OAuthError, OutboundError, type OutboundReason } from '../errors.ts';
import { urlProblem } from '../outbound/egress.ts';
import type { Answer } from '../outbound/exchange.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import { userAgentOf } from '../version.ts';
import {
  metadataProblem,
  metadataRule,
  type OAuthClient,
  redirectUriProblem,
  redirectUris,
  shortName,
  textField,
  textListField,
  withoutNulls,
} from './clients.ts';

const limitBytes = 5 * 1024;
const timeoutMs = 10_000;
/**
 * Time limit for a document that has a built-in copy, in ms. A network that drops packets should not delay its login
 * for long.
 */
const timeoutWithCopyMs = 3000;
const maxRemembered = 1000;
const defaultTtlMs = 5 * 60_000;
const maxTtlMs = 24 * 60 * 60_000;

const documentSchema = z.object(
  {
    client_id: textField(limitBytes),
    client_name: textField(limitBytes),
    redirect_uris: redirectUris,
    token_endpoint_auth_method: textField(limitBytes).optional(),
    token_endpoint_auth_methods_supported: textListField(limitBytes).optional(),
  },
  metadataRule,
);

/** A client, and the network of the unverified caller that first named it. */
type Asked = { client: OAuthClient; network: string };

/**
 * Finds clients by their Client ID Metadata Documents. The id of such a client is the https URL of its description.
 * `http` must have no exceptions to the address guard, because unverified callers choose the URL. Failures are not
 * cached. Documents are charged to the caller's network, so that slow hosts delay no one else. The built-in copy of a
 * known client's document replaces one that cannot be fetched.
 */
export function createClientDocuments(http: HttpClient, ownHosts: OwnHosts, use: DocumentUse) {
  const remembered = createOwnedMemory<Asked>({ max: maxRemembered, ownerOf: ({ network }) => widestNetwork(network) });
  const fetched = async (clientId: string, network: string, waitMs: number) => {
    const answer = await fetchDocument(http, network, { url: new URL(clientId), timeoutMs: waitMs });
    return { client: readDocument(clientId, answer, ownHosts), ttl: ttlOf(answer) };
  };
  return async (clientId: string, network: string): Promise<OAuthClient> => {
    const copy = knownDocuments.get(clientId);
    if (use === 'off' || (use === 'known' && !copy)) throw notTaken(use);
    if (copy && use === 'known') return clientOf(clientId, copy);
    const known = remembered.get(clientId);
    if (known) return known.client;
    const { client, ttl } = await fetched(clientId, network, copy ? timeoutWithCopyMs : timeoutMs).catch((error) => {
      if (!copy || !(error instanceof OAuthError)) throw error;
      return { client: clientOf(clientId, copy), ttl: defaultTtlMs };
    });
    if (ttl > 0) remembered.set(clientId, { client, network }, ttl);
    return client;
  };
}

function notTaken(use: DocumentUse): OAuthError {
  const taken = use === 'off' ? 'no clients' : 'only known clients';
  return new OAuthError(
    'invalid_client',
    `this service accepts metadata documents from ${taken}; register the client instead, or ask the operator to change CLIENT_METADATA_DOCUMENTS`,
  );
}

function clientOf(id: string, { name, redirectUris }: Omit<KnownDocument, 'insists'>): OAuthClient {
  return { id, name: shortName(name), redirectUris, host: new URL(id).host, isConfidential: false };
}

/** Creates the error for an unusable document. The host responded, so the reason reveals nothing about this network. */
function unusable(host: string, why: string): OAuthError {
  return new OAuthError(
    'invalid_client',
    `the metadata document of this client, at ${host}, cannot be used: ${why}`,
    why,
  );
}

/**
 * Creates the error for a host that cannot be reached. The same message covers an unknown name, a private address, and
 * a closed port, because unverified callers could otherwise learn names in the operator's network. The log contains the
 * reason.
 */
function unreachable(host: string, reason: OutboundReason | undefined, detail: string): OAuthError {
  const why = reason === 'timeout' ? 'it did not respond in time' : 'there is no connection to that host';
  return new OAuthError(
    'invalid_client',
    `this service could not fetch the client's metadata document from ${host}: ${why}. The operator can allow connections to that host, or set CLIENT_METADATA_DOCUMENTS=off, so that clients register instead`,
    detail,
  );
}

type Fetch = { url: URL; timeoutMs: number };

async function fetchDocument(http: HttpClient, network: string, { url, timeoutMs: waitMs }: Fetch): Promise<Answer> {
  const problem = urlProblem(url, undefined, undefined);
  if (problem) throw unreachable(url.host, undefined, problem);
  const answer = await http
    .send({
      workspaceId: network,
      origin: url.origin,
      credentialHash: undefined,
      path: url.pathname + url.search,
      method: 'GET',
      headers: ['Accept', 'application/json', 'User-Agent', userAgentOf()],
      body: undefined,
      timeoutMs: waitMs,
      limitBytes,
    })
    .catch((error: Error) => {
      const reason = error instanceof OutboundError ? error.reason : undefined;
      if (reason === 'oversize') throw unusable(url.host, `it is larger than ${limitBytes} bytes`);
      throw unreachable(url.host, reason, error.message);
    });
  if (answer.status !== 200) throw unusable(url.host, `its host returned status ${answer.status}`);
  if (!/^application\/([a-z0-9.+-]+\+)?json\b/i.test(String(answer.headers['content-type'])))
    throw unusable(url.host, 'it is not JSON');
  return answer;
}

function readDocument(clientId: string, answer: Answer, ownHosts: OwnHosts): OAuthClient {
  const { host } = new URL(clientId);
  let raw: unknown;
  try {
    raw = JSON.parse(answer.body.toString('utf8'));
  } catch {
    throw unusable(host, 'it is not valid JSON');
  }
  const parsed = documentSchema.safeParse(withoutNulls(raw));
  if (!parsed.success) {
    const { field, problem } = metadataProblem(parsed.error);
    throw unusable(host, `${field} ${problem}`);
  }
  const document = parsed.data;
  if (document.client_id !== clientId) throw unusable(host, 'its client_id is another URL');
  const { token_endpoint_auth_method: method = 'none', token_endpoint_auth_methods_supported: methods = [] } = document;
  if (![method, ...methods].includes('none')) throw unusable(host, 'it requires client authentication');
  const problems = document.redirect_uris.map((uri) => redirectUriProblem(uri, ownHosts));
  const problem = problems.find((found) => found !== undefined);
  if (problem) throw unusable(host, `a redirect URI ${problem}`);
  return clientOf(clientId, { name: document.client_name, redirectUris: document.redirect_uris });
}

/**
 * Returns the time for which the document may be cached, in ms, according to HTTP (RFC 9111, 4.2.1) and within our own
 * bounds.
 */
function ttlOf(answer: Answer): number {
  const control = String(answer.headers['cache-control'] ?? '');
  if (/\bno-(store|cache)\b/i.test(control)) return 0;
  const seconds = /\bmax-age=(\d{1,9})\b/i.exec(control)?.[1];
  return seconds === undefined ? defaultTtlMs : Math.min(Number(seconds) * 1000, maxTtlMs);
}
