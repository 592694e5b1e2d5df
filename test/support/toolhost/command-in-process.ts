import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { repairJsonParse } from '@toolhost/json/json-reader';
import { runCommandLine } from '../../../apps/cli/src/program.ts';
import type { CommandResult } from './toolhost-command.ts';

/** Properties of `process` that each command has for itself. */
type CommandProcess = Pick<NodeJS.Process, 'env' | 'exit'> & {
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
const runningCommand = new AsyncLocalStorage<CommandProcess>();

/**
 * Only a command's own code sees its replacement of `process`. Node itself and the test runner do not use this proxy.
 */
globalThis.process = new Proxy(process, {
  get(real, name) {
    const commandProcess = runningCommand.getStore();
    return Reflect.get(commandProcess && name in commandProcess ? commandProcess : real, name);
  },
  set(real, name, value) {
    const commandProcess = runningCommand.getStore();
    return Reflect.set(commandProcess && name in commandProcess ? commandProcess : real, name, value);
  },
});

/**
 * Replaces the environment. `input` is the standard input, `cwd` the working folder, and `isTerminal` makes the output
 * a terminal.
 */
type CommandContext = { env: NodeJS.ProcessEnv; input?: string; cwd?: string; isTerminal?: boolean };

/**
 * Runs a command in this process, because a new process for each command would dominate the run time of many tests. The
 * command ends when its work has ended, whatever it leaves open. Code after a `process.exit` still runs, without effect
 * on the result. The command receives no signals, and its log goes to the standard error of the tests. It shares
 * memory, threads, the clock, and the connections that `fetch` keeps open with the tests.
 */
export async function runInProcess(
  args: readonly string[],
  { env, input = '', cwd, isTerminal = false }: CommandContext,
): Promise<CommandResult> {
  const [stdout, stderr] = [collectOutput(isTerminal), collectOutput(isTerminal)];
  const exitCode = Promise.withResolvers<number>();
  // Signal listeners stay with the command.
  const commandProcess: CommandProcess = Object.assign(new EventEmitter(), {
    env,
    stdin: Readable.from(input === '' ? [] : [Buffer.from(input)], { objectMode: false }),
    stdout: stdout.stream,
    stderr: stderr.stream,
    exitCode: undefined,
    exit: ((code = commandProcess.exitCode) => exitCode.resolve(Number(code ?? 0))) as NodeJS.Process['exit'],
  });
  const work = () =>
    runningCommand.run(commandProcess, () => runCommandLine(args)).then(() => Number(commandProcess.exitCode ?? 0));
  const code = await Promise.race([runInFolder(cwd, work), exitCode.promise]);
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

const originalFolder = process.cwd();

/** The working folder belongs to the whole process, so a command that sets its own runs alone. */
async function runInFolder<Result>(folder: string | undefined, work: () => Promise<Result>): Promise<Result> {
  assert.equal(process.cwd(), originalFolder, 'a command that sets its own working folder must run alone');
  if (folder === undefined) return work();
  process.chdir(folder);
  try {
    return await work();
  } finally {
    process.chdir(originalFolder);
  }
}

function collectOutput(isTTY: boolean): { stream: Writable; text: () => string } {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream: Object.assign(stream, { isTTY }), text: () => Buffer.concat(chunks).toString() };
}
