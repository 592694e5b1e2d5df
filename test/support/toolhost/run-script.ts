import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

export type ScriptResult = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

/** Kills a script that hangs. Far longer than any script takes on a busy machine. */
const timeoutMs = 10 * 60_000;

/** Returns the environment of a child process that cannot see this machine's user and writes its files to `home`. */
export function buildIsolatedEnvironment(homeFolder: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOME: homeFolder,
    TMPDIR: homeFolder,
    XDG_CACHE_HOME: homeFolder,
    XDG_CONFIG_HOME: homeFolder,
    // Programs that open a browser run `true` instead.
    BROWSER: 'true',
    // Caches compiled code, because the same large programs start repeatedly.
    NODE_COMPILE_CACHE: homeFolder,
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
): Promise<ScriptResult> {
  const child = spawn(process.execPath, [script, ...args], {
    cwd: home,
    env: { ...buildIsolatedEnvironment(home), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  const pendingWork: Promise<void>[] = [];
  const handleLine = (line: string) => {
    const work = onLine(line);
    if (!work) return;
    pendingWork.push(work);
    work.catch(() => child.kill('SIGKILL'));
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', handleLine);
  const [[code, signal], stdout, stderr] = await Promise.all([
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
    text(child.stdout),
    text(child.stderr),
  ]);
  await Promise.all(pendingWork);
  return { code, signal, stdout, stderr };
}

/** Formats the details of a failed run for the test report. */
export function formatTranscript({ code, signal, stdout, stderr }: ScriptResult): string {
  return `exit ${code ?? signal}\n--- stdout\n${stdout}\n--- stderr\n${stderr}`;
}
