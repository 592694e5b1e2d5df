import { html } from 'hono/html';
import { brand, renderPage } from '../http/page.ts';
import { routes } from '../routes.ts';
import { renderLocalSignIn, type SignInKind } from './local-sign-in.ts';

const sampleImport = `https://api.example.com/openapi.json

GET    /orders        →  list_orders
GET    /orders/{id}   →  get_order
POST   /orders        →  create_order
PATCH  /orders/{id}   →  update_order`;

const sections = [
  [
    'Import',
    'Toolhost reads OpenAPI documents, Postman collections, HAR files, and curl commands. You choose which operations become tools.',
  ],
  ['Connect', 'Each server has one URL, which Claude, ChatGPT, Cursor, VS Code, and other MCP clients connect to.'],
  [
    'Control access',
    'API keys of the upstream API are stored encrypted and sent only to its hosts. With OAuth, each person logs in with their own account.',
  ],
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
    html`${brand}
<div class="columns">
<div>
<h1>Turn an HTTP API into an MCP server</h1>
<p class="soft">Toolhost hosts MCP servers for your APIs. Import an API description, and each operation becomes a tool that AI agents can call.</p>
${signIn}
</div>
<div>
<pre>${sampleImport}</pre>
<p class="soft">An agent calls a tool. Toolhost checks the arguments, adds the credential, and sends one request to the API.</p>
</div>
${sections.map(([title, text]) => html`<div><h2>${title}</h2><p class="soft">${text}</p></div>`)}
</div>`,
    html`<meta name="description" content="Turns HTTP APIs into hosted MCP servers">
<link rel="icon" href="${basePath}/favicon.svg" type="image/svg+xml">`,
  );
}
