import { once } from 'node:events';
import { signInPerson } from '../oauth/signed-in-agent.ts';
import { beginToolhost, type CommandOptions, type Ended } from './toolhost-command.ts';

/** A running `toolhost login`, which waits for a person. */
export type LoginCommand = {
  /** Address that it prints. Rejects when the command exits first. */
  address: Promise<string>;
  /** Types a line. */
  paste(line: string): void;
  /** Returns its standard error so far. */
  notes(): string;
  ended: Promise<Ended>;
};

export function beginLogin(args: readonly string[], options: CommandOptions = {}): LoginCommand {
  const child = beginToolhost(['login', ...args], options);
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk;
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }));
  const address = new Promise<string>((resolve, reject) => {
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
      const shown = /^ {2}(https?:\S+)$/m.exec(stderr)?.[1];
      if (shown) resolve(shown);
    });
    void ended.then((end) =>
      reject(new Error(`the command exited before it printed an address: ${end.code} ${end.stderr}`)),
    );
  });
  address.catch(() => undefined);
  return { address, paste: (line) => void child.stdin.write(`${line}\n`), notes: () => stderr, ended };
}

/** Logs in the person of local mode, with a browser on the same machine. */
export async function logInWithCommand(args: readonly string[], options: CommandOptions): Promise<Ended> {
  const login = beginLogin(args, options);
  await fetch(await signInPerson(await login.address));
  return login.ended;
}
