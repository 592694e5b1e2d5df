import { type ClientConnection, createSnippet, type DeclaredClient, getNextSteps } from './client.ts';
import { toPythonLiteral, toScriptLiteral } from './literals.ts';

/** A library for agents: the package to install, and a program that lists the tools. */
type Library = Pick<DeclaredClient, 'id' | 'name'> & { page: string; checked?: string; install: string };
/** A JavaScript or TypeScript library. The arguments of `code` are literals. */
type ScriptLibrary = Library & { code: (literals: { url: string; name: string; bearer: string }) => string };
type PythonLibrary = Library & { imports: readonly string[]; body: (url: string, name: string) => readonly string[] };

function createLibraryClient(
  { id, name, page, checked = '2026-11-27' }: Library,
  where: string,
  format: 'python' | 'ts',
  code: (to: ClientConnection) => string,
): DeclaredClient {
  const after = 'ACCESS_TOKEN is an access token that a client obtained by logging in.';
  return {
    id,
    name,
    group: 'Frameworks',
    documentation: { url: page, checked },
    snippet: (to) => createSnippet(where, format, code(to), getNextSteps(to, after)),
  };
}

/** Creates a client from the program lines of `body`, which read the headers from `headers`. */
function createPythonClient({ imports, body, ...details }: PythonLibrary): DeclaredClient {
  return createLibraryClient(details, `pip install ${details.install}`, 'python', ({ name, url, token }) => {
    const bearer = token === undefined ? '"Bearer " + os.environ["ACCESS_TOKEN"]' : toPythonLiteral(`Bearer ${token}`);
    return [
      'import asyncio',
      ...(token === undefined ? ['import os'] : []),
      ...['', ...imports, '', '', 'async def main():', `    headers = {"Authorization": ${bearer}}`],
      ...body(toPythonLiteral(url), toPythonLiteral(name)).map((line) => `    ${line}`),
      ...['', '', 'asyncio.run(main())'],
    ].join('\n');
  });
}

function createScriptClient({ code, ...details }: ScriptLibrary): DeclaredClient {
  return createLibraryClient(details, `npm install ${details.install}`, 'ts', ({ name, url, token }) => {
    const bearer =
      token === undefined ? '`Bearer $' + '{process.env.ACCESS_TOKEN}`' : toScriptLiteral(`Bearer ${token}`);
    return code({ url: toScriptLiteral(url), name: toScriptLiteral(name), bearer });
  });
}

/** Placeholder for the login of a library. The program that uses the library opens it. */
const providerComment = '// authProvider: your own OAuthClientProvider, which opens the login\n';
const formatBearerHeaders = (token: string) => `headers: { Authorization: ${toScriptLiteral(`Bearer ${token}`)} }`;

const typescriptSdk: DeclaredClient = {
  id: 'sdk',
  name: 'TypeScript SDK',
  group: 'Frameworks',
  documentation: { url: 'https://github.com/modelcontextprotocol/typescript-sdk', checked: '2026-11-22' },
  snippet({ url, token }) {
    const setup = token === undefined ? providerComment : `const requestInit = { ${formatBearerHeaders(token)} };\n`;
    const access = token === undefined ? 'authProvider' : 'requestInit';
    const code = `import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const client = new Client({ name: 'example', version: '1.0.0' });
${setup}await client.connect(new StreamableHTTPClientTransport(new URL(${toScriptLiteral(url)}), { ${access} }));
console.log(await client.listTools());`;
    return createSnippet('npm install @modelcontextprotocol/client', 'ts', code);
  },
};

const aiSdk: DeclaredClient = {
  id: 'ai-sdk',
  name: 'Vercel AI SDK',
  group: 'Frameworks',
  documentation: { url: 'https://ai-sdk.dev/docs/ai-sdk-core/mcp-tools', checked: '2026-11-22' },
  snippet({ url, token }) {
    const code = `import { createMCPClient } from '@ai-sdk/mcp';

${token === undefined ? providerComment : ''}const client = await createMCPClient({
  transport: {
    type: 'http',
    url: ${toScriptLiteral(url)},
    ${token === undefined ? 'authProvider' : formatBearerHeaders(token)},
  },
});
// For generateText and streamText.
const tools = await client.tools();
console.log(Object.keys(tools));`;
    return createSnippet('npm install ai @ai-sdk/mcp', 'ts', code);
  },
};

