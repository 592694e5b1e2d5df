import { html } from 'hono/html';
import { claudeCodeCommand, mcpRemoteCommand } from '../domain/clients/client.ts';
import type { McpEndpoint } from '../domain/mcp.ts';
import { credentialVariables } from '../domain/snippets/call-snippets.ts';
import { page, visible } from '../http/page.ts';

type About = McpEndpoint['about'];

const credential: Record<About['access'], string> = {
  oauth: 'Your client opens a login page when it connects; nothing needs to be copied.',
  passthrough: 'Your client opens a login page when it connects; nothing needs to be copied.',
  api_key: 'Send an API key of the workspace that runs this server as the bearer.',
  caller_token: 'Send your own token of the upstream service as the bearer.',
  open: 'The API gets no credential. Send an API key of the workspace that runs this server, or any other token, as the bearer.',
  management: 'Send an API key with the scope manage as the bearer.',
};

/** The name under which a client keeps the server: the slug, with the name of the view. */
function connectionName(url: string): string {
  const [, address = ''] = /.*\/mcp\/(.*)$/.exec(new URL(url).pathname) ?? [];
  return address.replace('/', '-') || 'mcp';
}

/** The page for a person who opens the address of a server in a browser. */
export function serverPage(about: About, url: string): string {
  const isLogin = about.access === 'oauth' || about.access === 'passthrough';
  const variable = credentialVariables[about.access === 'caller_token' ? 'caller_token' : 'api_key'];
  const to = { name: connectionName(url), url, token: isLogin ? undefined : `$${variable.name}` };
  return page(
    `${visible(about.name)} – MCP server`,
    html`<h1>${visible(about.name)}</h1>
<p class="soft">An MCP server with ${about.tools} ${about.tools === 1 ? 'tool' : 'tools'}. It is meant for agents, not for browsers.</p>
${about.description ? html`<p>${visible(about.description)}</p>` : ''}
<h2>Address</h2>
<pre>${url}</pre>
<h2>Connect Claude Code</h2>
<pre>${claudeCodeCommand(to)}</pre>
<h2>Connect a client that only speaks stdio</h2>
<pre>${mcpRemoteCommand(to)}</pre>
<p class="soft">${credential[about.access]}</p>`,
  );
}
