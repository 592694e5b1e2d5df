import { pythonLiteral, scriptLiteral } from '../snippets/literals.ts';
import type { ClientConnection, DeclaredClient } from './client.ts';

export const typescriptSdk: DeclaredClient = {
  id: 'sdk',
  name: 'TypeScript SDK',
  documentation: { url: 'https://github.com/modelcontextprotocol/typescript-sdk', checked: '2026-11-22' },
  snippet: (to) => ({
    where: 'npm install @modelcontextprotocol/client',
    format: 'ts',
    code: `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const client = new Client({ name: 'example', version: '1.0.0' });
${
  to.token === undefined
    ? '// authProvider: an OAuthClientProvider of yours, which opens the login\n'
    : `const requestInit = { headers: { Authorization: ${scriptLiteral(`Bearer ${to.token}`)} } };\n`
}await client.connect(new StreamableHTTPClientTransport(new URL(${scriptLiteral(to.url)}), { ${to.token === undefined ? 'authProvider' : 'requestInit'} }));
console.log(await client.listTools());`,
  }),
};

export const aiSdk: DeclaredClient = {
  id: 'ai-sdk',
  name: 'Vercel AI SDK',
  documentation: { url: 'https://ai-sdk.dev/docs/ai-sdk-core/mcp-tools', checked: '2026-11-22' },
  snippet: (to) => ({
    where: 'npm install ai @ai-sdk/mcp',
    format: 'ts',
    code: `import { createMCPClient } from '@ai-sdk/mcp';

${to.token === undefined ? '// authProvider: an OAuthClientProvider of yours, which opens the login\n' : ''}const client = await createMCPClient({
  transport: {
    type: 'http',
    url: ${scriptLiteral(to.url)},
    ${to.token === undefined ? 'authProvider' : `headers: { Authorization: ${scriptLiteral(`Bearer ${to.token}`)} }`},
  },
});
// For generateText and streamText.
const tools = await client.tools();
console.log(Object.keys(tools));`,
  }),
};

export const pythonSdk: DeclaredClient = {
  id: 'python-sdk',
  name: 'Python SDK',
  documentation: { url: 'https://github.com/modelcontextprotocol/python-sdk', checked: '2026-11-22' },
  snippet: (to) => ({
    where: 'pip install mcp',
    format: 'python',
    code: pythonProgram(to),
    ...(to.token === undefined && { after: 'ACCESS_TOKEN is an access token that a client got by the login.' }),
  }),
};

function pythonProgram({ url, token }: ClientConnection): string {
  const bearer = token === undefined ? '"Bearer " + os.environ["ACCESS_TOKEN"]' : pythonLiteral(`Bearer ${token}`);
  return `import asyncio
${token === undefined ? 'import os\n' : ''}
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main():
    headers = {"Authorization": ${bearer}}
    async with httpx2.AsyncClient(headers=headers) as http:
        async with Client(streamable_http_client(${pythonLiteral(url)}, http_client=http)) as client:
            print(await client.list_tools())


asyncio.run(main())`;
}
