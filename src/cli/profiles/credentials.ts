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
  /** URL of the service. The stored tokens are sent nowhere else. */
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

/** Stored tokens of a login, or a stored API key. */
export type StoredCredential = z.output<typeof file>['profiles'][string];

const fileIn = (folder: string) => join(folder, 'credentials.json');

/** Path of the lock file, which protects all files of the folder. */
export const lockFileIn = (folder: string) => join(folder, 'credentials.lock');

/** Reads the stored credentials by profile name. @throws AppError that names the file, but none of its contents */
export function readCredentials(folder: string): ReadonlyMap<string, StoredCredential> {
  const path = fileIn(folder);
  const text = readOwnFile(path, othersMayNothing);
  if (text === undefined) return new Map();
  const parsed = file.safeParse(jsonIn(text));
  if (!parsed.success) throw new AppError('invalid', `${path}: is damaged. Remove the file and log in again`);
  return new Map(Object.entries(parsed.data.profiles));
}

/**
 * Validates a credential before it is stored, because an invalid one would make the file unreadable for all profiles.
 * @throws AppError
 */
function storable(credential: StoredCredential): StoredCredential {
  const parsed = ('api_key' in credential ? apiKey : login).safeParse(credential);
  if (parsed.success) return parsed.data;
  const field = parsed.error.issues.flatMap(({ path }) => path).join('.') || 'a field';
  throw new AppError(
    'invalid',
    `${credential.url} returned a login that cannot be stored: ${field} is too long or has invalid characters`,
  );
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Changes a credential: `save` replaces the profile's credential, or removes it if called with undefined. */
type Change<Result> = (
  before: StoredCredential | undefined,
  save: (credential: StoredCredential | undefined) => void,
) => Promise<Result>;

/**
 * Changes the credential of a profile under a lock, so that no other process changes it. Signals are deferred until it
 * is stored, because a refresh token works only once.
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
 * Returns a newer access token than the rejected one: one that another process has already stored, or a new one from
 * the service.
 * @throws AppError unauthenticated if the user has to log in again, unavailable if the service does not respond
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

/** Revokes a login at its service. Does nothing for an API key. @throws AppError if the service did not revoke it */
export async function endStoredLogin(stored: StoredCredential): Promise<void> {
  if ('api_key' in stored || stored.revocation_endpoint === undefined) return;
  await revokeToken(createWebClient(fetch, answerMs), stored.revocation_endpoint, {
    clientId: stored.client_id,
    token: stored.refresh_token ?? stored.access_token,
  });
}
