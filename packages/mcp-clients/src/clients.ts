import { apiClients } from './apis.ts';
import {
  type ClientConnection,
  type ClientRules,
  createJsonSnippet,
  createSnippet,
  type DeclaredClient,
  formatYamlHeaders,
  getClaudeCodeCommand,
  getExportCommand,
  getHeaderOption,
  getHeaders,
  getMcpRemoteCommand,
  getNextSteps,
  getTokenVariable,
  plainName,
  quoteBearerHeader,
  type Snippet,
  toDocumentation,
} from './client.ts';
import { forms } from './forms.ts';
import { libraries } from './libraries.ts';

const onlyLoginText = 'It connects from the internet and logs in. A credential cannot be entered.';

const programClients: readonly DeclaredClient[] = [
  {
    id: 'claude-code',
    name: 'Claude Code',
    group: 'Terminals',
    documentation: toDocumentation('https://code.claude.com/docs/en/mcp', '2026-11-27'),
    snippet: (to) =>
      createSnippet(
        'In a terminal:',
        'sh',
        getClaudeCodeCommand(to),
        getNextSteps(to, { after: 'Then run:', command: `claude mcp login ${to.name}` }),
      ),
    rules: {
      redirectUris: ['http://localhost:38100/callback'],
      // It replaces dots with _.
      toolName: { format: (server, tool) => `mcp__${server}__${tool}`, max: 64 },
    },
  },
  {
    id: 'claude',
    name: 'Claude',
    group: 'Apps',
    isHosted: true,
    documentation: toDocumentation(
      'https://support.claude.com/en/articles/11175166-getting-started-with-custom-connectors-using-remote-mcp',
    ),
    // Clients in a browser can only log in, so there is no snippet for a server that requires a key.
    snippet(to) {
      if (to.token !== undefined) return undefined;
      const url = to.hostUrl ?? to.url;
      const query = new URLSearchParams({ modal: 'add-custom-connector', connectorName: to.name, connectorUrl: url });
      const install = { label: 'Add to Claude', href: `https://claude.ai/customize/connectors?${query}` };
      const where = 'On claude.ai under Customize, Connectors, add a custom connector with this URL:';
      return createSnippet(where, 'address', url, { install, after: onlyLoginText });
    },
    rules: {
      redirectUris: ['https://claude.ai/api/mcp/auth_callback', 'https://claude.com/api/mcp/auth_callback'],
      canOnlyLogIn: true,
      // https://github.com/anthropics/claude-ai-mcp/issues/878
      requiredPath: '/mcp',
      toolName: plainName,
      hasStrictNames: true,
    },
  },
  {
    id: 'chatgpt',
    name: 'ChatGPT',
    group: 'Apps',
    isHosted: true,
    documentation: toDocumentation('https://developers.openai.com/apps-sdk/deploy/connect-chatgpt'),
    snippet(to) {
      if (to.token !== undefined) return undefined;
      const where =
        'In the ChatGPT settings under Connectors, turn on developer mode (Advanced), then create a connector with this URL:';
      return createSnippet(where, 'address', to.hostUrl ?? to.url, { after: onlyLoginText });
    },
    rules: {
      redirectUris: ['https://chatgpt.com/connector_platform_oauth_redirect'],
      canOnlyLogIn: true,
      requiresHints: true,
      toolName: plainName,
      hasStrictNames: true,
    },
  },
  {
    id: 'claude-desktop',
    name: 'Claude Desktop',
    group: 'Apps',
    documentation: toDocumentation('https://modelcontextprotocol.io/docs/develop/connect-local-servers'),
    snippet: (to) =>
      createJsonSnippet(
        'In claude_desktop_config.json, for this and other clients that support only stdio:',
        { mcpServers: { [to.name]: toStdioServer(to) } },
        { after: 'Requires Node.js. Restart Claude Desktop afterwards.' },
      ),
  },
  {
    id: 'cursor',
    name: 'Cursor',
    group: 'Editors',
    documentation: toDocumentation('https://cursor.com/docs/mcp/install-links'),
    snippet(to) {
      // The link reads the credential from a variable, so that no browser history stores it.
      const linkedServer = { url: to.url, ...getHeaders(withToken(to, `\${env:${getTokenVariable(to)}}`)) };
      const query = new URLSearchParams({ name: to.name, config: encodeBase64(JSON.stringify(linkedServer)) });
      const install = { label: 'Install in Cursor', href: `cursor://anysphere.cursor-deeplink/mcp/install?${query}` };
      const command = getExportCommand(to, to.token ?? '');
      const tokenSteps = { after: 'The link reads the credential from a variable:', command };
      const config = { mcpServers: { [to.name]: { url: to.url, ...getHeaders(to) } } };
      return createJsonSnippet('In .cursor/mcp.json:', config, { install, ...getNextSteps(to, undefined, tokenSteps) });
    },
    rules: {
      redirectUris: [
        'cursor://anysphere.cursor-mcp/oauth/callback',
        'https://www.cursor.com/agents/mcp/oauth/callback',
      ],
      maxTools: 40,
      toolName: { format: (server, tool) => `${server}:${tool}`, max: 60 },
    },
  },
  {
    id: 'vscode',
    name: 'VS Code',
    group: 'Editors',
    documentation: toDocumentation('https://code.visualstudio.com/api/extension-guides/ai/mcp'),
    snippet(to) {
      const createServer = (connection: ClientConnection) => ({ type: 'http', url: to.url, ...getHeaders(connection) });
      // VS Code asks for the credential once and stores it in the system keychain.
      const input = { type: 'promptString', id: 'token', description: `Credential for ${to.name}`, password: true };
      const promptedServer = createServer(withToken(to, `\${input:token}`));
      const link = { name: to.name, ...promptedServer, ...(to.token !== undefined && { inputs: [input] }) };
      const href = `vscode:mcp/install?${encodeURIComponent(JSON.stringify(link))}`;
      const after = getNextSteps(to, undefined, 'After you open the link, VS Code asks for the credential.');
      const install = { label: 'Install in VS Code', href };
      return createJsonSnippet(
        'In .vscode/mcp.json:',
        { servers: { [to.name]: createServer(to) } },
        { install, ...after },
      );
    },
    rules: {
      redirectUris: ['http://127.0.0.1:33418/', 'https://vscode.dev/redirect', 'https://insiders.vscode.dev/redirect'],
      maxTools: 128,
      toolName: plainName,
    },
  },
  {
    id: 'codex',
    name: 'Codex',
    group: 'Terminals',
    documentation: toDocumentation('https://developers.openai.com/codex/mcp'),
    snippet(to) {
      const bearer = to.token === undefined ? [] : [`bearer_token_env_var = "${getTokenVariable(to)}"`];
      const code = [`[mcp_servers.${to.name}]`, `url = ${JSON.stringify(to.url)}`, ...bearer].join('\n');
      const tokenSteps = { after: 'And in the shell:', command: getExportCommand(to, to.token ?? '') };
      return createSnippet(
        'In ~/.codex/config.toml:',
        'toml',
        code,
        getNextSteps(to, { after: 'Then run:', command: `codex mcp login ${to.name}` }, tokenSteps),
      );
    },
    rules: {
      redirectUris: ['http://127.0.0.1:38101/callback'],
      // It also prefixes the name with the server name, but shortens names that become too long, and replaces dots with
      // _ (openai/codex#8694).
      toolName: plainName,
      // openai/codex#1975
      addsMissingTypes: true,
    },
  },
  {
    id: 'gemini-cli',
    name: 'Gemini CLI',
    group: 'Terminals',
    documentation: toDocumentation('https://geminicli.com/docs/tools/mcp-server'),
    snippet(to) {
      const code = `gemini mcp add --scope user --transport http${getHeaderOption(to)} ${to.name} ${to.url}`;
      const tokenText = 'Servers are disabled in folders that Gemini CLI does not trust.';
      const after = getNextSteps(to, `Then type /mcp auth ${to.name} in Gemini CLI to log in.`, tokenText);
      return createSnippet('In a terminal:', 'sh', code, after);
    },
    rules: {
      redirectUris: ['http://localhost:38103/oauth/callback'],
      // It prefixes the name with mcp_ and the server name, and shortens names longer than 63 characters.
      toolName: plainName,
      requiresObjects: true,
    },
  },
  {
    id: 'windsurf',
    name: 'Windsurf',
    group: 'Editors',
    documentation: toDocumentation('https://docs.windsurf.com/windsurf/cascade/mcp'),
    snippet: (to) =>
      createJsonSnippet(
        'In ~/.codeium/windsurf/mcp_config.json:',
        { mcpServers: { [to.name]: { serverUrl: to.url, ...getHeaders(to) } } },
        { after: 'Then press the button that refreshes MCP servers.' },
      ),
    // Its redirect URI is not documented.
    rules: { redirectUris: [], maxTools: 100, toolName: plainName },
  },
  {
    id: 'kiro',
    name: 'Kiro',
    group: 'Editors',
    documentation: toDocumentation('https://kiro.dev/docs/mcp/configuration', '2026-11-29'),
    snippet: (to) =>
      createJsonSnippet('In .kiro/settings/mcp.json, or in ~/.kiro/settings/mcp.json for all folders:', {
        mcpServers: { [to.name]: { url: to.url, ...getHeaders(to) } },
      }),
  },
  {
    id: 'jetbrains',
    name: 'JetBrains AI Assistant',
    group: 'Editors',
    documentation: toDocumentation('https://www.jetbrains.com/help/ai-assistant/mcp.html', '2026-11-29'),
    snippet(to) {
      // Its documentation describes headers but no login, so mcp-remote logs in.
      const usesLogin = to.token === undefined;
      const server = usesLogin ? toStdioServer(to) : { url: to.url, ...getHeaders(to) };
      const tab = usesLogin ? 'STDIO' : 'HTTP';
      return createJsonSnippet(
        `In the settings under Tools, AI Assistant, Model Context Protocol (MCP), choose Add and paste on the ${tab} tab:`,
        { mcpServers: { [to.name]: server } },
        getNextSteps(to, `On the STDIO tab, ${getMcpRemoteCommand(to)} opens the login. Requires Node.js.`),
      );
    },
  },
  {
    id: 'zed',
    name: 'Zed',
    group: 'Editors',
    documentation: toDocumentation('https://zed.dev/docs/ai/mcp'),
    snippet: (to) =>
      createJsonSnippet('In the Zed settings file (zed: open settings file):', {
        context_servers: { [to.name]: { url: to.url, ...getHeaders(to) } },
      }),
    rules: { redirectUris: ['http://127.0.0.1:38102/callback'], toolName: plainName },
  },
  {
    id: 'opencode',
    name: 'OpenCode',
    group: 'Terminals',
    documentation: toDocumentation('https://opencode.ai/v1/docs/mcp-servers/', '2026-11-27'),
    snippet: (to) =>
      createJsonSnippet(
        'In opencode.json of the project, or in ~/.config/opencode/opencode.json:',
        { mcp: { [to.name]: { type: 'remote', url: to.url, ...getHeaders(to) } } },
        getNextSteps(
          to,
          { after: 'Then run:', command: `opencode mcp auth ${to.name}` },
          'OpenCode 2 expects "servers" inside "mcp".',
        ),
      ),
  },
  {
    id: 'copilot-cli',
    name: 'Copilot CLI',
    group: 'Terminals',
    documentation: toDocumentation(
      'https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers',
      '2026-11-27',
    ),
    snippet: (to) =>
      createJsonSnippet('In ~/.copilot/mcp-config.json:', {
        mcpServers: { [to.name]: { type: 'http', url: to.url, ...getHeaders(to), tools: ['*'] } },
      }),
  },
  {
    id: 'qwen-code',
    name: 'Qwen Code',
    group: 'Terminals',
    documentation: toDocumentation('https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/', '2026-11-27'),
    snippet(to) {
      const code = `qwen mcp add --scope user --transport http${getHeaderOption(to)} ${to.name} ${to.url}`;
      const after = getNextSteps(to, `Then type /mcp auth ${to.name} in Qwen Code to log in.`);
      return createSnippet('In a terminal:', 'sh', code, after);
    },
  },
  {
    id: 'cline',
    name: 'Cline',
    group: 'Editors',
    documentation: toDocumentation('https://docs.cline.bot/mcp/connecting-to-a-remote-server', '2026-11-27'),
    snippet: (to) =>
      createJsonSnippet('In cline_mcp_settings.json (MCP Servers, Configure):', {
        mcpServers: { [to.name]: { type: 'streamableHttp', url: to.url, ...getHeaders(to) } },
      }),
  },
  {
    id: 'continue',
    name: 'Continue',
    group: 'Editors',
    documentation: toDocumentation('https://docs.continue.dev/customize/deep-dives/mcp', '2026-11-27'),
    snippet(to) {
      const server = [`  - name: ${to.name}`, '    type: streamable-http', `    url: ${JSON.stringify(to.url)}`];
      const headers = to.token === undefined ? [] : ['    requestOptions:', ...formatYamlHeaders(to, '      ')];
      return createSnippet('In ~/.continue/config.yaml:', 'yaml', ['mcpServers:', ...server, ...headers].join('\n'));
    },
  },
  {
    id: 'goose',
    name: 'Goose',
    group: 'Terminals',
    documentation: toDocumentation('https://goose-docs.ai/docs/getting-started/using-extensions'),
    snippet(to) {
      const code = [
        ...['extensions:', `  ${to.name}:`, '    enabled: true', '    type: streamable_http'],
        ...[
          `    name: ${to.name}`,
          `    uri: ${JSON.stringify(to.url)}`,
          ...formatYamlHeaders(to, '    '),
          '    timeout: 300',
        ],
      ].join('\n');
      // The link could include a header, but only with the credential in it.
      const install = to.token === undefined && { install: { label: 'Install in Goose', href: getGooseLink(to) } };
      return createSnippet('In ~/.config/goose/config.yaml:', 'yaml', code, { ...install });
    },
    rules: {
      redirectUris: ['http://localhost:38104/oauth_callback'],
      toolName: { format: (server, tool) => `${server}__${tool}`, max: 64 },
    },
  },
  {
    id: 'librechat',
    name: 'LibreChat',
    group: 'Apps',
    documentation: toDocumentation(
      'https://www.librechat.ai/docs/configuration/librechat_yaml/object_structure/mcp_servers',
    ),
    snippet(to) {
      const access = to.token === undefined ? ['    requiresOAuth: true'] : formatYamlHeaders(to, '    ');
      const server = [`  ${to.name}:`, '    type: streamable-http', `    url: ${JSON.stringify(to.url)}`];
      const after =
        'Restart LibreChat afterwards. It calls private addresses only if mcpSettings.allowedDomains includes them.';
      return createSnippet('In librechat.yaml:', 'yaml', ['mcpServers:', ...server, ...access].join('\n'), { after });
    },
    // The redirect URI is on the host of each installation.
    rules: { redirectUris: [], toolName: { format: (server, tool) => `${tool}_mcp_${server}`, max: 64 } },
  },
  {
    id: 'curl',
    name: 'curl',
    group: 'APIs',
    documentation: toDocumentation('https://modelcontextprotocol.io/specification/2025-11-25/basic/transports'),
    // The request that lists the tools, without any MCP client.
    snippet(to) {
      const code = [
        `curl -sS ${to.url}`,
        `-H ${quoteBearerHeader(to.token ?? '$ACCESS_TOKEN')}`,
        "-H 'Content-Type: application/json'",
        `-d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'`,
      ].join(' \\\n  ');
      const after = getNextSteps(to, 'ACCESS_TOKEN is an access token that a client obtained by logging in.');
      return createSnippet('In a terminal:', 'sh', code, after);
    },
  },
];

