import type { HttpBindings } from '@hono/node-server';
import type { Hono } from 'hono';
import { registeringClients } from '../../domain/clients/clients.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { parseStored } from '../../domain/json/json.ts';
import { type McpEndpoint, type McpServer, modernRevision, newestLegacyRevision } from '../../domain/mcp.ts';
import type { RequestHeaders } from '../../domain/visit.ts';
import { AppError, OAuthError, Unauthenticated } from '../../errors.ts';
import { type HostedServer, serverOrView } from '../../gateway/hosted/hosted-server.ts';
import type { HostedServers } from '../../gateway/hosted/hosted-servers.ts';
import { mcpServer } from '../../gateway/hosted-endpoint.ts';
import { answer, challenge } from '../../gateway/mcp-listener.ts';
import { textOf } from '../../gateway/protocol/json-rpc.ts';
import { registerClient } from '../../oauth/clients.ts';
import type { OAuthParts } from '../../oauth/parts.ts';
import type { ConnectionProbe, ProbeJson } from '../../operations/operation.ts';
import { pathReader } from '../../routes.ts';

export type ConnectionProbeParts = {
  servers: HostedServers;
  endpointOf: (server: HostedServer) => McpEndpoint;
  login: () => Promise<Hono<{ Bindings: HttpBindings }>>;
  oauth: OAuthParts;
};

/**
 * Repeats the first steps of a client inside this process: it is rejected, follows the challenge to the metadata,
 * registers, and requests the server's description and tools. It uses the code that serves clients, and stores
 * nothing.
 */
export function createConnectionProbe(parts: ConnectionProbeParts) {
  return async (slug: string, view: string | undefined): Promise<ConnectionProbe> => {
    const server = serverOrView(await parts.servers.find(slug), view);
    if (!server) throw new AppError('notFound', 'there is no such server');
    const refusal = await refusalOf(parts.endpointOf(server));
    const resource = await documentAt(parts, /resource_metadata="([^"]+)"/.exec(refusal?.challenge ?? '')?.[1]);
    const issuer = await documentAt(parts, serverMetadataUrl(resource));
    return {
      refusal,
      resource,
      issuer,
      answers: await firstAnswers(mcpServer(server, refuseCalls, { workspaceId: server.workspaceId })),
      refusedClients: server.config.oauth ? refusedClients(server, parts.oauth) : [],
    };
  };
}

async function refusalOf(endpoint: McpEndpoint): Promise<ConnectionProbe['refusal']> {
  try {
    await endpoint.admit({ headers: {}, socket: {} }, undefined);
    return undefined;
  } catch (error) {
    if (!(error instanceof Unauthenticated)) throw error;
    return { status: error.status, challenge: challenge(error, endpoint.hints) };
  }
}

/** Inserts the well-known segment between the host and the path of the issuer (RFC 8414, 3.1). */
function serverMetadataUrl(resource: ProbeJson | undefined): string | undefined {
  const [issuer] = Array.isArray(resource?.authorization_servers) ? resource.authorization_servers : [];
  const url = typeof issuer === 'string' ? readUrl(issuer) : undefined;
  return url && `${url.origin}/.well-known/oauth-authorization-server${url.pathname}`;
}

/**
 * Fetches one of this service's documents from the router inside this process. URLs of other origins are not fetched.
 */
async function documentAt(
  { login, oauth }: ConnectionProbeParts,
  url: string | undefined,
): Promise<ProbeJson | undefined> {
  const found = url === undefined ? undefined : readUrl(url);
  if (found?.origin !== new URL(oauth.baseUrl).origin) return undefined;
  const response = await (await login()).request(pathReader(oauth.baseUrl)(found.pathname));
  return response.ok ? ((await response.json()) as ProbeJson) : undefined;
}

const clientInfo = { name: 'connection-check', version: '1' };
const meta = {
  'io.modelcontextprotocol/protocolVersion': modernRevision,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': clientInfo,
};

async function firstAnswers(server: McpServer): Promise<ConnectionProbe['answers']> {
  const ask = async (method: string, params: ProbeJson, headers: RequestHeaders): Promise<ProbeJson> => {
    const context = {
      headers,
      requestId: 'connection-check',
      bytesIn: 0,
      onGone: () => undefined,
      admission: { isOld: () => false, again: () => server },
    };
    const reply = await answer(server, { jsonrpc: '2.0', id: 1, method, params }, context);
    // A list of tools may be long, and each request reads one.
    return (await parseStored(textOf(reply.body ?? '{}'))) as ProbeJson;
  };
  const legacy = (method: string, params: ProbeJson = {}) => ask(method, params, {});
  const modern = (method: string) =>
    ask(method, { _meta: meta }, { 'mcp-protocol-version': modernRevision, 'mcp-method': method });
  return {
    initialize: await legacy('initialize', { protocolVersion: newestLegacyRevision, capabilities: {}, clientInfo }),
    tools: await legacy('tools/list'),
    discover: await modern('server/discover'),
    modernTools: await modern('tools/list'),
  };
}

function refuseCalls(): never {
  throw new AppError('forbidden', 'a connection check does not call tools');
}

function refusedClients(server: HostedServer, oauth: OAuthParts): ConnectionProbe['refusedClients'] {
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
