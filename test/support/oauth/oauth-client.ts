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

/** A client that has this id, registered or not. */
export function clientWithId(id: string, options: ClientOptions): OAuthClient {
  const { issuer, redirectUri = defaultRedirect, address = '203.0.113.2' } = options;
  const send = (path: string, form: Record<string, string>, changes: Changes | undefined) =>
    post(`${issuer}/${path}`, new URLSearchParams(changed(form, changes)), { 'x-forwarded-for': address });
  return {
    id,
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
        {
          grant_type: 'authorization_code',
          code,
          redirect_uri: redirectUri,
          client_id: id,
          code_verifier,
          resource: issuer,
        },
        changes,
      ),
    refresh: (refresh_token, changes) =>
      send('token', { grant_type: 'refresh_token', refresh_token, client_id: id, resource: issuer }, changes),
    revoke: (token, changes) => send('revoke', { token, client_id: id }, changes),
  };
}

export async function registerClient(options: ClientOptions): Promise<OAuthClient> {
  const { issuer, redirectUri = defaultRedirect, name = 'Test agent', address = '203.0.113.2' } = options;
  const metadata = { client_name: name, redirect_uris: [redirectUri] };
  const reply = await post(`${issuer}/register`, metadata, { 'x-forwarded-for': address });
  assert.equal(reply.status, 201, reply.text);
  return clientWithId(reply.body.client_id as string, options);
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
