import { once } from 'node:events';
import { signInLocalUser } from '../oauth/signed-in-agent.ts';
import { type CommandOptions, type CommandResult, spawnToolhost } from './toolhost-command.ts';

/** A running `toolhost login`, which waits for a person. */
export type LoginCommand = {
  /** Address that it prints. Rejects when the command exits first. */
  address: Promise<string>;
  /** Types a line. */
  pasteLine(line: string): void;
  /** Returns its standard error so far. */
  stderrText(): string;
  ended: Promise<CommandResult>;
};

export function startLogin(args: readonly string[], options: CommandOptions = {}): LoginCommand {
  const child = spawnToolhost(['login', ...args], options);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk;
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }));
  const address = new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
      const address = /^ {2}(https?:\S+)$/m.exec(stderr)?.[1];
      if (address) resolve(address);
    });
    void ended.then((end) =>
      reject(new Error(`the command exited before it printed an address: ${end.code} ${end.stderr}`)),
    );
  });
  address.catch(() => undefined);
  return { address, pasteLine: (line) => void child.stdin.write(`${line}\n`), stderrText: () => stderr, ended };
}

/** Logs in the person of local mode, with a browser on the same machine. */
export async function logInWithCommand(args: readonly string[], options: CommandOptions): Promise<CommandResult> {
  const login = startLogin(args, options);
  await fetch(await signInLocalUser(await login.address));
  return login.ended;
}
