import type { Configuration } from 'openid-client';
import { AppError, messageOf } from '../errors.ts';

/** A person as the identity provider knows them. */
export type Identity = {
  issuer: string;
  subject: string;
  /** Only one that the provider says it has verified: invitations are given to addresses. */
  email: string | undefined;
  name: string | undefined;
};

/** What one sign-in carries from the departure to the return; both are secrets of the browser's login. */
export type SignIn = { state: string; verifier: string; nonce: string };

/** The external identity provider (OpenID Connect): the dashboard's, and so the management server's. */
export type IdentityProvider = {
  host: string;
  authorizationUrl(signIn: SignIn, redirectUri: string): Promise<URL>;
  /** Judges what came back: state, issuer, nonce, signature, audience, expiry. @throws AppError unauthenticated */
  identify(returned: URL, signIn: SignIn): Promise<Identity>;
};

export type IdentityOptions = { issuer: string; clientId: string; clientSecret: string };

/** Finds the identity provider, at the first sign-in; `host` is what people are told. */
export type IdentitySource = { find: () => Promise<IdentityOptions>; host: string };

const timeoutS = 10;

/** Loaded at the first sign-in, as many a process sees none. */
const library = () => import('openid-client');

/** Discovery waits for the first sign-in, so that a provider that is down does not keep the service from starting. */
export function createIdentityProvider(find: () => Promise<IdentityOptions>, host: string): IdentityProvider {
  let discovered: Promise<Configuration> | undefined;

  function configuration(): Promise<Configuration> {
    discovered ??= discover(find).catch((error: unknown) => {
      discovered = undefined;
      throw new AppError('unavailable', 'the identity provider does not answer; try again in a moment', {
        retryAfterS: 5,
        cause: error,
      });
    });
    return discovered;
  }

  return {
    host,
    async authorizationUrl({ state, nonce, verifier }, redirectUri) {
      const oidc = await library();
      return oidc.buildAuthorizationUrl(await configuration(), {
        redirect_uri: redirectUri,
        scope: 'openid email profile',
        state,
        nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      });
    },
    async identify(returned, { state, nonce, verifier }) {
      const oidc = await library();
      const config = await configuration();
      const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
      const tokens = await oidc.authorizationCodeGrant(config, returned, checks).catch((error: unknown) => {
        throw new AppError('unauthenticated', 'the sign-in did not succeed; start again', { cause: error });
      });
      const claims = tokens.claims();
      if (!claims) throw new AppError('unauthenticated', 'the identity provider did not say who signed in');
      const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value.slice(0, 200) : undefined);
      const email = claims.email_verified === true ? text(claims.email) : undefined;
      return { issuer: claims.iss, subject: claims.sub, email, name: text(claims.name) };
    },
  };
}

async function discover(find: () => Promise<IdentityOptions>): Promise<Configuration> {
  const oidc = await library();
  const { issuer, clientId, clientSecret } = await find();
  const url = new URL(issuer);
  // The library trusts the TLS of the token endpoint instead, unless it is asked to verify the signature as well.
  const execute = [oidc.enableNonRepudiationChecks, ...(url.protocol === 'http:' ? [oidc.allowInsecureRequests] : [])];
  return oidc.discovery(url, clientId, undefined, oidc.ClientSecretBasic(clientSecret), { execute, timeout: timeoutS });
}

/** For the log: what the library found, which people are not told. */
export function causeOf(error: unknown): string {
  return error instanceof Error && error.cause !== undefined ? messageOf(error.cause) : messageOf(error);
}
