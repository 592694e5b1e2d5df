export type Target = {
  name: string;
  url: string;
  /** A second address, on a host of its own. */
  hostUrl: string | undefined;
  /** The placeholder for the credential; undefined where the client opens a login. */
  token: string | undefined;
};

export type Snippet = {
  id: string;
  title: string;
  where: string;
  code: string;
  install?: { label: string; href: string };
  after?: string;
};

function json(value: unknown): string {
  return JSON.stringify(value, null, 2);
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function headersOf({ token }: Target): { headers?: { Authorization: string } } {
  return token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } };
}

function claudeCode(target: Target): Snippet {
  const header = target.token === undefined ? '' : ` --header "Authorization: Bearer ${target.token}"`;
  return {
    id: 'claude-code',
    title: 'Claude Code',
    where: 'In a terminal:',
    code: `claude mcp add --transport http ${target.name} ${target.url}${header}`,
    ...(target.token === undefined && { after: 'Then type /mcp in Claude Code to log in.' }),
  };
}

function claudeDesktop(target: Target): Snippet {
  const header = target.token === undefined ? [] : ['--header', `Authorization: Bearer ${target.token}`];
  const insecure = target.url.startsWith('http:') ? ['--allow-http'] : [];
  const args = ['-y', 'mcp-remote', target.url, ...header, ...insecure];
  return {
    id: 'claude-desktop',
    title: 'Claude Desktop',
    where: 'In claude_desktop_config.json, for this and other clients that only speak stdio:',
    code: json({ mcpServers: { [target.name]: { command: 'npx', args } } }),
    after: 'Needs Node.js. Restart Claude Desktop afterwards.',
  };
}

function cursor(target: Target): Snippet {
  const config = { url: target.url, ...headersOf(target) };
  const query = new URLSearchParams({ name: target.name, config: base64(JSON.stringify(config)) });
  return {
    id: 'cursor',
    title: 'Cursor',
    where: 'In .cursor/mcp.json:',
    code: json({ mcpServers: { [target.name]: config } }),
    install: { label: 'Install in Cursor', href: `cursor://anysphere.cursor-deeplink/mcp/install?${query}` },
  };
}

function vsCode(target: Target): Snippet {
  const config = { type: 'http', url: target.url, ...headersOf(target) };
  const link = encodeURIComponent(JSON.stringify({ name: target.name, ...config }));
  return {
    id: 'vscode',
    title: 'VS Code',
    where: 'In .vscode/mcp.json:',
    code: json({ servers: { [target.name]: config } }),
    install: { label: 'Install in VS Code', href: `vscode:mcp/install?${link}` },
  };
}

function codex(target: Target): Snippet {
  const variable = `${target.name.toUpperCase().replaceAll('-', '_')}_TOKEN`;
  const lines = [`[mcp_servers.${target.name}]`, `url = "${target.url}"`];
  if (target.token !== undefined) lines.push(`bearer_token_env_var = "${variable}"`);
  return {
    id: 'codex',
    title: 'Codex',
    where: 'In ~/.codex/config.toml:',
    code: lines.join('\n'),
    after:
      target.token === undefined
        ? `Then run: codex mcp login ${target.name}`
        : `And in the shell: export ${variable}=${target.token}`,
  };
}

function curl(target: Target): Snippet {
  const header =
    target.token === undefined ? ['-H "Authorization: Bearer $TOKEN"'] : [`-H 'Authorization: Bearer ${target.token}'`];
  const request = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
  return {
    id: 'curl',
    title: 'curl',
    where: 'In a terminal:',
    code: [`curl -s ${target.url}`, ...header, "-H 'Content-Type: application/json'", `-d '${request}'`].join(
      ' \\\n  ',
    ),
    ...(target.token === undefined && { after: '$TOKEN is an access token that a client got by the login.' }),
  };
}

function sdk(target: Target): Snippet {
  const options = target.token === undefined ? '{ authProvider }' : '{ requestInit }';
  const credential =
    target.token === undefined
      ? '// authProvider: an OAuthClientProvider of yours, which opens the login\n'
      : `const requestInit = { headers: { Authorization: 'Bearer ${target.token}' } };\n`;
  return {
    id: 'sdk',
    title: 'TypeScript SDK',
    where: 'npm install @modelcontextprotocol/client',
    code: `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const client = new Client({ name: 'example', version: '1.0.0' });
${credential}await client.connect(new StreamableHTTPClientTransport(new URL('${target.url}'), ${options}));
console.log(await client.listTools());`,
  };
}

/** Clients that can only log in; Claude is reported to call only addresses whose path is `/mcp`. */
function inBrowser(target: Target): Snippet {
  return {
    id: 'claude',
    title: 'Claude and ChatGPT',
    where: 'In the settings of the client, under connectors, add one with this address:',
    code: target.hostUrl ?? target.url,
    after: 'They connect from the internet and log in; a credential cannot be typed in.',
  };
}

/** How each client is connected, with the credential filled in. */
export function snippetsFor(target: Target): Snippet[] {
  const hosted = target.token === undefined ? [inBrowser] : [];
  return [claudeCode, ...hosted, claudeDesktop, cursor, vsCode, codex, curl, sdk].map((make) => make(target));
}
