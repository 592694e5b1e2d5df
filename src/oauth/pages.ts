import { html } from 'hono/html';
import { addedQuery } from '../domain/http/read-url.ts';
import { errorDescription, type OAuthError, oauthErrorStatus } from '../errors.ts';
import { type Markup, page, visible } from '../http/page.ts';
import type { OAuthClient } from './clients.ts';
import { isLocalRedirect, redirectTarget } from './clients.ts';
import type { ConsentRequest } from './consent.ts';
import type { LoginServer, LoginView, OAuthAnswer } from './parts.ts';

/** Shows which client asks, for what, on whose server, and where the answer and the tokens will go. */
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
<p class="soft">An agent asks to act for you. Continue only if you have just started this yourself.</p>
<dl>
${fact('Who asks', name, sourceOf(client))}
${fact('The answer goes to', redirectTarget(request.redirectUri))}
${fact('Permissions asked for', scopes.length > 0 ? listOf(scopes) : 'What the provider grants by default')}
${fact('Server', visible(server.name), view ? `${server.issuer}/${view.name}` : server.issuer)}
${view ? fact('Only its view', visible(view.title), toolsText(view)) : ''}
${fact('Operated by', visible(server.operator), 'Not verified by this service.')}
${server.actsIn === undefined ? '' : fact('Acts in', server.actsIn)}
${fact('You will log in at', host)}
${audience.length > 0 ? fact('Your access is used at', audience.join(', ')) : ''}
</dl>
${isLocalRedirect(request.redirectUri) ? html`<p class="warn" role="note">The answer goes to a program on this device. Any program here could have asked under this name.</p>` : ''}
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

/** What a view can do, in one sentence each for tools that only read and for the others. */
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

/** Sends the browser to the provider. A page, not a redirect: browsers apply form-action to redirects after a form. */
export function departurePage(server: LoginServer, url: URL): string {
  const { host } = server.provider;
  return page(
    'To the login',
    html`<h1>Now log in at ${host}</h1>
<p>You are being taken there. If nothing happens, go on yourself.</p>
${goOn(url.href, `Continue to ${host}`)}`,
    refreshTo(url.href),
  );
}

/**
 * Page after the login. The browser stays on it when the client is a program, and shows it until a redirect to a web
 * client has loaded. With `onward` the page itself leads there.
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
  // A person needs time to read a sentence that only this page has.
  const head = onward === undefined ? '' : refreshTo(onward, failure?.said === undefined ? 0 : readingS);
  if (!failure) {
    return page(
      'Logged in',
      html`${mark('good', 'm4 12 5 5L20 7')}<h1>You are logged in</h1>
<p>Your client can now use ${name}. Go back to it; this page can be closed.</p>${back}`,
      head,
    );
  }
  const isRefusal = failure.code === 'access_denied';
  return page(
    'Not logged in',
    html`${mark('bad', 'M6 6l12 12M18 6 6 18')}<h1>${isRefusal ? 'You did not log in' : 'The login did not succeed'}</h1>
<p>${isRefusal ? html`Your client gets no access to ${name}` : html`${name}: ${failure.message}`}.</p>
${failure.said === undefined ? '' : html`<p class="warn" role="note">${server.provider.host} says: “<bdi>${failure.said}</bdi>”</p>`}
<p class="soft">This ${onward === undefined ? 'has been' : 'is being'} passed on to ${target}.</p>${back}`,
    head,
  );
}

function sourceOf({ host }: OAuthClient): string {
  return host === undefined ? 'It gave itself this name; nobody has checked it.' : `Described at ${host}`;
}

/** An error for the person only; the page has no link. */
export function errorPage(error: OAuthError, requestId: string): string {
  return page(
    'This did not work',
    html`${mark('bad', 'M12 5v9M12 19v.01')}<h1>This did not work</h1>
<p>${error.message[0]?.toUpperCase()}${error.message.slice(1)}.</p>
<p class="soft">Nothing was shared with anyone.</p>
<dl>
${fact('Error', html`<code>${error.code}</code>`)}
${fact('Request', html`<code>${requestId}</code>`)}
</dl>`,
  );
}

/** A decorative icon: the heading beside it carries the meaning. */
function mark(tone: 'good' | 'bad', path: string): Markup {
  return html`<svg class="mark ${tone}" viewBox="0 0 24 24" aria-hidden="true"><path d="${path}"/></svg>`;
}

function goOn(url: string, label: string): Markup {
  return html`<div class="actions"><a class="button primary" id="continue" href="${url}">${label}</a></div>`;
}

/** Seconds until a page leads on by itself. */
const readingS = 20;

function refreshTo(url: string, seconds = 0): Markup {
  return html`<meta http-equiv="refresh" content="${seconds}; url=${url}">`;
}

type Outcome = { state: string | undefined } & ({ code: string } | { error: OAuthError });

/**
 * Sends the browser back to the client with a code or an error, always with `state` and our `iss` (RFC 6749, 4.1.2; RFC
 * 9207). The answer to a form must not be a redirect, so it is a page, and so it is for a private-use scheme: a browser that
 * starts a program stays on the page before it, which after a redirect would be the provider's form. A page that has the
 * provider's own sentence stays until it was read.
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

/** An error that only a client can act on which nobody has verified: the page shows where it is, and waits for a click. */
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
    'This login cannot begin',
    html`${mark('bad', 'M12 5v9M12 19v.01')}<h1>This login cannot begin</h1>
<p>The client asked for it wrongly: ${error.message}. Nothing was shared with anyone.</p>
<p class="soft">If you did not start this yourself, close the page. Otherwise you can report the error to the client.</p>
<dl>
${fact('Server', visible(server.name), server.issuer)}
${fact('Who asks', visible(client.name), sourceOf(client))}
${fact('The answer would go to', target, isLocalRedirect(onward) ? 'A program on this device.' : 'A web site that this service does not know.')}
${fact('Error', html`<code>${error.code}</code>`)}
</dl>
<div class="actions"><a class="button" href="${onward}">Go to ${target}</a></div>`,
  );
  return { status: oauthErrorStatus[error.code], html: shown };
}

/**
 * Parameters that say how a login ended. A redirect URI loses its own, which would say something else. All else that the
 * answer does not set itself belongs to the client, also a `state` when its request had none.
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

/** Maps errors of the token endpoint to a code that is registered here (RFC 6749, 4.1.2.1; RFC 8707, 2). */
function registeredCode(error: OAuthError): string {
  return error.code === 'invalid_grant' || error.code === 'invalid_client' ? 'server_error' : error.code;
}
