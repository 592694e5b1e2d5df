import { html } from 'hono/html';
import { renderPage } from '../http/page.ts';
import { routes } from '../routes.ts';
import { renderLocalSignInForm } from './local-sign-in.ts';

const sampleTool = `{
  "name": "get_repository",
  "description": "Get a public repository",
  "method": "GET",
  "url": "https://api.github.com/repos/:owner/:repo",
  "input_schema": {
    "owner": { "type": "string" },
    "repo": { "type": "string" }
  }
}`;

const benefits = [
  [
    'A tool is one HTTP request',
    'Describe the request once: URL, arguments, and headers. Agents get a tool whose arguments are validated before anything is sent.',
  ],
  [
    'Every MCP client',
    'Claude, Cursor, VS Code, Codex, and every SDK connect to one URL. There is nothing to deploy for each server.',
  ],
  [
    'Credentials stay safe',
    'Secrets are sealed and sent only to their intended hosts. People log in with their own provider.',
  ],
] as const;

/**
 * Renders the page for people who are not signed in. It has no script, so that it shows immediately.
 * @param returnTo path and query of the page to return to after signing in
 * @param isLocal true without an identity provider, where one click signs in
 */
export function renderLandingPage(basePath: string, returnTo: string, isLocal: boolean): string {
  const signInUrl = `${basePath}${routes.login}?return_to=${encodeURIComponent(returnTo)}`;
  const signIn = isLocal
    ? renderLocalSignInForm(basePath, returnTo)
    : html`<a class="button primary" href="${signInUrl}">Sign in</a>`;
  return renderPage(
    'Toolhost – HTTP APIs as hosted MCP servers',
    html`<p class="brand"><img src="${basePath}/favicon.svg" width="28" height="28" alt="">Toolhost</p>
<div class="columns">
<div>
<h1>HTTP APIs in, MCP servers out</h1>
<p class="soft">Toolhost turns the APIs that you use into hosted MCP servers. Describe a request, and agents can call it a minute later.</p>
<div class="actions">
${signIn}
<a class="button" href="${basePath}${routes.serverSchema}">Configuration schema</a>
</div>
</div>
<div>
<pre>${sampleTool}</pre>
<p class="soft">This is a complete tool. Every MCP client can call it, and only with valid arguments.</p>
</div>
${benefits.map(([title, text]) => html`<div><h2>${title}</h2><p class="soft">${text}</p></div>`)}
</div>`,
    html`<meta name="description" content="Turns HTTP APIs into hosted MCP servers">
<link rel="icon" href="${basePath}/favicon.svg" type="image/svg+xml">`,
  );
}
