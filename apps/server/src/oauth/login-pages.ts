import { errorDescription, type OAuthError, type OAuthErrorCode, oauthErrorStatus } from '@toolhost/errors/errors';
import { addQueryParameters } from '@toolhost/tool-config/http/read-url';
import { html } from 'hono/html';
import { type Markup, renderPage, showInvisible } from '../http/page.ts';
import { formatRedirectUri, isLocalRedirect, type OAuthClient } from './clients.ts';
import type { ConsentRequest } from './consent.ts';
import { formatHosts } from './login-fields.ts';
import { maxChoices } from './login-values.ts';
import type { AccountChoice, BrowserResponse, LoginServer, LoginView, Provider } from './oauth-deps.ts';
import { getPersonName, getPersonView, type ServerLogin } from './people.ts';
import type { ValuesState } from './person-values.ts';

type ConsentPage = {
  /** The request in sealed form. */
  sealed: string;
  /** State of the person's values. Undefined for a server without `login`. */
  state: ValuesState | undefined;
  /** Host of the identity provider of this service. */
  identityHost: string;
};

/**
 * Renders the page that shows which client requests which access to whose server, and where the response and the tokens
 * will be sent.
 */
export function renderConsentPage(
  server: LoginServer & { operator: string },
  client: OAuthClient,
  request: ConsentRequest,
  { sealed, state, identityHost }: ConsentPage,
): string {
  const { audience, login, provider } = server;
  const { identity } = request;
  const name = showInvisible(client.name);
  const viewName = (login && identity && getPersonView(login, identity)) ?? request.view;
  const view = viewName === undefined ? undefined : server.findView(viewName);
  const scopes = request.scope === '' ? [] : request.scope.split(' ');
  const tools = server.listTools();
  return renderPage(
    `Allow ${name}?`,
    html`<h1>Allow “<bdi>${name}</bdi>” to use <bdi>${showInvisible(server.name)}</bdi>?</h1>
<p class="soft">An agent requests access on your behalf. Continue only if you just started this login yourself.</p>
<dl>
${renderFact('Client', name, formatSource(client))}
${renderFact('Redirects to', formatRedirectUri(request.redirectUri))}
${identity ? renderFact('Signed in as', showInvisible(getPersonName(identity) ?? 'A person without a name'), `Identified by ${identityHost}`) : ''}
${provider ? renderFact('Requested permissions', scopes.length > 0 ? renderScopes(scopes) : 'Default permissions of the provider') : ''}
${renderFact('Server', showInvisible(server.name), view ? `${server.issuer}/${view.name}` : server.issuer)}
${view ? renderFact('Limited to view', showInvisible(view.title), ...describeTools(view)) : ''}
${login && !view ? renderFact('Tools', String(tools.length), ...describeTools({ tools })) : ''}
${renderFact('Operated by', showInvisible(server.operator), 'Not verified by this service.')}
${server.actsIn === undefined ? '' : renderFact('Acts in', server.actsIn)}
${provider ? renderFact('Login provider', provider.host) : ''}
${provider && audience.length > 0 ? renderFact('Token is sent to', audience.join(', ')) : ''}
${login && state ? renderStoredFields(login, state) : ''}
</dl>
${isLocalRedirect(request.redirectUri) ? html`<p class="warn" role="note">The response is sent to a program on this device. Any program on it could have used this name.</p>` : ''}
<form method="post" action="${new URL(server.issuer).pathname}/consent">
<input type="hidden" name="request" value="${sealed}">
${request.view === undefined ? '' : html`<input type="hidden" name="view" value="${request.view}">`}
<div class="actions">
<button class="primary" type="submit" name="decision" value="allow">${provider ? 'Allow and log in' : 'Allow'}</button>
${state && Object.keys(state.values).length > 0 ? html`<button type="submit" name="decision" value="change">Change your details</button>` : ''}
<button type="submit" name="decision" value="deny">Cancel</button>
</div>
</form>`,
  );
}

