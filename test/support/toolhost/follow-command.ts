import { once } from 'node:events';
import { beginToolhost } from './toolhost-command.ts';

/** A command that prints records until it is ended. */
export type FollowCommand = {
  /** The lines that it has printed. */
  lines(): string[];
  /** The ids of the records that it has printed as JSON. */
  ids(): string[];
  /** What it has written to standard error. */
  notes(): string;
  /** Presses Ctrl-C. */
  end(): Promise<{ code: number | null; stderr: string }>;
};

export function beginFollowing(args: readonly string[], env: Record<string, string>): FollowCommand {
  const child = beginToolhost([...args, '--follow'], { env });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk));
  const lines = () => stdout.split('\n').slice(0, -1);
  return {
    lines,
    ids: () => lines().map((line) => (JSON.parse(line) as { id: string }).id),
    notes: () => stderr,
    async end() {
      child.kill('SIGINT');
      const [code] = (await once(child, 'close')) as [number | null];
      return { code, stderr };
    },
  };
}
