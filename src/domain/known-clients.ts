/** Facts about the agents that people connect, from their documentation and issue trackers. */
export type KnownClient = {
  name: string;
  /** The name under which it registers when it logs in. */
  redirectUris: readonly string[];
  /** It connects from the internet, so the address must be public and https. */
  isHosted?: true;
  /** It can only log in, not send a token that its user gave it. */
  onlyLogsIn?: true;
  /** Number of tools that it uses; it leaves out or refuses the rest. */
  maxTools?: number;
  /** The name of a tool as the model sees it, and the longest one that works. */
  toolName: { shown: (slug: string, tool: string) => string; max: number };
};

/** Private-use schemes of clients that are no reversed domain; from the redirect URIs that they register. */
export const clientSchemes: readonly string[] = [
  'cursor',
  'vscode',
  'vscode-insiders',
  'windsurf',
  'claude',
  'zed',
  'warp',
  'kiro',
  'mcpjam',
];

/**
 * Makers of systems and of programs that are on nearly every device, as they stand in reversed domains: com.microsoft.teams,
 * com.apple.news, org.mozilla.firefox. A client that anybody can register may not start their programs.
 */
export const wellKnownMakers: readonly string[] = [
  'adobe',
  'airbnb',
  'alibaba',
  'amazon',
  'android',
  'apple',
  'atlassian',
  'baidu',
  'booking',
  'brave',
  'bytedance',
  'canonical',
  'chrome',
  'chromium',
  'cisco',
  'citrix',
  'coinbase',
  'discord',
  'discordapp',
  'dropbox',
  'ebay',
  'epicgames',
  'evernote',
  'facebook',
  'figma',
  'firefox',
  'freedesktop',
  'github',
  'gnome',
  'google',
  'googleusercontent',
  'huawei',
  'instagram',
  'intel',
  'kde',
  'lenovo',
  'line',
  'linkedin',
  'lyft',
  'meta',
  'microsoft',
  'mozilla',
  'netflix',
  'notion',
  'nvidia',
  'office',
  'opera',
  'oracle',
  'outlook',
  'paypal',
  'pinterest',
  'reddit',
  'roblox',
  'salesforce',
  'samsung',
  'shopify',
  'signal',
  'skype',
  'slack',
  'snapchat',
  'sony',
  'spotify',
  'steampowered',
  'stripe',
  'teams',
  'teamviewer',
  'telegram',
  'tencent',
  'thunderbird',
  'tiktok',
  'tinyspeck',
  'trello',
  'twitch',
  'twitter',
  'uber',
  'ubercab',
  'ubuntu',
  'valvesoftware',
  'viber',
  'videolan',
  'vmware',
  'webex',
  'whatsapp',
  'windows',
  'xbox',
  'xiaomi',
  'yahoo',
  'yandex',
  'youtube',
  'zhiliaoapp',
  'zoom',
];

const plain = (_slug: string, tool: string) => tool;
const prefixed = (slug: string, tool: string) => `mcp__${slug}__${tool}`;

export const knownClients: readonly KnownClient[] = [
  {
    name: 'Claude',
    redirectUris: ['https://claude.ai/api/mcp/auth_callback', 'https://claude.com/api/mcp/auth_callback'],
    isHosted: true,
    onlyLogsIn: true,
    toolName: { shown: plain, max: 64 },
  },
  {
    name: 'ChatGPT',
    redirectUris: ['https://chatgpt.com/connector_platform_oauth_redirect'],
    isHosted: true,
    onlyLogsIn: true,
    toolName: { shown: plain, max: 64 },
  },
  {
    name: 'Claude Code',
    redirectUris: ['http://localhost:38100/callback'],
    toolName: { shown: prefixed, max: 64 },
  },
  {
    name: 'Cursor',
    redirectUris: ['cursor://anysphere.cursor-mcp/oauth/callback', 'https://www.cursor.com/agents/mcp/oauth/callback'],
    maxTools: 40,
    toolName: { shown: (slug, tool) => `${slug}:${tool}`, max: 60 },
  },
  {
    name: 'VS Code',
    redirectUris: ['http://127.0.0.1:33418/', 'https://vscode.dev/redirect', 'https://insiders.vscode.dev/redirect'],
    maxTools: 128,
    toolName: { shown: plain, max: 64 },
  },
  {
    name: 'Codex',
    redirectUris: ['http://127.0.0.1:38101/callback/Zt3aUq0pB1c4'],
    // It puts the server before the name too, but shortens what gets too long.
    toolName: { shown: plain, max: 64 },
  },
  {
    name: 'Zed',
    redirectUris: ['http://127.0.0.1:38102/callback'],
    toolName: { shown: plain, max: 64 },
  },
];

/** The models behind several of them take no other characters, although MCP allows a dot. */
export const toolNameOfModels = /^[A-Za-z0-9_-]+$/;
export const clientsWithStrictNames: readonly string[] = ['Claude', 'Claude Code', 'Codex', 'ChatGPT'];