/**
 * Renders the stored values of a person that a login will use: where they are sent, never the values. The owner of the
 * server chose the labels, so they must not look like facts of this service.
 */
function renderStoredFields({ fields }: ServerLogin, { values, refused }: ValuesState): Markup | '' {
  const stored = fields.filter(({ name }) => Object.hasOwn(values, name));
  if (stored.length === 0) return '';
  return html`<div><dt>Your details</dt>${stored.map((field) => {
    const isRefused = refused.includes(field.name);
    const status = isRefused ? html`<span class="bad">Refused by the API.</span> You will be asked for it.` : 'Stored.';
    return html`<dd><bdi>${showInvisible(field.label)}</bdi><small>${status} Sent to <bdi>${formatHosts(field.hosts, fields)}</bdi>.</small></dd>`;
  })}</div>`;
}

const maxListedTools = 20;

/** Describes the tools of a view, in one sentence each for read-only tools and for the others. */
function describeTools({ tools }: Pick<LoginView, 'tools'>): string[] {
  const listTools = (isReadOnly: boolean) => {
    const names = tools.filter((tool) => tool.isReadOnly === isReadOnly).map((tool) => showInvisible(tool.name));
    const hiddenCount = names.length - maxListedTools;
    return names.slice(0, maxListedTools).join(', ') + (hiddenCount > 0 ? ` and ${hiddenCount} more` : '');
  };
  const [readOnlyTools, changingTools] = [listTools(true), listTools(false)];
  return [
    ...(readOnlyTools === '' ? [] : [`It can read with: ${readOnlyTools}.`]),
    ...(changingTools === '' ? ['It changes nothing.'] : [`It can change data with: ${changingTools}.`]),
  ];
}

function renderFact(name: string, value: string | Markup, ...notes: readonly string[]): Markup {
  const displayedValue = typeof value === 'string' ? html`<bdi>${value}</bdi>` : value;
  return html`<div><dt>${name}</dt><dd>${displayedValue}${notes.map((note) => html`<small>${note}</small>`)}</dd></div>`;
}

function renderScopes(scopes: readonly string[]): Markup {
  return html`<ul>${scopes.map((scope) => html`<li><code>${showInvisible(scope)}</code></li>`)}</ul>`;
}

/**
 * Renders the page that sends the browser to the provider. It is a page and not a redirect, because browsers apply
 * form-action to redirects that follow a form.
 */
export function renderDeparturePage({ provider }: { provider: Provider }, url: URL): string {
  // The host of the provider may contain `{{NAME}}`, which the URL contains filled in.
  const host = provider.host.includes('{{') ? url.host : provider.host;
  return renderPage(
    'Continue to login',
    html`<h1>Log in at ${host}</h1>
<p>You are being redirected. If nothing happens, use the button below.</p>
${renderContinueLink(url.href, `Continue to ${host}`)}`,
    renderRefresh(url.href),
  );
}

/** Renders the form in which a person with several accounts chooses one. The provider chose the texts. */
export function renderAccountPage(server: LoginServer, choices: readonly AccountChoice[], formSecret: string): string {
  const host = server.provider?.host ?? 'The provider';
  return renderPage(
    'Choose an account',
    html`<h1>Choose an account</h1>
<p class="soft">${host} lists several accounts for you. <bdi>${showInvisible(server.name)}</bdi> will use the one that you choose.</p>
<form method="post" action="${new URL(server.issuer).pathname}/callback/account">
<input type="hidden" name="login" value="${formSecret}">
<fieldset><legend>Accounts at ${host}</legend>
${choices.map(renderAccount)}
</fieldset>
${choices.length < maxChoices ? '' : html`<p class="soft">Only the first ${maxChoices} accounts are shown.</p>`}
<div class="actions">
<button class="primary" type="submit" name="decision" value="continue">Continue</button>
<button type="submit" name="decision" value="cancel" formnovalidate>Cancel</button>
</div>
</form>`,
  );
}

