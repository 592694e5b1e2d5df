import { once } from 'node:events';
import { spawnToolhost } from './toolhost-command.ts';

/** A command that prints records until it is stopped. */
export type FollowCommand = {
  /** Returns the lines that it has printed. */
  lines(): string[];
  /** Returns the ids of the records that it has printed as JSON. */
  ids(): string[];
  /** Returns its standard error so far. */
  stderrText(): string;
  /** Stops it like Ctrl-C. */
  end(): Promise<{ code: number | null; stderr: string }>;
};

export function startFollowing(args: readonly string[], env: Record<string, string>): FollowCommand {
  const child = spawnToolhost([...args, '--follow'], { env });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk));
  const lines = () => stdout.split('\n').slice(0, -1);
  return {
    lines,
    ids: () => lines().map((line) => (JSON.parse(line) as { id: string }).id),
    stderrText: () => stderr,
    async end() {
      child.kill('SIGINT');
      const [code] = (await once(child, 'close')) as [number | null];
      return { code, stderr };
    },
  };
}
