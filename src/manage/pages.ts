import { html } from 'hono/html';
import { page } from '../http/page.ts';
import { routes } from '../routes.ts';

/** Page for a failed sign-in, with a link to try again. */
export function signInFailedPage(message: string): string {
  return page(
    'Not signed in',
    html`<h1>The sign-in did not succeed</h1>
<p>${message[0]?.toUpperCase()}${message.slice(1)}.</p>
<div class="actions"><a class="button primary" href="${routes.login}">Sign in again</a></div>`,
  );
}
