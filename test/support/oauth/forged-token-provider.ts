import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { listenLocally } from '../upstreams/local-server.ts';

export type Claims = { [claim: string]: unknown };

/** Claims and header of the next ID token. `undefined` leaves a claim out; `wrap` changes the whole token. */
export type Forgery = {
  claims?: Claims;
  alg?: unknown;
  header?: Claims;
  usesOtherKey?: boolean;
  wrap?: (token: string) => string;
};

/** An OpenID Connect provider that signs any claims that a test sets. */
export type ForgedTokenProvider = {
  readonly url: string;
  readonly clientId: string;
  /** Sets the ID token of the next exchange, for the sign-in with this nonce. */
  setIdToken(nonce: string, forgery?: Forgery): void;
  /** Replaces the response body of a path; without `body`, restores the default response. */
  setResponse(path: string, body?: string, status?: number): void;
  /** Sends the next response of a path byte by byte, without ever ending it. */
  sendEndlessResponse(path: string): void;
  /** Adds a refresh token to the default response of the token endpoint. */
  setRefreshToken(token: string): void;
  /** Refresh tokens that it has received, oldest first. */
  readonly refreshTokens: readonly string[];
  /** Number of requests to a path. */
  requestCount(path: string): number;
  /** The published key set; it does not contain the key that `usesOtherKey` signs with. */
  readonly keys: readonly object[];
  close(): Promise<void>;
};

const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signJwt(header: object, claims: Claims, key: KeyObject | undefined): string {
  const content = `${base64url(header)}.${base64url(claims)}`;
  const signature = key ? sign('sha256', Buffer.from(content), { key, dsaEncoding: 'ieee-p1363' }) : Buffer.alloc(0);
  return `${content}.${signature.toString('base64url')}`;
}

export async function startForgedTokenProvider(): Promise<ForgedTokenProvider> {
  const clientId = 'toolhost-dashboard';
  const ownKeyPair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const otherKeyPair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  let idToken = '';
  let refreshToken: string | undefined;
  const refreshTokens: string[] = [];
  const overrides = new Map<string, { body: string; status: number }>();
  const requestCounts = new Map<string, number>();
  const endlessPaths = new Set<string>();
  const keys = [{ ...ownKeyPair.publicKey.export({ format: 'jwk' }), kid: 'own', use: 'sig', alg: 'ES256' }];
  const server = createServer(async (request, response) => {
    const receivedToken = new URLSearchParams(await text(request)).get('refresh_token');
    if (receivedToken !== null) refreshTokens.push(receivedToken);
    const defaultResponses: { [path: string]: unknown } = {
      '/.well-known/openid-configuration': {
        issuer: url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        userinfo_endpoint: `${url}/userinfo`,
        jwks_uri: `${url}/keys`,
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        id_token_signing_alg_values_supported: ['ES256'],
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
      },
      '/keys': { keys },
      '/token': {
        access_token: 'of-the-provider',
        token_type: 'bearer',
        id_token: idToken,
        refresh_token: refreshToken,
      },
    };
    const path = request.url ?? '';
    requestCounts.set(path, (requestCounts.get(path) ?? 0) + 1);
    const body = defaultResponses[path];
    const override = overrides.get(path);
    response.writeHead(override?.status ?? (body ? 200 : 404), { 'content-type': 'application/json' });
    if (endlessPaths.delete(path)) {
      response.write('{"a":"');
      const timer = setInterval(() => response.write('a'), 100);
      response.on('close', () => clearInterval(timer));
      return;
    }
    response.end(override?.body ?? JSON.stringify(body ?? {}));
  });
  const { url, close } = await listenLocally(server);
  return {
    url,
    clientId,
    keys,
    refreshTokens,
    setRefreshToken(token) {
      refreshToken = token;
    },
    sendEndlessResponse: (path) => void endlessPaths.add(path),
    requestCount: (path) => requestCounts.get(path) ?? 0,
    setResponse(path, body, status = 200) {
      if (body === undefined) overrides.delete(path);
      else overrides.set(path, { body, status });
    },
    setIdToken(
      nonce,
      { claims = {}, alg = 'ES256', header = {}, usesOtherKey = false, wrap = (token: string) => token } = {},
    ) {
      const now = Math.floor(Date.now() / 1000);
      const defaultClaims = { iss: url, sub: 'person', aud: clientId, iat: now, exp: now + 300, nonce, name: 'Ada' };
      const key = alg === 'none' ? undefined : (usesOtherKey ? otherKeyPair : ownKeyPair).privateKey;
      idToken = wrap(signJwt({ alg, kid: 'own', ...header }, { ...defaultClaims, ...claims }, key));
    },
    close,
  };
}
