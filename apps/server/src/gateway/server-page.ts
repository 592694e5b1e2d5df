import { getClaudeCodeCommand, getMcpRemoteCommand } from '@toolhost/mcp-clients/client';
import type { McpEndpoint } from '@toolhost/mcp-protocol/mcp';
import { html } from 'hono/html';
import { renderPage, showInvisible } from '../http/page.ts';
import { credentialVariables } from '../snippets/call-snippets.ts';

type ServerInfo = McpEndpoint['pageContent'];

const credentialInstructions: Record<ServerInfo['access'], string> = {
  oauth: 'Your client opens a login page when it connects; nothing needs to be copied.',
  passthrough: 'Your client opens a login page when it connects; nothing needs to be copied.',
  login:
    'Your client opens a login page when it connects. Programs can send an API key of the workspace as the bearer token.',
  api_key: "Send an API key of this server's workspace as the bearer token.",
  caller_token: 'Send your own token for the upstream service as the bearer token.',
  open: "The API receives no credential. Send an API key of this server's workspace, or any other token, as the bearer token.",
  management: 'Send an API key with the scope manage as the bearer token.',
};

/** Kinds of access whose clients open a login page. */
const hasLoginPage = new Set<ServerInfo['access']>(['oauth', 'passthrough', 'login']);

/** Returns the name under which a client stores the server: the slug, followed by the view name if there is one. */
function getConnectionName(url: string): string {
  const [, address = ''] = /.*\/mcp\/(.*)$/.exec(new URL(url).pathname) ?? [];
  return address.replace('/', '-') || 'mcp';
}

/** Renders the page that a browser shows at a server's URL. */
export function renderServerPage(info: ServerInfo, url: string): string {
  const hasLogin = hasLoginPage.has(info.access);
  const variable = credentialVariables[info.access === 'caller_token' ? 'caller_token' : 'api_key'];
  const connection = { name: getConnectionName(url), url, token: hasLogin ? undefined : `$${variable.name}` };
  return renderPage(
    `${showInvisible(info.name)} – MCP server`,
    html`<h1>${showInvisible(info.name)}</h1>
<p class="soft">An MCP server with ${info.tools} ${info.tools === 1 ? 'tool' : 'tools'}. It is intended for agents, not for browsers.</p>
${info.description ? html`<p>${showInvisible(info.description)}</p>` : ''}
<h2>URL</h2>
<pre>${url}</pre>
<h2>Connect Claude Code</h2>
<pre>${getClaudeCodeCommand(connection)}</pre>
<h2>Connect a client that supports only stdio</h2>
<pre>${getMcpRemoteCommand(connection)}</pre>
<p class="soft">${credentialInstructions[info.access]}</p>`,
  );
}
