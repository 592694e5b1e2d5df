import { fitsCommandLine, quoteShellWord, toPythonLiteral, toScriptLiteral } from '@toolhost/mcp-clients/literals';

/** Environment variables that hold a credential in copied snippets, with a description of each. */
export const credentialVariables = {
  api_key: { name: 'TOOLHOST_API_KEY', about: 'TOOLHOST_API_KEY is a workspace API key with the scope call' },
  caller_token: { name: 'API_TOKEN', about: "API_TOKEN is the caller's own API token" },
  login: { name: 'ACCESS_TOKEN', about: 'ACCESS_TOKEN is an access token that a client obtained by logging in' },
} as const;

/** Credential that a caller of a server sends. A snippet reads it from an environment variable. */
export type CallCredential = 'none' | 'api_key' | 'caller_token' | 'login';

/** A tool call. `url` is the URL of the MCP server, and `arguments` are JSON. */
export type CallTarget = {
  url: string;
  tool: string;
  arguments: { readonly [name: string]: unknown };
  credential: CallCredential;
  /** Token of the example server, which replaces the environment variable. */
  exampleToken?: string | undefined;
};

export type CallSnippet = {
  id: 'mcp' | 'mcp-curl' | 'typescript' | 'python';
  title: string;
  code: string;
  /** Requirements for running it. */
  needs: string;
};

const variables: { [Credential in CallCredential]: { name: string; about: string } | undefined } = {
  none: undefined,
  ...credentialVariables,
};

/** Returns a call in each form in which it can be copied. No form contains a credential, except that of the example. */
export function createCallSnippets(target: CallTarget): CallSnippet[] {
  const variable = variables[target.credential];
  const about = variable && target.exampleToken === undefined ? `${variable.about}.` : undefined;
  const formatNeeds = (tool: string) =>
    [tool, about].filter((sentence) => sentence !== undefined && sentence !== '').join(' ');
  return [
    { id: 'mcp', title: 'MCP', code: JSON.stringify(toMessage(target), null, 2), needs: '' },
    { id: 'mcp-curl', title: 'curl', code: toCurl(target), needs: formatNeeds('') },
    {
      id: 'typescript',
      title: 'TypeScript',
      code: toTypeScript(target),
      needs: formatNeeds('npm install @modelcontextprotocol/client.'),
    },
    { id: 'python', title: 'Python', code: toPython(target), needs: formatNeeds('pip install mcp.') },
  ];
}

/** Returns the JSON-RPC message of the call (MCP, server/tools). */
function toMessage({ tool, arguments: args }: CallTarget) {
  return { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: args } };
}

function toCurl(target: CallTarget): string {
  const variable = variables[target.credential]?.name;
  const body = JSON.stringify(toMessage(target));
  const lines = [
    `curl -sS ${quoteShellWord(target.url)}`,
    ...(variable === undefined ? [] : [`-H "Authorization: Bearer ${target.exampleToken ?? `$${variable}`}"`]),
    "-H 'Content-Type: application/json'",
    "-H 'Accept: application/json, text/event-stream'",
    fitsCommandLine(body) ? `--data-raw ${quoteShellWord(body)}` : '--data-binary @request.json',
  ];
  return lines.join(' \\\n  ');
}

function toTypeScript(target: CallTarget): string {
  const variable = variables[target.credential]?.name;
  const credential =
    variable === undefined
      ? ''
      : `const requestInit = { headers: { Authorization: \`Bearer ${target.exampleToken ?? `\${process.env.${variable}}`}\` } };\n`;
  const options = variable === undefined ? '' : ', { requestInit }';
  return `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const client = new Client({ name: 'example', version: '1.0.0' });
${credential}await client.connect(new StreamableHTTPClientTransport(new URL(${toScriptLiteral(target.url)})${options}));
const result = await client.callTool({
  name: ${toScriptLiteral(target.tool)},
  arguments: ${toScriptLiteral(target.arguments, '  ')},
});
console.log(result);
await client.close();`;
}

/** Returns the code for version 2 of the SDK, which takes headers from the HTTP client. */
function toPython(target: CallTarget): string {
  const variable = variables[target.credential]?.name;
  const token = target.exampleToken === undefined ? `os.environ["${variable}"]` : `"${target.exampleToken}"`;
  const url = toPythonLiteral(target.url);
  const indent = ' '.repeat(variable === undefined ? 8 : 12);
  const inner = `${indent}    `;
  const plain = [`    async with Client(${url}) as client:`];
  const withHeaders = [
    `    headers = {"Authorization": "Bearer " + ${token}}`,
    '    async with httpx2.AsyncClient(headers=headers) as http:',
    `        async with Client(streamable_http_client(${url}, http_client=http)) as client:`,
  ];
  return [
    'import asyncio',
    ...(variable === undefined ? [''] : ['import os', '', 'import httpx2']),
    'from mcp import Client',
    ...(variable === undefined ? [] : ['from mcp.client.streamable_http import streamable_http_client']),
    ...['', '', 'async def main():', ...(variable === undefined ? plain : withHeaders)],
    `${indent}result = await client.call_tool(`,
    `${inner}${toPythonLiteral(target.tool)},`,
    `${inner}${toPythonLiteral(target.arguments, inner)},`,
    ...[`${indent})`, `${indent}print(result)`, '', '', 'asyncio.run(main())'],
  ].join('\n');
}
