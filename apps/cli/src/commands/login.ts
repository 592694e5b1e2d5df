import { hostname } from 'node:os';
import { text as readText } from 'node:stream/consumers';
import { AppError, getErrorMessage } from '@toolhost/errors/errors';
import { isSafeUrl } from '@toolhost/mcp-doctor/checks';
import { createWebClient, type WebClient } from '@toolhost/mcp-doctor/web';
import { apiPath, programName } from '@toolhost/server/command-line';
import { getServiceUrl, getUrlFromEnvironment } from '../connection/connect.ts';
import { createRestClient } from '../connection/rest-client.ts';
import { discoverLogin, fetchOrFail } from '../login/authorization-server.ts';
import { logIn } from '../login/log-in.ts';
import type { JsonOption } from '../options.ts';
import { formatTable, print, printJson, printMessage } from '../print.ts';
import {
  changeCredential,
  getLockPath,
  readCredentials,
  revokeStoredLogin,
  type StoredCredential,
} from '../profiles/credentials.ts';
import { withLock } from '../profiles/private-files.ts';
import {
  getConfigFolder,
  getProfileUrl,
  type Profiles,
  readProfiles,
  resolveProfile,
  writeProfiles,
} from '../profiles/profiles.ts';

export type LoginOptions = JsonOption & { profile?: string; browser: boolean; readOnly?: true; withKey?: true };
export type LogoutOptions = JsonOption & { profile?: string; local?: true };
export type ProfilesOptions = JsonOption;

const requestTimeoutMs = 30_000;

export async function login(url: string | undefined, options: LoginOptions): Promise<void> {
  const folder = getConfigFolder();
  const target = chooseTarget(url, options, readProfiles(folder));
  const credential = options.withKey ? await readKeyFromInput(target.url) : await logInToService(target, options);
  const previous = await storeCredential(folder, target, credential);
  if (previous) await revokePreviousLogin(previous);
  const scopes = 'scope' in credential ? (credential.scope?.split(' ') ?? []) : undefined;
  if (options.json) printJson({ profile: target.profile, url: target.url, ...(scopes && { scopes }) });
  else
    print(`Logged in to ${target.url}; profile: ${target.profile}${scopes ? `; scopes: ${scopes.join(', ')}` : ''}.`);
}

type Target = { profile: string; url: string };

/** Chooses the service and the profile. @throws AppError if the URL would expose tokens on the network */
function chooseTarget(url: string | undefined, { profile }: LoginOptions, profiles: Profiles): Target {
  const activeProfile = resolveProfile(profile, profiles);
  const profileUrl = activeProfile === undefined ? undefined : profiles.urls.get(activeProfile);
  const defaultUrl = profile === undefined ? (getUrlFromEnvironment() ?? profileUrl) : profileUrl;
  const address = url ?? defaultUrl ?? getServiceUrl();
  if (!isSafeUrl(address)) throw new AppError('invalid', `${address}: tokens could be intercepted. Use https://`);
  return { profile: profile ?? getProfileName(address, profiles, activeProfile), url: address };
}