function renderAccount({ name, detail }: AccountChoice, index: number): Markup {
  return html`<label><input type="radio" name="account" value="${index}" required><span><bdi>${name}</bdi>${detail === '' ? '' : html`<small><bdi>${detail}</bdi></small>`}</span></label>
`;
}

/**
 * Renders the page after the login. The browser stays on it if the client is a program, and shows it until a redirect
 * to a web client has loaded. With `redirectUrl`, the page itself redirects there.
 */
function renderReturnPage(
  server: LoginServer,
  redirectUri: string,
  failure: OAuthError | undefined,
  redirectUrl?: string,
  isShownFirst = false,
): string {
  const target = isLocalRedirect(redirectUri) ? 'your client' : formatRedirectUri(redirectUri);
  const name = html`<bdi>${showInvisible(server.name)}</bdi>`;
  const backLink = redirectUrl === undefined ? '' : renderContinueLink(redirectUrl, `Back to ${target}`);
  // The provider's message is shown only on this page, so the person needs time to read it.
  const refreshTag =
    redirectUrl === undefined
      ? ''
      : renderRefresh(redirectUrl, isShownFirst || failure?.providerMessage !== undefined ? readingTimeS : 0);
  if (!failure) {
    return renderPage(
      'Logged in',
      html`${renderIcon('good', 'm4 12 5 5L20 7')}<h1>You are logged in</h1>
<p>Your client can now use ${name}. You can close this page and return to it.</p>${backLink}`,
      refreshTag,
    );
  }
  const isDenied = failure.code === 'access_denied' && !isShownFirst;
  return renderPage(
    'Not logged in',
    html`${renderIcon('bad', 'M6 6l12 12M18 6 6 18')}<h1>${isDenied ? 'You did not log in' : 'Login failed'}</h1>
<p>${isDenied ? html`Your client was not given access to ${name}` : html`${name}: ${failure.message}`}.</p>
${failure.providerMessage === undefined ? '' : html`<p class="warn" role="note">${server.provider?.host} says: “<bdi>${failure.providerMessage}</bdi>”</p>`}
<p class="soft">The result ${redirectUrl === undefined ? 'has been' : 'is being'} sent to ${target}.</p>${backLink}`,
    refreshTag,
  );
}

function formatSource({ host }: OAuthClient): string {
  return host === undefined ? 'Self-reported name, not verified.' : `Described by a document at ${host}`;
}

/** Renders an error that is not sent to a client. The page has no link. */
export function renderOAuthErrorPage(error: OAuthError, requestId: string): string {
  return renderPage(
    'Something went wrong',
    html`${renderIcon('bad', 'M12 5v9M12 19v.01')}<h1>Something went wrong</h1>
<p>${error.message[0]?.toUpperCase()}${error.message.slice(1)}.</p>
<p class="soft">No data was shared.</p>
<dl>
${renderFact('Error', html`<code>${error.code}</code>`)}
${renderFact('Request', html`<code>${requestId}</code>`)}
</dl>`,
  );
}

/** Renders a decorative icon. The heading next to it carries the meaning. */
function renderIcon(tone: 'good' | 'bad', path: string): Markup {
  return html`<svg class="mark ${tone}" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`;
}

function renderContinueLink(url: string, label: string): Markup {
  return html`<div class="actions"><a class="button primary" id="continue" href="${url}">${label}</a></div>`;
}

/** Time until a page with a provider message redirects, in s. */
const readingTimeS = 20;

function renderRefresh(url: string, seconds = 0): Markup {
  return html`<meta http-equiv="refresh" content="${seconds}; url=${url}">`;
}

type RedirectOptions = {
  cookies?: string[];
  /** True for the response to a form, which is a page. */
  isFormResponse?: boolean;
  /** True if the page is shown until the person has read the error. */
  isShownFirst?: boolean;
};

type LoginOutcome = { state: string | undefined } & ({ code: string } | { error: OAuthError });

