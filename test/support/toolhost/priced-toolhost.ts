import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from '../../files.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../upstreams/recording-upstream.ts';
import type { Question, Reply } from './priced-toolhost-process.ts';
import type { Json } from './toolhost.ts';

export type Answered = { status: number; text: string; body: Json };

/** The service in a separate process whose event loop is watched, and an upstream. */
export type PricedToolhost = {
  url: string;
  key: string;
  upstream: RecordingUpstream;
  /** Sends a request to the REST API. */
  rest(method: string, path: string, body?: unknown): Promise<Answered>;
  /** Sends a POST with JSON text. */
  post(path: string, body: string): Promise<Answered>;
  /** Sends a stateful JSON-RPC request. */
  rpc(slug: string, method: string, params: Json): Promise<Answered>;
  /** Sends a `tools/call` with its arguments as JSON text. */
  call(slug: string, tool: string, args: string): Promise<Answered>;
  /**
   * Does some work, and fails if it blocked the service's event loop for longer than `maxUnits` units of work take on
   * the same machine (default: one unit). A run that exceeds the budget is repeated, because a full garbage collection
   * or a cold start may have caused it.
   */
  costsLittle<Result>(what: string, work: () => Promise<Result>, most?: number): Promise<Result>;
  stop(): Promise<void>;
};

const attempts = 8;
const child = new URL('./priced-toolhost-process.ts', import.meta.url);

export async function startPricedToolhost(env: Record<string, string> = {}): Promise<PricedToolhost> {
  const upstream = await startRecordingUpstream();
  const forked = fork(child, { execArgv: flagsOfProgram() });
  const { url } = await ask<{ url: string }>(forked, { ask: 'start', egress: [upstream.port], env });
  const { key } = await ask<{ key: string }>(forked, { ask: 'key', options: {} });
  const send = async (path: string, init: RequestInit): Promise<Answered> => {
    const response = await fetch(url + path, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...init.headers },
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, text, body: isJson ? (JSON.parse(text) as Json) : {} };
  };
  const post = (slug: string, message: string) =>
    send(`/mcp/${slug}`, {
      method: 'POST',
      headers: { accept: 'application/json, text/event-stream' },
      body: `{"jsonrpc":"2.0","id":1,${message}}`,
    });
  const ratioOf = async (work: () => Promise<unknown>, most: number): Promise<number> => {
    await ask(forked, { ask: 'watch' });
    const probing = new AbortController();
    const probes = probe(url, probing.signal);
    await work();
    probing.abort();
    assert.ok((await probes) > 0, '/livez did not respond during the work');
    const { blockMs, unitMs } = await ask<{ blockMs: number; unitMs: number }>(forked, {
      ask: 'report',
      most,
    });
    return blockMs / unitMs;
  };
  return {
    url,
    key,
    upstream,
    rest: (method, path, body) =>
      send(`/api/v1${path}`, {
        method,
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    post: (path, body) =>
      send(path, { method: 'POST', headers: { accept: 'application/json, text/event-stream' }, body }),
    rpc: (slug, method, params) => post(slug, `"method":"${method}","params":${JSON.stringify(params)}`),
    call: (slug, tool, args) => post(slug, `"method":"tools/call","params":{"name":"${tool}","arguments":${args}}`),
    async costsLittle(what, work, most = 1) {
      let result: Awaited<ReturnType<typeof work>> | undefined;
      const ratios: number[] = [];
      while (ratios.length < attempts && (ratios.at(-1) ?? Infinity) > most) {
        ratios.push(
          await ratioOf(async () => {
            result = await work();
          }, most),
        );
      }
      if (process.env.TEST_LOG) console.log(what, ratios.map((ratio) => ratio.toFixed(2)).join(' '));
      assert.ok(
        Math.min(...ratios) <= most,
        `${what}: blocked the event loop for ${ratios.map((r) => r.toFixed(1))} units`,
      );
      return result as Awaited<ReturnType<typeof work>>;
    },
    async stop() {
      const ended = once(forked, 'exit');
      forked.disconnect();
      await ended;
      await upstream.close();
    },
  };
}

/** Returns the flags with which `bin/toolhost` starts Node. */
function flagsOfProgram(): string[] {
  const script = readFileSync(join(root, 'bin', 'toolhost'), 'utf8');
  const [, flags] =
    /^exec "\$node" (.+) "\$here\/src/m.exec(script) ?? assert.fail('bin/toolhost does not start Node as expected');
  return (flags as string).split(' ');
}

async function ask<Answer extends Reply>(forked: ChildProcess, question: Question): Promise<Answer> {
  const ended = new AbortController();
  const onExit = () => ended.abort();
  forked.once('exit', onExit);
  const replied = once(forked, 'message', { signal: ended.signal });
  forked.send(question);
  const [reply] = (await replied) as [Answer];
  forked.off('exit', onExit);
  return reply;
}

const probeMs = 5;

/** Requests /livez until it is aborted. Returns the number of responses. */
async function probe(url: string, signal: AbortSignal): Promise<number> {
  let answered = 0;
  do {
    const { status } = await fetch(`${url}/livez`);
    assert.equal(status, 200);
    answered++;
    await delay(probeMs);
  } while (!signal.aborted);
  return answered;
}
