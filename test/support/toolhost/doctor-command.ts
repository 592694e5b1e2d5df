import assert from 'node:assert/strict';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Check, ClientVerdict } from '../../../src/doctor/checks.ts';
import { beginToolhost, toolhost } from './toolhost-command.ts';

type Report = { healthy: boolean; checks: Check[]; clients: ClientVerdict[] };
export type Examined = Report & { code: number | null; stderr: string };

/** A busy machine may exceed the default of 10 s. A timeout that a test passes comes last and wins. */
const patient = ['--timeout', '300'];

/** Runs `toolhost doctor --json` and returns its report. */
export async function examine(url: string, token?: string, ...more: string[]): Promise<Examined> {
  const env = token === undefined ? {} : { TOOLHOST_TOKEN: token };
  const { code, stdout, stderr } = await toolhost(['doctor', url, '--json', ...patient, ...more], { env });
  return { code, stderr, ...(JSON.parse(stdout) as Report) };
}

/**
 * Runs `toolhost doctor --json` with a login that `person` finishes, from the printed address to the loopback address.
 */
export async function examineWithLogin(
  url: string,
  person: (address: string) => Promise<string | URL> = redirectOf,
  ...more: string[]
): Promise<Examined> {
  const child = beginToolhost(['doctor', url, '--json', '--login', ...patient, ...more], {});
  const ended = once(child, 'close') as Promise<[number | null]>;
  const stdout = text(child.stdout);
  let stderr = '';
  const address = new Promise<string>((resolve) => {
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
      const shown = /^ {2}(https?:\S+)$/m.exec(stderr)?.[1];
      if (shown) resolve(shown);
    });
  });
  const shown = await Promise.race([address, ended.then(() => undefined)]);
  if (shown !== undefined) await fetch(await person(shown));
  const [code] = await ended;
  return { code, stderr, ...(JSON.parse(await stdout) as Report) };
}

async function redirectOf(address: string): Promise<string> {
  const { headers } = await fetch(address, { redirect: 'manual' });
  return headers.get('location') ?? assert.fail('no redirect');
}
