import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from '../../files.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import { useFixture } from '../use-fixtures.ts';
import type { ProcessReply, ProcessRequest } from './cpu-budget-process.ts';
import { readReply } from './read-reply.ts';
import type { Json, ToolCallResult } from './toolhost.ts';

export type HttpReply = { status: number; text: string; body: Json };

type Requests = {
  /** Sends a request to the REST API. A body that is a function is built for each attempt. */
  rest(method: string, path: string, body?: unknown): Promise<HttpReply>;
  /** Sends a POST with JSON text. */
  post(path: string, body: string): Promise<HttpReply>;
  /** Sends a stateful JSON-RPC request. */
  rpc(slug: string, method: string, params: Json): Promise<HttpReply>;
  /** Sends a `tools/call` with its arguments as JSON text (default: none). */
  call(slug: string, tool: string, args?: string): Promise<HttpReply>;
};

/** The service in a separate process whose event loop is watched, and an upstream. */
export type CpuBudgetToolhost = Requests & {
  url: string;
  key: string;
  upstream: RecordingUpstream;
  /** Creates a server with a default name. */
  createServer(config: Json): Promise<HttpReply>;
  /** Returns the same requests, each of which must stay within the budget. */
  measure(description: string, maxUnits?: number): Requests;
  /**
   * Does some work, and fails if it blocked the service's event loop for longer than `maxUnits` units of work take on
   * the same machine (default: one unit). A run that exceeds the budget is repeated, because a full garbage collection
   * or a cold start may have caused it.
   */
  assertWithinBudget<Result>(description: string, work: () => Promise<Result>, maxUnits?: number): Promise<Result>;
  stop(): Promise<void>;
};

const maxAttempts = 8;
const processModule = new URL('./cpu-budget-process.ts', import.meta.url);

export async function startCpuBudgetToolhost(env: Record<string, string> = {}): Promise<CpuBudgetToolhost> {
  const upstream = await startRecordingUpstream();
  const childProcess = fork(processModule, { execArgv: readProgramFlags() });
  const startRequest: ProcessRequest = { ask: 'start', egress: [upstream.port], env };
  const { url } = await requestFromProcess<{ url: string }>(childProcess, startRequest);
  const { key } = await requestFromProcess<{ key: string }>(childProcess, { ask: 'key', options: {} });
  const send = async (path: string, init: RequestInit): Promise<HttpReply> => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...init.headers };
    return readReply(await fetch(url + path, { ...init, headers }));
  };
  const post = (slug: string, message: string) =>
    send(`/mcp/${slug}`, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream' },
      body: `{"jsonrpc":"2.0","id":1,${message}}`,
    });
  const measureBudgetRatio = async (work: () => Promise<unknown>, maxUnits: number): Promise<number> => {
    await requestFromProcess(childProcess, { ask: 'watch' });
    const probeController = new AbortController();
    const probeResult = probeLiveness(url, probeController.signal);
    await work();
    probeController.abort();
    assert.ok((await probeResult) > 0, '/livez did not respond during the work');
    const reportRequest: ProcessRequest = { ask: 'report', maxUnits };
    const { blockMs, unitMs } = await requestFromProcess<{ blockMs: number; unitMs: number }>(
      childProcess,
      reportRequest,
    );
    return blockMs / unitMs;
  };
  const requests: Requests = {
    rest: (method, path, body) => {
      const content: unknown = typeof body === 'function' ? body() : body;
      const text = typeof content === 'string' ? content : JSON.stringify(content);
      return send(`/api/v1${path}`, { method, ...(content !== undefined && { body: text }) });
    },
    post: (path, body) =>
      send(path, { method: 'POST', headers: { accept: 'application/json, text/event-stream' }, body }),
    rpc: (slug, method, params) => post(slug, `"method":"${method}","params":${JSON.stringify(params)}`),
    call: (slug, tool, args = '{}') =>
      post(slug, `"method":"tools/call","params":{"name":"${tool}","arguments":${args}}`),
  };
  const assertWithinBudget: CpuBudgetToolhost['assertWithinBudget'] = async (description, work, maxUnits = 1) => {
    let result: Awaited<ReturnType<typeof work>> | undefined;
    const ratios: number[] = [];
    while (ratios.length < maxAttempts && (ratios.at(-1) ?? Infinity) > maxUnits) {
      ratios.push(
        await measureBudgetRatio(async () => {
          result = await work();
        }, maxUnits),
      );
    }
    if (process.env.TEST_LOG) console.log(description, ratios.map((ratio) => ratio.toFixed(2)).join(' '));
    assert.ok(
      Math.min(...ratios) <= maxUnits,
      `${description}: blocked the event loop for ${ratios.map((r) => r.toFixed(1))} units`,
    );
    return result as Awaited<ReturnType<typeof work>>;
  };
  return {
    ...requests,
    url,
    key,
    upstream,
    assertWithinBudget,
    measure: (description, maxUnits) => ({
      rest: (...args) => assertWithinBudget(description, () => requests.rest(...args), maxUnits),
      post: (...args) => assertWithinBudget(description, () => requests.post(...args), maxUnits),
      rpc: (...args) => assertWithinBudget(description, () => requests.rpc(...args), maxUnits),
      call: (...args) => assertWithinBudget(description, () => requests.call(...args), maxUnits),
    }),
    async createServer(config) {
      const reply = await requests.rest('POST', '/servers', { name: 'Any', ...config });
      assert.equal(reply.status, 201, reply.text.slice(0, 500));
      return reply;
    },
    async stop() {
      const ended = once(childProcess, 'exit');
      childProcess.disconnect();
      await ended;
      await upstream.close();
    },
  };
}

/** Returns the service that runs during the tests of the current suite. */
export function useCpuBudgetToolhost(env?: Record<string, string>): CpuBudgetToolhost {
  return useFixture(() => startCpuBudgetToolhost(env));
}

/** Returns the result of a `tools/call`. */
export function getResult({ body }: HttpReply): ToolCallResult {
  return body.result as ToolCallResult;
}

/** Returns the first text of the result of a `tools/call`. */
export function getText(reply: HttpReply): string {
  return getResult(reply).content[0]?.text ?? '';
}

/** Returns the flags with which `bin/toolhost` starts Node. */
function readProgramFlags(): string[] {
  const script = readFileSync(join(root, 'bin', 'toolhost'), 'utf8');
  const [, flags] =
    /^exec "\$node" (.+) "\$here\/apps/m.exec(script) ?? assert.fail('bin/toolhost does not start Node as expected');
  return (flags as string).split(' ');
}

async function requestFromProcess<Answer extends ProcessReply>(
  childProcess: ChildProcess,
  question: ProcessRequest,
): Promise<Answer> {
  const exitController = new AbortController();
  const onExit = () => exitController.abort();
  childProcess.once('exit', onExit);
  const replyEvent = once(childProcess, 'message', { signal: exitController.signal });
  childProcess.send(question);
  const [message] = (await replyEvent) as [Answer];
  childProcess.off('exit', onExit);
  return message;
}

const probeMs = 5;

/** Requests /livez until it is aborted. Returns the number of responses. */
async function probeLiveness(url: string, signal: AbortSignal): Promise<number> {
  let probeCount = 0;
  do {
    const { status } = await fetch(`${url}/livez`);
    assert.equal(status, 200);
    probeCount++;
    await delay(probeMs);
  } while (!signal.aborted);
  return probeCount;
}
