import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { runCommandLine } from '../../../src/cli/program.ts';
import { repairJsonParse } from '../../../src/domain/json/json-reader.ts';
import type { Ended } from './toolhost-command.ts';

/** Properties of `process` that each command has for itself. */
type Own = Pick<NodeJS.Process, 'env' | 'exit'> & {
  stdin: Readable;
  stdout: Writable;
  stderr: Writable;
  exitCode: NodeJS.Process['exitCode'];
};

repairJsonParse();

/**
 * Running commands by their asynchronous context, so that several commands, services, and tests may run at the same
 * time.
 */
const running = new AsyncLocalStorage<Own>();

/**
 * Only a command's own code sees its replacement of `process`. Node itself and the test runner do not use this proxy.
 */
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

/**
 * Replaces the environment. `input` is the standard input, `cwd` the working folder, and `isTerminal` makes the output
 * a terminal.
 */
type Place = { env: NodeJS.ProcessEnv; input?: string; cwd?: string; isTerminal?: boolean };

/**
 * Runs a command in this process, because a new process for each command would dominate the run time of many tests. The
 * command ends when its work has ended, whatever it leaves open. Code after a `process.exit` still runs, without effect
 * on the result. The command receives no signals, and its log goes to the standard error of the tests. It shares
 * memory, threads, the clock, and the connections that `fetch` keeps open with the tests.
 */
export async function runInProcess(
  args: readonly string[],
  { env, input = '', cwd, isTerminal = false }: Place,
): Promise<Ended> {
  const [stdout, stderr] = [collect(isTerminal), collect(isTerminal)];
  const exited = Promise.withResolvers<number>();
  // Signal listeners stay with the command.
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

/** The working folder belongs to the whole process, so a command that sets its own runs alone. */
async function inFolder<Result>(folder: string | undefined, work: () => Promise<Result>): Promise<Result> {
  assert.equal(process.cwd(), usualFolder, 'a command that sets its own working folder must run alone');
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
