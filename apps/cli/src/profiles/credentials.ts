import { join } from 'node:path';
import { AppError } from '@toolhost/errors/errors';
import { createWebClient } from '@toolhost/mcp-doctor/web';
import { apiPath, programName } from '@toolhost/server/command-line';
import { z } from 'zod';
import { writeFileAtomically } from '../atomic-file.ts';
import { LoginExpiredError, requestTokens, revokeToken } from '../login/authorization-server.ts';
import { accessibleByOthers, readPrivateFile, withLock } from './private-files.ts';

const tokenSchema = z.string().regex(/^[\x21-\x7e]{1,16384}$/);

const loginSchema = z.object({
  /** URL of the service. The stored tokens are sent nowhere else. */
  url: z.string(),
  issuer: z.string(),
  client_id: tokenSchema,
  token_endpoint: z.string(),
  revocation_endpoint: z.string().optional(),
  access_token: tokenSchema,
  refresh_token: tokenSchema.optional(),
  scope: z.string().optional(),
});
const apiKeySchema = z.object({ url: z.string(), api_key: tokenSchema });
const fileSchema = z.object({ profiles: z.record(z.string(), z.union([loginSchema, apiKeySchema])) });

/** Stored tokens of a login, or a stored API key. */
export type StoredCredential = z.output<typeof fileSchema>['profiles'][string];

const getCredentialsPath = (folder: string) => join(folder, 'credentials.json');

/** Returns the path of the lock file, which protects all files of the folder. */
export const getLockPath = (folder: string) => join(folder, 'credentials.lock');

/** Reads the stored credentials by profile name. @throws AppError that names the file, but none of its contents */
export function readCredentials(folder: string): ReadonlyMap<string, StoredCredential> {
  const path = getCredentialsPath(folder);
  const text = readPrivateFile(path, accessibleByOthers);
  if (text === undefined) return new Map();
  const parsed = fileSchema.safeParse(tryParseJson(text));
  if (!parsed.success) throw new AppError('invalid', `${path}: is damaged. Remove the file and log in again`);
  return new Map(Object.entries(parsed.data.profiles));
}

/**
 * Validates a credential before it is stored, because an invalid one would make the file unreadable for all profiles.
 * @throws AppError
 */
function validateForStorage(credential: StoredCredential): StoredCredential {
  const parsed = ('api_key' in credential ? apiKeySchema : loginSchema).safeParse(credential);
  if (parsed.success) return parsed.data;
  const field = parsed.error.issues.flatMap(({ path }) => path).join('.') || 'a field';
  throw new AppError(
    'invalid',
    `${credential.url} returned a login that cannot be stored: ${field} is too long or has invalid characters`,
  );
}

function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Changes a credential. `save` replaces it, or removes it if called with undefined. */
type CredentialChange<Result> = (
  current: StoredCredential | undefined,
  save: (credential: StoredCredential | undefined) => void,
) => Promise<Result>;

/**
 * Changes the credential of a profile under a lock, so that no other process changes it. Signals are deferred until the
 * new credential is stored, because a refresh token works only once.
 * @throws AppError
 */
export function changeCredential<Result>(
  folder: string,
  profile: string,
  change: CredentialChange<Result>,
): Promise<Result> {
  return withLock(getLockPath(folder), () => {
    const credentials = new Map(readCredentials(folder));
    return change(credentials.get(profile), (credential) => {
      if (credential) credentials.set(profile, validateForStorage(credential));
      else credentials.delete(profile);
      const json = JSON.stringify({ profiles: Object.fromEntries(credentials) }, undefined, 2);
      writeFileAtomically(getCredentialsPath(folder), `${json}\n`, 0o600);
    });
  });
}

const requestTimeoutMs = 30_000;

/**
 * Returns a newer access token than the rejected one: one that another process has already stored, or a new one from
 * the service.
 * @throws AppError unauthenticated if the user has to log in again, unavailable if the service does not respond
 */
export function renewLogin(folder: string, profile: string, rejectedToken: string): Promise<string> {
  return changeCredential(folder, profile, async (current, save) => {
    if (!current || 'api_key' in current) throw createLoginEndedError(profile);
    if (current.access_token !== rejectedToken) return current.access_token;
    if (current.refresh_token === undefined) throw createLoginEndedError(profile);
    const tokens = await requestTokens(createWebClient(fetch, requestTimeoutMs), current.token_endpoint, {
      grant_type: 'refresh_token',
      refresh_token: current.refresh_token,
      client_id: current.client_id,
      resource: current.url + apiPath,
    }).catch((error: unknown) => {
      throw error instanceof LoginExpiredError ? createLoginEndedError(profile) : error;
    });
    const { accessToken, refreshToken = current.refresh_token, scope = current.scope } = tokens;
    save({ ...current, access_token: accessToken, refresh_token: refreshToken, scope });
    return accessToken;
  });
}

function createLoginEndedError(profile: string): AppError {
  return new AppError(
    'unauthenticated',
    `the login of the profile "${profile}" has ended; log in again with: ${programName} login --profile ${profile}`,
  );
}

/** Revokes a login at its service. Does nothing for an API key. @throws AppError if the service did not revoke it */
export async function revokeStoredLogin(stored: StoredCredential): Promise<void> {
  if ('api_key' in stored || stored.revocation_endpoint === undefined) return;
  await revokeToken(createWebClient(fetch, requestTimeoutMs), stored.revocation_endpoint, {
    clientId: stored.client_id,
    token: stored.refresh_token ?? stored.access_token,
  });
}
