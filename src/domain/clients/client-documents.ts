/** What is done with the metadata documents of clients. */
export const documentUses = ['on', 'known', 'off'] as const;
export type DocumentUse = (typeof documentUses)[number];

/**
 * Copies of the client metadata documents of known clients, by their address, which is the client id. They stand in where
 * the service cannot fetch a document. Each redirect URI is on the person's own device or at the maker of the client, so a
 * copy that has become old sends nobody's answer to anyone else.
 */
export type KnownDocument = {
  name: string;
  redirectUris: readonly string[];
  /** Uses its document wherever that is announced, and registers nowhere else. */
  insists?: true;
};

const ownDevice = ['http://localhost/callback', 'http://127.0.0.1/callback'];

export const knownDocuments: ReadonlyMap<string, KnownDocument> = new Map([
  [
    'https://claude.ai/oauth/claude-code-client-metadata',
    { name: 'Claude Code', redirectUris: ownDevice, insists: true },
  ],
  ['https://chatgpt.com/oauth/codex/client.json', { name: 'Codex', redirectUris: ownDevice, insists: true }],
  [
    'https://claude.ai/oauth/mcp-oauth-client-metadata',
    {
      name: 'Claude',
      redirectUris: ['https://claude.ai/api/mcp/auth_callback', 'https://claude.com/api/mcp/auth_callback'],
    },
  ],
  [
    'https://chatgpt.com/oauth/client.json',
    { name: 'ChatGPT', redirectUris: ['https://chatgpt.com/connector_platform_oauth_redirect'] },
  ],
  [
    'https://vscode.dev/oauth/client-metadata.json',
    { name: 'VS Code', redirectUris: ['http://127.0.0.1:33418/', 'https://vscode.dev/redirect'] },
  ],
  ['https://zed.dev/oauth/client-metadata.json', { name: 'Zed', redirectUris: ['http://127.0.0.1/callback'] }],
  ['https://opencode.ai/oauth/opencode/client.json', { name: 'OpenCode', redirectUris: ownDevice }],
]);
