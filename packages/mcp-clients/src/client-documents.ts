/** Handling of client metadata documents. */
export const documentUses = ['on', 'known', 'off'] as const;
export type DocumentUse = (typeof documentUses)[number];

/**
 * Copies of the client metadata documents of known clients, by URL, which is the client ID. They replace documents that
 * the service cannot fetch. Each redirect URI is on the person's own device or belongs to the client's vendor, so an
 * outdated copy never sends a response to anyone else.
 */
export type KnownDocument = {
  name: string;
  redirectUris: readonly string[];
  /** True for a client that uses its document wherever documents are supported, and never registers instead. */
  requiresDocument?: true;
};

const loopbackUris = ['http://localhost/callback', 'http://127.0.0.1/callback'];

export const knownDocuments: ReadonlyMap<string, KnownDocument> = new Map([
  [
    'https://claude.ai/oauth/claude-code-client-metadata',
    { name: 'Claude Code', redirectUris: loopbackUris, requiresDocument: true },
  ],
  [
    'https://chatgpt.com/oauth/codex/client.json',
    { name: 'Codex', redirectUris: loopbackUris, requiresDocument: true },
  ],
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
  ['https://opencode.ai/oauth/opencode/client.json', { name: 'OpenCode', redirectUris: loopbackUris }],
]);
