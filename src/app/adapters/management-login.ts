import { createHash } from 'node:crypto';
import { AppError, OAuthError } from '../../errors.ts';
import { causeOf, type Identity, type IdentityProvider } from '../../manage/identity.ts';
import type { LoginServer } from '../../oauth/parts.ts';
import { shownCode } from '../../oauth/provider.ts';

export type ManagementLoginOptions = {
  slug: string;
  issuer: string;
  ownAddress: string | undefined;
  apiAddress: string;
  redirectUri: string;
  identity: IdentityProvider;
  welcome: (identity: Identity) => Promise<{ userId: string; workspaceId: string }>;
};

const scopes = ['manage:read', 'manage:write'];

/** The login of the management server. Its provider is the identity provider of the dashboard. */
export function createManagementLogin(options: ManagementLoginOptions): LoginServer {
  const { identity, redirectUri } = options;
  return {
    id: 'management',
    workspaceId: 'management',
    slug: options.slug,
    name: 'Toolhost management',
    operator: 'this Toolhost itself',
    actsIn: 'Your own workspace, or the one that you last switched to in the dashboard',
    issuer: options.issuer,
    ownAddress: options.ownAddress,
    apiAddress: options.apiAddress,
    scopes,
    mode: 'issued',
    agreement: 'management',
    views: [],
    findView: () => undefined,
    provider: {
      host: identity.host,
      audience: [],
      shownCode: (error) => shownCode(error, []),
      authorizationUrl: ({ state, verifier }) =>
        identity.authorizationUrl({ state, verifier, nonce: nonceOf(verifier) }, redirectUri),
      async exchange({ parameters, state, verifier }) {
        const returned = new URL(redirectUri);
        returned.search = parameters.toString();
        const person = await identity
          .identify(returned, { state, verifier, nonce: nonceOf(verifier) })
          .catch(asOAuthError);
        const { userId, workspaceId } = await options.welcome(person);
        // No token of the identity provider is kept: only the identity was needed.
        const tokens = { accessToken: 'none', refreshToken: undefined, expiresAt: undefined, scope: undefined };
        return { tokens, userId, workspaceId };
      },
      refresh: () => Promise.reject(new OAuthError('invalid_grant', 'a sign-in has nothing to refresh')),
    },
  };
}

/** Derives the nonce from the verifier, which never leaves this service before the nonce is checked. */
function nonceOf(verifier: string): string {
  return createHash('sha256').update(`nonce ${verifier}`).digest('base64url');
}

function asOAuthError(error: unknown): never {
  if (!(error instanceof AppError)) throw error;
  throw new OAuthError(
    error.kind === 'unavailable' ? 'temporarily_unavailable' : 'server_error',
    error.message,
    causeOf(error),
  );
}
