import { html } from 'hono/html';
import type { OAuthError } from '../errors.ts';
import { type Markup, page, visible } from '../page.ts';
import { routes } from '../routes.ts';
import type { ConsentRequest } from './authorize.ts';
import type { Client } from './client.ts';
import type { LoginServer } from './login-server.ts';
import { isLocalRedirect, redirectTarget } from './redirect-uri.ts';

/** Who asks, for what, on whose server, and where what they get will go. */
export function consentPage(server: LoginServer, client: Client, request: ConsentRequest, sealed: string): string {
  const name = visible(client.name);
  const scopes = request.scope === '' ? [] : request.scope.split(' ');
  return page(
    `Allow ${name}?`,
    html`<h1>Allow “${name}” to use ${visible(server.name)}?</h1>
<p class="soft">An agent asks to act for you. Continue only if you have just started this yourself.</p>
<dl>
<div><dt>Who asks</dt><dd>${name}<small>${client.host === undefined ? 'It gave itself this name; nobody has checked it.' : `Described at ${client.host}`}</small></dd></div>
<div><dt>The answer goes to</dt><dd>${redirectTarget(request.redirectUri)}</dd></div>
<div><dt>Server</dt><dd>${visible(server.name)}<small>${server.issuer}</small></dd></div>
<div><dt>Operated by</dt><dd>${visible(server.operator)}<small>Not verified by this service.</small></dd></div>
<div><dt>You will log in at</dt><dd>${server.provider.host}</dd></div>
${server.provider.audience.length > 0 ? html`<div><dt>Your access will be used at</dt><dd>${server.provider.audience.join(', ')}</dd></div>` : ''}
<div><dt>Permissions asked for</dt><dd>${scopes.length > 0 ? scopes.map((scope) => html`${visible(scope)}<br>`) : 'What the provider grants by default'}</dd></div>
</dl>
${isLocalRedirect(request.redirectUri) ? html`<p class="warn" role="note">The answer goes to a program on this device. Any program here could have asked under this name.</p>` : ''}
<form method="post" action="${routes.consent.replace(':slug', server.slug)}">
<input type="hidden" name="request" value="${sealed}">
<div class="actions">
<button class="primary" type="submit" name="decision" value="allow">Allow and log in</button>
<button type="submit" name="decision" value="deny">Cancel</button>
</div>
</form>`,
  );
}

/** Leads on to the provider. A page and not a redirect: browsers apply form-action to redirects that follow a form. */
export function departurePage(server: LoginServer, url: URL): string {
  return page(
    'To the login',
    html`<h1>Now log in at ${server.provider.host}</h1>
<p>You are being taken there. If nothing happens, go on yourself.</p>
<div class="actions"><a class="button primary" id="continue" href="${url.href}">Continue to ${server.provider.host}</a></div>`,
    refreshTo(url.href),
  );
}

/**
 * Shown where the browser stays because the client is a program, and for as long as the way back takes. With `onward` the
 * page leads there itself.
 */
export function returnPage(
  server: LoginServer,
  redirectUri: string,
  failure: OAuthError | undefined,
  onward?: string,
): string {
  if (!failure) {
    return page('Logged in', html`<h1>You are logged in</h1><p>Go back to your client; this page can be closed.</p>`);
  }
  const target = redirectTarget(redirectUri);
  const told = onward
    ? html`<div class="actions"><a class="button primary" id="continue" href="${onward}">Back to ${target}</a></div>`
    : html`<p class="soft">The client at ${target} has been told.</p>`;
  return page(
    'Not logged in',
    html`<h1>The login did not succeed</h1><p>${visible(server.name)}: ${failure.message}.</p>${told}`,
    onward ? refreshTo(onward) : '',
  );
}

function refreshTo(url: string): Markup {
  return html`<meta http-equiv="refresh" content="0; url=${url}">`;
}

/** An error that is nobody's but the person's who looks at it; it leads nowhere. */
export function errorPage(error: OAuthError, requestId: string): string {
  return page(
    'This did not work',
    html`<h1>This did not work</h1>
<p>${error.message[0]?.toUpperCase()}${error.message.slice(1)}.</p>
<p class="soft">Nothing was shared with anyone. Error ${error.code}, request ${requestId}.</p>`,
  );
}
