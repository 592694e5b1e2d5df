import { html } from 'hono/html';
import { page } from '../page.ts';
import { routes } from '../routes.ts';

/** What this is and where its doors are. */
export function homePage(baseUrl: string, managementUrl: string, version: string): string {
  return page(
    'Toolhost',
    html`<h1>Toolhost</h1>
<p class="soft">Version ${version}. HTTP APIs in, hosted MCP servers out.</p>
<h2>Make an API key</h2>
<pre>bin/toolhost keys create --name me --scopes manage,call</pre>
<h2>Let an agent manage servers</h2>
<pre>claude mcp add --transport http toolhost ${managementUrl} --header "Authorization: Bearer $TOOLHOST_API_KEY"</pre>
<h2>Or use the REST API</h2>
<p><a href="${baseUrl}${routes.openApi}">OpenAPI document</a> · <a href="${baseUrl}${routes.serverSchema}">JSON Schema of a server configuration</a></p>`,
  );
}
