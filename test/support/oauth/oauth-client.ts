import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { applyChanges, type Changes } from '../browser/browser.ts';
import { readReply } from '../toolhost/read-reply.ts';
import type { Json, Reply } from '../toolhost/toolhost.ts';

/** An authorization request: the URL that the person is sent to, and the values that the client stores. */
export type Authorization = { url: URL; verifier: string; state: string };

export type Tokens = {
  access_token: string;
  refresh_token: string;
  token_type: string;
  expires_in: number;
  scope?: string;
};

/** The client software of one server; a test can change or leave out every parameter. */
export type OAuthClient = {
  id: string;
  /** Undefined for a public client. */
  secret: string | undefined;
  redirectUri: string;
  authorization(changes?: Changes): Authorization;
  redeem(code: string, verifier: string, changes?: Changes): Promise<Reply>;
  refresh(token: string, changes?: Changes): Promise<Reply>;
  revoke(token: string, changes?: Changes): Promise<Reply>;
};

export type ClientOptions = {
  /** URL of the server, which is both the issuer and the resource. */
  issuer: string;
  redirectUri?: string;
  name?: string;
  /** Source address of its requests, for a service that trusts one proxy. */
  address?: string;
  /** Authentication method; left out for a public client that does not name one. */
  authMethod?: 'none' | 'client_secret_basic' | 'client_secret_post';
};

const defaultRedirect = 'https://agent.example/callback';

export function createChallenge(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

/** Posts JSON, or a form if the body is `URLSearchParams`. */
export async function post(
  url: string,
  body: Json | URLSearchParams,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const isForm = body instanceof URLSearchParams;
  const type = isForm ? {} : { 'content-type': 'application/json' };
  const content = isForm ? body : JSON.stringify(body);
  const init = { method: 'POST', redirect: 'manual', headers: { ...type, ...headers }, body: content } as const;
  return readReply(await fetch(url, init));
}

/** Encodes a client ID and secret for HTTP Basic (RFC 6749, 2.3.1). */
export function formatBasicAuth(id: string, secret: string): string {
  const encoded = [id, secret].map((text) => new URLSearchParams({ x: text }).toString().slice('x='.length));
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`;
}

/** Creates a client with this ID, registered or not. */
export function clientWithId(id: string, options: ClientOptions, secret?: string): OAuthClient {
  const { issuer, redirectUri = defaultRedirect, address = '203.0.113.2', authMethod } = options;
  const isBasic = authMethod === 'client_secret_basic';
  const send = (path: string, form: Record<string, string>, changes: Changes | undefined) => {
    const credentials = {
      ...(!isBasic && { client_id: id }),
      ...(secret !== undefined && !isBasic && { client_secret: secret }),
    };
    const headers = isBasic && secret !== undefined ? { authorization: formatBasicAuth(id, secret) } : undefined;
    const body = new URLSearchParams(applyChanges({ ...form, ...credentials }, changes));
    return post(`${issuer}/${path}`, body, { 'x-forwarded-for': address, ...headers });
  };
  return {
    id,
    secret,
    redirectUri,
    authorization(changes) {
      const verifier = randomBytes(32).toString('base64url');
      const url = new URL(`${issuer}/authorize`);
      const defaultParams = {
        response_type: 'code',
        client_id: id,
        redirect_uri: redirectUri,
        state: randomBytes(12).toString('base64url'),
        code_challenge: createChallenge(verifier),
        code_challenge_method: 'S256',
        resource: issuer,
      };
      const params = applyChanges(defaultParams, changes);
      url.search = new URLSearchParams(params).toString();
      return { url, verifier, state: params.state ?? '' };
    },
    redeem: (code, code_verifier, changes) => {
      const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier };
      return send('token', { ...form, resource: issuer }, changes);
    },
    refresh: (refresh_token, changes) =>
      send('token', { grant_type: 'refresh_token', refresh_token, resource: issuer }, changes),
    revoke: (token, changes) => send('revoke', { token }, changes),
  };
}

export async function registerClient(options: ClientOptions): Promise<OAuthClient> {
  const { issuer, redirectUri = defaultRedirect, name = 'Test agent', address = '203.0.113.2', authMethod } = options;
  const method = authMethod === undefined ? {} : { token_endpoint_auth_method: authMethod };
  const metadata = { client_name: name, redirect_uris: [redirectUri], ...method };
  const reply = await post(`${issuer}/register`, metadata, { 'x-forwarded-for': address });
  assert.equal(reply.status, 201, reply.text);
  return clientWithId(reply.body.client_id as string, options, reply.body.client_secret as string | undefined);
}

/** Returns the tokens of a token response, which must be successful. */
export function expectTokens(reply: Reply): Tokens {
  assert.equal(reply.status, 200, reply.text);
  return reply.body as Tokens;
}

/** Asserts the status and code of an OAuth error response (RFC 6749, 5.2). */
export function assertOAuthError(reply: Reply, status: number, code: string): void {
  assert.deepEqual([reply.status, reply.body.error], [status, code], reply.text);
  assert.match(String(reply.body.error_description), /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
}
