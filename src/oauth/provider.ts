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

/** The OAuth provider of a hosted server (spec 2.3, 4.4). */
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

/** @throws OAuthError where there is no answer */
async function ask({ oauth, clientSecret, workspaceId, ...by }: ProviderOptions, form: URLSearchParams) {
  const client = { clientId: oauth.client_id, clientSecret, clientAuth: oauth.client_auth ?? 'body' };
  try {
    return await askTokenEndpoint(
      { workspaceId, tokenUrl: oauth.token_url, client, form, timeoutMs: spans.askProvider },
      by,
    );
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    // A refresh token in the form of ours can never be sent, so the login is over and not to be tried again.
    const isOver = holdsPlainCredential(form.get('refresh_token') ?? '');
    if (error.reason === 'own_credential')
      throw new OAuthError(
        isOver ? 'invalid_grant' : 'server_error',
        `the token endpoint of the provider was not asked: ${error.message}`,
      );
    throw new OAuthError(
      'temporarily_unavailable',
      'the token endpoint of the provider could not be reached',
      error.message,
    );
  }
}

/**
 * Reads JSON, or the form encoding that some providers use. Some providers answer errors with status 200. Passthrough
 * requires all three fields, because the agent gets them (spec 4.4). Otherwise a missing type means bearer.
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
  // The gateway would refuse such a token, and the agent would log in again and again. One that callers do not present is
  // refused only when a request with it is sent.
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

/** Who logged in, by an id token. Its signature is not checked: it is shown, and decides nothing. */
function personIn(idToken: unknown, secrets: readonly string[]): string | undefined {
  if (typeof idToken !== 'string' || idToken.length > longestIdToken) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString('utf8'));
    if (typeof claims !== 'object' || claims === null) return undefined;
    const { email, preferred_username, name } = claims as { [name: string]: unknown };
    return shownPerson([email, preferred_username, name], secrets);
  } catch {
    // Not a JWT. The login works all the same.
    return undefined;
  }
}

const longestPerson = 100;

/** The first name of a person that can be shown and holds none of `secrets`, which a provider could repeat there. */
export function shownPerson(names: readonly unknown[], secrets: readonly string[]): string | undefined {
  return names
    .flatMap((name) => (typeof name === 'string' && name.length <= longestPerson ? [onOneLine(name)] : []))
    .find((name) => name !== '' && !name.includes('\ufffd') && !holdsAny(name, secrets));
}

/** The fields of an answer. */
type Fields = { [name: string]: unknown };
type Asked = { oauth: OAuth; secrets: readonly string[]; isRefresh: boolean };
type Reading = Asked & { now: number };
type Read = { tokens: ProviderTokens; person: string | undefined };

/**
 * The fields beside the token at a path of an answer: of the object there, or of the object that holds the token there. A
 * refresh may answer without the path, because its refresh token belongs to one access token (Slack).
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
    'the token that the provider gave has the form of a credential of this service, so it cannot be passed on',
  );
}

const aboutClient = new Set(['invalid_client', 'unauthorized_client']);

/** Codes that our own sentence already states. */
const statedCodes = new Set([...aboutClient, 'temporarily_unavailable']);

/** Codes that do not end the login: it may work again once the provider or its settings do. */
const passing = new Set([...statedCodes, 'server_error', 'slow_down']);

/** The codes of RFC 6749 (5.2) that say nothing about a refresh token. */
const aboutRefresh = new Set([...passing, 'invalid_request', 'invalid_scope', 'unsupported_grant_type']);

/** The codes that say that a refresh token is over: the one of RFC 6749 (5.2), that of GitHub, and that of Slack. */
const endsLogin = new Set(['invalid_grant', 'bad_refresh_token', 'invalid_refresh_token']);

/** A refused refresh without a reason that OAuth knows. A single one does not end the login. */
export class UnexplainedRefusal extends OAuthError {
  constructor(message: string, detail: string, said: string | undefined) {
    super('temporarily_unavailable', message, detail, said);
    this.name = 'UnexplainedRefusal';
  }
}

