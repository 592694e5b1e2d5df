import { hostname } from 'node:os';
import { text } from 'node:stream/consumers';
import { isSafeUrl } from '../../doctor/checks.ts';
import { createWebClient, type WebClient } from '../../doctor/web.ts';
import { AppError, messageOf } from '../../errors.ts';
import { apiPath } from '../../routes.ts';
import { programName } from '../../version.ts';
import { environmentUrl, namedUrl } from '../connection/connect.ts';
import { createRestClient } from '../connection/rest-client.ts';
import { askOrFail, discoverLogin } from '../login/authorization-server.ts';
import { logIn } from '../login/log-in.ts';
import type { JsonOption } from '../options.ts';
import { note, print, printJson, tableOf } from '../print.ts';
import {
  changeCredential,
  endStoredLogin,
  lockFileIn,
  readCredentials,
  type StoredCredential,
} from '../profiles/credentials.ts';
import { whileLocked } from '../profiles/own-files.ts';
import {
  configFolder,
  type Profiles,
  profileInUse,
  readProfiles,
  urlOfProfile,
  writeProfiles,
} from '../profiles/profiles.ts';

export type LoginOptions = JsonOption & { profile?: string; browser: boolean; readOnly?: true; withKey?: true };
export type LogoutOptions = JsonOption & { profile?: string; local?: true };
export type ProfilesOptions = JsonOption;

const answerMs = 30_000;

export async function login(url: string | undefined, options: LoginOptions): Promise<void> {
  const folder = configFolder();
  const target = chosen(url, options, readProfiles(folder));
  const credential = options.withKey ? await givenKey(target.url) : await loggedIn(target, options);
  const before = await store(folder, target, credential);
  if (before) await endLogin(before);
  const scopes = 'scope' in credential ? (credential.scope?.split(' ') ?? []) : undefined;
  if (options.json) printJson({ profile: target.profile, url: target.url, ...(scopes && { scopes }) });
  else
    print(`Logged in to ${target.url}; profile: ${target.profile}${scopes ? `; scopes: ${scopes.join(', ')}` : ''}.`);
}

type Target = { profile: string; url: string };

/** Chooses the service and the profile. @throws AppError if the URL would expose tokens on the network */
function chosen(url: string | undefined, { profile }: LoginOptions, profiles: Profiles): Target {
  const inUse = profileInUse(profile, profiles);
  const own = inUse === undefined ? undefined : profiles.urls.get(inUse);
  const named = profile === undefined ? (namedUrl() ?? own) : own;
  const address = url ?? named ?? environmentUrl();
  if (!isSafeUrl(address)) throw new AppError('invalid', `${address}: tokens could be intercepted. Use https://`);
  return { profile: profile ?? nameFor(address, profiles, inUse), url: address };
}

