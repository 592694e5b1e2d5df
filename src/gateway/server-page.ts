import { html } from 'hono/html';
import { claudeCodeCommand, mcpRemoteCommand } from '../domain/clients/client.ts';
import type { McpEndpoint } from '../domain/mcp.ts';
import { credentialVariables } from '../domain/snippets/call-snippets.ts';
import { page, visible } from '../http/page.ts';

type About = McpEndpoint['about'];

const credential: Record<About['access'], string> = {
  oauth: 'Your client opens a login page when it connects; nothing needs to be copied.',
  passthrough: 'Your client opens a login page when it connects; nothing needs to be copied.',
  api_key: "Send an API key of this server's workspace as the bearer token.",
  caller_token: 'Send your own token for the upstream service as the bearer token.',
  open: "The API receives no credential. Send an API key of this server's workspace, or any other token, as the bearer token.",
  management: 'Send an API key with the scope manage as the bearer token.',
};

/** Returns the name under which a client stores the server: the slug, followed by the view name if there is one. */
function connectionName(url: string): string {
  const [, address = ''] = /.*\/mcp\/(.*)$/.exec(new URL(url).pathname) ?? [];
  return address.replace('/', '-') || 'mcp';
}

/** Renders the page that a browser shows at a server's URL. */
export function serverPage(about: About, url: string): string {
  const isLogin = about.access === 'oauth' || about.access === 'passthrough';
  const variable = credentialVariables[about.access === 'caller_token' ? 'caller_token' : 'api_key'];
  const to = { name: connectionName(url), url, token: isLogin ? undefined : `$${variable.name}` };
  return page(
    `${visible(about.name)} – MCP server`,
    html`<h1>${visible(about.name)}</h1>
<p class="soft">An MCP server with ${about.tools} ${about.tools === 1 ? 'tool' : 'tools'}. It is intended for agents, not for browsers.</p>
${about.description ? html`<p>${visible(about.description)}</p>` : ''}
<h2>URL</h2>
<pre>${url}</pre>
<h2>Connect Claude Code</h2>
<pre>${claudeCodeCommand(to)}</pre>
<h2>Connect a client that supports only stdio</h2>
<pre>${mcpRemoteCommand(to)}</pre>
<p class="soft">${credential[about.access]}</p>`,
  );
}
