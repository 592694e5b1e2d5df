import { AppError } from '../../errors.ts';
import { programName } from '../../version.ts';
import { configFolder } from '../profiles/config-folder.ts';
import type { ConnectionOptions, ServiceConnection, ServiceCredential } from './connection.ts';
import { environmentUrl, namedUrl } from './environment-url.ts';
import type { ConnectedClient } from './rest-client.ts';

/** Connects a command with its service. @throws AppError without a credential or with an unusable setting */
export async function connect(options: ConnectionOptions, env: NodeJS.ProcessEnv): Promise<ConnectedClient> {
  const connection = await connectionOf(options, env);
  const { createRestClient } = await import('./rest-client.ts');
  return createRestClient(connection);
}

/**
 * Options count more than the environment, and the environment more than the profile. A key that is given goes to the
 * address that is given, and the credential of a profile only to the address of the profile.
 */
export async function connectionOf(options: ConnectionOptions, env: NodeJS.ProcessEnv): Promise<ServiceConnection> {
  if (options.profile !== undefined) return connectionOfProfile(options.profile, options, env);
  const key = (options.key ?? env.TOOLHOST_API_KEY ?? '').trim();
  if (key !== '') return { url: options.url ?? environmentUrl(env), credential: keyCredential(key) };
  const { readProfiles } = await import('../profiles/profiles.ts');
  const { profileInUse } = await import('../profiles/profile-in-use.ts');
  const name = profileInUse(undefined, env, readProfiles(configFolder(env, process.platform)));
  if (name === undefined) throw noCredential();
  const url = options.url ?? namedUrl(env);
  return connectionOfProfile(name, url === undefined ? {} : { url }, env);
}

function noCredential(): AppError {
  return new AppError(
    'unauthenticated',
    `no API key: set TOOLHOST_API_KEY or give --key; make one with: ${programName} keys create --name me --scopes manage,call; or log in with: ${programName} login URL`,
  );
}

function keyCredential(key: string): ServiceCredential {
  // Checked here, because the runtime's message about such a header would repeat the key.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new AppError('unauthenticated', 'the API key has characters that no key has');
  return { token: key };
}

async function connectionOfProfile(
  name: string,
  { url: given, key }: { url?: string; key?: string },
  env: NodeJS.ProcessEnv,
): Promise<ServiceConnection> {
  const [{ readProfiles }, { urlOfProfile }, { readCredentials }] = await Promise.all([
    import('../profiles/profiles.ts'),
    import('../profiles/profile-in-use.ts'),
    import('../profiles/credentials.ts'),
  ]);
  const folder = configFolder(env, process.platform);
  const url = urlOfProfile(readProfiles(folder), name);
  if (key !== undefined) return { url: given ?? url, credential: keyCredential(key.trim()) };
  if (given !== undefined && given !== url)
    throw new AppError(
      'unauthenticated',
      `no API key for ${given}: the profile "${name}" is for ${url}, and nothing of it is sent elsewhere; log in with: ${programName} login ${given}`,
    );
  const stored = readCredentials(folder).get(name);
  if (stored?.url !== url)
    throw new AppError(
      'unauthenticated',
      `the profile "${name}" has no login at ${url}; log in with: ${programName} login --profile ${name}`,
    );
  if ('api_key' in stored) return { url, credential: { token: stored.api_key } };
  const { renewLogin } = await import('../profiles/renew-login.ts');
  return {
    url,
    credential: { token: stored.access_token, renew: (refused) => renewLogin(folder, name, refused) },
  };
}
