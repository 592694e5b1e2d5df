import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClientConnection } from '@toolhost/mcp-clients/client';
import { clients } from '@toolhost/mcp-clients/clients';
import type { NpmProgram } from '../npm.ts';
import type { Json } from '../toolhost/toolhost.ts';

/** The folder and the model URL of an agent that a test runs. */
export type AgentLocation = { home: string; model: string };

/** An agent that people connect, and how to run it without a person at its terminal. */
export type AgentKind = {
  name: string;
  program: NpmProgram;
  /** Name under which it offers a server's tool to its model. */
  getToolName(server: string, tool: string): string;
  /** Its environment variables: the locations of its files and its model, without telemetry and updates. */
  createEnvironment(location: AgentLocation): Record<string, string>;
  /** Writes its configuration with these servers. Returns the snippets that are shell commands. */
  configure(location: AgentLocation, servers: readonly ClientConnection[]): Promise<string>;
  /** Command that runs one prompt and exits. */
  createPromptCommand(prompt: string): string[];
  /** Command that logs in at a server, in a terminal. */
  createLoginCommand(server: string): string[];
};

/** Returns the snippet that the connection page shows for a client. */
function getSnippet(id: string, to: ClientConnection): string {
  return clients.find((client) => client.id === id)?.snippet(to)?.code ?? '';
}

const getShellCommands = (id: string, servers: readonly ClientConnection[]) =>
  servers.map((server) => getSnippet(id, server)).join('\n');

const writeJson = (file: string, value: Json) => writeFile(file, JSON.stringify(value));

export const claudeCode: AgentKind = {
  name: 'Claude Code',
  program: { package: '@anthropic-ai/claude-code', version: '2.1.332', command: 'claude' },
  getToolName: (server, tool) => `mcp__${server}__${tool}`,
  createEnvironment: ({ home, model }) => ({
    CLAUDE_CONFIG_DIR: home,
    ANTHROPIC_BASE_URL: model,
    ANTHROPIC_API_KEY: 'any',
    ENABLE_TOOL_SEARCH: 'false',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  }),
  async configure({ home }, servers) {
    const allow = servers.map(({ name }) => `mcp__${name}`);
    await writeJson(join(home, 'settings.json'), { permissions: { allow } });
    return getShellCommands('claude-code', servers);
  },
  createPromptCommand: (prompt) => ['claude', '--print', prompt],
  createLoginCommand: (server) => ['claude', 'mcp', 'login', server],
};

export const codex: AgentKind = {
  name: 'Codex',
  program: { package: '@openai/codex', version: '0.171.0', command: 'codex' },
  getToolName: (server, tool) => `mcp__${server}__${tool}`,
  createEnvironment: ({ home }) => ({ CODEX_HOME: home }),
  async configure({ home, model }, servers) {
    const provider = `model_provider = "stub"
model = "stub"
check_for_update_on_startup = false
mcp_oauth_credentials_store = "file"
[analytics]
enabled = false
[model_providers.stub]
name = "stub"
base_url = "${model}/v1"
wire_api = "responses"
`;
    const tables = servers.map((server) => `${getSnippet('codex', server)}\n`).join('');
    await writeFile(join(home, 'config.toml'), provider + tables);
    return '';
  },
  createPromptCommand: (prompt) => [
    'codex',
    'exec',
    '--skip-git-repo-check',
    '--dangerously-bypass-approvals-and-sandbox',
    prompt,
  ],
  // By default it uses a client metadata document at chatgpt.com, which the tests do not reach.
  createLoginCommand: (server) => ['codex', 'mcp', 'login', server, '--oauth-client-registration', 'dcr'],
};

export const geminiCli: AgentKind = {
  name: 'Gemini CLI',
  // Its optional packages, a keyring and a terminal, need a compiler.
  program: { package: '@google/gemini-cli', version: '0.61.0', command: 'gemini', omitsOptional: true },
  getToolName: (server, tool) => `mcp_${server}_${tool}`,
  createEnvironment: ({ home, model }) => ({
    GEMINI_CLI_HOME: home,
    GOOGLE_GEMINI_BASE_URL: model,
    GEMINI_API_KEY: 'any',
    GEMINI_CLI_TRUST_WORKSPACE: 'true',
  }),
  async configure({ home }, servers) {
    await mkdir(join(home, '.gemini'), { recursive: true });
    await writeJson(join(home, '.gemini', 'settings.json'), {
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
    });
    return getShellCommands('gemini-cli', servers);
  },
  createPromptCommand: (prompt) => ['gemini', '--model', 'gemini-2.5-flash', '--yolo', '--prompt', prompt],
  createLoginCommand: (server) => ['gemini', '--model', 'gemini-2.5-flash', '--prompt', `/mcp auth ${server}`],
};

export const openCode: AgentKind = {
  name: 'OpenCode',
  program: { package: 'opencode-ai', version: '1.18.33', command: 'opencode' },
  getToolName: (server, tool) => `${server}_${tool}`,
  createEnvironment: ({ home }) => ({
    XDG_DATA_HOME: home,
    XDG_STATE_HOME: home,
    OPENCODE_CONFIG: join(home, 'opencode.json'),
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
  }),
  async configure({ home, model }, servers) {
    const mcpConfigs = servers.map((server) => (JSON.parse(getSnippet('opencode', server)) as { mcp: Json }).mcp);
    await writeJson(join(home, 'opencode.json'), {
      provider: {
        stub: {
          npm: '@ai-sdk/openai-compatible',
          options: { baseURL: `${model}/v1`, apiKey: 'any' },
          models: { stub: { attachment: true, modalities: { input: ['text', 'image', 'pdf'], output: ['text'] } } },
        },
      },
      model: 'stub/stub',
      small_model: 'stub/stub',
      share: 'disabled',
      autoupdate: false,
      mcp: Object.assign({}, ...mcpConfigs),
    });
    return '';
  },
  createPromptCommand: (prompt) => ['opencode', 'run', prompt],
  createLoginCommand: (server) => ['opencode', 'mcp', 'auth', server],
};