/** Returns the profile for a URL: the active one, another one with that URL, or a new one named after the host. */
function getProfileName(url: string, { urls }: Profiles, activeProfile: string | undefined): string {
  if (activeProfile !== undefined && (urls.get(activeProfile) ?? url) === url) return activeProfile;
  const existing = [...urls].find(([, address]) => address === url);
  if (existing) return existing[0];
  return urls.has('default')
    ? url
        .replace(/^https?:\/\//, '')
        .replaceAll(/[^a-z0-9._-]/gi, '-')
        .toLowerCase()
        .replace(/^-+/, '')
    : 'default';
}

async function readKeyFromInput(url: string): Promise<StoredCredential> {
  const key = (await readText(process.stdin)).trim();
  if (!/^[\x21-\x7e]{1,200}$/.test(key))
    throw new AppError('invalid', 'standard input has no API key; expected one line of visible ASCII characters');
  try {
    await createRestClient({ url, credential: { token: key } }).run('listMcpServers', { limit: 1 });
  } catch (error) {
    // A key without the scope to list servers is valid, too.
    if (!(error instanceof AppError && error.kind === 'forbidden')) throw error;
  }
  return { url, api_key: key };
}

async function logInToService({ url }: Target, { browser, readOnly }: LoginOptions): Promise<StoredCredential> {
  const web = createWebClient(fetch, requestTimeoutMs);
  const target = await discoverServiceLogin(web, url);
  const { clientId, tokens } = await logIn(web, target, {
    clientName: `Toolhost command line on ${hostname()}`,
    scopes: readOnly ? ['manage:read'] : target.scopes,
    shouldOpenBrowser: browser,
  });
  const { accessToken, refreshToken, scope } = tokens;
  return {
    url,
    issuer: target.issuer,
    client_id: clientId,
    token_endpoint: target.tokenEndpoint,
    revocation_endpoint: target.revocationEndpoint,
    access_token: accessToken,
    refresh_token: refreshToken,
    scope,
  };
}

/** Discovers the login of a service. Rejects endpoints outside the service. @throws AppError */
async function discoverServiceLogin(web: WebClient, url: string) {
  const unauthorizedResponse = await fetchOrFail(web, `${url}${apiPath}/servers`, {
    headers: { accept: 'application/json' },
  });
  if (unauthorizedResponse.status === 421)
    throw new AppError('invalid', `${url} is not the URL of that service. Its operator sets the URL with BASE_URL`);
  if (unauthorizedResponse.status !== 401)
    throw new AppError(
      'invalid',
      `${url} responded with ${unauthorizedResponse.status}, but not like toolhost. Check the URL: it must be the URL of the service, not of a server`,
    );
  const target = await discoverLogin(web, url + apiPath, unauthorizedResponse);
  const { issuer, authorizationEndpoint, tokenEndpoint, registrationEndpoint, revocationEndpoint } = target;
  const endpoints = [issuer, authorizationEndpoint, tokenEndpoint, registrationEndpoint, revocationEndpoint];
  const externalUrl = endpoints.find(
    (address) => address !== undefined && !new URL(address).href.startsWith(`${url}/`),
  );
  if (externalUrl !== undefined) {
    const { origin, pathname } = new URL(externalUrl);
    throw new AppError(
      'invalid',
      `${url} requests a login at ${origin}${pathname}. A service must be its own issuer, so nothing was sent there`,
    );
  }
  return target;
}

/** Stores the credential and makes its profile the current one. Returns the previous credential. */
function storeCredential(folder: string, { profile, url }: Target, credential: StoredCredential) {
  return changeCredential(folder, profile, async (previous, save) => {
    save(credential);
    const { urls } = readProfiles(folder);
    writeProfiles(folder, { current: profile, urls: new Map([...urls, [profile, url]]) });
    return previous;
  });
}

async function revokePreviousLogin(previous: StoredCredential): Promise<void> {
  try {
    await revokeStoredLogin(previous);
  } catch (error) {
    printMessage(
      `The previous login could not be ended (${getErrorMessage(error)}). End it with: ${programName} logins end`,
    );
  }
}

export async function logout({ profile: option, local, json }: LogoutOptions): Promise<void> {
  const folder = getConfigFolder();
  const profiles = readProfiles(folder);
  const profile = resolveProfile(option, profiles);
  if (profile === undefined) throw new AppError('notFound', 'there is no profile, so there is no login to end');
  const url = getProfileUrl(profiles, profile);
  await changeCredential(folder, profile, async (current, save) => {
    if (!current) throw new AppError('notFound', `the profile "${profile}" has no login`);
    if (!local)
      await revokeStoredLogin(current).catch((error: unknown) => {
        throw new AppError(
          'unavailable',
          `${getErrorMessage(error)}. Nothing was removed. Retry, or only remove the local tokens: ${programName} logout --profile ${profile} --local`,
        );
      });
    save(undefined);
  });
  if (json) printJson({ profile, url });
  else print(`Logged out of ${url}; profile: ${profile}.`);
}

function getCredentialKind(credential: StoredCredential | undefined, url: string): 'login' | 'api_key' | 'none' {
  if (credential?.url !== url) return 'none';
  return 'api_key' in credential ? 'api_key' : 'login';
}

export async function listProfiles({ json }: ProfilesOptions): Promise<void> {
  const folder = getConfigFolder();
  const profiles = readProfiles(folder);
  const credentials = readCredentials(folder);
  const activeProfile = resolveProfile(undefined, profiles);
  const profileRows = [...profiles.urls].map(([name, url]) => ({
    name,
    url,
    credential: getCredentialKind(credentials.get(name), url),
    in_use: name === activeProfile,
  }));
  if (json) return printJson({ profiles: profileRows });
  if (profileRows.length === 0) return print(`There are no profiles yet. Log in with: ${programName} login URL`);
  const loginLabels = { login: 'logged in', api_key: 'API key', none: 'logged out' };
  print(
    formatTable(profileRows, {
      '': ({ in_use }) => (in_use ? '*' : ''),
      profile: 'name',
      url: 'url',
      login: ({ credential }) => loginLabels[credential],
    }),
  );
}

/** Changes the profiles under a lock, so that no other command changes them. */
function changeProfiles(folder: string, update: (profiles: Profiles) => Profiles): Promise<void> {
  return withLock(getLockPath(folder), async () => writeProfiles(folder, update(readProfiles(folder))));
}

export async function useProfile(name: string, { json }: ProfilesOptions): Promise<void> {
  const folder = getConfigFolder();
  const url = getProfileUrl(readProfiles(folder), name);
  await changeProfiles(folder, ({ urls }) => ({ current: name, urls }));
  if (json) printJson({ profile: name, url });
  else print(`Now using the profile ${name}: ${url}`);
}

export async function removeProfile(name: string, { json }: ProfilesOptions): Promise<void> {
  const folder = getConfigFolder();
  const url = getProfileUrl(readProfiles(folder), name);
  if (getCredentialKind(readCredentials(folder).get(name), url) !== 'none')
    throw new AppError('conflict', `log out first: ${programName} logout --profile ${name}`);
  await changeProfiles(folder, ({ current, urls }) => ({
    current: current === name ? undefined : current,
    urls: new Map([...urls].filter(([profileName]) => profileName !== name)),
  }));
  if (json) printJson({ profile: name, url });
  else print(`Removed the profile ${name}.`);
}
