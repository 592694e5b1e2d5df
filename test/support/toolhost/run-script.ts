import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

/** Kills a script that hangs. Far longer than any script takes on a busy machine. */
const limitMs = 10 * 60_000;

/** Returns the environment of a child process that cannot see this machine's user and writes its files to `home`. */
export function environmentIn(home: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: home,
    TMPDIR: home,
    XDG_CACHE_HOME: home,
    XDG_CONFIG_HOME: home,
    // Programs that open a browser run `true` instead.
    BROWSER: 'true',
    // Caches compiled code, because the same large programs start repeatedly.
    NODE_COMPILE_CACHE: home,
  };
}

/** `onLine` receives each line of either output as it arrives. If the work that it starts fails, the run fails, too. */
export type RunOptions = { env?: Record<string, string>; onLine?: (line: string) => Promise<void> | undefined };

/**
 * Runs a script on this Node, in `home` and without input. Resolves when the script has exited and its output was read.
 */
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

/** Formats the details of a failed run for the test report. */
export function transcript({ code, signal, stdout, stderr }: Ended): string {
  return `exit ${code ?? signal}\n--- stdout\n${stdout}\n--- stderr\n${stderr}`;
}
