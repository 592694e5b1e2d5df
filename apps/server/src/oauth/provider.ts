import { containsOwnCredential, containsPlainCredential } from '@toolhost/credentials/own-credentials';
import { redact } from '@toolhost/credentials/redactor';
import { getValueAt, parseDotPath } from '@toolhost/errors/dot-path';
import { OAuthError } from '@toolhost/errors/errors';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import { maxHeaderLength, parseFormFields } from '@toolhost/tool-config/http/values';
import type { OAuth, TokenFieldNames } from '@toolhost/tool-config/oauth';
import { toSingleLine } from '../http/page.ts';
import type { Grant } from '../store/logins/grants.ts';
import { contexts, createKeyring, type Keyring } from '../store/sealing/sealing.ts';
import { collectValues, getCallbackValues, refreshValues } from './login-values.ts';
import type { Provider, ProviderTokens } from './oauth-deps.ts';
import {
  buildAuthorizationUrl,
  getLoginEndpoint,
  getRefreshUrl,
  getWrittenHost,
  readUserinfo,
  sendTokenRequest,
} from './provider-requests.ts';

export type ProviderOptions = {
  oauth: OAuth;
  clientSecret: string;
  workspaceId: string;
  redirectUri: string;
  userAgent: string;
  http: HttpClient;
  now: () => number;
  /** Returns the reason why a configuration may not name a URL. */
  urlProblem: (url: URL) => string | undefined;
};

/** Creates the OAuth provider of a hosted server (docs/contributing/specification.md, 2.3 and 4.4). */
export function createHostedProvider(options: ProviderOptions): Provider {
  const { oauth } = options;
  const sendRequest = async (url: string, form: Record<string, string>): Promise<ParsedTokens> => {
    const response = await sendTokenRequest(options, url, new URLSearchParams({ ...oauth.token_params, ...form }));
    const secrets = [options.clientSecret, form.code, form.code_verifier, form.refresh_token];
    return parseTokens(response, {
      oauth,
      secrets: secrets.filter((secret) => secret !== undefined),
      isRefresh: form.refresh_token !== undefined,
      now: options.now(),
    });
  };
  return {
    host: getWrittenHost(oauth.authorization_url),
    returnsForm: oauth.response_mode === 'form_post',
    codeParameter: oauth.code_parameter ?? 'code',
    getDisplayedCode: (error) => getDisplayedCode(error, [options.clientSecret]),
    getDisplayedMessage: (description) => getDisplayedMessage(description, [options.clientSecret]),
    async buildAuthorizationUrl(request) {
      return buildAuthorizationUrl(options, request);
    },
    async exchange({ code, parameters, verifier, fields }) {
      const { url, tokenOrigin } = getLoginEndpoint(options, parameters, fields);
      const callbackValues = oauth.callback_values && getCallbackValues(oauth.callback_values, parameters);
      const { tokens, body, person } = await sendRequest(url, {
        ...callbackValues,
        grant_type: 'authorization_code',
        code,
        redirect_uri: oauth.redirect_name ?? options.redirectUri,
        ...(oauth.pkce !== false && { code_verifier: verifier }),
      });
      const { userinfo_url: userinfoUrl } = oauth;
      const userinfo = userinfoUrl && (await readUserinfo(options, userinfoUrl, tokens.accessToken));
      const responses = { callback: parameters, token: body, userinfo };
      const { values, choices } = oauth.values ? collectValues(oauth, responses) : {};
      return {
        tokens: {
          ...tokens,
          ...(values && { values }),
          ...(callbackValues && { callbackValues }),
          ...(tokenOrigin !== undefined && { tokenOrigin }),
        },
        person,
        userId: undefined,
        workspaceId: options.workspaceId,
        ...(choices && { choices }),
      };
    },
    async refresh(previous) {
      const { refreshToken = '', callbackValues } = previous;
      const form = { ...callbackValues, grant_type: 'refresh_token', refresh_token: refreshToken };
      const { tokens, body } = await sendRequest(getRefreshUrl(options, previous), form);
      return { ...tokens, ...(oauth.values && { values: refreshValues(oauth, previous, body) }) };
    },
  };
}

