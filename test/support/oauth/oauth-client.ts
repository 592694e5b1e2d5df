import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { type Changes, changed } from '../browser/browser.ts';
import type { Json, Reply } from '../toolhost/toolhost.ts';

/** One authorization request: where the person is sent, and what the client keeps for itself. */
export type Authorization = { url: URL; verifier: string; state: string };

export type Tokens = {
  access_token: string;
  refresh_token: string;
  token_type: string;
  expires_in: number;
  scope?: string;
};

/** Client software of one server; every parameter can be changed or left out. */
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
  /** Address of the server: issuer and resource at once. */
  issuer: string;
  redirectUri?: string;
  name?: string;
  /** Where its requests seem to come from, to a service that trusts one proxy. */
  address?: string;
  /** How it authenticates; left out for a public client that does not say so. */
  authMethod?: 'none' | 'client_secret_basic' | 'client_secret_post';
};

const defaultRedirect = 'https://agent.example/callback';

export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

/** Posts JSON, or with URLSearchParams a form. */
export async function post(
  url: string,
  body: Json | URLSearchParams,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const isForm = body instanceof URLSearchParams;
  const type = isForm ? {} : { 'content-type': 'application/json' };
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    headers: { ...type, ...headers },
    body: isForm ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  return { status: response.status, headers: response.headers, text, body: isJson ? (JSON.parse(text) as Json) : {} };
}

/** HTTP Basic with an id and a secret of a client (RFC 6749, 2.3.1). */
export function basicOf(id: string, secret: string): string {
  const encoded = [id, secret].map((text) => new URLSearchParams({ x: text }).toString().slice('x='.length));
  return `Basic ${Buffer.from(encoded.join(':')).toString('base64')}`;
}

/** A client that has this id, registered or not. */
export function clientWithId(id: string, options: ClientOptions, secret?: string): OAuthClient {
  const { issuer, redirectUri = defaultRedirect, address = '203.0.113.2', authMethod } = options;
  const isBasic = authMethod === 'client_secret_basic';
  const send = (path: string, form: Record<string, string>, changes: Changes | undefined) => {
    const own = {
      ...(!isBasic && { client_id: id }),
      ...(secret !== undefined && !isBasic && { client_secret: secret }),
    };
    const headers = isBasic && secret !== undefined ? { authorization: basicOf(id, secret) } : undefined;
    const body = new URLSearchParams(changed({ ...form, ...own }, changes));
    return post(`${issuer}/${path}`, body, { 'x-forwarded-for': address, ...headers });
  };
  return {
    id,
    secret,
    redirectUri,
    authorization(changes) {
      const verifier = randomBytes(32).toString('base64url');
      const url = new URL(`${issuer}/authorize`);
      const usual = {
        response_type: 'code',
        client_id: id,
        redirect_uri: redirectUri,
        state: randomBytes(12).toString('base64url'),
        code_challenge: challengeOf(verifier),
        code_challenge_method: 'S256',
        resource: issuer,
      };
      const sent = changed(usual, changes);
      url.search = new URLSearchParams(sent).toString();
      return { url, verifier, state: sent.state ?? '' };
    },
    redeem: (code, code_verifier, changes) =>
      send(
        'token',
        { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier, resource: issuer },
        changes,
      ),
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

/** The tokens of an answer that must hold some. */
export function tokensOf(reply: Reply): Tokens {
  assert.equal(reply.status, 200, reply.text);
  return reply.body as Tokens;
}

/** Status and code of an answer that must be an error (RFC 6749, 5.2). */
export function assertOAuthError(reply: Reply, status: number, code: string): void {
  assert.deepEqual([reply.status, reply.body.error], [status, code], reply.text);
  assert.match(String(reply.body.error_description), /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
}
