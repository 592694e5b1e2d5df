import { join } from 'node:path';
import { z } from 'zod';
import { createWebClient } from '../../doctor/web.ts';
import { AppError } from '../../errors.ts';
import { apiPath } from '../../routes.ts';
import { programName } from '../../version.ts';
import { askTokens, LoginEnded, revokeToken } from '../login/authorization-server.ts';
import { writeWholeFile } from '../whole-file.ts';
import { othersMayNothing, readOwnFile, whileLocked } from './own-files.ts';

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
const file = z.object({ profiles: z.record(z.string(), z.union([login, apiKey])) });

/** The tokens of a login, or an API key. */
export type StoredCredential = z.output<typeof file>['profiles'][string];

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
 * Changes the credential of a profile while no other process does; a signal waits until it is stored, because a refresh
 * token is good for one use.
 * @throws AppError
 */
export function changeCredential<Result>(folder: string, profile: string, change: Change<Result>): Promise<Result> {
  return whileLocked(lockFileIn(folder), () => {
    const all = new Map(readCredentials(folder));
    return change(all.get(profile), (credential) => {
      if (credential) all.set(profile, storable(credential));
      else all.delete(profile);
      const text = JSON.stringify({ profiles: Object.fromEntries(all) }, undefined, 2);
      writeWholeFile(fileIn(folder), `${text}\n`, 0o600);
    });
  });
}

const answerMs = 30_000;

/**
 * A newer access token than the refused one, from another process that renewed it meanwhile or from the service.
 * @throws AppError unauthenticated when a person has to log in again, unavailable when the service does not answer
 */
export function renewLogin(folder: string, profile: string, refused: string): Promise<string> {
  return changeCredential(folder, profile, async (before, save) => {
    if (!before || 'api_key' in before) throw ended(profile);
    if (before.access_token !== refused) return before.access_token;
    if (before.refresh_token === undefined) throw ended(profile);
    const tokens = await askTokens(createWebClient(fetch, answerMs), before.token_endpoint, {
      grant_type: 'refresh_token',
      refresh_token: before.refresh_token,
      client_id: before.client_id,
      resource: before.url + apiPath,
    }).catch((error: unknown) => {
      throw error instanceof LoginEnded ? ended(profile) : error;
    });
    const { accessToken, refreshToken = before.refresh_token, scope = before.scope } = tokens;
    save({ ...before, access_token: accessToken, refresh_token: refreshToken, scope });
    return accessToken;
  });
}

function ended(profile: string): AppError {
  return new AppError(
    'unauthenticated',
    `the login of the profile "${profile}" has ended; log in again with: ${programName} login --profile ${profile}`,
  );
}

/** Ends a login at its service. An API key stays as it is. @throws AppError when the service did not do it */
export async function endStoredLogin(stored: StoredCredential): Promise<void> {
  if ('api_key' in stored || stored.revocation_endpoint === undefined) return;
  await revokeToken(createWebClient(fetch, answerMs), stored.revocation_endpoint, {
    clientId: stored.client_id,
    token: stored.refresh_token ?? stored.access_token,
  });
}
