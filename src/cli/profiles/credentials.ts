import { join } from 'node:path';
import { z } from 'zod';
import { AppError } from '../../errors.ts';
import { whileLocked } from './lock.ts';
import { othersMayNothing, readOwnFile, replacementOf } from './private-file.ts';

const token = z.string().regex(/^[\x21-\x7e]{1,16384}$/);

const login = z.object({
  /** Origin of the service. What is stored here is sent to no other. */
  url: z.string(),
  issuer: z.string(),
  client_id: token,
  token_endpoint: z.string(),
  revocation_endpoint: z.string().optional(),
  access_token: token,
  refresh_token: token.optional(),
  scope: z.string().optional(),
});
const apiKey = z.object({ url: z.string(), api_key: token });
const stored = z.union([login, apiKey]);
const file = z.object({ profiles: z.record(z.string(), stored) });

/** The tokens of a login, or an API key. */
export type StoredCredential = z.output<typeof stored>;

const fileIn = (folder: string) => join(folder, 'credentials.json');

/** The lock of everything in the folder. */
export const lockFileIn = (folder: string) => join(folder, 'credentials.lock');

/** Stored credentials by the name of their profile. @throws AppError that names the file, and nothing that it holds */
export function readCredentials(folder: string): ReadonlyMap<string, StoredCredential> {
  const path = fileIn(folder);
  const text = readOwnFile(path, othersMayNothing);
  if (text === undefined) return new Map();
  const parsed = file.safeParse(jsonIn(text));
  if (!parsed.success) throw new AppError('invalid', `${path}: is damaged; remove the file, and log in again`);
  return new Map(Object.entries(parsed.data.profiles));
}

/** A credential that can be read again; with another one the file would be damaged for all profiles. @throws AppError */
function storable(credential: StoredCredential): StoredCredential {
  const parsed = ('api_key' in credential ? apiKey : login).safeParse(credential);
  if (parsed.success) return parsed.data;
  const field = parsed.error.issues.flatMap(({ path }) => path).join('.') || 'a field';
  throw new AppError(
    'invalid',
    `${credential.url} gave a login that cannot be stored: ${field} is too long, or not visible characters`,
  );
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `save` has the credential stored instead of the one of the profile, or removes that one. */
type Change<Result> = (
  before: StoredCredential | undefined,
  save: (credential: StoredCredential | undefined) => void,
) => Promise<Result>;

/**
 * Changes the credential of a profile while no other process does. That a new one can be stored is certain before
 * `change` asks for it, and a signal waits until it is stored: a refresh token is good for one use.
 * @throws AppError
 */
export function changeCredential<Result>(folder: string, profile: string, change: Change<Result>): Promise<Result> {
  const replace = async () => {
    const all = new Map(readCredentials(folder));
    const replacement = replacementOf(fileIn(folder), expectedBytes(all));
    try {
      return await change(all.get(profile), (credential) => {
        if (credential) all.set(profile, storable(credential));
        else all.delete(profile);
        replacement.write(`${JSON.stringify({ profiles: Object.fromEntries(all) }, undefined, 2)}\n`);
      });
    } finally {
      replacement.discard();
    }
  };
  return whileLocked(lockFileIn(folder), () => whileSignalsWait(replace));
}

/** For the tokens of a profile that has none yet. */
const usualBytes = 16_384;

function expectedBytes(all: ReadonlyMap<string, StoredCredential>): number {
  return JSON.stringify([...all]).length + usualBytes;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Has signals that end the process wait until `work` has ended. The listeners stay until the next work: the system may
 * have given a signal to a thread of the process that has not run since, and without a listener that signal would be lost.
 */
export async function whileSignalsWait<Result>(work: () => Promise<Result>): Promise<Result> {
  let waiting: NodeJS.Signals | undefined;
  const take = (signal: NodeJS.Signals) => {
    if (!onSignal.isOver) waiting = signal;
    // Listeners that were added later decide themselves, and those before have decided.
    else if (process.listeners(signal).at(-1) === onSignal) end(signal);
  };
  const onSignal = Object.assign(take, { isOver: false });
  const end = (signal: NodeJS.Signals) => {
    for (const each of signals) process.off(each, onSignal);
    process.kill(process.pid, signal);
  };
  for (const signal of signals) {
    const before = process.listeners(signal).filter((other) => 'isOver' in other && other.isOver === true);
    process.on(signal, onSignal);
    for (const other of before) process.off(signal, other);
  }
  try {
    return await work();
  } finally {
    onSignal.isOver = true;
    if (waiting) end(waiting);
  }
}
