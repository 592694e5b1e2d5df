import { createHash } from 'node:crypto';
import type { OAuth } from '../domain/config/oauth.ts';
import { holdsOurCredential, holdsPlainCredential } from '../domain/credentials/own-credentials.ts';
import { redact } from '../domain/credentials/redactor.ts';
import { addedQuery } from '../domain/http/read-url.ts';
import { formFields, mostHeaderLength } from '../domain/http/values.ts';
import { parseDotPath, valueAt } from '../domain/json/dot-path.ts';
import { OAuthError, OutboundError } from '../errors.ts';
import { onOneLine } from '../http/page.ts';
import type { Answer } from '../outbound/exchange.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import type { Grant } from '../store/logins/grants.ts';
import { contexts, createKeyring, type Keyring } from '../store/sealing/sealing.ts';
import { type Provider, type ProviderTokens, spans } from './parts.ts';

export type ProviderOptions = {
  oauth: OAuth;
  clientSecret: string;
  workspaceId: string;
  redirectUri: string;
  /** Hosts that the provider's token will be sent to. */
  audience: readonly string[];
  userAgent: string;
  http: HttpClient;
  now: () => number;
};

/** Creates the OAuth provider of a hosted server (spec 2.3, 4.4). */
export function hostedProvider(options: ProviderOptions): Provider {
  const { oauth } = options;
  const request = async (form: Record<string, string>): Promise<Read> => {
    const answer = await ask(options, new URLSearchParams({ ...oauth.token_params, ...form }));
    const secrets = [options.clientSecret, form.code, form.code_verifier, form.refresh_token];
    return readTokens(answer, {
      oauth,
      secrets: secrets.filter((secret) => secret !== undefined),
      isRefresh: form.refresh_token !== undefined,
      now: options.now(),
    });
  };
  return {
    host: new URL(oauth.authorization_url).host,
    audience: options.audience,
    shownCode: (error) => shownCode(error, [options.clientSecret]),
    shownSentence: (description) => shownSentence(description, [options.clientSecret]),
    async authorizationUrl(request) {
      return authorizationUrl(oauth, options.redirectUri, request);
    },
    async exchange({ code, verifier }) {
      const { tokens, person } = await request({
        grant_type: 'authorization_code',
        code,
        redirect_uri: options.redirectUri,
        ...(oauth.pkce !== false && { code_verifier: verifier }),
      });
      return { tokens, person, userId: undefined, workspaceId: options.workspaceId };
    },
    refresh: async (refreshToken) =>
      (await request({ grant_type: 'refresh_token', refresh_token: refreshToken })).tokens,
  };
}

function authorizationUrl(
  oauth: OAuth,
  redirectUri: string,
  { state, verifier, scope }: { state: string; verifier: string; scope: string },
): URL {
  const url = new URL(oauth.authorization_url);
  const pkce = { code_challenge: challengeOf(verifier), code_challenge_method: 'S256' };
  const own = {
    response_type: 'code',
    client_id: oauth.client_id,
    redirect_uri: redirectUri,
    ...(scope !== '' && { scope }),
    state,
    ...(oauth.pkce !== false && pkce),
  };
  url.search = addedQuery(url.search.slice(1), Object.entries({ ...oauth.extra_params, ...own }));
  return url;
}

/** Sends a token request. @throws OAuthError if there is no response */
async function ask({ oauth, clientSecret, workspaceId, ...by }: ProviderOptions, form: URLSearchParams) {
  const client = { clientId: oauth.client_id, clientSecret, clientAuth: oauth.client_auth ?? 'body' };
  try {
    return await askTokenEndpoint(
      { workspaceId, tokenUrl: oauth.token_url, client, form, timeoutMs: spans.askProvider },
      by,
    );
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    // A refresh token in the format of our own can never be sent, so the login is over and must not be retried.
    const isOver = holdsPlainCredential(form.get('refresh_token') ?? '');
    if (error.reason === 'own_credential')
      throw new OAuthError(
        isOver ? 'invalid_grant' : 'server_error',
        `the provider's token endpoint was not called: ${error.message}`,
      );
    throw new OAuthError(
      'temporarily_unavailable',
      "the provider's token endpoint could not be reached",
      error.message,
    );
  }
}