/** Clients see only the provider's error code. */
function refusal({ status }: Answer, fields: Fields, { oauth, secrets, isRefresh }: Asked): OAuthError {
  const { error, error_description } = fields;
  const said = shownSentence(error_description, secrets);
  const code = typeof error === 'string' ? error : '';
  const shown = shownCode(code, secrets);
  const suffix = shown === undefined || statedCodes.has(shown) ? '' : ` and says ${shown}`;
  const detail = `status ${status} ${shown ?? 'of an unusual form'}`;
  if (status >= 500 || status === 429 || status === 408 || code === 'temporarily_unavailable') {
    return new OAuthError(
      'temporarily_unavailable',
      `the token endpoint of the provider is not available${suffix}`,
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
      `the token endpoint refused to renew the login with status ${status}${suffix}`,
      detail,
      said,
    );
  const what = aboutClient.has(code) ? 'the client id or the client secret of this server' : 'the request';
  // Both ways are common, and an endpoint that wants the other one says only this.
  const advice =
    code === 'invalid_client' && oauth.client_auth === undefined ? '; it may want "client_auth": "basic" in oauth' : '';
  const message = `the token endpoint refused ${what} with status ${status}${suffix}${advice}`;
  return new OAuthError('server_error', message, detail, said);
}

/** A client at a token endpoint. `none` is a public client, which has no secret. */
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

/** One POST without a retry: a code can be used only once. @throws OutboundError */
export async function askTokenEndpoint(
  { workspaceId, tokenUrl, client, form, timeoutMs }: Question,
  { http, userAgent }: { http: HttpClient; userAgent: string },
): Promise<Answer> {
  const url = new URL(tokenUrl);
  const credentials = authenticateClient(client, form);
  return http.send({
    workspaceId,
    origin: url.origin,
    // A connection of its own: an answer with tokens must not arrive on a connection that another caller used.
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
 * How a client authenticates at a token endpoint (RFC 6749, 2.3): with the headers that are returned, or with fields that
 * are added to the form.
 * @throws OutboundError own_credential
 */
function authenticateClient({ clientId, clientSecret, clientAuth }: TokenClient, form: URLSearchParams): string[] {
  if (clientAuth === 'basic') return ['Authorization', basic(clientId, clientSecret)];
  form.set('client_id', clientId);
  if (clientAuth === 'body') form.set('client_secret', clientSecret);
  return [];
}

/** RFC 6749, 2.3.1: id and secret are form-encoded before they are joined. */
function basic(clientId: string, clientSecret: string): string {
  // The search of the finished request does not read Base64.
  if (holdsPlainCredential(`${clientId}:${clientSecret}`)) throw new OutboundError('own_credential', ownInBasic);
  return `Basic ${Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64')}`;
}

const ownInBasic =
  'the client id or the client secret holds an API key or a token of this service, which is never sent to an upstream; store the one that the token endpoint gave';

function formEncoded(text: string): string {
  return new URLSearchParams({ x: text }).toString().slice('x='.length);
}

/** Types of tokens that need a proof of possession, which we cannot make (RFC 9449; the drafts of mac and pop). */
const proofTypes = new Set(['mac', 'dpop', 'pop']);

/** Providers have many names for a token that is sent as bearer, so only the types above are refused (RFC 6749, 7.1). */
export function checkTokenType(tokenType: unknown): void {
  if (tokenType === undefined || tokenType === null || tokenType === '') return;
  if (typeof tokenType !== 'string') throw incomplete('token_type');
  const type = tokenType.trim();
  if (!proofTypes.has(type.toLowerCase())) return;
  throw new OAuthError(
    'server_error',
    `the token endpoint gave a token of the type ${type} and only bearer tokens can be sent on`,
  );
}

/**
 * Whether a header can carry the value: with its characters, and with as many of them. A longer token would be good for no
 * request, but searched and kept all the same.
 */
export function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length <= mostHeaderLength && /^[\x21-\x7e]+$/.test(value);
}

/**
 * A text that is kept beside a token, and is no longer than one, also as JSON, in which it is kept: a control character takes
 * six there. Undefined for no text.
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
 * `expires_in` in whole ms, as times are stored, given as a number or as digits in a string. Undefined for 0 and anything
 * else.
 */
export function spanOf(seconds: unknown): number | undefined {
  const isDigits = typeof seconds === 'string' && /^\d{1,12}$/.test(seconds);
  const number = typeof seconds === 'number' || isDigits ? Number(seconds) : 0;
  return number > 0 ? Math.max(1, Math.floor(Math.min(number, maxSpanS) * 1000)) : undefined;
}

export function incomplete(field: string): OAuthError {
  return new OAuthError('server_error', `the token endpoint answered without a usable ${field}`);
}

/** The fields of an answer of a token endpoint. @throws OAuthError server_error */
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
    // Not JSON: reported below.
  }
  // The status of an error page suffices.
  if (answer.status >= 400) return {};
  throw new OAuthError(
    'server_error',
    'the token endpoint answered with something that is neither JSON nor a form',
    `status ${answer.status}`,
  );
}

/** Narrower than RFC 6749, 5.2, so that a code can hold neither markup nor a sentence. */
const codePattern = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * The error code of a provider, such as redirect_uri_mismatch, or undefined when clients and people may not see it. It
 * must be one word, and hold none of `secrets`, which a careless or hostile provider could repeat there.
 */
export function shownCode(error: string, secrets: readonly string[]): string | undefined {
  // The length first: two long texts that the provider has chosen are not searched in each other.
  if (!codePattern.test(error)) return undefined;
  const isPartOfSecret = secrets.some((secret) => secret.includes(error));
  return !isPartOfSecret && !holdsAny(error, secrets) ? error : undefined;
}

const longestSentence = 300;
/** Maximum length that is read, so that a credential at the end of a shown sentence is found whole. */
const longestRead = 4000;

/** Long words with a digit: codes, tokens and keys, also those that this service does not know. */
const maybeSecret = /(?=[\w+/=.~%-]*\d)[\w+/=.~%-]{16,}/g;

/** The sentence with which a provider explains an error, on one line and without credentials; undefined for none. */
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

/** The PKCE challenge of a verifier (RFC 7636, 4.2, S256). */
export function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url');
}

/**
 * Wraps the key of a grant so that only the bearer of `secret` can unwrap it. A stolen database therefore reveals no
 * provider token, even with the master key.
 */
export function wrapKey(grantKey: Buffer, secret: string, grantId: string): string {
  return createKeyring([Buffer.from(secret)]).seal(grantKey.toString('base64'), `grant key|${grantId}`);
}

export function unwrapKey(wrapped: string, secret: string, grantId: string): Buffer {
  return Buffer.from(createKeyring([Buffer.from(secret)]).open(wrapped, `grant key|${grantId}`), 'base64');
}

/** Characters of a provider's tokens, by which their number in memory is limited. */
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
