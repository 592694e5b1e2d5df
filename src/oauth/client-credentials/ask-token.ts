import { clientTokenParams } from '../../domain/config/oauth.ts';
import { holdsOurCredential } from '../../domain/credentials/own-credentials.ts';
import { holdsPlainCredential } from '../../domain/credentials/plain-credentials.ts';
import type { TokenRequest } from '../../domain/credentials/token-request.ts';
import { withoutOwned } from '../../domain/http/parameter-names.ts';
import { OAuthError, OutboundError, ToolFailure } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import { shownCode } from '../login/error-codes.ts';
import { checkTokenType, isToken, readFields, spanOf } from '../token-answer.ts';

export type AskParts = { http: HttpClient; userAgent: string };

/** A token as the endpoint gave it; `lifetimeMs` is undefined where it did not say. */
export type GivenToken = { value: string; lifetimeMs: number | undefined };

export const askTimeoutMs = 8000;
const limitBytes = 256 * 1024;

/** Asks a token endpoint once (RFC 6749, 4.4.2). @throws ToolFailure no_token */
export async function askToken(request: TokenRequest, { http, userAgent }: AskParts): Promise<GivenToken> {
  const url = new URL(request.tokenUrl);
  url.search = withoutOwned(url.search.slice(1), clientTokenParams);
  const { host } = url;
  const form = new URLSearchParams({ ...request.params, grant_type: 'client_credentials' });
  const headers = ['Content-Type', 'application/x-www-form-urlencoded', 'Accept', 'application/json'];
  if (request.clientAuth === 'basic') headers.push('Authorization', basic(request, host));
  else {
    form.set('client_id', request.clientId);
    form.set('client_secret', request.clientSecret);
  }
  try {
    const answer = await http.send({
      workspaceId: request.workspaceId,
      origin: url.origin,
      // A connection of its own: an answer with a token must not arrive on a connection that another caller used.
      credentialHash: undefined,
      path: url.pathname + url.search,
      method: 'POST',
      headers: [...headers, 'User-Agent', userAgent],
      body: form.toString(),
      timeoutMs: askTimeoutMs,
      limitBytes,
    });
    return readToken(answer, request, host);
  } catch (error) {
    if (error instanceof OutboundError) throw noToken(host, `could not be asked: ${error.message}`, error.reason);
    if (error instanceof OAuthError) throw noToken(host, `gave no token: ${error.message}`, error.code);
    throw error;
  }
}

/** RFC 6749, 2.3.1: id and secret are form-encoded before they are joined. @throws ToolFailure no_token */
function basic({ clientId, clientSecret }: TokenRequest, host: string): string {
  // The search of the finished request does not read Base64.
  if (holdsPlainCredential(`${clientId}:${clientSecret}`))
    throw noToken(host, `could not be asked: ${ownInBasic}`, 'own_credential');
  return `Basic ${Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')}`;
}

const ownInBasic =
  'the client id or the client secret holds an API key or a token of this service, which is never sent to an upstream; store the one that the token endpoint gave';

function formEncoded(text: string): string {
  return new URLSearchParams({ x: text }).toString().slice('x='.length);
}

function readToken(answer: Answer, request: TokenRequest, host: string): GivenToken {
  // A redirect is not followed, and says nothing that could be read.
  const fields = answer.status >= 300 && answer.status < 400 ? {} : readFields(answer);
  const hasError = fields.error !== undefined && fields.error !== null;
  if (hasError || answer.status < 200 || answer.status > 299) throw refused(answer, fields.error, request, host);
  const { access_token: value, token_type: tokenType } = fields;
  if (!isToken(value)) throw noToken(host, 'answered without a usable access_token', 'no access_token');
  if (holdsOurCredential(value))
    throw noToken(
      host,
      'gave a token in the form of a credential of this service, which is never sent on',
      'lookalike',
    );
  checkTokenType(tokenType);
  return { value, lifetimeMs: spanOf(fields.expires_in) };
}

const meanings: Record<string, string> = {
  invalid_client: 'it does not accept the client id or the client secret',
  unauthorized_client: 'this client may not use client credentials',
  invalid_scope: 'it does not grant the scopes',
  unsupported_grant_type: 'it has no client credentials',
};

/** The error code of the endpoint is shown when it is one word and holds no secret. */
function refused({ status }: Answer, error: unknown, request: TokenRequest, host: string): ToolFailure {
  const code = shownCode(typeof error === 'string' ? error : '', [request.clientSecret]);
  const meaning = code === undefined ? undefined : meanings[code];
  const why = meaning ?? (status === 401 || status === 403 ? meanings.invalid_client : undefined);
  const said = [`status ${status}`, ...(code === undefined ? [] : [code])].join(', ');
  return noToken(host, `gave no token (${said})${why === undefined ? '' : `: ${why}`}`, `status ${status}`);
}

function noToken(host: string, what: string, forRecord: string): ToolFailure {
  const message = `no token for the API: the token endpoint ${host} ${what}`;
  return new ToolFailure('no_token', message, [], `the token endpoint gave no token: ${forRecord}`);
}
