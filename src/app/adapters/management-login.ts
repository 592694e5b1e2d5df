import { createHash } from 'node:crypto';
import type { Scope } from '../../domain/credentials/scopes.ts';
import type { Lookup } from '../../domain/visit.ts';
import { AppError, OAuthError } from '../../errors.ts';
import { causeOf, type Identity, type IdentityProvider } from '../../manage/identity.ts';
import { actorOfPerson } from '../../manage/people.ts';
import { shownCode } from '../../oauth/login/error-codes.ts';
import type { LoginServer } from '../../oauth/login-server.ts';
import type { GrantUse } from '../../oauth/tokens/use-grant.ts';
import type { Actor } from '../../operations/operation.ts';
import type { Db } from '../../store/db.ts';

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

/** Finds the person behind a token of the management server's sign-in. */
export async function findPerson(
  bearer: string,
  look: Lookup,
  { login, grants, db }: { login: LoginServer; grants: GrantUse; db: Db },
): Promise<Actor | undefined> {
  const open = await grants.open(login, bearer, look);
  if (!open || open.grant.user_id === null) return undefined;
  const granted = open.grant.scope.split(' ') as Scope[];
  return actorOfPerson(db, { userId: open.grant.user_id, workspaceId: open.grant.workspace_id, granted });
}
