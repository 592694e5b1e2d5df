import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { root } from '../files.ts';
import { assertMapped } from '../support/assert-lists.ts';
import { ensureNpmProgram } from '../support/npm.ts';
import { ensurePythonPackages } from '../support/python.ts';
import { buildIsolatedEnvironment } from '../support/toolhost/run-script.ts';
import { useToolhost } from '../support/toolhost/use-toolhost.ts';

const openApiTs = {
  package: '@hey-api/openapi-ts',
  version: '0.99.0',
  command: 'openapi-ts',
  companions: ['typescript@6.0.3'],
};
const pythonFolder = join(root, 'node_modules', '.cache', 'openapi-python-client');
const pythonPackages = ['openapi-python-client==0.29.1'];

const tsconfig = {
  compilerOptions: {
    target: 'esnext',
    module: 'nodenext',
    strict: true,
    lib: ['esnext', 'dom', 'dom.iterable'],
    types: [],
    outDir: 'built',
  },
};

/**
 * Creates a server, calls its tool, and deletes it. The Python program does the same. JSON strings are valid in both
 * languages.
 */
const typescriptProgram = (key: string, upstream: string) => `
import { client } from './generated/client.gen.js';
import { type Call, callTool, createMcpServer, deleteMcpServer, getCall, type Server, type Tool } from './generated/index.js';

client.setConfig({ auth: ${JSON.stringify(key)} });
const throwOnError = true;
const tool: Tool = { name: 'list_orders',
  description: 'Lists orders.',
  method: 'GET',
  url: ${JSON.stringify(`${upstream}/orders`)},
  input_schema: { page: { type: 'integer' } },
};
const created = await createMcpServer({ body: { name: 'Shop', slug: 'typescript', tools: [tool] }, throwOnError });
const server: Server = created.data.server;
const path = { slug: server.slug };
const called = await callTool({ path: { ...path, tool: tool.name }, body: { arguments: { page: 2 } }, throwOnError });
const recorded = await getCall({ path: { id: called.data.call_id ?? '' }, throwOnError });
const call: Call = recorded.data.call;
const deleted = await deleteMcpServer({ path, throwOnError });
console.log(JSON.stringify([server.tool_count, called.data.is_error, call.tool, call.outcome, deleted.data.deleted]));
`;

const pythonProgram = (key: string, upstream: string, api: string) => `
import json
from generated import AuthenticatedClient
from generated.api.calls import get_call
from generated.api.servers import create_mcp_server, delete_mcp_server
from generated.api.tools import call_tool
from generated.models import Call, CallToolBody, CallToolBodyArguments, Server, ServerConfig, Tool, ToolInputSchema

client = AuthenticatedClient(base_url=${JSON.stringify(api)}, token=${JSON.stringify(key)})
tool = Tool(
    name="list_orders",
    description="Lists orders.",
    method="GET",
    url=${JSON.stringify(`${upstream}/orders`)},
    input_schema=ToolInputSchema.from_dict({"page": {"type": "integer"}}),
)
server = create_mcp_server.sync(client=client, body=ServerConfig(name="Shop", slug="python", tools=[tool])).server
assert isinstance(server, Server)
arguments = CallToolBodyArguments.from_dict({"page": 2})
called = call_tool.sync(server.slug, tool.name, client=client, body=CallToolBody(arguments=arguments))
call = get_call.sync(called.call_id, client=client).call
assert isinstance(call, Call)
deleted = delete_mcp_server.sync(server.slug, client=client)
print(json.dumps([server.tool_count, called.is_error, call.tool, call.outcome.value, deleted.deleted]))
`;

describe('a client generated from the OpenAPI document', () => {
  const { toolhost, upstream } = useToolhost();
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'toolhost-generated-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const document = () => `${toolhost.url}/api/v1/openapi.json`;

  /** Runs a program in the test's folder, with the programs next to it on the PATH. Returns its output. */
  async function runInFolder(program: string, ...args: string[]): Promise<string> {
    const isolatedEnvironment = buildIsolatedEnvironment(folder);
    const env = {
      ...isolatedEnvironment,
      PATH: [dirname(program), dirname(process.execPath), isolatedEnvironment.PATH].join(':'),
    };
    return (await promisify(execFile)(program, args, { cwd: folder, env, maxBuffer: 50_000_000 })).stdout;
  }

  async function assertCalled(slug: string, output: string): Promise<void> {
    assert.deepEqual(JSON.parse(output), [1, false, 'list_orders', 'ok', slug]);
    assertMapped(upstream.take(), ({ method, url }) => `${method} ${url}`, ['GET /orders?page=2']);
    assert.equal((await toolhost.rest('GET', `/servers/${slug}`)).status, 404);
  }

  it('[rest 1] creates, calls, and deletes a server in TypeScript, with @hey-api/openapi-ts', async () => {
    const bin = await ensureNpmProgram(openApiTs);
    await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig));
    await writeFile(join(folder, 'program.ts'), typescriptProgram(await toolhost.createKey(), upstream.url));
    await runInFolder(join(bin, 'openapi-ts'), '--input', document(), '--output', 'generated', '--no-log-file');
    await runInFolder(join(root, 'node_modules', '.bin', 'tsc'));
    await assertCalled('typescript', await runInFolder(process.execPath, join('built', 'program.js')));
  });

  it('[rest 1] creates, calls, and deletes a server in Python, with openapi-python-client', async () => {
    const bin = await ensurePythonPackages(pythonFolder, pythonPackages);
    const program = pythonProgram(await toolhost.createKey(), upstream.url, `${toolhost.url}/api/v1`);
    await writeFile(join(folder, 'program.py'), program);
    const options = ['--meta', 'none', '--output-path', 'generated', '--fail-on-warning'];
    await runInFolder(join(bin, 'openapi-python-client'), 'generate', '--url', document(), ...options);
    await assertCalled('python', await runInFolder(join(bin, 'python'), 'program.py'));
  });
});
