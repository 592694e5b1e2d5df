import { html } from 'hono/html';
import { addedQuery } from '../domain/http/read-url.ts';
import { errorDescription, type OAuthError, oauthErrorStatus } from '../errors.ts';
import { type Markup, page, visible } from '../http/page.ts';
import type { OAuthClient } from './clients.ts';
import { isLocalRedirect, redirectTarget } from './clients.ts';
import type { ConsentRequest } from './consent.ts';
import type { LoginServer, LoginView, OAuthAnswer } from './parts.ts';

/**
 * Renders the page that shows which client requests which access to whose server, and where the response and the tokens
 * will be sent.
 */
export function consentPage(
  server: LoginServer & { operator: string },
  client: OAuthClient,
  request: ConsentRequest,
  sealed: string,
): string {
  const { host, audience } = server.provider;
  const name = visible(client.name);
  const view = request.view === undefined ? undefined : server.findView(request.view);
  const scopes = request.scope === '' ? [] : request.scope.split(' ');
  return page(
    `Allow ${name}?`,
    html`<h1>Allow “<bdi>${name}</bdi>” to use <bdi>${visible(server.name)}</bdi>?</h1>
<p class="soft">An agent requests access on your behalf. Continue only if you just started this login yourself.</p>
<dl>
${fact('Client', name, sourceOf(client))}
${fact('Redirects to', redirectTarget(request.redirectUri))}
${fact('Requested permissions', scopes.length > 0 ? listOf(scopes) : 'Default permissions of the provider')}
${fact('Server', visible(server.name), view ? `${server.issuer}/${view.name}` : server.issuer)}
${view ? fact('Limited to view', visible(view.title), toolsText(view)) : ''}
${fact('Operated by', visible(server.operator), 'Not verified by this service.')}
${server.actsIn === undefined ? '' : fact('Acts in', server.actsIn)}
${fact('Login provider', host)}
${audience.length > 0 ? fact('Token is sent to', audience.join(', ')) : ''}
</dl>
${isLocalRedirect(request.redirectUri) ? html`<p class="warn" role="note">The response is sent to a program on this device. Any program on it could have used this name.</p>` : ''}
<form method="post" action="${new URL(server.issuer).pathname}/consent">
<input type="hidden" name="request" value="${sealed}">
${request.view === undefined ? '' : html`<input type="hidden" name="view" value="${request.view}">`}
<div class="actions">
<button class="primary" type="submit" name="decision" value="allow">Allow and log in</button>
<button type="submit" name="decision" value="deny">Cancel</button>
</div>
</form>`,
  );
}

const mostToolsNamed = 20;

/** Describes the tools of a view, in one sentence each for read-only tools and for the others. */
function toolsText({ tools }: LoginView): string {
  const named = (reads: boolean) => {
    const names = tools.filter((tool) => tool.reads === reads).map((tool) => visible(tool.name));
    const more = names.length - mostToolsNamed;
    return names.slice(0, mostToolsNamed).join(', ') + (more > 0 ? ` and ${more} more` : '');
  };
  const [reading, changing] = [named(true), named(false)];
  const parts = [
    ...(reading === '' ? [] : [`It can read with: ${reading}.`]),
    ...(changing === '' ? ['It changes nothing.'] : [`It can change data with: ${changing}.`]),
  ];
  return parts.join(' ');
}

function fact(name: string, value: string | Markup, note?: string): Markup {
  const shown = typeof value === 'string' ? html`<bdi>${value}</bdi>` : value;
  return html`<div><dt>${name}</dt><dd>${shown}${note === undefined ? '' : html`<small>${note}</small>`}</dd></div>`;
}

function listOf(scopes: readonly string[]): Markup {
  return html`<ul>${scopes.map((scope) => html`<li><code>${visible(scope)}</code></li>`)}</ul>`;
}

/**
 * Renders the page that sends the browser to the provider. It is a page and not a redirect, because browsers apply
 * form-action to redirects that follow a form.
 */
export function departurePage(server: LoginServer, url: URL): string {
  const { host } = server.provider;
  return page(
    'Continue to login',
    html`<h1>Log in at ${host}</h1>
<p>You are being redirected. If nothing happens, use the button below.</p>
${goOn(url.href, `Continue to ${host}`)}`,
    refreshTo(url.href),
  );
}

/**
 * Renders the page after the login. The browser stays on it if the client is a program, and shows it until a redirect
 * to a web client has loaded. With `onward`, the page itself redirects there.
 */
function returnPage(
  server: LoginServer,
  redirectUri: string,
  failure: OAuthError | undefined,
  onward?: string,
): string {
  const target = isLocalRedirect(redirectUri) ? 'your client' : redirectTarget(redirectUri);
  const name = html`<bdi>${visible(server.name)}</bdi>`;
  const back = onward === undefined ? '' : goOn(onward, `Back to ${target}`);
  // The provider's message is shown only on this page, so the person needs time to read it.
  const head = onward === undefined ? '' : refreshTo(onward, failure?.said === undefined ? 0 : readingS);
  if (!failure) {
    return page(
      'Logged in',
      html`${mark('good', 'm4 12 5 5L20 7')}<h1>You are logged in</h1>
<p>Your client can now use ${name}. You can close this page and return to it.</p>${back}`,
      head,
    );
  }
  const isRefusal = failure.code === 'access_denied';
  return page(
    'Not logged in',
    html`${mark('bad', 'M6 6l12 12M18 6 6 18')}<h1>${isRefusal ? 'You did not log in' : 'Login failed'}</h1>
<p>${isRefusal ? html`Your client was not given access to ${name}` : html`${name}: ${failure.message}`}.</p>
${failure.said === undefined ? '' : html`<p class="warn" role="note">${server.provider.host} says: “<bdi>${failure.said}</bdi>”</p>`}
<p class="soft">The result ${onward === undefined ? 'has been' : 'is being'} sent to ${target}.</p>${back}`,
    head,
  );
}