/**
 * Parses a token response, which is JSON, or the form encoding that some providers use. Some providers send errors with
 * status 200. Passthrough requires a token, a type, and a lifetime, because the agent receives them. Otherwise a missing
 * type means bearer.
 */
function parseTokens(response: UpstreamResponse, { oauth, secrets, isRefresh, now }: ParseContext): ParsedTokens {
  const body = parseFields(response);
  if (body.error !== undefined && body.error !== null)
    throw createRefusal(response, body, { oauth, secrets, isRefresh });
  if (response.status < 200 || response.status > 299) throw createRefusal(response, {}, { oauth, secrets, isRefresh });
  const fields = withStandardNames(getTokenFields(body, oauth.token_path, isRefresh), oauth.token_fields);
  const { access_token: accessToken, token_type: tokenType } = fields;
  if (!isToken(accessToken)) throw createIncompleteError('access_token');
  const expiresInMs = toLifetimeMs(fields.expires_in);
  const isPassthrough = oauth.token_mode === 'passthrough';
  // The gateway would refuse such a token, and the agent would log in again and again. A token that callers do not
  // present is refused only when a request with it is sent.
  if (isPassthrough ? containsOwnCredential(accessToken) : containsPlainCredential(accessToken))
    throw createLookalikeError();
  if (isPassthrough) {
    if (typeof tokenType !== 'string' || tokenType === '') throw createIncompleteError('token_type');
    if (expiresInMs === undefined) throw createIncompleteError('expires_in');
  }
  checkTokenType(tokenType);
  const tokens = {
    accessToken,
    refreshToken: getTextField(fields, 'refresh_token') || undefined,
    expiresAt: expiresInMs === undefined ? undefined : now + expiresInMs,
    scope: getTextField(fields, 'scope'),
  };
  const knownSecrets = [...secrets, accessToken, ...(tokens.refreshToken === undefined ? [] : [tokens.refreshToken])];
  return {
    tokens,
    body,
    person: isRefresh ? undefined : getPersonName(fields.id_token ?? body.id_token, knownSecrets),
  };
}

const maxIdTokenLength = 64 * 1024;

/**
 * Returns the name of the person in an id token. The signature is not verified, because the name is only displayed and
 * decides nothing.
 */
function getPersonName(idToken: unknown, secrets: readonly string[]): string | undefined {
  if (typeof idToken !== 'string' || idToken.length > maxIdTokenLength) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(idToken.split('.')[1] ?? '', 'base64url').toString('utf8'));
    if (typeof claims !== 'object' || claims === null) return undefined;
    const { email, preferred_username, name } = claims as Fields;
    return toDisplayedPerson([email, preferred_username, name], secrets);
  } catch {
    // Not a JWT. The login works without it.
    return undefined;
  }
}

const maxPersonLength = 100;

/**
 * Returns the first of a person's names that can be shown and contains none of `secrets`, which a provider could repeat
 * there.
 */
export function toDisplayedPerson(names: readonly unknown[], secrets: readonly string[]): string | undefined {
  return names
    .flatMap((name) => (typeof name === 'string' && name.length <= maxPersonLength ? [toSingleLine(name)] : []))
    .find((name) => name !== '' && !name.includes('\ufffd') && !containsAny(name, secrets));
}

/** The fields of a response, or the claims of an id token. */
type Fields = { [name: string]: unknown };
type RequestContext = { oauth: OAuth; secrets: readonly string[]; isRefresh: boolean };
type ParseContext = RequestContext & { now: number };
type ParsedTokens = { tokens: ProviderTokens; body: Fields; person: string | undefined };

/**
 * Returns the fields next to the token at a path of a response: those of the object at the path, or of the object that
 * contains the token at the path. A refresh response may lack the path, because its refresh token belongs to one access
 * token (Slack).
 */
function getTokenFields(body: Fields, path: string | undefined, isRefresh: boolean): Fields {
  if (path === undefined) return body;
  const keys = parseDotPath(path);
  const valueAtPath = getValueAt(body, keys);
  if (typeof valueAtPath === 'string')
    return { ...(getValueAt(body, keys.slice(0, -1)) as object), access_token: valueAtPath };
  if (typeof valueAtPath === 'object' && valueAtPath !== null) return valueAtPath as Fields;
  if (isRefresh) return body;
  throw createIncompleteError(path);
}

