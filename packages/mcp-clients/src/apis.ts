import {
  type ClientRules,
  createSnippet,
  type DeclaredClient,
  formatJson,
  getNextSteps,
  plainName,
  toDocumentation,
} from './client.ts';
import { quoteShellWord } from './literals.ts';

/** Programs that read a token from their environment. */
const apiRules: ClientRules = {
  redirectUris: [],
  cannotLogIn: true,
  toolName: plainName,
  hasStrictNames: true,
};
const loginTokenText =
  'It does not log in itself. ACCESS_TOKEN is an access token that your program obtained by logging in to this server.';

/** APIs of model providers, which call the server from the provider's machines. */
export const apiClients: readonly DeclaredClient[] = [
  {
    id: 'openai-api',
    name: 'OpenAI API',
    group: 'APIs',
    isHosted: true,
    documentation: toDocumentation('https://developers.openai.com/api/docs/guides/tools-remote-mcp'),
    snippet(to) {
      const server = {
        type: 'mcp',
        server_label: to.name.replaceAll('-', '_'),
        server_url: to.url,
        authorization: to.token ?? '$ACCESS_TOKEN',
        require_approval: 'always',
      };
      const body = { model: 'MODEL', tools: [server], input: 'What can you do with these tools?' };
      const code = formatCurlPost(
        'https://api.openai.com/v1/responses',
        ['"Authorization: Bearer $OPENAI_API_KEY"'],
        body,
      );
      const after = getNextSteps(to, loginTokenText, 'The server must be reachable from the internet.');
      return createSnippet('A request to the Responses API, with the model of your choice:', 'sh', code, after);
    },
    rules: apiRules,
  },
  {
    id: 'anthropic-api',
    name: 'Anthropic API',
    group: 'APIs',
    isHosted: true,
    documentation: toDocumentation('https://platform.claude.com/docs/en/agents-and-tools/mcp-connector'),
    snippet(to) {
      const { name, url, token = '$ACCESS_TOKEN' } = to;
      const body = {
        model: 'MODEL',
        max_tokens: 1000,
        messages: [{ role: 'user', content: 'What can you do with these tools?' }],
        mcp_servers: [{ type: 'url', url, name, authorization_token: token }],
        tools: [{ type: 'mcp_toolset', mcp_server_name: name }],
      };
      const versions = ["'anthropic-version: 2023-06-01'", "'anthropic-beta: mcp-client-2025-11-20'"];
      const code = formatCurlPost(
        'https://api.anthropic.com/v1/messages',
        ['"X-Api-Key: $ANTHROPIC_API_KEY"', ...versions],
        body,
      );
      const after = getNextSteps(to, loginTokenText, 'The server must be reachable from the internet, over https.');
      return createSnippet('A request to the Messages API, with the model of your choice:', 'sh', code, after);
    },
    rules: apiRules,
  },
];

/**
 * Formats a POST request with curl. The shell expands a variable in the body: the quotes end before it and begin after
 * it.
 */
function formatCurlPost(url: string, headers: readonly string[], body: unknown): string {
  const data = quoteShellWord(formatJson(body)).replaceAll(/"\$([A-Z_]+)"/g, `"'"$$$1"'"`);
  const lines = [...headers, "'Content-Type: application/json'"].map((header) => `-H ${header}`);
  return [`curl -sS ${url}`, ...lines, `-d ${data}`].join(' \\\n  ');
}