/**
 * Parses a token response, which is JSON, or the form encoding that some providers use. Some providers send errors with
 * status 200. Passthrough requires all three fields, because the agent receives them (spec 4.4). Otherwise a missing
 * type means bearer.
 */
function readTokens(answer: Answer, { oauth, secrets, isRefresh, now }: Reading): Read {
  const whole = readFields(answer);
  if (whole.error !== undefined && whole.error !== null) throw refusal(answer, whole, { oauth, secrets, isRefresh });
  if (answer.status < 200 || answer.status > 299) throw refusal(answer, {}, { oauth, secrets, isRefresh });
  const fields = fieldsAt(whole, oauth.token_path, isRefresh);
  const { access_token: accessToken, token_type: tokenType } = fields;
  if (!isToken(accessToken)) throw incomplete('access_token');
  const expiresInMs = spanOf(fields.expires_in);
  const isPassthrough = oauth.token_mode === 'passthrough';
  // The gateway would refuse such a token, and the agent would log in again and again. A token that callers do not
  // present is refused only when a request with it is sent.
  if (isPassthrough ? holdsOurCredential(accessToken) : holdsPlainCredential(accessToken)) throw lookalike();
  if (isPassthrough) {
    if (typeof tokenType !== 'string' || tokenType === '') throw incomplete('token_type');
    if (expiresInMs === undefined) throw incomplete('expires_in');
  }
  checkTokenType(tokenType);
  const tokens = {
    accessToken,
    refreshToken: textBesideToken(fields, 'refresh_token') || undefined,
    expiresAt: expiresInMs === undefined ? undefined : now + expiresInMs,
    scope: textBesideToken(fields, 'scope'),
  };
  const known = [...secrets, accessToken, ...(tokens.refreshToken === undefined ? [] : [tokens.refreshToken])];
  return { tokens, person: isRefresh ? undefined : personIn(fields.id_token ?? whole.id_token, known) };
}

const longestIdToken = 64 * 1024;

/**
 * Returns the name of the person in an id token. The signature is not verified, because the name is only displayed and
 * decides nothing.
 */
function personIn(idToken: unknown, secrets: readonly string[]): string | undefined {
  if (typeof idToken !== 'string' || idToken.length > longestIdToken) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString('utf8'));
    if (typeof claims !== 'object' || claims === null) return undefined;
    const { email, preferred_username, name } = claims as { [name: string]: unknown };
    return shownPerson([email, preferred_username, name], secrets);
  } catch {
    // Not a JWT. The login works without it.
    return undefined;
  }
}

const longestPerson = 100;

/**
 * Returns the first name of a person that can be shown and contains none of `secrets`, which a provider could repeat
 * there.
 */
export function shownPerson(names: readonly unknown[], secrets: readonly string[]): string | undefined {
  return names
    .flatMap((name) => (typeof name === 'string' && name.length <= longestPerson ? [onOneLine(name)] : []))
    .find((name) => name !== '' && !name.includes('\ufffd') && !holdsAny(name, secrets));
}

/** The fields of a response. */
type Fields = { [name: string]: unknown };
type Asked = { oauth: OAuth; secrets: readonly string[]; isRefresh: boolean };
type Reading = Asked & { now: number };
type Read = { tokens: ProviderTokens; person: string | undefined };

/**
 * Returns the fields next to the token at a path of a response: those of the object at the path, or of the object that
 * contains the token at the path. A refresh response may lack the path, because its refresh token belongs to one access
 * token (Slack).
 */
function fieldsAt(whole: { [name: string]: unknown }, path: string | undefined, isRefresh: boolean) {
  if (path === undefined) return whole;
  const keys = parseDotPath(path);
  const found = valueAt(whole, keys);
  if (typeof found === 'string') return { ...(valueAt(whole, keys.slice(0, -1)) as object), access_token: found };
  if (typeof found === 'object' && found !== null) return found as { [name: string]: unknown };
  if (isRefresh) return whole;
  throw incomplete(path);
}