/** Returns the fields of a response under the names that OAuth has for them (RFC 6749, 5.1). */
function withStandardNames(fields: Fields, fieldNames: TokenFieldNames = {}): Fields {
  const renamed = { ...fields };
  for (const name of ['access_token', 'refresh_token', 'expires_in'] as const) {
    const otherName = fieldNames[name];
    if (otherName !== undefined) renamed[name] = fields[otherName];
  }
  return renamed;
}

function createLookalikeError(): OAuthError {
  return new OAuthError(
    'server_error',
    'the provider returned a token in the format of a credential of this service, which cannot be forwarded',
  );
}

const clientErrorCodes = new Set(['invalid_client', 'unauthorized_client']);

/** Codes that our own message already states. */
const statedCodes = new Set([...clientErrorCodes, 'temporarily_unavailable']);

/** Codes that do not end the login, because it may work again once the provider or its settings do. */
const temporaryCodes = new Set([...statedCodes, 'server_error', 'slow_down']);

/** Codes of RFC 6749 (5.2) that say nothing about a refresh token. */
const nonTokenCodes = new Set([...temporaryCodes, 'invalid_request', 'invalid_scope', 'unsupported_grant_type']);

/** Codes that mean that a refresh token is no longer valid, as sent by RFC 6749 (5.2), GitHub, and Slack. */
const loginEndingCodes = new Set(['invalid_grant', 'bad_refresh_token', 'invalid_refresh_token']);

/** A refused refresh without a reason defined by OAuth. A single one does not end the login. */
export class UnexplainedRefusal extends OAuthError {
  constructor(message: string, detail: string, providerMessage: string | undefined) {
    super('temporarily_unavailable', message, detail, providerMessage);
    this.name = 'UnexplainedRefusal';
  }
}

/** Creates the error for a refused request. Clients see only the provider's error code. */
function createRefusal(
  { status }: UpstreamResponse,
  fields: Fields,
  { oauth, secrets, isRefresh }: RequestContext,
): OAuthError {
  const { error, error_description } = fields;
  const providerMessage = getDisplayedMessage(error_description, secrets);
  const code = typeof error === 'string' ? error : '';
  const displayedCode = getDisplayedCode(code, secrets);
  const suffix =
    displayedCode === undefined || statedCodes.has(displayedCode) ? '' : ` and returned the error ${displayedCode}`;
  const detail = `status ${status} ${displayedCode ?? 'in an unusual format'}`;
  if (status >= 500 || status === 429 || status === 408 || code === 'temporarily_unavailable') {
    return new OAuthError(
      'temporarily_unavailable',
      `the provider's token endpoint is unavailable${suffix}`,
      detail,
      providerMessage,
    );
  }
  const hasNoReason = code === '' && (status === 400 || status === 401);
  const isEnded = isRefresh ? loginEndingCodes.has(code) : hasNoReason || (code !== '' && !temporaryCodes.has(code));
  if (isEnded)
    return new OAuthError('invalid_grant', `the provider does not accept this login${suffix}`, detail, providerMessage);
  const hasUnknownReason = code !== '' && status <= 401 && !nonTokenCodes.has(code);
  if (isRefresh && (hasNoReason || hasUnknownReason))
    return new UnexplainedRefusal(
      `the token endpoint refused to refresh the login with status ${status}${suffix}`,
      detail,
      providerMessage,
    );
  const subject = clientErrorCodes.has(code) ? "this server's client id or client secret" : 'the request';
  // Both methods are common, and an endpoint that requires the other one responds with no more than this code.
  const advice =
    code === 'invalid_client' && oauth.client_auth === undefined
      ? '; it may require "client_auth": "basic" in oauth'
      : '';
  const message = `the token endpoint refused ${subject} with status ${status}${suffix}${advice}`;
  return new OAuthError('server_error', message, detail, providerMessage);
}

/**
 * Token types that require a proof of possession, which this service cannot create (RFC 9449; the drafts of mac and
 * pop).
 */
const proofTypes = new Set(['mac', 'dpop', 'pop']);

/**
 * Rejects token types that cannot be sent as bearer tokens (RFC 6749, 7.1). Providers have many names for bearer
 * tokens, so all types except `proofTypes` are accepted.
 */
