import { routes, urlOf } from '../routes.ts';
import type { LoginServer } from './login-server.ts';
import type { OAuthParts } from './parts.ts';

type Described = Pick<LoginServer, 'issuer' | 'slug' | 'name' | 'scopes'>;

/**
 * Protected resource metadata (RFC 9728, 2) of a server or of a view, whose title is `name`. `resource` is exactly the
 * URL that people configure. The authorization server is that of the server in both cases.
 */
export function resourceMetadata(server: Described, resource: string, name = server.name): object {
  return {
    resource,
    authorization_servers: [server.issuer],
    ...advertisedScopes(server.scopes),
    bearer_methods_supported: ['header'],
    resource_name: name,
  };
}

/** Authorization server metadata (RFC 8414, 2; RFC 9207, 3; CIMD draft). */
export function serverMetadata(
  server: Described & Pick<LoginServer, 'mode'>,
  { baseUrl, takesDocuments }: Pick<OAuthParts, 'baseUrl' | 'takesDocuments'>,
): object {
  const at = (route: Parameters<typeof urlOf>[1]) => urlOf(baseUrl, route, server.slug);
  return {
    issuer: server.issuer,
    authorization_endpoint: at(routes.authorize),
    token_endpoint: at(routes.token),
    registration_endpoint: at(routes.register),
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    ...(server.mode === 'issued' && {
      // With passthrough, agents hold tokens that only the provider can revoke.
      revocation_endpoint: at(routes.revoke),
      revocation_endpoint_auth_methods_supported: ['none'],
    }),
    ...advertisedScopes(server.scopes),
    authorization_response_iss_parameter_supported: true,
    ...(takesDocuments && { client_id_metadata_document_supported: true }),
  };
}

/** Not advertised: clients would request it on their own, and the server decides whether there is a refresh token. */
export const offlineScope = 'offline_access';

/** Omits an empty list (RFC 8414, 3.2; RFC 9728, 3.2). */
function advertisedScopes(scopes: readonly string[]): { scopes_supported?: string[] } {
  const advertised = scopes.filter((scope) => scope !== offlineScope);
  return advertised.length > 0 ? { scopes_supported: advertised } : {};
}