function lookalike(): OAuthError {
  return new OAuthError(
    'server_error',
    'the provider returned a token in the format of a credential of this service, which cannot be forwarded',
  );
}

const aboutClient = new Set(['invalid_client', 'unauthorized_client']);

/** Codes that our own message already states. */
const statedCodes = new Set([...aboutClient, 'temporarily_unavailable']);

/** Codes that do not end the login, because it may work again once the provider or its settings do. */
const passing = new Set([...statedCodes, 'server_error', 'slow_down']);

/** Codes of RFC 6749 (5.2) that say nothing about a refresh token. */
const aboutRefresh = new Set([...passing, 'invalid_request', 'invalid_scope', 'unsupported_grant_type']);

/** Codes that mean that a refresh token is no longer valid, as sent by RFC 6749 (5.2), GitHub, and Slack. */
const endsLogin = new Set(['invalid_grant', 'bad_refresh_token', 'invalid_refresh_token']);

/** A refused refresh without a reason defined by OAuth. A single one does not end the login. */
export class UnexplainedRefusal extends OAuthError {
  constructor(message: string, detail: string, said: string | undefined) {
    super('temporarily_unavailable', message, detail, said);
    this.name = 'UnexplainedRefusal';
  }
}

/** Creates the error for a refused request. Clients see only the provider's error code. */
function refusal({ status }: Answer, fields: Fields, { oauth, secrets, isRefresh }: Asked): OAuthError {
  const { error, error_description } = fields;
  const said = shownSentence(error_description, secrets);
  const code = typeof error === 'string' ? error : '';
  const shown = shownCode(code, secrets);
  const suffix = shown === undefined || statedCodes.has(shown) ? '' : ` and returned the error ${shown}`;
  const detail = `status ${status} ${shown ?? 'in an unusual format'}`;
  if (status >= 500 || status === 429 || status === 408 || code === 'temporarily_unavailable') {
    return new OAuthError(
      'temporarily_unavailable',
      `the provider's token endpoint is unavailable${suffix}`,
      detail,
      said,
    );
  }
  const isBare = code === '' && (status === 400 || status === 401);
  const isOver = isRefresh ? endsLogin.has(code) : isBare || (code !== '' && !passing.has(code));
  if (isOver) return new OAuthError('invalid_grant', `the provider does not accept this login${suffix}`, detail, said);
  const isUnknown = code !== '' && status <= 401 && !aboutRefresh.has(code);
  if (isRefresh && (isBare || isUnknown))
    return new UnexplainedRefusal(
      `the token endpoint refused to refresh the login with status ${status}${suffix}`,
      detail,
      said,
    );
  const what = aboutClient.has(code) ? "this server's client id or client secret" : 'the request';
  // Both methods are common, and an endpoint that requires the other one says no more than this.
  const advice =
    code === 'invalid_client' && oauth.client_auth === undefined
      ? '; it may require "client_auth": "basic" in oauth'
      : '';
  const message = `the token endpoint refused ${what} with status ${status}${suffix}${advice}`;
  return new OAuthError('server_error', message, detail, said);
}

/** A client of a token endpoint. `none` is a public client, which has no secret. */
type TokenClient = { clientId: string; clientSecret: string; clientAuth: 'basic' | 'body' | 'none' };

type Question = {
  workspaceId: string;
  tokenUrl: string;
  client: TokenClient;
  form: URLSearchParams;
  timeoutMs: number;
};

const limitBytes = 256 * 1024;
const formHeaders = ['Content-Type', 'application/x-www-form-urlencoded', 'Accept', 'application/json'];

/** Sends one POST without a retry, because a code can be used only once. @throws OutboundError */
export async function askTokenEndpoint(
  { workspaceId, tokenUrl, client, form, timeoutMs }: Question,
  { http, userAgent }: { http: HttpClient; userAgent: string },
): Promise<Answer> {
  const url = new URL(tokenUrl);
  const credentials = authenticateClient(client, form);
  return http.send({
    workspaceId,
    origin: url.origin,
    // Undefined, so that the request gets a separate connection. A response with tokens must not arrive on a connection
    // that another caller used.
    credentialHash: undefined,
    path: url.pathname + url.search,
    method: 'POST',
    headers: [...formHeaders, ...credentials, 'User-Agent', userAgent],
    body: form.toString(),
    timeoutMs,
    limitBytes,
  });
}