function withToken(to: ClientConnection, token: string): ClientConnection {
  return { ...to, token: to.token === undefined ? undefined : token };
}

/**
 * Returns the configuration of mcp-remote, a Node.js program that connects a server to a client that supports only
 * stdio.
 */
function toStdioServer({ url, token }: ClientConnection) {
  // An argument with a space does not work on Windows, so the value comes from a variable that mcp-remote expands.
  const header = token === undefined ? [] : ['--header', `Authorization:\${AUTH_HEADER}`];
  const env = token === undefined ? {} : { env: { AUTH_HEADER: `Bearer ${token}` } };
  const insecure = url.startsWith('http:') ? ['--allow-http'] : [];
  return { command: 'npx', args: ['-y', 'mcp-remote', url, ...header, ...insecure], ...env };
}

function encodeBase64(value: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(value)));
}

function getGooseLink({ name, url }: ClientConnection): string {
  const fields = { url, type: 'streamable_http', id: name, name, description: `MCP server ${name}`, timeout: '300' };
  const query = Object.entries(fields).map(([field, value]) => `${field}=${encodeURIComponent(value)}`);
  return `goose://extension?${query.join('&')}`;
}

/**
 * All clients that are known by name. Connection snippets, connection checks, tool warnings, and `toolhost doctor`
 * derive from this list.
 */
