import { createHash } from 'node:crypto';
import { configSecrets } from '../../domain/config/server-config.ts';
import { originsOf } from '../../domain/config/server-wide.ts';
import { isReadOnly } from '../../domain/config/view.ts';
import type { HostedServer, ViewOf } from '../../gateway/hosted/hosted-server.ts';
import type { LoginServer, LoginView } from '../../oauth/login-server.ts';
import { hostedProvider } from '../../oauth/provider.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import { routes, urlOf } from '../../routes.ts';
import { userAgentOf } from '../../version.ts';

export type LoginServersOptions = {
  baseUrl: string;
  ownAddressOf: (slug: string) => string | undefined;
  http: HttpClient;
  now: () => number;
};

/** The login of a hosted server, or undefined for a server without one. Created once per compiled server. */
export function createLoginServers(options: LoginServersOptions): (server: HostedServer) => LoginServer | undefined {
  const made = new WeakMap<HostedServer, LoginServer>();
  return find;
  function find(server: HostedServer): LoginServer | undefined {
    const known = made.get(server);
    if (known) return known;
    const login = server.view ? ofView(server.view) : toLoginServer(server, options);
    if (login) made.set(server, login);
    return login;
  }
  /** A view has the login of its server. */
  function ofView({ name, server }: ViewOf): LoginServer | undefined {
    const whole = find(server);
    return whole && { ...whole, view: name };
  }
}

function toLoginServer(server: HostedServer, options: LoginServersOptions): LoginServer | undefined {
  const { oauth } = server.config;
  if (!oauth) return undefined;
  const upstreams = originsOf(server.config);
  const mode = oauth.token_mode ?? 'issued';
  const secret = server.secrets.get(configSecrets.clientSecret);
  const mayGo = secret?.origins.includes(new URL(oauth.token_url).origin) ?? false;
  return {
    id: server.id,
    workspaceId: server.workspaceId,
    slug: server.slug,
    name: server.config.name,
    operator: '',
    issuer: urlOf(options.baseUrl, routes.mcp, server.slug),
    ownAddress: options.ownAddressOf(server.slug),
    scopes: oauth.scopes,
    mode,
    agreement: agreementOf([oauth.authorization_url, oauth.token_url, oauth.client_id, mode, ...upstreams.sort()]),
    views: Object.keys(server.config.views ?? {}),
    findView: (name) => loginView(server, name),
    provider: hostedProvider({
      oauth,
      clientSecret: mayGo ? (secret?.value ?? '') : '',
      workspaceId: server.workspaceId,
      redirectUri: urlOf(options.baseUrl, routes.callback, server.slug),
      audience: upstreams.map((origin) => new URL(origin).host),
      userAgent: userAgentOf(options.baseUrl),
      http: options.http,
      now: options.now,
    }),
  };
}

function loginView(server: HostedServer, name: string): LoginView | undefined {
  const view = server.findView(name);
  if (!view) return undefined;
  const tools = view.config.tools.map((tool) => ({ name: tool.title ?? tool.name, reads: isReadOnly(tool) }));
  return { name, title: view.config.name, tools };
}

/** Hash of what a person agrees to: where they log in, for which client id and token mode, and where tokens are sent. */
function agreementOf(parts: readonly string[]): string {
  // JSON, so that no client id can pass for a list of hosts.
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
}