/** Returns the profile for a URL: the one in use, another one with that URL, or a new one. */
function nameFor(url: string, { urls }: Profiles, inUse: string | undefined): string {
  if (inUse !== undefined && (urls.get(inUse) ?? url) === url) return inUse;
  const known = [...urls].find(([, address]) => address === url);
  if (known) return known[0];
  return urls.has('default')
    ? url
        .replace(/^https?:\/\//, '')
        .replaceAll(/[^a-z0-9._-]/gi, '-')
        .toLowerCase()
        .replace(/^-+/, '')
    : 'default';
}

async function givenKey(url: string): Promise<StoredCredential> {
  const key = (await text(process.stdin)).trim();
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

async function loggedIn({ url }: Target, { browser, readOnly }: LoginOptions): Promise<StoredCredential> {
  const web = createWebClient(fetch, answerMs);
  const target = await discovered(web, url);
  const { clientId, tokens } = await logIn(web, target, {
    clientName: `Toolhost command line on ${hostname()}`,
    scopes: readOnly ? ['manage:read'] : target.scopes,
    opensBrowser: browser,
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
async function discovered(web: WebClient, url: string) {
  const refusal = await askOrFail(web, `${url}${apiPath}/servers`, { headers: { accept: 'application/json' } });
  if (refusal.status === 421)
    throw new AppError('invalid', `${url} is not the URL of that service. Its operator sets the URL with BASE_URL`);
  if (refusal.status !== 401)
    throw new AppError(
      'invalid',
      `${url} responded with ${refusal.status}, but not like toolhost. Check the URL: it must be the URL of the service, not of a server`,
    );
  const target = await discoverLogin(web, url + apiPath, refusal);
  const { issuer, authorizationEndpoint, tokenEndpoint, registrationEndpoint, revocationEndpoint = issuer } = target;
  const all = [issuer, authorizationEndpoint, tokenEndpoint, registrationEndpoint, revocationEndpoint];
  const foreign = all.find((address) => !new URL(address).href.startsWith(`${url}/`));
  if (foreign !== undefined) {
    const { origin, pathname } = new URL(foreign);
    throw new AppError(
      'invalid',
      `${url} requests a login at ${origin}${pathname}. A service must be its own issuer, so nothing was sent there`,
    );
  }
  return target;
}

/** Stores the credential and makes its profile the current one. Returns the previous credential. */
function store(folder: string, { profile, url }: Target, credential: StoredCredential) {
  return changeCredential(folder, profile, async (before, save) => {
    save(credential);
    const { urls } = readProfiles(folder);
    writeProfiles(folder, { current: profile, urls: new Map([...urls, [profile, url]]) });
    return before;
  });
}

/** Revokes the login that a new one replaces. */
async function endLogin(before: StoredCredential): Promise<void> {
  try {
    await endStoredLogin(before);
  } catch (error) {
    note(`The previous login could not be ended (${messageOf(error)}). End it with: ${programName} logins end`);
  }
}

export async function logout({ profile: option, local, json }: LogoutOptions): Promise<void> {
  const folder = configFolder();
  const profiles = readProfiles(folder);
  const profile = profileInUse(option, profiles);
  if (profile === undefined) throw new AppError('notFound', 'there is no profile, so there is no login to end');
  const url = urlOfProfile(profiles, profile);
  await changeCredential(folder, profile, async (before, save) => {
    if (!before) throw new AppError('notFound', `the profile "${profile}" has no login`);
    if (!local)
      await endStoredLogin(before).catch((error: unknown) => {
        throw new AppError(
          'unavailable',
          `${messageOf(error)}. Nothing was removed. Retry, or only remove the local tokens: ${programName} logout --profile ${profile} --local`,
        );
      });
    save(undefined);
  });
  if (json) printJson({ profile, url });
  else print(`Logged out of ${url}; profile: ${profile}.`);
}

function kindOf(credential: StoredCredential | undefined, url: string): 'login' | 'api_key' | 'none' {
  if (credential?.url !== url) return 'none';
  return 'api_key' in credential ? 'api_key' : 'login';
}

export async function listProfiles({ json }: ProfilesOptions): Promise<void> {
  const folder = configFolder();
  const profiles = readProfiles(folder);
  const credentials = readCredentials(folder);
  const inUse = profileInUse(undefined, profiles);
  const shown = [...profiles.urls].map(([name, url]) => ({
    name,
    url,
    credential: kindOf(credentials.get(name), url),
    in_use: name === inUse,
  }));
  if (json) return printJson({ profiles: shown });
  if (shown.length === 0) return print(`There are no profiles yet. Log in with: ${programName} login URL`);
  const texts = { login: 'logged in', api_key: 'API key', none: 'logged out' };
  print(
    tableOf(shown, {
      '': ({ in_use }) => (in_use ? '*' : ''),
      profile: 'name',
      url: 'url',
      login: ({ credential }) => texts[credential],
    }),
  );
}

/** Changes the profiles under a lock, so that no other command changes them. */
function change(folder: string, next: (now: Profiles) => Profiles): Promise<void> {
  return whileLocked(lockFileIn(folder), async () => writeProfiles(folder, next(readProfiles(folder))));
}

export async function useProfile(name: string, { json }: ProfilesOptions): Promise<void> {
  const folder = configFolder();
  const url = urlOfProfile(readProfiles(folder), name);
  await change(folder, ({ urls }) => ({ current: name, urls }));
  if (json) printJson({ profile: name, url });
  else print(`Now using the profile ${name}: ${url}`);
}

export async function removeProfile(name: string, { json }: ProfilesOptions): Promise<void> {
  const folder = configFolder();
  const url = urlOfProfile(readProfiles(folder), name);
  if (kindOf(readCredentials(folder).get(name), url) !== 'none')
    throw new AppError('conflict', `log out first: ${programName} logout --profile ${name}`);
  await change(folder, ({ current, urls }) => ({
    current: current === name ? undefined : current,
    urls: new Map([...urls].filter(([other]) => other !== name)),
  }));
  if (json) printJson({ profile: name, url });
  else print(`Removed the profile ${name}.`);
}
