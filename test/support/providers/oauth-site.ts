import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { Json } from '../toolhost/toolhost.ts';
import type { Site, SiteRequest, SiteResponse } from './internet.ts';

/** A person's account at a provider. `data` is what the provider knows about it. */
export type Account = { name: string; data: Record<string, string> };

/** Tokens that a token endpoint issues. */
type Issued = {
  account: Account;
  access: string;
  refresh: string;
  scope: string;
  isRefresh: boolean;
  fields: Record<string, string>;
};

/** Where a provider deviates from OAuth, as its documentation says. */
export type OAuthRules = {
  clientId: string;
  clientSecret: string | undefined;
  /** Exact parameters of the authorization request, except for those of every request. */
  authorization?: Record<string, string>;
  /** Value of `redirect_uri`, if it is not the callback. */
  redirectName?: string;
  pkce?: 'required';
  /** Parameters of the callback besides `code` and `state`. */
  callback?: (account: Account) => Record<string, string>;
  codeParameter?: string;
  /** True if the provider returns with a form. */
  returnsForm?: boolean;
  clientAuth: 'basic' | 'body' | 'none';
  tokenType: 'form' | 'json';
  /** Names of fields that differ. */
  names?: Record<string, string>;
  /** Exact fields of a token request that must be present. */
  fields?: (account: Account, isRefresh: boolean) => Record<string, string>;
  /** True if the token request has no redirect_uri of its own. */
  ignoresRedirect?: boolean;
  response: (issued: Issued) => Json;
  /** Fields of every token request with any value. */
  requiredFields?: string[];
  /** True if a refresh token may be used again. */
  keepsRefreshTokens?: boolean;
  /** Path that refreshes tokens, if it is another one. */
  refreshPath?: string;
  /** Further checks of a token request. */
  checkRequest?: (request: SiteRequest, isRefresh: boolean) => void;
  checkAccount?: (account: Account, request: SiteRequest) => void;
  /** Response to a code or a refresh token that is not valid. */
  refusal?: SiteResponse;
};

type Code = { account: Account; redirectUri: string; challenge: string | null; scope: string };

/** The authorization server of a provider. */
export type OAuthSite = {
  /** The callback that is registered at the provider. */
  register(callback: string): void;
  /** Sets the account of the next login. */
  logInAs(account: Account): void;
  /** Responds to the authorization request. */
  authorize(request: SiteRequest): SiteResponse;
  /** Responds to the token endpoint. */
  issue(request: SiteRequest): SiteResponse;
  /** Returns the account of a live token. */
  findAccount(token: string | undefined): Account | undefined;
  /** Ends all access tokens. Refresh tokens remain valid. */
  expire(): void;
};

const createChallenge = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

