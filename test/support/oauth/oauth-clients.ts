import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import * as v2 from '@modelcontextprotocol/client';
import { type OAuthClientProvider, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import {
  clientInfo,
  connectSdk1,
  createMcpRemoteTransport,
  type InspectorEra,
  inspect,
  inspectorClient,
  type McpClient,
  sdk2Client,
} from '../mcp-clients.ts';
import { findFreePort } from '../upstreams/listener.ts';

export interface LoginContext {
  url: string;
  /** The folder for the client's files. */
  home: string;
  /** Follows the authorization URL to the end as a person. Returns the redirect to the client. */
  completeLogin(authorizationUrl: string | URL): Promise<URL>;
}

export interface LoginClient extends McpClient {
  /** The access token of the login, if the client exposes it. */
  token?(): string | undefined;
}

/** A client that knows only the URL of a server and logs a person in. */
export interface LoginClientKind {
  name: string;
  /** The MCP revision that it must negotiate with this service. */
  revision: string;
  connect(access: LoginContext): Promise<LoginClient>;
}

const redirectUrl = 'https://agent.example/callback';

/** Creates an agent that stores its login, and sends the person to the authorization URL. */
export function createLoginAgent({ completeLogin }: Pick<LoginContext, 'completeLogin'>) {
  let client: v2.StoredOAuthClientInformation | undefined;
  let tokens: v2.StoredOAuthTokens | undefined;
  let discovery: v2.OAuthDiscoveryState | undefined;
  let verifier = '';
  let redirect: URL | undefined;
  const state = 'the-state-of-the-agent';
  const provider: v2.OAuthClientProvider = {
    redirectUrl,
    clientMetadata: { client_name: 'Test agent', redirect_uris: [redirectUrl] },
    state: () => state,
    clientInformation: () => client,
    saveClientInformation: (newClient) => {
      client = newClient;
    },
    tokens: () => tokens,
    saveTokens: (newTokens) => {
      tokens = newTokens;
    },
    codeVerifier: () => verifier,
    saveCodeVerifier: (newVerifier) => {
      verifier = newVerifier;
    },
    discoveryState: () => discovery,
    saveDiscoveryState: (newDiscovery) => {
      discovery = newDiscovery;
    },
    invalidateCredentials: (what) => {
      if (what === 'all' || what === 'tokens') tokens = undefined;
      if (what === 'all' || what === 'client') client = undefined;
    },
    redirectToAuthorization: async (url) => {
      redirect = await completeLogin(url);
    },
  };
  return {
    provider,
    token: () => tokens?.access_token,
    /** Parameters of the redirect that ended the login. */
    getRedirectParams(): URLSearchParams {
      const { href, searchParams } = redirect ?? assert.fail('the client sent no one to log in');
      assert.ok(href.startsWith(`${redirectUrl}?`), href);
      assert.equal(searchParams.get('state'), state);
      return searchParams;
    },
  };
}

const sdk1: LoginClientKind = {
  name: 'SDK v1',
  revision: '2025-11-25',
  async connect(access) {
    const agent = createLoginAgent(access);
    const authProvider = agent.provider as OAuthClientProvider;
    const open = () => new StreamableHTTPClientTransport(new URL(access.url), { authProvider });
    const first = open();
    await assert.rejects(
      connectSdk1(first as Transport, () => undefined),
      UnauthorizedError,
    );
    await first.finishAuth(agent.getRedirectParams().get('code') ?? '');
    const transport = open();
    const client = await connectSdk1(transport as Transport, () => transport.protocolVersion);
    return { ...client, token: agent.token };
  },
};

function sdk2(name: string, mode: v2.VersionNegotiationMode, revision: string): LoginClientKind {
  return {
    name: `SDK v2, ${name}`,
    revision,
    async connect(access) {
      const agent = createLoginAgent(access);
      const open = () => new v2.StreamableHTTPClientTransport(new URL(access.url), { authProvider: agent.provider });
      const newClient = () => new v2.Client(clientInfo, { versionNegotiation: { mode } });
      const first = open();
      await assert.rejects(newClient().connect(first), v2.UnauthorizedError);
      await first.finishAuth(agent.getRedirectParams());
      const client = newClient();
      await client.connect(open());
      return { ...sdk2Client(client), token: agent.token };
    },
  };
}

/** Sends the redirect of the login to a client that has its own listener. */
async function completeLoginAndReturn({ completeLogin }: LoginContext, authorizationUrl: string): Promise<void> {
  const response = await fetch(await completeLogin(authorizationUrl));
  assert.equal(response.status, 200, await response.text());
}

const mcpRemote: LoginClientKind = {
  name: 'mcp-remote',
  revision: '2025-11-25',
  async connect(access) {
    const transport = createMcpRemoteTransport(access.url, access.home, [], 'pipe');
    const login = Promise.withResolvers<void>();
    const stderr = transport.stderr as NodeJS.ReadableStream;
    createInterface({ input: stderr }).on('line', (line) => {
      if (/^https?:\S+\/authorize\?/.test(line)) completeLoginAndReturn(access, line).then(login.resolve, login.reject);
    });
    const connected = connectSdk1(transport, () => transport.revision);
    const failed = login.promise.then(() => connected);
    return Promise.race([connected, failed]).catch(async (error) => {
      await transport.close();
      throw error;
    });
  },
};

function inspector(generation: InspectorEra, revision: string): LoginClientKind {
  return {
    name: `Inspector, ${generation}`,
    revision,
    async connect(access) {
      const callback = ['--callback-url', `http://127.0.0.1:${await findFreePort()}/oauth/callback`];
      // Without this, it opens a login only if there is a terminal.
      const env = { MCP_AUTO_OPEN_ENABLED: 'true', MCP_INSPECTOR_SECRET_STORE: 'file' };
      const onLine = (line: string) => {
        const url = /^Please navigate to: (\S+)$/.exec(line)?.[1];
        return url === undefined ? undefined : completeLoginAndReturn(access, url);
      };
      const initialize = [...callback, '--method', 'initialize'];
      const { protocolVersion } = await inspect(generation, access, initialize, { env, onLine });
      const stored = ['--stored-auth-only', '--method'];
      const invoke = (method: string, ...more: string[]) =>
        inspect(generation, access, [...stored, method, ...more], { env });
      const client = inspectorClient(invoke);
      return { ...client, revision: async () => protocolVersion as string };
    },
  };
}

export const loginClients: readonly LoginClientKind[] = [
  sdk1,
  sdk2('legacy', 'legacy', '2025-11-25'),
  sdk2('auto', 'auto', '2026-07-28'),
  sdk2('2026-07-28', { pin: '2026-07-28' }, '2026-07-28'),
  mcpRemote,
  inspector('legacy', '2025-11-25'),
  inspector('auto', '2026-07-28'),
  inspector('modern', '2026-07-28'),
];
