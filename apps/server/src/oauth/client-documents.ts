import { OAuthError, OutboundError, type OutboundReason } from '@toolhost/errors/errors';
import { getWidestNetwork } from '@toolhost/limits/call-limits';
import { createFairCache } from '@toolhost/limits/fair-cache';
import { type DocumentUse, type KnownDocument, knownDocuments } from '@toolhost/mcp-clients/client-documents';
import { checkUrl } from '@toolhost/safe-http/egress';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import { z } from 'zod';
import type { ServiceHosts } from '../own-hosts.ts';
import { formatUserAgent } from '../version.ts';
import {
  createTextField,
  createTextListField,
  findRedirectUriProblem,
  metadataTypeRule,
  type OAuthClient,
  redirectUris,
  removeNulls,
  toMetadataProblem,
  toShortName,
} from './clients.ts';

/** Maximum size of a document, in bytes, and of each of its fields. */
const maxBytes = 5 * 1024;
const fetchTimeoutMs = 10_000;
/**
 * Time limit for a document that has a built-in copy, in ms. A network that drops packets should not delay its login
 * for long.
 */
const fetchTimeoutWithCopyMs = 3000;
const maxCachedClients = 1000;
const defaultTtlMs = 5 * 60_000;
const maxTtlMs = 24 * 60 * 60_000;

const documentSchema = z.object(
  {
    client_id: createTextField(maxBytes),
    client_name: createTextField(maxBytes),
    redirect_uris: redirectUris,
    token_endpoint_auth_method: createTextField(maxBytes).optional(),
    token_endpoint_auth_methods_supported: createTextListField(maxBytes).optional(),
  },
  metadataTypeRule,
);

/** A client, and the network of the unverified caller that first named it. */
type CachedClient = { client: OAuthClient; network: string };

/**
 * Finds clients by their Client ID Metadata Documents. The id of such a client is the https URL of its description.
 * `http` must have no exceptions to the address guard, because unverified callers choose the URL. Failures are not
 * cached. Documents are charged to the caller's network, so that slow hosts delay no one else. The built-in copy of a
 * known client's document replaces one that cannot be fetched.
 */
export function createClientDocuments(http: HttpClient, ownHosts: ServiceHosts, mode: DocumentUse) {
  const cache = createFairCache<CachedClient>({
    max: maxCachedClients,
    getOwner: ({ network }) => getWidestNetwork(network),
  });
  const fetchClient = async (clientId: string, network: string, timeoutMs: number) => {
    const response = await fetchDocument(http, network, { url: new URL(clientId), timeoutMs });
    return { client: parseDocument(clientId, response, ownHosts), ttl: getTtl(response) };
  };
  return async (clientId: string, network: string): Promise<OAuthClient> => {
    const builtInCopy = knownDocuments.get(clientId);
    if (mode === 'off' || (mode === 'known' && !builtInCopy)) throw toModeError(mode);
    if (builtInCopy && mode === 'known') return toClient(clientId, builtInCopy);
    const cached = cache.get(clientId);
    if (cached) return cached.client;
    const { client, ttl } = await fetchClient(
      clientId,
      network,
      builtInCopy ? fetchTimeoutWithCopyMs : fetchTimeoutMs,
    ).catch((error) => {
      if (!builtInCopy || !(error instanceof OAuthError)) throw error;
      return { client: toClient(clientId, builtInCopy), ttl: defaultTtlMs };
    });
    if (ttl > 0) cache.set(clientId, { client, network }, ttl);
    return client;
  };
}

function toModeError(mode: DocumentUse): OAuthError {
  const acceptedClients = mode === 'off' ? 'no clients' : 'only known clients';
  return new OAuthError(
    'invalid_client',
    `this service accepts metadata documents from ${acceptedClients}; register the client instead, or ask the operator to change CLIENT_METADATA_DOCUMENTS`,
  );
}

function toClient(id: string, { name, redirectUris }: Omit<KnownDocument, 'requiresDocument'>): OAuthClient {
  return { id, name: toShortName(name), redirectUris, host: new URL(id).host, isConfidential: false };
}

