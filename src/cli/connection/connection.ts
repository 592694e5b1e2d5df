import { type Command, InvalidArgumentError, Option } from 'commander';
import { AppError } from '../../errors.ts';
import { programName } from '../../version.ts';

/** Address of the service and API key of a command. */
export type ServiceConnection = { url: string; key: string };

export type ConnectionOptions = { url?: string; key?: string };

export function jsonOption(): Option {
  return new Option('--json', 'print JSON for a program to read');
}

/** The options of every command that talks to a running service. */
export function addConnectionOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--url <url>',
        'address of the service (default: TOOLHOST_URL, BASE_URL or http://127.0.0.1:PORT)',
      ).argParser((text) => originOf(text) ?? refuseUrl()),
    )
    .option('--key <key>', 'API key (default: TOOLHOST_API_KEY, which keeps it out of lists of processes)')
    .addOption(jsonOption());
}

const urlAdvice = 'allowed: http:// or https://, a host and a port, without a path';

function refuseUrl(): never {
  throw new InvalidArgumentError(urlAdvice);
}

function originOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, origin, pathname, username } = new URL(text);
  return /^https?:$/.test(protocol) && pathname === '/' && username === '' ? origin : undefined;
}

/** Reads the options, or else the environment. @throws AppError without a key or with an unusable setting */
export function connectionOf(options: ConnectionOptions, env: NodeJS.ProcessEnv): ServiceConnection {
  const key = (options.key ?? env.TOOLHOST_API_KEY ?? '').trim();
  if (key === '') {
    throw new AppError(
      'unauthenticated',
      `no API key: set TOOLHOST_API_KEY or give --key; make one with: ${programName} keys create --name me --scopes manage,call`,
    );
  }
  // Checked here, because the runtime's message about such a header would repeat the key.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new AppError('unauthenticated', 'the API key has characters that no key has');
  return { url: options.url ?? environmentUrl(env), key };
}

/** Address of the service that this environment would start. */
export function environmentUrl(env: NodeJS.ProcessEnv): string {
  for (const name of ['TOOLHOST_URL', 'BASE_URL']) {
    const text = env[name]?.trim();
    if (!text) continue;
    const origin = originOf(text);
    if (origin === undefined)
      throw new AppError('invalid', `${name}: found ${text.replace(/\/\/.*@/, '//…@')}; ${urlAdvice}`);
    return origin;
  }
  return `http://127.0.0.1:${env.PORT?.trim() || '8080'}`;
}
