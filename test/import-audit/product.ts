/** Drives the product through its public interfaces only: the command, REST, and MCP. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { type Json, type JsonObject, toList, toObject, toText } from './json.ts';
import { readTool, type Tool } from './tool-arguments.ts';

export type Outcome = 'whole' | 'loosened' | 'partial' | 'skipped';

export type Reported = { outcome: Outcome; notes: string[] };

export type Imported = {
  /** Report entries by operation, such as `GET /pets`. */
  report: Map<string, Reported>;
  /** Tools by the operation that they were created from. */
  tools: Map<string, Tool[]>;
  slug: string;
};

export type ToolResult = { isError: boolean; text: string };

/** Thrown when the service rejects a request. */
export class Refusal extends Error {}

export type Product = {
  /** @throws Refusal if the document is rejected */
  importDocument(document: string, slug: string, include: readonly string[]): Promise<Imported>;
  call(slug: string, tool: string, args: JsonObject): Promise<ToolResult>;
  stop(): Promise<void>;
};

/** Value of every secret. */
export const secret = 'audit-secret';

/** Starts the service of a checkout, which may call only the stub. */
export async function startProduct(checkout: string, stub: { url: string; port: number }): Promise<Product> {
  const dataDir = await mkdtemp(join(tmpdir(), 'toolhost-audit-'));
  const env = {
    ...{ PATH: process.env.PATH ?? '', DATA_DIR: dataDir, PORT: '0', DEMO: '0', LOG_LEVEL: 'warn' },
    ...{ EGRESS_ALLOW: `127.0.0.1:${stub.port}`, QUOTAS: 'servers=0,megabytes=0,writes=0' },
    ...{ CALLS_PER_SECOND: '0', REFUSALS_PER_MINUTE: '0', CONCURRENT_CALLS: '0', CONCURRENT_CALLS_PER_KEY: '0' },
  };
  const program = join(checkout, 'bin', 'toolhost');
  const create = ['keys', 'create', '--name', 'audit', '--scopes', 'manage,call', '--json'];
  const { key } = JSON.parse((await promisify(execFile)(program, create, { env })).stdout) as { key: string };
  const child = spawn(program, ['serve'], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const url = await readUrl(child);
  const send = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        Authorization: `Bearer ${key}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Refusal(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`);
    return text === '' ? {} : toObject(JSON.parse(text));
  };
  const rpc = async (slug: string, method: string, params: JsonObject) =>
    toObject((await send('POST', `/mcp/${slug}`, { jsonrpc: '2.0', id: 1, method, params })).result);
  return {
    importDocument: (document, slug, include) =>
      importDocument({ send, rpc }, { document, slug, include, url: `${stub.url}/spec/openapi.json` }),
    async call(slug, name, args) {
      const result = await rpc(slug, 'tools/call', { name, arguments: args });
      const text = toList(result.content)
        .map((block) => toText(toObject(block).text))
        .join('\n');
      return { isError: result.isError === true, text };
    },
    async stop() {
      const exited = once(child, 'close');
      child.kill('SIGTERM');
      await exited;
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function readUrl(child: ChildProcess): Promise<string> {
  if (!child.stdout || !child.stderr) throw new Error('The service has no output.');
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-4000);
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /^toolhost ready (\S+)$/.exec(line)?.[1];
    if (url !== undefined) {
      child.stdout.resume();
      return url;
    }
  }
  throw new Error(`The service exited before it was ready: ${errors}`);
}

type Entries = {
  send(method: string, path: string, body?: unknown): Promise<JsonObject>;
  rpc(slug: string, method: string, params: JsonObject): Promise<JsonObject>;
};
type Request = { document: string; slug: string; include: readonly string[]; url: string };

async function importDocument({ send, rpc }: Entries, request: Request): Promise<Imported> {
  const plan = await send('POST', '/api/v1/import', { ...request, mode: 'plan', deprecated: true, report: 'all' });
  const answers = answerQuestions(toList(plan.questions).map(toObject), request.url);
  const report = readReport(plan, request.include);
  const isLong = Number(toObject(plan.operations).operations) > 2000;
  if (![...report.values()].some(({ outcome }) => outcome !== 'skipped'))
    return { report, tools: new Map(), slug: request.slug };
  const created = await send('POST', '/api/v1/import', {
    ...request,
    mode: 'create',
    deprecated: true,
    answers,
    report: isLong ? 'chosen' : 'all',
  });
  for (const one of toList(created.secrets).map(toObject))
    await send('PUT', `/api/v1/servers/${request.slug}/secrets/${toText(one.name)}`, { value: secret });
  const { config } = await send('GET', `/api/v1/servers/${request.slug}`);
  const listed = new Map<string, JsonObject>();
  let cursor: Json | undefined;
  do {
    const page = await rpc(request.slug, 'tools/list', cursor === undefined ? {} : { cursor });
    for (const tool of toList(page.tools).map(toObject)) listed.set(toText(tool.name), tool);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  const tools = new Map<string, Tool[]>();
  for (const one of toList(toObject(config).tools).map(toObject)) {
    const operation = toText(one.imported_from);
    tools.set(operation, [...(tools.get(operation) ?? []), readTool(one, toObject(listed.get(toText(one.name))))]);
  }
  return { report: readReport(created, request.include), tools, slug: request.slug };
}

/** Returns the report entries by operation. The report truncates long names with an ellipsis. */
function readReport(reply: JsonObject, operations: readonly string[]): Map<string, Reported> {
  const entries = toList(reply.report).map(toObject);
  const isFor = (operation: string, name: string) =>
    name === operation || (name.endsWith('…') && operation.startsWith(name.slice(0, -1)));
  return new Map(
    operations.flatMap((operation): [string, Reported][] => {
      const entry = entries.find((one) => isFor(operation, toText(one.operation)));
      return entry ? [[operation, { outcome: entry.outcome as Outcome, notes: toList(entry.notes).map(toText) }]] : [];
    }),
  );
}

/**
 * Answers each required question with the assumed value or the first option. An unknown server is at the document's
 * origin.
 */
function answerQuestions(questions: readonly JsonObject[], url: string): JsonObject {
  const answers: JsonObject = {};
  for (const { name, required, assumed, options } of questions) {
    const [first] = toList(options).map(toObject);
    if (required === true)
      answers[toText(name)] = (assumed ??
        first?.value ??
        (name === 'server' ? new URL('/', url).href : 'audit')) as Json;
  }
  return answers;
}
