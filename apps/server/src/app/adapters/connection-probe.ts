import type { HttpBindings } from '@hono/node-server';
import type { RequestHeaders } from '@toolhost/credentials/client-request';
import { AppError, OAuthError, Unauthenticated } from '@toolhost/errors/errors';
import { parseStoredJson } from '@toolhost/json/json';
import { knownDocuments } from '@toolhost/mcp-clients/client-documents';
import { registeringClients } from '@toolhost/mcp-clients/clients';
import { completeReply, joinChunks } from '@toolhost/mcp-protocol/json-rpc';
import {
  type McpEndpoint,
  type McpServer,
  newestStatefulRevision,
  statelessRevision,
} from '@toolhost/mcp-protocol/mcp';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import type { Hono } from 'hono';
import { getServerOrView, type HostedServer } from '../../gateway/hosted/hosted-server.ts';
import type { HostedServers } from '../../gateway/hosted/hosted-servers.ts';
import { createMcpServer } from '../../gateway/hosted-endpoint.ts';
import { formatChallenge, handlePayload } from '../../gateway/mcp-listener.ts';
import { isRegisteredRedirect, registerClient } from '../../oauth/clients.ts';
import type { OAuthDeps } from '../../oauth/oauth-deps.ts';
import type { ConnectionProbe, ProbeJson } from '../../operations/operation.ts';
import { createBasePathRemover } from '../../routes.ts';

export type ConnectionProbeDeps = {
  servers: HostedServers;
  getEndpoint: (server: HostedServer) => McpEndpoint;
  getLoginRouter: () => Promise<Hono<{ Bindings: HttpBindings }>>;
  oauth: OAuthDeps;
};

/**
 * Repeats the first steps of a client inside this process: it is rejected, follows the challenge to the metadata,
 * registers, and requests the server's description and tools. Runs the code that serves clients, and stores nothing.
 */
export function createConnectionProbe(deps: ConnectionProbeDeps) {
  return async (slug: string, view: string | undefined): Promise<ConnectionProbe> => {
    const server = getServerOrView(await deps.servers.find(slug), view);
    if (!server) throw new AppError('notFound', 'there is no such server');
    const refusal = await probeChallenge(deps.getEndpoint(server));
    const metadataUrl = /resource_metadata="([^"]+)"/.exec(refusal?.challenge ?? '')?.[1];
    const resourceMetadata = await fetchOwnDocument(deps, metadataUrl);
    const issuerMetadata = await fetchOwnDocument(deps, getIssuerMetadataUrl(resourceMetadata));
    return {
      refusal,
      resourceMetadata,
      issuerMetadata,
      responses: await probeResults(createMcpServer(server, rejectCalls, { workspaceId: server.workspaceId })),
      refusedClients: server.config.oauth || server.config.login ? findRefusedClients(server, deps.oauth) : [],
      unlistedClients: findUnlistedClients(server.config.login?.clients),
    };
  };
}

async function probeChallenge(endpoint: McpEndpoint): Promise<ConnectionProbe['refusal']> {
  try {
    await endpoint.authorize({ headers: {}, socket: {} }, undefined);
    return undefined;
  } catch (error) {
    if (!(error instanceof Unauthenticated)) throw error;
    return { status: error.status, challenge: formatChallenge(error, endpoint.loginHints) };
  }
}

/** Inserts the well-known segment between the host and the path of the issuer (RFC 8414, 3.1). */
function getIssuerMetadataUrl(resourceMetadata: ProbeJson | undefined): string | undefined {
  const [issuer] = Array.isArray(resourceMetadata?.authorization_servers) ? resourceMetadata.authorization_servers : [];
  const url = typeof issuer === 'string' ? parseUrl(issuer) : undefined;
  return url && `${url.origin}/.well-known/oauth-authorization-server${url.pathname}`;
}

/**
 * Fetches one of this service's documents from the router inside this process. URLs of other origins are not fetched.
 */
async function fetchOwnDocument(
  { getLoginRouter, oauth }: ConnectionProbeDeps,
  url: string | undefined,
): Promise<ProbeJson | undefined> {
  const documentUrl = url === undefined ? undefined : parseUrl(url);
  if (documentUrl?.origin !== new URL(oauth.baseUrl).origin) return undefined;
  const router = await getLoginRouter();
  const response = await router.request(createBasePathRemover(oauth.baseUrl)(documentUrl.pathname));
  return response.ok ? ((await response.json()) as ProbeJson) : undefined;
}

const clientInfo = { name: 'connection-check', version: '1' };
const meta = {
  'io.modelcontextprotocol/protocolVersion': statelessRevision,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': clientInfo,
};

async function probeResults(server: McpServer): Promise<ConnectionProbe['responses']> {
  const sendRequest = async (method: string, params: ProbeJson, headers: RequestHeaders): Promise<ProbeJson> => {
    const context = {
      headers,
      requestId: 'connection-check',
      bytesIn: 0,
      onDisconnect: () => undefined,
      authorization: { isStale: () => false, refresh: () => server },
    };
    const handled = handlePayload(server, { jsonrpc: '2.0', id: 1, method, params }, context);
    const response = await completeReply(server, await handled);
    // Parsed in chunks, because a list of tools may be long.
    return (await parseStoredJson(joinChunks(response.body ?? '{}'))) as ProbeJson;
  };
  const sendStateful = (method: string, params: ProbeJson = {}) => sendRequest(method, params, {});
  const sendStateless = (method: string) =>
    sendRequest(method, { _meta: meta }, { 'mcp-protocol-version': statelessRevision, 'mcp-method': method });
  return {
    initialize: await sendStateful('initialize', {
      protocolVersion: newestStatefulRevision,
      capabilities: {},
      clientInfo,
    }),
    tools: await sendStateful('tools/list'),
    discover: await sendStateless('server/discover'),
    statelessTools: await sendStateless('tools/list'),
  };
}

function rejectCalls(): never {
  throw new AppError('forbidden', 'a connection check does not call tools');
}

function findUnlistedClients(listed: readonly string[] | undefined): string[] {
  if (!listed) return [];
  const documented = new Set(listed.flatMap((url) => knownDocuments.get(url)?.name ?? []));
  return registeringClients.flatMap(({ name, redirectUris }) =>
    documented.has(name) || redirectUris.some((uri) => isRegisteredRedirect(listed, uri)) ? [] : [name],
  );
}

function findRefusedClients(server: HostedServer, oauth: OAuthDeps): ConnectionProbe['refusedClients'] {
  return registeringClients.flatMap(({ name, redirectUris }) => {
    try {
      registerClient(server.id, { client_name: name, redirect_uris: redirectUris }, oauth);
      return [];
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      return [{ client: name, reason: error.message }];
    }
  });
}