export function checkTokenType(tokenType: unknown): void {
  if (tokenType === undefined || tokenType === null || tokenType === '') return;
  if (typeof tokenType !== 'string') throw createIncompleteError('token_type');
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
  return typeof value === 'string' && value.length <= maxHeaderLength && /^[\x21-\x7e]+$/.test(value);
}

/**
 * Returns a text that is stored next to a token. Its length is limited like that of a token. So is its length in JSON,
 * the form in which it is stored, because a control character takes six bytes there. Undefined if it is not a string.
 * @throws OAuthError server_error
 */
function getTextField(fields: Fields, name: 'refresh_token' | 'scope') {
  const value = fields[name];
  if (typeof value !== 'string') return undefined;
  const isTooLong = value.length > maxHeaderLength || Buffer.byteLength(JSON.stringify(value)) > maxHeaderLength + 2;
  if (isTooLong) throw createIncompleteError(name);
  return value;
}

const maxLifetimeS = 10 * 365 * 24 * 60 * 60;

/**
 * Converts `expires_in` to whole ms, the unit in which times are stored. It may be a number or a string of digits.
 * Returns undefined for 0 and anything else.
 */
export function toLifetimeMs(seconds: unknown): number | undefined {
  const isDigits = typeof seconds === 'string' && /^\d{1,12}$/.test(seconds);
  const number = typeof seconds === 'number' || isDigits ? Number(seconds) : 0;
  return number > 0 ? Math.max(1, Math.floor(Math.min(number, maxLifetimeS) * 1000)) : undefined;
}

export function createIncompleteError(field: string): OAuthError {
  return new OAuthError('server_error', `the token endpoint responded without a usable ${field}`);
}

/** Parses the fields of a token endpoint's response. @throws OAuthError server_error */
export function parseFields(response: UpstreamResponse): Fields {
  const text = response.body.toString('utf8');
  if (/^application\/x-www-form-urlencoded\b|^text\/plain\b/i.test(String(response.headers['content-type']))) {
    const form = Object.fromEntries(parseFormFields(text) ?? []);
    if ('access_token' in form || 'error' in form) return form;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Fields;
  } catch {
    // Not JSON; reported below.
  }
  // The status of an error page is sufficient.
  if (response.status >= 400) return {};
  throw new OAuthError(
    'server_error',
    'the token endpoint returned a response that is neither JSON nor a form',
    `status ${response.status}`,
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
export function getDisplayedCode(error: string, secrets: readonly string[]): string | undefined {
  // Checks the length first, so that two long texts from the provider are not searched in each other.
  if (!codePattern.test(error)) return undefined;
  const isPartOfSecret = secrets.some((secret) => secret.includes(error));
  return !isPartOfSecret && !containsAny(error, secrets) ? error : undefined;
}

const maxMessageLength = 300;
/** Maximum length that is processed, so that a credential at the end of a shown message is found completely. */
const maxProcessedLength = 4000;

/** Long words with a digit: codes, tokens, and keys, including those that this service does not know. */
const secretPattern = /(?=[\w+/=.~%-]*\d)[\w+/=.~%-]{16,}/g;

/**
 * Returns the message with which a provider explains an error, on one line and without credentials, or undefined if
 * there is none.
 */
export function getDisplayedMessage(description: unknown, secrets: readonly string[]): string | undefined {
  if (typeof description !== 'string') return undefined;
  const nonEmptySecrets = secrets.filter((secret) => secret !== '');
  const redacted = redact(description.slice(0, maxProcessedLength), nonEmptySecrets).replaceAll(
    secretPattern,
    '[redacted]',
  );
  const line = [...toSingleLine(redacted)];
  const sentence = line.length > maxMessageLength ? [...line.slice(0, maxMessageLength - 1), '…'] : line;
  return sentence.join('') || undefined;
}

function containsAny(text: string, secrets: readonly string[]): boolean {
  return secrets.some((secret) => secret !== '' && text.includes(secret)) || redact(text, secrets) !== text;
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
export function countCharacters({ accessToken, refreshToken = '', scope = '', ...rest }: ProviderTokens): number {
  const { identity, values, callbackValues } = rest;
  const additional =
    identity || values || callbackValues ? JSON.stringify([identity, values, callbackValues]).length : 0;
  return accessToken.length + refreshToken.length + scope.length + additional;
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