/** Creates the error for an unusable document. The host responded, so the reason reveals nothing about this network. */
function createUnusableError(host: string, reason: string): OAuthError {
  return new OAuthError(
    'invalid_client',
    `the metadata document of this client, at ${host}, cannot be used: ${reason}`,
    reason,
  );
}

/**
 * Creates the error for a host that cannot be reached. The same message covers an unknown name, a private address, and
 * a closed port, because unverified callers could otherwise learn names in the operator's network. The log contains the
 * reason.
 */
function createUnreachableError(host: string, reason: OutboundReason | undefined, detail: string): OAuthError {
  const reasonText = reason === 'timeout' ? 'it did not respond in time' : 'there is no connection to that host';
  return new OAuthError(
    'invalid_client',
    `this service could not fetch the client's metadata document from ${host}: ${reasonText}. The operator can allow connections to that host, or set CLIENT_METADATA_DOCUMENTS=off, so that clients register instead`,
    detail,
  );
}

type FetchRequest = { url: URL; timeoutMs: number };

async function fetchDocument(
  http: HttpClient,
  network: string,
  { url, timeoutMs }: FetchRequest,
): Promise<UpstreamResponse> {
  const problem = checkUrl(url, undefined, undefined);
  if (problem) throw createUnreachableError(url.host, undefined, problem);
  const response = await http
    .send({
      workspaceId: network,
      origin: url.origin,
      credentialHash: undefined,
      path: url.pathname + url.search,
      method: 'GET',
      headers: ['Accept', 'application/json', 'User-Agent', formatUserAgent()],
      body: undefined,
      timeoutMs,
      limitBytes: maxBytes,
    })
    .catch((error: Error) => {
      const reason = error instanceof OutboundError ? error.reason : undefined;
      if (reason === 'oversize') throw createUnusableError(url.host, `it is larger than ${maxBytes} bytes`);
      throw createUnreachableError(url.host, reason, error.message);
    });
  if (response.status !== 200) throw createUnusableError(url.host, `its host returned status ${response.status}`);
  if (!/^application\/([a-z0-9.+-]+\+)?json\b/i.test(String(response.headers['content-type'])))
    throw createUnusableError(url.host, 'it is not JSON');
  return response;
}

function parseDocument(clientId: string, response: UpstreamResponse, ownHosts: ServiceHosts): OAuthClient {
  const { host } = new URL(clientId);
  let raw: unknown;
  try {
    raw = JSON.parse(response.body.toString('utf8'));
  } catch {
    throw createUnusableError(host, 'it is not valid JSON');
  }
  const parsed = documentSchema.safeParse(removeNulls(raw));
  if (!parsed.success) {
    const { field, problem } = toMetadataProblem(parsed.error);
    throw createUnusableError(host, `${field} ${problem}`);
  }
  const document = parsed.data;
  if (document.client_id !== clientId) throw createUnusableError(host, 'its client_id is another URL');
  const { token_endpoint_auth_method: method = 'none', token_endpoint_auth_methods_supported: methods = [] } = document;
  if (![method, ...methods].includes('none')) throw createUnusableError(host, 'it requires client authentication');
  const problems = document.redirect_uris.map((uri) => findRedirectUriProblem(uri, ownHosts));
  const problem = problems.find((candidate) => candidate !== undefined);
  if (problem) throw createUnusableError(host, `a redirect URI ${problem}`);
  return toClient(clientId, { name: document.client_name, redirectUris: document.redirect_uris });
}

/**
 * Returns the time for which the document may be cached, in ms, according to HTTP (RFC 9111, 4.2.1) and within our own
 * bounds.
 */
function getTtl(response: UpstreamResponse): number {
  const cacheControl = String(response.headers['cache-control'] ?? '');
  if (/\bno-(store|cache)\b/i.test(cacheControl)) return 0;
  const seconds = /\bmax-age=(\d{1,9})\b/i.exec(cacheControl)?.[1];
  return seconds === undefined ? defaultTtlMs : Math.min(Number(seconds) * 1000, maxTtlMs);
}
