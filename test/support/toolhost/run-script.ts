import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

/** Ends what hangs; far longer than any script takes on a busy machine. */
const limitMs = 10 * 60_000;

/** The environment of a child that knows nothing of this machine's user and leaves its files in `home`. */
export function environmentIn(home: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    TMPDIR: home,
    XDG_CACHE_HOME: home,
    XDG_CONFIG_HOME: home,
    // Programs that open a browser open nothing.
    BROWSER: 'true',
    // The same large programs start again and again.
    NODE_COMPILE_CACHE: home,
  };
}

/** `onLine` sees each line of either output as it comes; when what it began fails, so does the run. */
export type RunOptions = { env?: Record<string, string>; onLine?: (line: string) => Promise<void> | undefined };

/** Runs a script on this Node, in `home` and without input; resolves when it has ended and its output is read. */
export async function runScript(
  script: string,
  args: readonly string[],
  home: string,
  { env = {}, onLine = () => undefined }: RunOptions = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [script, ...args], {
    cwd: home,
    env: { ...environmentIn(home), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: limitMs,
    killSignal: 'SIGKILL',
  });
  const begun: Promise<void>[] = [];
  const watch = (line: string) => {
    const work = onLine(line);
    if (!work) return;
    begun.push(work);
    work.catch(() => child.kill('SIGKILL'));
  };
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', watch);
  const [[code, signal], stdout, stderr] = await Promise.all([
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  await Promise.all(begun);
  return { code, signal, stdout, stderr };
}

/** The details of a failed run for the test's report. */
export function transcript({ code, signal, stdout, stderr }: Ended): string {
  return `exit ${code ?? signal}\n--- stdout\n${stdout}\n--- stderr\n${stderr}`;
}
