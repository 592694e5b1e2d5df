import { z } from 'zod';
import type { OwnHosts } from '../../domain/http/own-hosts.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { widestNetwork } from '../../domain/networks.ts';
import { createOwnedMemory } from '../../domain/work/owned-memory.ts';
import { OAuthError } from '../../errors.ts';
import { urlProblem } from '../../outbound/egress.ts';
import type { Answer, HttpClient } from '../../outbound/http-client.ts';
import { userAgentOf } from '../../version.ts';
import { type OAuthClient, shortName, withoutNulls } from './client.ts';
import { redirectUriProblem } from './redirect-uri.ts';

/** Fetches Client ID Metadata Documents: the id of such a client is the https URL of its description. */
export type ClientDocuments = { find(clientId: string): Promise<OAuthClient> };

const limitBytes = 5 * 1024;
const timeoutMs = 10_000;
const maxRemembered = 1000;
const defaultTtlMs = 5 * 60_000;
const maxTtlMs = 24 * 60 * 60_000;

const documentSchema = z.object({
  client_id: z.string(),
  client_name: z.string().max(limitBytes),
  redirect_uris: z.array(z.string()).min(1).max(20),
  token_endpoint_auth_method: z.string().optional(),
});

/** A client, and the address of the stranger who was the first to name it. */
type Asked = { client: OAuthClient; network: string };

/** Whether a client id is the URL of a metadata document. */
export function isDocumentUrl(clientId: string): boolean {
  if (!clientId.startsWith('https://') || clientId.length > 1000) return false;
  const url = readUrl(clientId);
  return url?.href === clientId && url.pathname.length > 1 && !url.hash && !url.username && !url.password;
}

/**
 * `http` must have no exceptions to the address guard, because strangers choose the URL. Failures are not cached. A document
 * is fetched for the address of the stranger who asks, so that slow hosts delay nobody else; its memory is that address's.
 */
export function createClientDocuments(http: HttpClient, ownHosts: OwnHosts): (network: string) => ClientDocuments {
  const remembered = createOwnedMemory<Asked>({ max: maxRemembered, ownerOf: ({ network }) => widestNetwork(network) });
  return (network) => ({
    async find(clientId) {
      const known = remembered.get(clientId);
      if (known) return known.client;
      const answer = await fetchDocument(http, network, new URL(clientId));
      const client = readDocument(clientId, answer, ownHosts);
      const ttl = ttlOf(answer);
      if (ttl > 0) remembered.set(clientId, { client, network }, ttl);
      return client;
    },
  });
}

function refused(detail: string): OAuthError {
  return new OAuthError('invalid_client', 'the client metadata document could not be used', detail);
}

async function fetchDocument(http: HttpClient, network: string, url: URL): Promise<Answer> {
  const problem = urlProblem(url, undefined, undefined);
  if (problem) throw refused(problem);
  const answer = await http
    .send({
      workspaceId: network,
      origin: url.origin,
      credentialHash: undefined,
      path: url.pathname + url.search,
      method: 'GET',
      headers: ['Accept', 'application/json', 'User-Agent', userAgentOf()],
      body: undefined,
      timeoutMs,
      limitBytes,
    })
    .catch((error: Error) => {
      throw refused(error.message);
    });
  if (answer.status !== 200) throw refused(`status ${answer.status}`);
  if (!/^application\/([a-z0-9.+-]+\+)?json\b/i.test(String(answer.headers['content-type']))) throw refused('not JSON');
  return answer;
}

function readDocument(clientId: string, answer: Answer, ownHosts: OwnHosts): OAuthClient {
  let raw: unknown;
  try {
    raw = JSON.parse(answer.body.toString('utf8'));
  } catch {
    throw refused('not valid JSON');
  }
  const parsed = documentSchema.safeParse(withoutNulls(raw));
  if (!parsed.success) throw refused(parsed.error.issues[0]?.message ?? 'not valid');
  const document = parsed.data;
  if (document.client_id !== clientId) throw refused('its client_id is another one');
  if ((document.token_endpoint_auth_method ?? 'none') !== 'none') throw refused('it asks for client authentication');
  const problems = document.redirect_uris.map((uri) => redirectUriProblem(uri, ownHosts));
  const problem = problems.find((found) => found !== undefined);
  if (problem) throw refused(`a redirect URI ${problem}`);
  return {
    id: clientId,
    name: shortName(document.client_name),
    redirectUris: document.redirect_uris,
    host: new URL(clientId).host,
  };
}

/** How long the document may be cached, in ms: as HTTP says (RFC 9111, 4.2.1), within our own bounds. */
function ttlOf(answer: Answer): number {
  const control = String(answer.headers['cache-control'] ?? '');
  if (/\bno-(store|cache)\b/i.test(control)) return 0;
  const seconds = /\bmax-age=(\d{1,9})\b/i.exec(control)?.[1];
  return seconds === undefined ? defaultTtlMs : Math.min(Number(seconds) * 1000, maxTtlMs);
}