export const clients: readonly DeclaredClient[] = [...programClients, ...forms, ...libraries, ...apiClients];

/** A client whose rules are known. */
export type KnownClient = Pick<DeclaredClient, 'name' | 'isHosted'> & ClientRules;

export const knownClients: readonly KnownClient[] = clients.flatMap(({ name, isHosted, rules }) =>
  rules === undefined ? [] : [{ name, ...(isHosted && { isHosted }), ...rules }],
);

/** Clients that log in and have known redirect URIs. */
export const registeringClients: readonly KnownClient[] = knownClients.filter(
  ({ redirectUris }) => redirectUris.length > 0,
);

/**
 * Redirect URI of Toolhost's own command line, with any port. Servers that let in only some clients always let it in,
 * so no other client should use it.
 */
export const commandLineRedirectUri = 'http://127.0.0.1/toolhost/callback';

/** Tool names that the models behind several clients accept. MCP also allows a dot. */
export const modelToolNamePattern = /^[A-Za-z0-9_-]+$/;
export const clientsWithStrictNames: readonly string[] = findClientNames(({ hasStrictNames }) => hasStrictNames);

/** Joins names as part of a sentence. */
export function joinNames(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}

/** Returns the names of the known clients that match a predicate. */
export function findClientNames(predicate: (client: KnownClient) => boolean | undefined): string[] {
  return knownClients.filter(predicate).map(({ name }) => name);
}

export type ClientSnippet = Snippet & { id: string; name: string };

/** Returns the connection snippets for a server. Clients that cannot use it are omitted. */
export function createSnippets(to: ClientConnection): ClientSnippet[] {
  return clients.flatMap(({ id, name, snippet }) => {
    const result = snippet(to);
    return result === undefined ? [] : [{ id, name, ...result }];
  });
}

/** Returns what a server lacks for a client: a login, an API key, or a URL that the client can reach. */
export function findObstacle(
  { isHosted, rules }: DeclaredClient,
  { url, token }: ClientConnection,
): 'login' | 'key' | 'public-url' | undefined {
  if (rules?.canOnlyLogIn && token !== undefined) return 'login';
  if (rules?.cannotLogIn && token === undefined) return 'key';
  return isHosted && !url.startsWith('https://') ? 'public-url' : undefined;
}
