import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Job } from './own-load.ts';
import { cores, findProgram, node, pinCommand } from './processes.ts';

/** POST request that the load repeats. */
export type Target = { url: string; headers: Record<string, string>; body: string };

export type Sample = { calls: number; seconds: number; bytes: number; failures: number; p50Ms: number; p99Ms: number };

export type LoadGenerator = { name: string; run: (target: Target, seconds: number) => Promise<Sample> };

/** Generates load at a fixed rate, which `wrk` cannot do. */
export function runAtRate(target: Target, perSecond: number, seconds: number): Promise<Sample> {
  return runBuiltIn(target, seconds, perSecond);
}

export const connections = 64;
const graceMs = 15_000;
const run = promisify(execFile);

/** Returns `wrk` if it is installed and rounds last whole seconds, otherwise the built-in generator. */
export function loadGenerator(seconds: number): LoadGenerator {
  const wrk = findProgram('wrk');
  return wrk === undefined || !Number.isInteger(seconds) ? builtInGenerator : withWrk(wrk);
}

const builtInGenerator: LoadGenerator = {
  name: 'bench/own-load.ts',
  run: (target, seconds) => runBuiltIn(target, seconds),
};

async function runBuiltIn({ url, headers, body }: Target, seconds: number, perSecond?: number): Promise<Sample> {
  const { port, pathname, search } = new URL(url);
  const rate = perSecond === undefined ? {} : { perSecond };
  const job: Job = { port: Number(port), path: pathname + search, headers, body, seconds, connections, ...rate };
  return JSON.parse(await runForOutput([node, join(import.meta.dirname, 'own-load.ts'), JSON.stringify(job)], seconds));
}

function withWrk(wrk: string): LoadGenerator {
  const version = /wrk \S+/.exec(readStdout(wrk, '-v'))?.[0] ?? 'wrk';
  return {
    name: version,
    async run(target, seconds) {
      const folder = mkdtempSync(join(tmpdir(), 'toolhost-bench-'));
      const script = join(folder, 'post.lua');
      writeFileSync(script, luaScript(target));
      try {
        const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '--timeout', '10s', '-s', script];
        const text = await runForOutput([wrk, ...options, target.url], seconds);
        return JSON.parse(/^bench (.*)$/m.exec(text)?.[1] ?? '');
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  };
}

/** Returns standard output even if the program fails: `wrk -v` exits with an error status. */
function readStdout(program: string, option: string): string {
  try {
    return execFileSync(program, [option], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch (error) {
    return String((error as { stdout?: string }).stdout ?? '');
  }
}

async function runForOutput(command: string[], seconds: number): Promise<string> {
  const [program = '', ...args] = pinCommand(cores.load, command);
  const { stdout } = await run(program, args, { timeout: seconds * 1000 + graceMs });
  return stdout;
}

function luaScript({ headers, body }: Target): string {
  const quote = (text: string) => `[==[${text}]==]`;
  return `
wrk.method = 'POST'
wrk.body = ${quote(body)}
${Object.entries(headers)
  .map(([name, value]) => `wrk.headers[ ${quote(name)} ] = ${quote(value)}`)
  .join('\n')}
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'bench {"calls":%d,"seconds":%f,"bytes":%d,"failures":%d,"p50Ms":%f,"p99Ms":%f}\\n',
    summary.requests, summary.duration / 1e6, summary.bytes, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`;
}
