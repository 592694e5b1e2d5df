import { type Authentication, storedNameOf } from '../../domain/config/authentication.ts';
import { fillVariables } from '../../domain/config/server-wide.ts';
import type { ClientTokens, TokenRequest } from '../../domain/credentials/token-request.ts';
import type { HostedServer, HostedTool } from '../hosted/hosted-server.ts';
import type { Signing } from './sign-request.ts';
import { countFilled, secretFor, storedText } from './stored-text.ts';

/** Access tokens that the service got for itself, by the credential that they are for. */
export type OwnTokens = ReadonlyMap<Authentication, string>;

/** The part of a call that its credentials depend on; `sensitive` collects them. */
export type CredentialUse = {
  readonly server: HostedServer;
  readonly tool: HostedTool;
  readonly sensitive: string[];
  /** Undefined for a tool that needs none. */
  ownTokens: OwnTokens | undefined;
  /** Undefined unless the request is to be signed. */
  signing: Signing | undefined;
};

/**
 * Gets the tokens of client credentials that a call needs. A token goes only where the secret that it was got with may
 * go: to the hosts that the server had when that secret was set.
 * @throws ToolFailure secret_missing, no_token
 */
export async function getOwnTokens(call: CredentialUse, tokens: ClientTokens): Promise<OwnTokens> {
  const found = new Map<Authentication, string>();
  for (const one of call.tool.clientCredentials) found.set(one, await tokens.find(requestFor(call, one)));
  return found;
}

/** The tokens after the upstream refused a request; undefined when none of them could be renewed. */
export async function renewOwnTokens(
  call: CredentialUse,
  refused: OwnTokens,
  tokens: ClientTokens,
): Promise<OwnTokens | undefined> {
  const renewed = new Map(refused);
  for (const [one, token] of refused) {
    const fresh = await tokens.renew(requestFor(call, one), token);
    if (fresh !== undefined) renewed.set(one, fresh);
  }
  const isNew = [...renewed].some(([one, token]) => refused.get(one) !== token);
  return isNew ? renewed : undefined;
}

/** The request of a credential, made once per compiled server, because it is also the key of its token.
 * @throws ToolFailure secret_missing where the secret may not be used for this tool
 */
export function requestFor(call: CredentialUse, one: Authentication): TokenRequest {
  const { server, tool, sensitive } = call;
  const secrets: string[] = [];
  const tokenUrl = fillVariables(one.token_url ?? '', server.config.variables);
  const { origin } = new URL(tokenUrl);
  let filled = 0;
  const secret = (name: string) => {
    const value = secretFor(server, name, origin);
    filled = countFilled(filled, value);
    secretFor(server, name, tool.request.url.origin);
    secrets.push(value);
    return value;
  };
  const [clientId, clientSecret] = [
    storedText(server, one, 'client_id', secret),
    storedText(server, one, 'client_secret', secret),
  ];
  sensitive.push(...secrets, clientSecret);
  const known = server.tokenRequests.get(one);
  if (known) return known;
  const request = {
    workspaceId: server.workspaceId,
    serverId: server.id,
    slug: server.slug,
    location: storedNameOf(server.config, one),
    tokenUrl,
    clientId,
    clientSecret,
    clientAuth: one.client_auth ?? 'basic',
    params: paramsOf(one, server),
  };
  server.tokenRequests.set(one, request);
  return request;
}

function paramsOf(one: Authentication, { config }: HostedServer): Record<string, string> {
  const { scopes = [], audience, resource, extra_params = {} } = one;
  const filled = (text: string) => fillVariables(text, config.variables);
  return {
    ...Object.fromEntries(Object.entries(extra_params).map(([name, value]) => [name, filled(value)])),
    ...(scopes.length > 0 && { scope: scopes.map(filled).join(' ') }),
    ...(audience !== undefined && { audience: filled(audience) }),
    ...(resource !== undefined && { resource: filled(resource) }),
  };
}
