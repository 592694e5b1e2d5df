import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { runCommandLine } from '../../../src/cli/program.ts';
import { repairJsonParse } from '../../../src/domain/json/json-reader.ts';
import type { Ended } from './toolhost-command.ts';

/** What a command has of `process` for itself. */
type Own = Pick<NodeJS.Process, 'env' | 'exit'> & {
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  exitCode: NodeJS.Process['exitCode'];
};

repairJsonParse();

/** Commands by the asynchronous work that they cause, so that several may run at once, beside services and tests. */
const running = new AsyncLocalStorage<Own>();

/** To all but the work of a command `process` is what it was. Node itself and the runner of tests do not come by here. */
globalThis.process = new Proxy(process, {
  get(real, name) {
    const own = running.getStore();
    return Reflect.get(own && name in own ? own : real, name);
  },
  set(real, name, value) {
    const own = running.getStore();
    return Reflect.set(own && name in own ? own : real, name, value);
  },
});

/** Replaces the environment; `input` is the standard input, `cwd` the working folder; `isTerminal`: output is shown. */
type Place = { env: NodeJS.ProcessEnv; input?: string; cwd?: string; isTerminal?: boolean };

/**
 * Runs a command of the command line in this process; for many tests a process for each would be most of their work. It
 * ends when its work has ended, whatever it leaves open, and what follows a `process.exit` still runs, unheard. It hears
 * no signal, and its log goes to the standard error of the tests. Memory, threads, the clock and the connections that
 * `fetch` keeps are those of the tests.
 */
export async function runInProcess(
  args: readonly string[],
  { env, input = '', cwd, isTerminal = false }: Place,
): Promise<Ended> {
  const [stdout, stderr] = [collect(isTerminal), collect(isTerminal)];
  const exited = Promise.withResolvers<number>();
  // Listeners for signals stay with the command.
  const own: Own = Object.assign(new EventEmitter(), {
    env,
    stdin: Readable.from(input === '' ? [] : [Buffer.from(input)], { objectMode: false }),
    stdout: stdout.stream,
    stderr: stderr.stream,
    exitCode: undefined,
    exit: ((code = own.exitCode) => exited.resolve(Number(code ?? 0))) as NodeJS.Process['exit'],
  });
  const work = () => running.run(own, () => runCommandLine(args)).then(() => Number(own.exitCode ?? 0));
  const code = await Promise.race([inFolder(cwd, work), exited.promise]);
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

const usualFolder = process.cwd();

/** The working folder is one of the whole process, so a command that names its own runs alone. */
async function inFolder<Result>(folder: string | undefined, work: () => Promise<Result>): Promise<Result> {
  assert.equal(process.cwd(), usualFolder, 'no command runs beside one that has a folder of its own');
  if (folder === undefined) return work();
  process.chdir(folder);
  try {
    return await work();
  } finally {
    process.chdir(usualFolder);
  }
}

function collect(isTTY: boolean): { stream: Writable; text: () => string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream: Object.assign(stream, { isTTY }), text: () => Buffer.concat(chunks).toString() };
}