/**
 * Authenticates a client at a token endpoint (RFC 6749, 2.3), with the returned headers or with fields that are added
 * to the form.
 * @throws OutboundError own_credential
 */
function authenticateClient({ clientId, clientSecret, clientAuth }: TokenClient, form: URLSearchParams): string[] {
  if (clientAuth === 'basic') return ['Authorization', basic(clientId, clientSecret)];
  form.set('client_id', clientId);
  if (clientAuth === 'body') form.set('client_secret', clientSecret);
  return [];
}

/** Formats Basic credentials. The id and the secret are form-encoded before they are joined (RFC 6749, 2.3.1). */
function basic(clientId: string, clientSecret: string): string {
  // The search of the rendered request does not decode base64.
  if (holdsPlainCredential(`${clientId}:${clientSecret}`)) throw new OutboundError('own_credential', ownInBasic);
  return `Basic ${Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')}`;
}

const ownInBasic =
  'the client id or client secret contains an API key or token of this service, which is never sent to an upstream; store the value that the provider issued';

function formEncoded(text: string): string {
  return new URLSearchParams({ x: text }).toString().slice('x='.length);
}

/**
 * Token types that require a proof of possession, which this service cannot create (RFC 9449; the drafts of mac and
 * pop).
 */
const proofTypes = new Set(['mac', 'dpop', 'pop']);

/**
 * Rejects token types that cannot be sent as bearer tokens. Providers have many names for bearer tokens, so only the
 * types above are rejected (RFC 6749, 7.1).
 */
export function checkTokenType(tokenType: unknown): void {
  if (tokenType === undefined || tokenType === null || tokenType === '') return;
  if (typeof tokenType !== 'string') throw incomplete('token_type');
  const type = tokenType.trim();
  if (!proofTypes.has(type.toLowerCase())) return;
  throw new OAuthError(
    'server_error',
    `the token endpoint returned a token of the type ${type}, but only bearer tokens can be forwarded`,
  );
}

/**
 * Returns true if a header can carry the value: its characters and its length. A longer token would be usable in no
 * request, but would still be searched and stored.
 */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length <= mostHeaderLength && /^[\x21-\x7e]+$/.test(value);
}

/**
 * Returns a text that is stored next to a token. Like a token, it is limited in length, including as JSON, in which it
 * is stored and a control character takes six bytes. Undefined if the field is not a string.
 * @throws OAuthError server_error
 */
function textBesideToken(fields: { [name: string]: unknown }, name: 'refresh_token' | 'scope') {
  const value = fields[name];
  if (typeof value !== 'string') return undefined;
  const isTooLong = value.length > mostHeaderLength || Buffer.byteLength(JSON.stringify(value)) > mostHeaderLength + 2;
  if (isTooLong) throw incomplete(name);
  return value;
}

const maxSpanS = 10 * 365 * 24 * 60 * 60;

/**
 * Converts `expires_in` to whole ms, the unit in which times are stored. It may be a number or a string of digits.
 * Returns undefined for 0 and anything else.
 */
export function spanOf(seconds: unknown): number | undefined {
  const isDigits = typeof seconds === 'string' && /^\d{1,12}$/.test(seconds);
  const number = typeof seconds === 'number' || isDigits ? Number(seconds) : 0;
  return number > 0 ? Math.max(1, Math.floor(Math.min(number, maxSpanS) * 1000)) : undefined;
}

export function incomplete(field: string): OAuthError {
  return new OAuthError('server_error', `the token endpoint responded without a usable ${field}`);
}

/** Parses the fields of a token endpoint's response. @throws OAuthError server_error */
export function readFields(answer: Answer): { [name: string]: unknown } {
  const text = answer.body.toString('utf8');
  if (/^application\/x-www-form-urlencoded\b|^text\/plain\b/i.test(String(answer.headers['content-type']))) {
    const form = Object.fromEntries(formFields(text) ?? []);
    if ('access_token' in form || 'error' in form) return form;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as { [name: string]: unknown };
  } catch {
    // Not JSON; reported below.
  }
  // The status of an error page is sufficient.
  if (answer.status >= 400) return {};
  throw new OAuthError(
    'server_error',
    'the token endpoint returned a response that is neither JSON nor a form',
    `status ${answer.status}`,
  );
}