export const libraries: readonly DeclaredClient[] = [
  typescriptSdk,
  createPythonClient({
    id: 'python-sdk',
    name: 'Python SDK',
    page: 'https://github.com/modelcontextprotocol/python-sdk',
    checked: '2026-11-22',
    install: 'mcp',
    imports: [
      'import httpx2',
      'from mcp import Client',
      'from mcp.client.streamable_http import streamable_http_client',
    ],
    body: (url) => [
      'async with httpx2.AsyncClient(headers=headers) as http:',
      `    async with Client(streamable_http_client(${url}, http_client=http)) as client:`,
      '        print(await client.list_tools())',
    ],
  }),
  aiSdk,
  createPythonClient({
    id: 'langchain',
    name: 'LangChain',
    page: 'https://docs.langchain.com/oss/python/langchain/mcp',
    install: 'langchain-mcp-adapters',
    imports: ['from langchain_mcp_adapters.client import MultiServerMCPClient'],
    body: (url, name) => [
      `server = {"transport": "streamable_http", "url": ${url}, "headers": headers}`,
      `tools = await MultiServerMCPClient({${name}: server}).get_tools()  # For create_agent.`,
      'print([tool.name for tool in tools])',
    ],
  }),
  createPythonClient({
    id: 'pydantic-ai',
    name: 'Pydantic AI',
    page: 'https://ai.pydantic.dev/mcp/client/',
    install: 'pydantic-ai',
    imports: ['from pydantic_ai import Agent', 'from pydantic_ai.mcp import MCPToolset'],
    body: (url) => [
      `agent = Agent("MODEL", toolsets=[MCPToolset(${url}, headers=headers)])`,
      'print((await agent.run("What can you do with these tools?")).output)',
    ],
  }),
  createPythonClient({
    id: 'openai-agents-python',
    name: 'OpenAI Agents (Python)',
    page: 'https://openai.github.io/openai-agents-python/mcp/',
    install: 'openai-agents',
    imports: ['from agents.mcp import MCPServerStreamableHttp'],
    body: (url) => [
      `params = {"url": ${url}, "headers": headers}`,
      'async with MCPServerStreamableHttp(params=params) as server:  # For Agent(mcp_servers=[server]).',
      '    print([tool.name for tool in await server.list_tools()])',
    ],
  }),
  createScriptClient({
    id: 'openai-agents-js',
    name: 'OpenAI Agents (JavaScript)',
    page: 'https://openai.github.io/openai-agents-js/guides/mcp/',
    install: '@openai/agents',
    code: ({ url, name, bearer }) => `import { Agent, MCPServerStreamableHttp, run } from '@openai/agents';

const requestInit = { headers: { Authorization: ${bearer} } };
const server = new MCPServerStreamableHttp({ url: ${url}, name: ${name}, requestInit });
await server.connect();
const agent = new Agent({ name: 'Assistant', mcpServers: [server] });
console.log((await run(agent, 'What can you do with these tools?')).finalOutput);
await server.close();`,
  }),
  createPythonClient({
    id: 'google-adk',
    name: 'Google ADK',
    page: 'https://google.github.io/adk-docs/tools/mcp-tools/',
    install: 'google-adk',
    imports: ['from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams'],
    body: (url) => [
      `params = StreamableHTTPConnectionParams(url=${url}, headers=headers)`,
      'toolset = McpToolset(connection_params=params)  # For LlmAgent(tools=[toolset]).',
      'print([tool.name for tool in await toolset.get_tools()])',
      'await toolset.close()',
    ],
  }),
  createScriptClient({
    id: 'mastra',
    name: 'Mastra',
    page: 'https://mastra.ai/docs/mcp/overview',
    install: '@mastra/mcp',
    code: ({ url, name, bearer }) => `import { MCPClient } from '@mastra/mcp';

const requestInit = { headers: { Authorization: ${bearer} } };
const mcp = new MCPClient({ servers: { [${name}]: { url: new URL(${url}), requestInit } } });
// For new Agent({ tools }).
const tools = await mcp.listTools();
console.log(Object.keys(tools));
await mcp.disconnect();`,
  }),
  createPythonClient({
    id: 'llamaindex',
    name: 'LlamaIndex',
    page: 'https://developers.llamaindex.ai/python/framework/module_guides/mcp/llamaindex_mcp/',
    install: 'llama-index-tools-mcp',
    imports: ['from llama_index.tools.mcp import BasicMCPClient, McpToolSpec'],
    body: (url) => [
      `client = BasicMCPClient(${url}, headers=headers)`,
      'tools = await McpToolSpec(client=client).to_tool_list_async()  # For FunctionAgent(tools=tools).',
      'print([tool.metadata.name for tool in tools])',
    ],
  }),
  createPythonClient({
    id: 'agent-framework',
    name: 'Agent Framework',
    page: 'https://learn.microsoft.com/en-us/agent-framework/agents/tools/local-mcp-tools',
    install: 'agent-framework',
    imports: ['import httpx', 'from agent_framework import MCPStreamableHTTPTool'],
    body: (url, name) => [
      'http = httpx.AsyncClient(headers=headers)',
      `async with MCPStreamableHTTPTool(name=${name}, url=${url}, http_client=http) as tool:`,
      '    print([function.name for function in tool.functions])  # For Agent(tools=[tool]).',
    ],
  }),
  createPythonClient({
    id: 'crewai',
    name: 'CrewAI',
    page: 'https://docs.crewai.com/en/mcp/overview',
    install: '"crewai-tools[mcp]"',
    imports: ['from crewai_tools import MCPServerAdapter'],
    body: (url) => [
      `params = {"url": ${url}, "transport": "streamable-http", "headers": headers}`,
      'with MCPServerAdapter(params) as tools:  # For Agent(tools=tools).',
      '    print([tool.name for tool in tools])',
    ],
  }),
  createPythonClient({
    id: 'semantic-kernel',
    name: 'Semantic Kernel',
    page: 'https://learn.microsoft.com/en-us/semantic-kernel/concepts/plugins/adding-mcp-plugins',
    install: '"semantic-kernel[mcp]"',
    imports: ['from semantic_kernel.connectors.mcp import MCPStreamableHttpPlugin'],
    body: (url, name) => [
      `server = MCPStreamableHttpPlugin(name=${name}.replace("-", "_"), url=${url}, headers=headers)`,
      'async with server:  # For ChatCompletionAgent(plugins=[server]).',
      '    print(await server.session.list_tools())',
    ],
  }),
];
