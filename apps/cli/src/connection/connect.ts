import { AppError } from '@toolhost/errors/errors';
import { loadOperator, type Operator, parseServiceUrl, programName } from '@toolhost/server/command-line';
import type { Input, OperationName, Output } from '@toolhost/server/operations';
import { type ConnectionOptions, serviceUrlRule } from '../options.ts';
import { printMessage } from '../print.ts';
import { type ConnectedClient, createRestClient, getServiceTime, type ServiceConnection } from './rest-client.ts';

/** Connects to the service that the options, the environment, or a profile names. @throws AppError */
export async function connect(options: ConnectionOptions): Promise<ConnectedClient> {
  return createRestClient(await resolveConnection(options));
}

/**
 * Finds the service URL and the credential. Options take precedence over the environment, and the environment over the
 * profile. An explicit key is sent to the explicit URL. The credential of a profile is only sent to the profile's URL.
 */
export async function resolveConnection(options: ConnectionOptions): Promise<ServiceConnection> {
  if (options.profile !== undefined) return resolveProfileConnection(options.profile, options);
  const key = (options.key ?? process.env.TOOLHOST_API_KEY ?? '').trim();
  if (key !== '') return { url: options.url ?? getServiceUrl(), credential: toKeyCredential(key) };
  const { getConfigFolder, resolveProfile, readProfiles } = await import('../profiles/profiles.ts');
  const name = resolveProfile(undefined, readProfiles(getConfigFolder()));
  if (name === undefined)
    throw new AppError(
      'unauthenticated',
      `no API key. Set TOOLHOST_API_KEY or pass --key (create a key with: ${programName} keys create --name cli --scopes manage,call), or log in with: ${programName} login URL`,
    );
  const url = options.url ?? getUrlFromEnvironment();
  return resolveProfileConnection(name, url === undefined ? {} : { url });
}

function toKeyCredential(key: string): ServiceConnection['credential'] {
  // The message of `fetch` about an invalid header would repeat the key.
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new AppError(
      'unauthenticated',
      'the API key has characters that a key cannot have. Copy it again, without spaces and line breaks',
    );
  return { token: key };
}

async function resolveProfileConnection(
  name: string,
  { url: urlOption, key }: { url?: string; key?: string },
): Promise<ServiceConnection> {
  const { getConfigFolder, readProfiles, getProfileUrl } = await import('../profiles/profiles.ts');
  const folder = getConfigFolder();
  const url = getProfileUrl(readProfiles(folder), name);
  if (key !== undefined) return { url: urlOption ?? url, credential: toKeyCredential(key.trim()) };
  if (urlOption !== undefined && urlOption !== url)
    throw new AppError(
      'unauthenticated',
      `no API key for ${urlOption}. The profile "${name}" is for ${url}, and its credential is not sent elsewhere. Log in with: ${programName} login ${urlOption}`,
    );
  const { readCredentials, renewLogin } = await import('../profiles/credentials.ts');
  const stored = readCredentials(folder).get(name);
  if (stored?.url !== url)
    throw new AppError(
      'unauthenticated',
      `the profile "${name}" has no login at ${url}. Log in with: ${programName} login --profile ${name}`,
    );
  if ('api_key' in stored) return { url, credential: { token: stored.api_key } };
  return {
    url,
    credential: { token: stored.access_token, renewToken: (rejectedToken) => renewLogin(folder, name, rejectedToken) },
  };
}

/** Returns the service URL from the environment, or undefined if none is set. @throws AppError invalid */
export function getUrlFromEnvironment(): string | undefined {
  for (const name of ['TOOLHOST_URL', 'BASE_URL']) {
    const text = process.env[name]?.trim();
    if (!text) continue;
    const url = parseServiceUrl(text);
    // The user name and the password of the URL are not repeated.
    if (url === undefined)
      throw new AppError('invalid', `${name}: found ${text.replace(/\/\/.*@/, '//…@')}; ${serviceUrlRule}`);
    return url;
  }
  return undefined;
}

/** Returns the URL of the service that this environment would start. @throws AppError invalid */
export function getServiceUrl(): string {
  return getUrlFromEnvironment() ?? getOwnServiceUrl();
}

/** Returns the URL at which the service of this environment listens, without the path of BASE_URL. */
export function getOwnServiceUrl(): string {
  return `http://127.0.0.1:${process.env.PORT?.trim() || '8080'}`;
}

/** Options of a command that uses a service if one is named, and otherwise the database directly. */
export type TargetOptions = ConnectionOptions & { workspace?: string };
type TargetOperation = Parameters<Operator['run']>[0];

/** Target of operator commands: a service, or the database directly. */
export type OperatorTarget = {
  run<Name extends TargetOperation>(name: Name, input: Input<Name>): Promise<Output<Name>>;
  /** Time of the service or the database in epoch ms. */
  now(): Promise<number>;
  /** Location of the database, for messages; undefined for a service. */
  database: string | undefined;
  /** URL of the service; for the database, of the service that this environment would start. */
  url: string;
};

/**
 * Opens the target, runs `work` with it, and closes it. `createsDatabase` creates a missing database, for a command that
 * may run before the first start of the service.
 */
export async function withTarget(
  options: TargetOptions,
  work: (target: OperatorTarget) => Promise<void>,
  createsDatabase = false,
): Promise<void> {
  const { url, key, profile, workspace } = options;
  if ((url ?? key ?? profile) !== undefined) return work(await createServiceTarget(options));
  // Read first: an invalid setting would otherwise fail after a key was created and before it is shown.
  const serviceUrl = getServiceUrl();
  const { openOperator } = await loadOperator();
  const operator = await openOperator(process.env, { ...(workspace !== undefined && { workspace }), createsDatabase });
  if (operator.isNew)
    printMessage(`created a new database ${operator.database}; start the service with the same DATA_DIR`);
  try {
    await work({ ...operator, url: serviceUrl, now: async () => operator.now() });
  } finally {
    await operator.close();
  }
}

async function createServiceTarget(options: TargetOptions): Promise<OperatorTarget> {
  if (options.workspace !== undefined)
    throw new AppError(
      'invalid',
      '--workspace only works directly on the database; on a service, the credential selects the workspace',
    );
  const client = await connect(options);
  return {
    run(name, input) {
      if (name === 'setWorkspaceLimits' || name === 'setWorkspaceQuotas')
        throw new AppError(
          'forbidden',
          'workspace limits and quotas are set by the operator, directly on the database. Omit --url, --key, and --profile',
        );
      return client.run(name as OperationName, input as never) as Promise<Output<typeof name>>;
    },
    now: () => getServiceTime(client.url),
    database: undefined,
    url: client.url,
  };
}