export function createOAuthSite(rules: OAuthRules): OAuthSite {
  const codes = new Map<string, Code>();
  const accessTokens = new Map<string, Account>();
  const refreshTokens = new Map<string, { account: Account; scope: string }>();
  let callback = '';
  let next: Account = { name: 'nobody', data: {} };
  let count = 0;
  const { codeParameter = 'code', names = {} } = rules;
  const nameOf = (field: string) => names[field] ?? field;

  function readFields({ headers, body }: SiteRequest): Record<string, string> {
    const type = rules.tokenType === 'form' ? /^application\/x-www-form-urlencoded/ : /^application\/json/;
    assert.match(headers['content-type'] ?? '', type);
    if (rules.tokenType === 'json') return JSON.parse(body) as Record<string, string>;
    const pairs = [...new URLSearchParams(body)];
    assert.equal(new Set(pairs.map(([name]) => name)).size, pairs.length, 'a field occurs twice');
    return Object.fromEntries(pairs);
  }

  function checkClient({ headers }: SiteRequest, fields: Record<string, string>): void {
    const { clientId, clientSecret = '', clientAuth } = rules;
    if (clientAuth === 'basic') {
      const pair = Buffer.from(`${clientId}:${clientSecret}`).toString('base64');
      assert.equal(headers.authorization, `Basic ${pair}`);
      assert.equal(fields[nameOf('client_secret')], undefined);
      return;
    }
    assert.equal(headers.authorization, undefined);
    assert.equal(fields[nameOf('client_id')], clientId);
    assert.equal(fields[nameOf('client_secret')], clientAuth === 'none' ? undefined : clientSecret);
  }

  function issueTokens(account: Account, scope: string, isRefresh: boolean, fields: Record<string, string>) {
    const number = ++count;
    const [access, refresh] = [`access-${account.name}-${number}`, `refresh-${account.name}-${number}`];
    accessTokens.set(access, account);
    refreshTokens.set(refresh, { account, scope });
    return { body: rules.response({ account, access, refresh, scope, isRefresh, fields }) };
  }

  const refuse = (): SiteResponse => rules.refusal ?? { status: 400, body: { error: 'invalid_grant' } };

  return {
    register(url) {
      callback = url;
    },
    logInAs(account) {
      next = account;
    },
    authorize({ method, url: { searchParams: query } }) {
      assert.equal(method, 'GET');
      const params = Object.fromEntries(query);
      const redirectUri = rules.redirectName ?? callback;
      assert.partialDeepStrictEqual(params, {
        response_type: 'code',
        redirect_uri: redirectUri,
        ...rules.authorization,
      });
      const [idName] = Object.keys(rules.authorization ?? {}).filter((name) => name === 'application_id');
      if (idName === undefined) assert.equal(params.client_id, rules.clientId);
      assert.ok(params.state, 'no state');
      const challenge = query.get('code_challenge');
      if (rules.pkce === 'required') assert.match(challenge ?? '', /^[\w-]{43}$/);
      if (challenge !== null) assert.equal(params.code_challenge_method, 'S256');
      const code = `code-${++count}`;
      codes.set(code, { account: next, redirectUri, challenge, scope: params.scope ?? '' });
      const answer = { [codeParameter]: code, state: params.state, ...rules.callback?.(next) };
      if (rules.returnsForm) return { body: renderForm(callback, answer) };
      const target = new URL(callback);
      target.search = new URLSearchParams(answer).toString();
      return { status: 302, headers: { location: target.href } };
    },
    issue(request) {
      assert.equal(request.method, 'POST');
      const fields = readFields(request);
      checkClient(request, fields);
      const grantType = fields[nameOf('grant_type')];
      const isRefresh = grantType === 'refresh_token';
      rules.checkRequest?.(request, isRefresh);
      for (const name of rules.requiredFields ?? []) assert.ok(fields[name], `the token request has no ${name}`);
      if (rules.refreshPath !== undefined) assert.equal(request.url.pathname === rules.refreshPath, isRefresh);
      if (isRefresh) {
        const token = fields[nameOf('refresh_token')] ?? '';
        const refresh = refreshTokens.get(token);
        if (!refresh) return refuse();
        assert.partialDeepStrictEqual(fields, rules.fields?.(refresh.account, true) ?? {});
        rules.checkAccount?.(refresh.account, request);
        if (!rules.keepsRefreshTokens) refreshTokens.delete(token);
        return issueTokens(refresh.account, refresh.scope, true, fields);
      }
      assert.equal(grantType, 'authorization_code');
      const code = codes.get(fields[nameOf('code')] ?? '');
      codes.delete(fields[nameOf('code')] ?? '');
      if (!code) return refuse();
      rules.checkAccount?.(code.account, request);
      if (!rules.ignoresRedirect) assert.equal(fields[nameOf('redirect_uri')], code.redirectUri);
      if (code.challenge !== null) assert.equal(createChallenge(fields.code_verifier ?? ''), code.challenge);
      assert.partialDeepStrictEqual(fields, rules.fields?.(code.account, false) ?? {});
      return issueTokens(code.account, code.scope, false, fields);
    },
    findAccount: (token) => accessTokens.get(token ?? ''),
    expire: () => accessTokens.clear(),
  };
}

/** Renders the form that a browser with scripts would submit by itself (OAuth 2.0 Form Post Response Mode). */
function renderForm(action: string, fields: Record<string, string>): string {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${value.replaceAll('"', '&quot;')}">`,
  );
  return `<!doctype html><body><form method="post" action="${action}">${inputs.join('')}<button>Continue</button></form></body>`;
}

/** Returns a site whose paths are answered by functions, as `METHOD /path`. A path may contain `*` for one segment. */
export function createPaths(paths: Record<string, Site>): Site {
  return (request) => {
    const line = `${request.method} ${request.url.pathname}`;
    const [, serve] =
      Object.entries(paths).find(([pattern]) => new RegExp(`^${pattern.replaceAll('*', '[^/]+')}$`).test(line)) ?? [];
    assert.ok(serve, `the provider does not have ${line}`);
    return serve(request);
  };
}

/** Returns an API that checks the login token in a header, and responds with whose token it is. */
export function createApi(
  site: OAuthSite,
  check: (account: Account, request: SiteRequest) => void = () => undefined,
  { header = 'authorization', prefix = 'Bearer ' }: { header?: string; prefix?: string } = {},
): Site {
  return (request) => {
    const value = request.headers[header];
    const isPrefixed = typeof value === 'string' && value.startsWith(prefix);
    const account = isPrefixed ? site.findAccount(value.slice(prefix.length)) : undefined;
    if (!account) return { status: 401, body: { message: 'invalid token' } };
    check(account, request);
    return { body: { account: account.name } };
  };
}