/**
 * Sends the browser back to the client with a code or an error, always with `state` and our `iss` (RFC 6749, 4.1.2; RFC
 * 9207). The response to a form is a page, because it must not be a redirect. The same applies to a private-use scheme:
 * a browser that starts a program stays on the previous page, which after a redirect would be the provider's form. A
 * page with the provider's message stays until it can be read.
 */
export function createClientRedirect(
  server: LoginServer,
  redirectUri: string,
  outcome: LoginOutcome,
  { cookies = [], isFormResponse = false, isShownFirst = false }: RedirectOptions = {},
): BrowserResponse {
  const failure = 'error' in outcome ? outcome.error : undefined;
  const location = buildRedirectUrl(server, redirectUri, outcome);
  if (isFormResponse || isShownFirst || failure?.providerMessage !== undefined || !/^https?:/.test(location))
    return { status: 200, html: renderReturnPage(server, redirectUri, failure, location, isShownFirst), cookies };
  return { status: 302, location, html: renderReturnPage(server, redirectUri, failure), cookies };
}

/** Errors that are not the client's fault. Their messages are for the person. */
const personErrors: readonly OAuthErrorCode[] = ['access_denied', 'server_error', 'temporarily_unavailable'];

/** Renders an error for a client that is not known. It sends the error to the client only after a click. */
export function createErrorWithLink(
  server: LoginServer,
  client: OAuthClient,
  redirectUri: string,
  outcome: LoginOutcome & { error: OAuthError },
): BrowserResponse {
  const { error } = outcome;
  const redirectUrl = buildRedirectUrl(server, redirectUri, outcome);
  const { protocol, host } = new URL(redirectUrl);
  const target = host === '' ? protocol : `${protocol}//${host}`;
  const errorHtml = renderPage(
    'This login cannot start',
    html`${renderIcon('bad', 'M12 5v9M12 19v.01')}<h1>This login cannot start</h1>
<p>${personErrors.includes(error.code) ? html`${error.message[0]?.toUpperCase()}${error.message.slice(1)}` : html`The client sent an invalid request: ${error.message}`}. No data was shared.</p>
<p class="soft">If you did not start this login yourself, close this page. Otherwise, you can send the error to the client.</p>
<dl>
${renderFact('Server', showInvisible(server.name), server.issuer)}
${renderFact('Client', showInvisible(client.name), formatSource(client))}
${renderFact('Would redirect to', target, isLocalRedirect(redirectUrl) ? 'A program on this device.' : 'A website that is not known to this service.')}
${renderFact('Error', html`<code>${error.code}</code>`)}
</dl>
<div class="actions"><a class="button" href="${redirectUrl}">Go to ${target}</a></div>`,
  );
  return { status: error.code === 'access_denied' ? 403 : oauthErrorStatus[error.code], html: errorHtml };
}

/**
 * Parameters that state the result of a login. If a redirect URI contains them, they are removed, because they would
 * state another result. All other parameters that the response does not set itself belong to the client, including a
 * `state` if its request had none.
 */
const resultParams = ['code', 'error', 'error_description'];

function buildRedirectUrl(server: LoginServer, redirectUri: string, outcome: LoginOutcome): string {
  const url = new URL(redirectUri);
  const [, query = ''] = /^[^?]*\?(.*)$/s.exec(redirectUri) ?? [];
  const result: [string, string][] =
    'code' in outcome
      ? [['code', outcome.code]]
      : [
          ['error', toRegisteredCode(outcome.error)],
          ['error_description', errorDescription(outcome.error.message).slice(0, 300)],
        ];
  const state: [string, string][] = outcome.state === undefined ? [] : [['state', outcome.state]];
  const queryText = addQueryParameters(query, [...result, ...state, ['iss', server.issuer]], resultParams);
  url.search = '';
  return `${url.href}?${queryText}`;
}

/** Maps errors of the token endpoint to a code that is registered for redirects (RFC 6749, 4.1.2.1; RFC 8707, 2). */
function toRegisteredCode(error: OAuthError): string {
  return error.code === 'invalid_grant' || error.code === 'invalid_client' ? 'server_error' : error.code;
}