function sourceOf({ host }: OAuthClient): string {
  return host === undefined ? 'Self-reported name, not verified.' : `Described by a document at ${host}`;
}

/** Renders an error for the person only. The page has no link. */
export function errorPage(error: OAuthError, requestId: string): string {
  return page(
    'Something went wrong',
    html`${mark('bad', 'M12 5v9M12 19v.01')}<h1>Something went wrong</h1>
<p>${error.message[0]?.toUpperCase()}${error.message.slice(1)}.</p>
<p class="soft">No data was shared.</p>
<dl>
${fact('Error', html`<code>${error.code}</code>`)}
${fact('Request', html`<code>${requestId}</code>`)}
</dl>`,
  );
}

/** Renders a decorative icon. The heading next to it carries the meaning. */
function mark(tone: 'good' | 'bad', path: string): Markup {
  return html`<svg class="mark ${tone}" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`;
}

function goOn(url: string, label: string): Markup {
  return html`<div class="actions"><a class="button primary" id="continue" href="${url}">${label}</a></div>`;
}

/** Time until a page with a provider message redirects, in s. */
const readingS = 20;

function refreshTo(url: string, seconds = 0): Markup {
  return html`<meta http-equiv="refresh" content="${seconds}; url=${url}">`;
}

type Outcome = { state: string | undefined } & ({ code: string } | { error: OAuthError });

/**
 * Sends the browser back to the client with a code or an error, always with `state` and our `iss` (RFC 6749, 4.1.2; RFC
 * 9207). The response to a form is a page, because it must not be a redirect. The same applies to a private-use scheme:
 * a browser that starts a program stays on the previous page, which after a redirect would be the provider's form. A
 * page with the provider's message stays until it can be read.
 */
export function clientRedirect(
  server: LoginServer,
  redirectUri: string,
  outcome: Outcome,
  { cookies = [], isOfForm = false }: { cookies?: string[]; isOfForm?: boolean } = {},
): OAuthAnswer {
  const failure = 'error' in outcome ? outcome.error : undefined;
  const location = addressOf(server, redirectUri, outcome);
  if (isOfForm || failure?.said !== undefined || !/^https?:/.test(location))
    return { status: 200, html: returnPage(server, redirectUri, failure, location), cookies };
  return { status: 302, location, html: returnPage(server, redirectUri, failure), cookies };
}

/** Renders an error that only an unverified client can act on. The page shows the target, and waits for a click. */
export function errorWithLink(
  server: LoginServer,
  client: OAuthClient,
  redirectUri: string,
  outcome: Outcome & { error: OAuthError },
): OAuthAnswer {
  const { error } = outcome;
  const onward = addressOf(server, redirectUri, outcome);
  const { protocol, host } = new URL(onward);
  const target = host === '' ? protocol : `${protocol}//${host}`;
  const shown = page(
    'This login cannot start',
    html`${mark('bad', 'M12 5v9M12 19v.01')}<h1>This login cannot start</h1>
<p>The client sent an invalid request: ${error.message}. No data was shared.</p>
<p class="soft">If you did not start this login yourself, close this page. Otherwise, you can send the error to the client.</p>
<dl>
${fact('Server', visible(server.name), server.issuer)}
${fact('Client', visible(client.name), sourceOf(client))}
${fact('Would redirect to', target, isLocalRedirect(onward) ? 'A program on this device.' : 'A website that is not known to this service.')}
${fact('Error', html`<code>${error.code}</code>`)}
</dl>
<div class="actions"><a class="button" href="${onward}">Go to ${target}</a></div>`,
  );
  return { status: oauthErrorStatus[error.code], html: shown };
}

/**
 * Parameters that state the result of a login. If a redirect URI contains them, they are removed, because they would
 * state another result. All other parameters that the response does not set itself belong to the client, including a
 * `state` if its request had none.
 */
const resultParams = ['code', 'error', 'error_description'];

function addressOf(server: LoginServer, redirectUri: string, outcome: Outcome): string {
  const url = new URL(redirectUri);
  const [, query = ''] = /^[^?]*\?(.*)$/s.exec(redirectUri) ?? [];
  const result: [string, string][] =
    'code' in outcome
      ? [['code', outcome.code]]
      : [
          ['error', registeredCode(outcome.error)],
          ['error_description', errorDescription(outcome.error.message).slice(0, 300)],
        ];
  const state: [string, string][] = outcome.state === undefined ? [] : [['state', outcome.state]];
  const added = addedQuery(query, [...result, ...state, ['iss', server.issuer]], resultParams);
  url.search = '';
  return `${url.href}?${added}`;
}

/** Maps errors of the token endpoint to a code that is registered for redirects (RFC 6749, 4.1.2.1; RFC 8707, 2). */
function registeredCode(error: OAuthError): string {
  return error.code === 'invalid_grant' || error.code === 'invalid_client' ? 'server_error' : error.code;
}
