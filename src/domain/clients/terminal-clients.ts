import {
  bearerWord,
  type ClientConnection,
  type DeclaredClient,
  exportToken,
  headersOf,
  plainName,
  prettyJson,
  tokenVariable,
} from './client.ts';

/** The command that connects Claude Code. */
export function claudeCodeCommand({ name, url, token }: ClientConnection): string {
  const header = token === undefined ? '' : ` --header ${bearerWord(token)}`;
  return `claude mcp add --transport http ${name} ${url}${header}`;
}

/** The command of `mcp-remote`, for clients that only speak stdio. */
export function mcpRemoteCommand({ url, token }: ClientConnection): string {
  return `npx mcp-remote ${url}${token === undefined ? '' : ` --header ${bearerWord(token)}`}`;
}

export const claudeCode: DeclaredClient = {
  id: 'claude-code',
  name: 'Claude Code',
  documentation: { url: 'https://code.claude.com/docs/en/mcp', checked: '2026-11-27' },
  snippet: (to) => ({
    where: 'In a terminal:',
    format: 'sh',
    code: claudeCodeCommand(to),
    ...(to.token === undefined && { after: `Then run: claude mcp login ${to.name}` }),
  }),
  rules: {
    redirectUris: ['http://localhost:38100/callback'],
    // It replaces a dot by _.
    toolName: { shown: (server, tool) => `mcp__${server}__${tool}`, max: 64 },
  },
};

export const codex: DeclaredClient = {
  id: 'codex',
  name: 'Codex',
  documentation: { url: 'https://developers.openai.com/codex/mcp', checked: '2026-11-22' },
  snippet: (to) => ({
    where: 'In ~/.codex/config.toml:',
    format: 'toml',
    code: [
      `[mcp_servers.${to.name}]`,
      `url = ${JSON.stringify(to.url)}`,
      ...(to.token === undefined ? [] : [`bearer_token_env_var = "${tokenVariable(to)}"`]),
    ].join('\n'),
    after:
      to.token === undefined
        ? `Then run: codex mcp login ${to.name}`
        : `And in the shell: ${exportToken(to, to.token)}`,
  }),
  rules: {
    redirectUris: ['http://127.0.0.1:38101/callback'],
    // It puts the server before the name too, but shortens what gets too long, and replaces a dot by _ (openai/codex#8694).
    toolName: { shown: plainName, max: 64 },
    // openai/codex#1975
    addsTypes: true,
  },
};

export const geminiCli: DeclaredClient = {
  id: 'gemini-cli',
  name: 'Gemini CLI',
  documentation: { url: 'https://geminicli.com/docs/tools/mcp-server', checked: '2026-11-22' },
  snippet: ({ name, url, token }) => ({
    where: 'In a terminal:',
    format: 'sh',
    code: `gemini mcp add --scope user --transport http${token === undefined ? '' : ` --header ${bearerWord(token)}`} ${name} ${url}`,
    after:
      token === undefined
        ? `Then type /mcp auth ${name} in Gemini CLI to log in.`
        : 'Servers are off in folders that Gemini CLI does not trust.',
  }),
  rules: {
    redirectUris: ['http://localhost:38103/oauth/callback'],
    // It puts mcp_ and the server before the name, and shortens what gets longer than 63 characters.
    toolName: { shown: plainName, max: 64 },
    wantsObjects: true,
  },
};

export const qwenCode: DeclaredClient = {
  id: 'qwen-code',
  name: 'Qwen Code',
  documentation: { url: 'https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/', checked: '2026-11-27' },
  snippet: ({ name, url, token }) => ({
    where: 'In a terminal:',
    format: 'sh',
    code: `qwen mcp add --scope user --transport http${token === undefined ? '' : ` --header ${bearerWord(token)}`} ${name} ${url}`,
    ...(token === undefined && { after: `Then type /mcp auth ${name} in Qwen Code to log in.` }),
  }),
};

export const openCode: DeclaredClient = {
  id: 'opencode',
  name: 'OpenCode',
  documentation: { url: 'https://opencode.ai/v1/docs/mcp-servers/', checked: '2026-11-27' },
  snippet: (to) => ({
    where: 'In opencode.json of the project or ~/.config/opencode/opencode.json:',
    format: 'json',
    code: prettyJson({ mcp: { [to.name]: { type: 'remote', url: to.url, ...headersOf(to) } } }),
    after: to.token === undefined ? `Then run: opencode mcp auth ${to.name}` : 'OpenCode 2 has "servers" inside "mcp".',
  }),
};

export const copilotCli: DeclaredClient = {
  id: 'copilot-cli',
  name: 'Copilot CLI',
  documentation: {
    url: 'https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers',
    checked: '2026-11-27',
  },
  snippet: (to) => ({
    where: 'In ~/.copilot/mcp-config.json:',
    format: 'json',
    code: prettyJson({ mcpServers: { [to.name]: { type: 'http', url: to.url, ...headersOf(to), tools: ['*'] } } }),
  }),
};

export const goose: DeclaredClient = {
  id: 'goose',
  name: 'Goose',
  documentation: { url: 'https://goose-docs.ai/docs/getting-started/using-extensions', checked: '2026-11-22' },
  snippet: (to) => ({
    where: 'In ~/.config/goose/config.yaml:',
    format: 'yaml',
    code: [
      'extensions:',
      `  ${to.name}:`,
      '    enabled: true',
      '    type: streamable_http',
      `    name: ${to.name}`,
      `    uri: ${JSON.stringify(to.url)}`,
      ...(to.token === undefined
        ? []
        : ['    headers:', `      Authorization: ${JSON.stringify(`Bearer ${to.token}`)}`]),
      '    timeout: 300',
    ].join('\n'),
    // The link could carry a header, but not without the credential in it.
    ...(to.token === undefined && { install: { label: 'Install in Goose', href: gooseLink(to) } }),
  }),
  rules: {
    redirectUris: ['http://localhost:38104/oauth_callback'],
    toolName: { shown: (server, tool) => `${server}__${tool}`, max: 64 },
  },
};

function gooseLink({ name, url }: ClientConnection): string {
  const fields = { url, type: 'streamable_http', id: name, name, description: `MCP server ${name}`, timeout: '300' };
  const query = Object.entries(fields).map(([field, value]) => `${field}=${encodeURIComponent(value)}`);
  return `goose://extension?${query.join('&')}`;
}

/** For every client that only speaks stdio. */
export const claudeDesktop: DeclaredClient = {
  id: 'claude-desktop',
  name: 'Claude Desktop',
  documentation: { url: 'https://modelcontextprotocol.io/docs/develop/connect-local-servers', checked: '2026-11-22' },
  snippet({ name, url, token }) {
    const header = token === undefined ? [] : ['--header', `Authorization: Bearer ${token}`];
    const insecure = url.startsWith('http:') ? ['--allow-http'] : [];
    const args = ['-y', 'mcp-remote', url, ...header, ...insecure];
    return {
      where: 'In claude_desktop_config.json, for this and other clients that only speak stdio:',
      format: 'json',
      code: prettyJson({ mcpServers: { [name]: { command: 'npx', args } } }),
      after: 'Needs Node.js. Restart Claude Desktop afterwards.',
    };
  },
};