/**
 * Format of an error code. It is narrower than in RFC 6749, 5.2, so that a code can contain neither markup nor a
 * sentence.
 */
const codePattern = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * Returns a provider's error code, such as redirect_uri_mismatch, or undefined if clients and people must not see it.
 * It must be a single word, and contain none of `secrets`, which a careless or malicious provider could repeat there.
 */
export function shownCode(error: string, secrets: readonly string[]): string | undefined {
  // Checks the length first, so that two long texts from the provider are not searched in each other.
  if (!codePattern.test(error)) return undefined;
  const isPartOfSecret = secrets.some((secret) => secret.includes(error));
  return !isPartOfSecret && !holdsAny(error, secrets) ? error : undefined;
}

const longestSentence = 300;
/** Maximum length that is processed, so that a credential at the end of a shown message is found completely. */
const longestRead = 4000;

/** Long words with a digit: codes, tokens, and keys, including those that this service does not know. */
const maybeSecret = /(?=[\w+/=.~%-]*\d)[\w+/=.~%-]{16,}/g;

/**
 * Returns the message with which a provider explains an error, on one line and without credentials, or undefined if
 * there is none.
 */
export function shownSentence(description: unknown, secrets: readonly string[]): string | undefined {
  if (typeof description !== 'string') return undefined;
  const known = secrets.filter((secret) => secret !== '');
  const redacted = redact(description.slice(0, longestRead), known).replaceAll(maybeSecret, '[redacted]');
  const line = [...onOneLine(redacted)];
  const sentence = line.length > longestSentence ? [...line.slice(0, longestSentence - 1), '…'] : line;
  return sentence.join('') || undefined;
}

function holdsAny(text: string, secrets: readonly string[]): boolean {
  return secrets.some((secret) => secret !== '' && text.includes(secret)) || redact(text, secrets) !== text;
}

/** Returns the PKCE challenge of a verifier (RFC 7636, 4.2, S256). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

/**
 * Wraps the key of a grant so that only the bearer of `secret` can unwrap it. A stolen database therefore reveals no
 * provider token, even together with the master key.
 */
export function wrapKey(grantKey: Buffer, secret: string, grantId: string): string {
  return createKeyring([Buffer.from(secret)]).seal(grantKey.toString('base64'), `grant key|${grantId}`);
}

export function unwrapKey(wrapped: string, secret: string, grantId: string): Buffer {
  return Buffer.from(createKeyring([Buffer.from(secret)]).open(wrapped, `grant key|${grantId}`), 'base64');
}

/** Counts the characters of a provider's tokens, which limit the number of tokens in memory. */
export function charactersOf({ accessToken, refreshToken = '', scope = '' }: ProviderTokens): number {
  return accessToken.length + refreshToken.length + scope.length;
}

type GrantIds = { id: string; workspace_id: string };

/** Encrypts the provider's tokens with the key of their grant, and the result with the master key. */
export function sealTokens(keyring: Keyring, grant: GrantIds, grantKey: Buffer, tokens: ProviderTokens): string {
  const inner = createKeyring([grantKey]).seal(JSON.stringify(tokens), `provider tokens|${grant.id}`);
  return keyring.seal(inner, contexts.grantTokens(grant.workspace_id, grant.id));
}

export function openTokens(keyring: Keyring, grant: Grant, grantKey: Buffer): ProviderTokens {
  const inner = keyring.open(grant.sealed_tokens, contexts.grantTokens(grant.workspace_id, grant.id));
  const text = createKeyring([grantKey]).open(inner, `provider tokens|${grant.id}`);
  const tokens = JSON.parse(text) as Partial<ProviderTokens>;
  return { accessToken: '', refreshToken: undefined, scope: undefined, expiresAt: undefined, ...tokens };
}
