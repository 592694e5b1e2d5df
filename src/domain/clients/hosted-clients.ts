import { shellWord } from '../snippets/shell-word.ts';
import { bearerWord, type ClientConnection, type DeclaredClient, plainName, prettyJson } from './client.ts';

/** Clients in a browser can only log in, so there is none for a server that takes a key. */
export const claude: DeclaredClient = {
  id: 'claude',
  name: 'Claude',
  documentation: {
    url: 'https://support.claude.com/en/articles/11175166-getting-started-with-custom-connectors-using-remote-mcp',
    checked: '2026-11-22',
  },
  snippet(to) {
    if (to.token !== undefined) return undefined;
    const url = to.hostUrl ?? to.url;
    const query = new URLSearchParams({
      modal: 'add-custom-connector',
      connectorName: to.name,
      connectorUrl: url,
    });
    return {
      where: 'On claude.ai under Customize, Connectors, add a custom connector with this address:',
      format: 'address',
      code: url,
      install: { label: 'Add to Claude', href: `https://claude.ai/customize/connectors?${query}` },
      after: 'It connects from the internet and logs in; a credential cannot be typed in.',
    };
  },
  rules: {
    redirectUris: ['https://claude.ai/api/mcp/auth_callback', 'https://claude.com/api/mcp/auth_callback'],
    isHosted: true,
    onlyLogsIn: true,
    // https://github.com/anthropics/claude-ai-mcp/issues/878
    onlyPath: '/mcp',
    toolName: { shown: plainName, max: 64 },
    hasStrictNames: true,
  },
};

export const chatGpt: DeclaredClient = {
  id: 'chatgpt',
  name: 'ChatGPT',
  documentation: { url: 'https://developers.openai.com/apps-sdk/deploy/connect-chatgpt', checked: '2026-11-22' },
  snippet: (to) =>
    to.token === undefined
      ? {
          where:
            'In the settings of ChatGPT under Connectors, turn on the developer mode (Advanced), then create a connector with this address:',
          format: 'address',
          code: to.hostUrl ?? to.url,
          after: 'It connects from the internet and logs in; a credential cannot be typed in.',
        }
      : undefined,
  rules: {
    redirectUris: ['https://chatgpt.com/connector_platform_oauth_redirect'],
    isHosted: true,
    onlyLogsIn: true,
    wantsHints: true,
    toolName: { shown: plainName, max: 64 },
    hasStrictNames: true,
  },
};

export const libreChat: DeclaredClient = {
  id: 'librechat',
  name: 'LibreChat',
  documentation: {
    url: 'https://www.librechat.ai/docs/configuration/librechat_yaml/object_structure/mcp_servers',
    checked: '2026-11-22',
  },
  snippet: (to) => ({
    where: 'In librechat.yaml:',
    format: 'yaml',
    code: [
      'mcpServers:',
      `  ${to.name}:`,
      '    type: streamable-http',
      `    url: ${JSON.stringify(to.url)}`,
      ...(to.token === undefined
        ? ['    requiresOAuth: true']
        : ['    headers:', `      Authorization: ${JSON.stringify(`Bearer ${to.token}`)}`]),
    ].join('\n'),
    after:
      'Restart LibreChat afterwards. It does not call private addresses unless mcpSettings.allowedDomains has them.',
  }),
  // Logins return to the host of each installation.
  rules: { redirectUris: [], toolName: { shown: (server, tool) => `${tool}_mcp_${server}`, max: 64 } },
};

/** A program without a login of its own gets a token from its environment. */
const givenToken = ({ token }: ClientConnection, variable: string) => token ?? `$${variable}`;
const tokenOfLogin =
  'It does not log in itself: ACCESS_TOKEN is an access token that your program got by the login of this server.';

export const openAiApi: DeclaredClient = {
  id: 'openai-api',
  name: 'OpenAI API',
  documentation: { url: 'https://developers.openai.com/api/docs/guides/tools-remote-mcp', checked: '2026-11-22' },
  snippet(to) {
    const body = {
      model: 'MODEL',
      tools: [
        {
          type: 'mcp',
          server_label: to.name.replaceAll('-', '_'),
          server_url: to.url,
          authorization: givenToken(to, 'ACCESS_TOKEN'),
          require_approval: 'always',
        },
      ],
      input: 'What can you do with these tools?',
    };
    return {
      where: 'A request to the Responses API, with the model of your choice:',
      format: 'sh',
      code: postOf('https://api.openai.com/v1/responses', ['"Authorization: Bearer $OPENAI_API_KEY"'], body),
      after: to.token === undefined ? tokenOfLogin : 'The server must be reachable from the internet.',
    };
  },
  rules: {
    redirectUris: [],
    isHosted: true,
    neverLogsIn: true,
    toolName: { shown: plainName, max: 64 },
    hasStrictNames: true,
  },
};

export const anthropicApi: DeclaredClient = {
  id: 'anthropic-api',
  name: 'Anthropic API',
  documentation: { url: 'https://platform.claude.com/docs/en/agents-and-tools/mcp-connector', checked: '2026-11-22' },
  snippet(to) {
    const body = {
      model: 'MODEL',
      max_tokens: 1000,
      messages: [{ role: 'user', content: 'What can you do with these tools?' }],
      mcp_servers: [{ type: 'url', url: to.url, name: to.name, authorization_token: givenToken(to, 'ACCESS_TOKEN') }],
      tools: [{ type: 'mcp_toolset', mcp_server_name: to.name }],
    };
    const headers = ['"X-Api-Key: $ANTHROPIC_API_KEY"', "'anthropic-version: 2023-06-01'"];
    return {
      where: 'A request to the Messages API, with the model of your choice:',
      format: 'sh',
      code: postOf(
        'https://api.anthropic.com/v1/messages',
        [...headers, "'anthropic-beta: mcp-client-2025-11-20'"],
        body,
      ),
      after: to.token === undefined ? tokenOfLogin : 'The server must be reachable from the internet, over https.',
    };
  },
  rules: {
    redirectUris: [],
    isHosted: true,
    neverLogsIn: true,
    toolName: { shown: plainName, max: 64 },
    hasStrictNames: true,
  },
};

/** A request with curl. A variable in the body is filled in by the shell: the quotes end before it and begin after it. */
function postOf(url: string, headers: readonly string[], body: unknown): string {
  const data = shellWord(prettyJson(body)).replaceAll(/"\$([A-Z_]+)"/g, `"'"$$$1"'"`);
  const lines = [...headers, "'Content-Type: application/json'"].map((header) => `-H ${header}`);
  return [`curl -sS ${url}`, ...lines, `-d ${data}`].join(' \\\n  ');
}

/** The request that lists the tools, without any client. */
export const curl: DeclaredClient = {
  id: 'curl',
  name: 'curl',
  documentation: {
    url: 'https://modelcontextprotocol.io/specification/2025-11-25/basic/transports',
    checked: '2026-11-22',
  },
  snippet(to) {
    const request = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    const lines = [
      `-H ${bearerWord(givenToken(to, 'ACCESS_TOKEN'))}`,
      "-H 'Content-Type: application/json'",
      `-d '${request}'`,
    ];
    return {
      where: 'In a terminal:',
      format: 'sh',
      code: [`curl -sS ${to.url}`, ...lines].join(' \\\n  '),
      ...(to.token === undefined && { after: 'ACCESS_TOKEN is an access token that a client got by the login.' }),
    };
  },
};
