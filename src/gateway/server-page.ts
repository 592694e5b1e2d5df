import { html, raw } from 'hono/html';
import type { McpEndpoint } from '../domain/mcp.ts';

type About = McpEndpoint['about'];

const credential: Record<About['access'], string> = {
  oauth: 'Your client opens a login page when it connects; nothing needs to be copied.',
  passthrough: 'Your client opens a login page when it connects; nothing needs to be copied.',
  api_key: 'Send an API key of the workspace that runs this server as the bearer.',
  caller_token: 'Send your own token of the upstream service as the bearer.',
  management: 'Send an API key with the scope manage as the bearer.',
};

/** Control, bidirectional and zero-width characters would let a name pose as something else. */
function visible(text: string): string {
  return text.replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '\ufffd');
}

const style = `
:root { color-scheme: light dark; --line: light-dark(#d8dde3, #333b45); --soft: light-dark(#56606c, #a3adb9); }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 42rem; margin: 0 auto; padding: 3rem 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
.soft { color: var(--soft); } pre { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; overflow-x: auto; }
`;

/** What a person sees who opens the address of a server in a browser. */
export function serverPage(content: About, url: string): string {
  const isLogin = content.access === 'oauth' || content.access === 'passthrough';
  const header = isLogin ? '' : ' --header "Authorization: Bearer $TOKEN"';
  const name = url.split('/').at(-1);
  return String(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${visible(content.name)} – MCP server</title>
<style>${raw(style)}</style>
</head>
<body>
<main>
<h1>${visible(content.name)}</h1>
<p class="soft">An MCP server with ${content.tools} ${content.tools === 1 ? 'tool' : 'tools'}. It is meant for agents, not for browsers.</p>
${content.description ? html`<p>${visible(content.description)}</p>` : ''}
<h2>Address</h2>
<pre>${url}</pre>
<h2>Connect Claude Code</h2>
<pre>claude mcp add --transport http ${name} ${url}${header}</pre>
<h2>Connect a client that only speaks stdio</h2>
<pre>npx mcp-remote ${url}${header}</pre>
<p class="soft">${credential[content.access]}</p>
</main>
</body>
</html>`);
}
