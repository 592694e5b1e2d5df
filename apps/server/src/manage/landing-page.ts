import { html } from 'hono/html';
import { renderPage } from '../http/page.ts';
import { routes } from '../routes.ts';
import { renderLocalSignIn, type SignInKind } from './local-sign-in.ts';

const sampleImport = `https://api.example.com/openapi.json

GET    /orders        →  list_orders
GET    /orders/{id}   →  get_order
POST   /orders        →  create_order
PATCH  /orders/{id}   →  update_order`;

const benefits = [
  [
    'Import what you have',
    'OpenAPI, Postman, HAR, or a curl command. Each operation becomes a tool, and nothing is lost silently.',
  ],
  ['Connect every client', 'Claude, ChatGPT, Cursor, VS Code, and every SDK use one URL. There is nothing to deploy.'],
  ['Keep credentials safe', 'Secrets are sealed and sent only to their hosts. People log in with their own provider.'],
] as const;

/**
 * Renders the page for people who are not signed in. It has no script, so that it shows immediately.
 * @param returnTo path and query of the page to return to after signing in
 */
export function renderLandingPage(basePath: string, returnTo: string, signInKind: SignInKind): string {
  const signInUrl = `${basePath}${routes.login}?return_to=${encodeURIComponent(returnTo)}`;
  const signIn =
    signInKind === 'provider'
      ? html`<div class="actions"><a class="button primary" href="${signInUrl}">Sign in</a></div>`
      : renderLocalSignIn(signInKind === 'link', basePath, returnTo);
  return renderPage(
    'Toolhost – HTTP APIs as hosted MCP servers',
    html`<p class="brand"><img src="${basePath}/favicon.svg" width="28" height="28" alt="">Toolhost</p>
<div class="columns">
<div>
<h1>Import an API. Agents call it a minute later.</h1>
<p class="soft">Paste the URL of an API description, choose the operations, and connect a client. Toolhost hosts the MCP server.</p>
${signIn}
</div>
<div>
<pre>${sampleImport}</pre>
<p class="soft">Each tool has the arguments of its operation, which are checked before anything is sent.</p>
</div>
${benefits.map(([title, text]) => html`<div><h2>${title}</h2><p class="soft">${text}</p></div>`)}
</div>`,
    html`<meta name="description" content="Turns HTTP APIs into hosted MCP servers">
<link rel="icon" href="${basePath}/favicon.svg" type="image/svg+xml">`,
  );
}
