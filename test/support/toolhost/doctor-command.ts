import assert from 'node:assert/strict';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { Check, ClientVerdict } from '@toolhost/mcp-doctor/checks';
import { runToolhostCommand, spawnToolhost } from './toolhost-command.ts';

type DoctorReport = { healthy: boolean; checks: Check[]; clients: ClientVerdict[] };
export type DoctorResult = DoctorReport & { code: number | null; stderr: string };

/** A busy machine may exceed the default of 10 s. A timeout that a test passes comes last and wins. */
const generousTimeout = ['--timeout', '300'];

/** Runs `toolhost doctor --json` and returns its report. */
export async function runDoctor(url: string, token?: string, ...more: string[]): Promise<DoctorResult> {
  const env = token === undefined ? {} : { TOOLHOST_TOKEN: token };
  const { code, stdout, stderr } = await runToolhostCommand(['doctor', url, '--json', ...generousTimeout, ...more], {
    env,
  });
  return { code, stderr, ...(JSON.parse(stdout) as DoctorReport) };
}

/**
 * Runs `toolhost doctor --json` with a login that `person` finishes, from the printed address to the loopback address.
 */
export async function runDoctorWithLogin(
  url: string,
  person: (address: string) => Promise<string | URL> = fetchRedirect,
  ...more: string[]
): Promise<DoctorResult> {
  const child = spawnToolhost(['doctor', url, '--json', '--login', ...generousTimeout, ...more], {});
  const ended = once(child, 'close') as Promise<[number | null]>;
  const stdout = text(child.stdout);
  let stderr = '';
  const printedAddress = new Promise<string>((resolve) => {
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk;
      const shown = /^ {2}(https?:\S+)$/m.exec(stderr)?.[1];
      if (shown) resolve(shown);
    });
  });
  const loginAddress = await Promise.race([printedAddress, ended.then(() => undefined)]);
  if (loginAddress !== undefined) await fetch(await person(loginAddress));
  const [code] = await ended;
  return { code, stderr, ...(JSON.parse(await stdout) as DoctorReport) };
}

async function fetchRedirect(address: string): Promise<string> {
  const { headers } = await fetch(address, { redirect: 'manual' });
  return headers.get('location') ?? assert.fail('no redirect');
}
