import {
  type ClientConnection,
  type DeclaredClient,
  exportToken,
  headersOf,
  plainName,
  prettyJson,
  tokenVariable,
} from './client.ts';

export const cursor: DeclaredClient = {
  id: 'cursor',
  name: 'Cursor',
  documentation: { url: 'https://cursor.com/docs/mcp/install-links', checked: '2026-11-22' },
  snippet(to) {
    // The link has the credential from a variable, so that no history of a browser keeps it.
    const linked = { url: to.url, ...headersOf(withToken(to, `\${env:${tokenVariable(to)}}`)) };
    const query = new URLSearchParams({ name: to.name, config: base64(JSON.stringify(linked)) });
    return {
      where: 'In .cursor/mcp.json:',
      format: 'json',
      code: prettyJson({ mcpServers: { [to.name]: { url: to.url, ...headersOf(to) } } }),
      install: { label: 'Install in Cursor', href: `cursor://anysphere.cursor-deeplink/mcp/install?${query}` },
      ...(to.token !== undefined && {
        after: `The link reads the credential from a variable: ${exportToken(to, to.token)}`,
      }),
    };
  },
  rules: {
    redirectUris: ['cursor://anysphere.cursor-mcp/oauth/callback', 'https://www.cursor.com/agents/mcp/oauth/callback'],
    maxTools: 40,
    toolName: { shown: (server, tool) => `${server}:${tool}`, max: 60 },
  },
};

export const vsCode: DeclaredClient = {
  id: 'vscode',
  name: 'VS Code',
  documentation: { url: 'https://code.visualstudio.com/api/extension-guides/ai/mcp', checked: '2026-11-22' },
  snippet(to) {
    const server = (connection: ClientConnection) => ({ type: 'http', url: to.url, ...headersOf(connection) });
    // VS Code asks for the credential once and keeps it in the store of the system.
    const inputs = [
      { type: 'promptString', id: 'token', description: `Credential for ${to.name}`, password: true },
    ] as const;
    const asked = server(withToken(to, `\${input:token}`));
    const link = { name: to.name, ...asked, ...(to.token !== undefined && { inputs }) };
    return {
      where: 'In .vscode/mcp.json:',
      format: 'json',
      code: prettyJson({ servers: { [to.name]: server(to) } }),
      install: {
        label: 'Install in VS Code',
        href: `vscode:mcp/install?${encodeURIComponent(JSON.stringify(link))}`,
      },
      ...(to.token !== undefined && { after: 'After the link, VS Code asks for the credential.' }),
    };
  },
  rules: {
    redirectUris: ['http://127.0.0.1:33418/', 'https://vscode.dev/redirect', 'https://insiders.vscode.dev/redirect'],
    maxTools: 128,
    toolName: { shown: plainName, max: 64 },
  },
};

export const windsurf: DeclaredClient = {
  id: 'windsurf',
  name: 'Windsurf',
  documentation: { url: 'https://docs.windsurf.com/windsurf/cascade/mcp', checked: '2026-11-22' },
  snippet: (to) => ({
    where: 'In ~/.codeium/windsurf/mcp_config.json:',
    format: 'json',
    code: prettyJson({ mcpServers: { [to.name]: { serverUrl: to.url, ...headersOf(to) } } }),
    after: 'Then press the button that refreshes the MCP servers.',
  }),
  // Its redirect URI is not documented.
  rules: { redirectUris: [], maxTools: 100, toolName: { shown: plainName, max: 64 } },
};

export const zed: DeclaredClient = {
  id: 'zed',
  name: 'Zed',
  documentation: { url: 'https://zed.dev/docs/ai/mcp', checked: '2026-11-22' },
  snippet: (to) => ({
    where: 'In the settings file of Zed (zed: open settings file):',
    format: 'json',
    code: prettyJson({ context_servers: { [to.name]: { url: to.url, ...headersOf(to) } } }),
  }),
  rules: { redirectUris: ['http://127.0.0.1:38102/callback'], toolName: { shown: plainName, max: 64 } },
};

export const cline: DeclaredClient = {
  id: 'cline',
  name: 'Cline',
  documentation: { url: 'https://docs.cline.bot/mcp/connecting-to-a-remote-server', checked: '2026-11-27' },
  snippet: (to) => ({
    where: 'In cline_mcp_settings.json (MCP Servers, Configure):',
    format: 'json',
    code: prettyJson({ mcpServers: { [to.name]: { type: 'streamableHttp', url: to.url, ...headersOf(to) } } }),
  }),
};

export const continueDev: DeclaredClient = {
  id: 'continue',
  name: 'Continue',
  documentation: { url: 'https://docs.continue.dev/customize/deep-dives/mcp', checked: '2026-11-27' },
  snippet: ({ name, url, token }) => ({
    where: 'In ~/.continue/config.yaml:',
    format: 'yaml',
    code: [
      'mcpServers:',
      `  - name: ${name}`,
      '    type: streamable-http',
      `    url: ${JSON.stringify(url)}`,
      ...(token === undefined
        ? []
        : ['    requestOptions:', '      headers:', `        Authorization: ${JSON.stringify(`Bearer ${token}`)}`]),
    ].join('\n'),
  }),
};

function withToken(to: ClientConnection, token: string): ClientConnection {
  return { ...to, token: to.token === undefined ? undefined : token };
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
