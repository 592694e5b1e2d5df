import { hostname } from 'node:os';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { isSafeUrl } from '../../doctor/checks.ts';
import { createWebClient, type WebClient } from '../../doctor/web.ts';
import { AppError, messageOf } from '../../errors.ts';
import { apiPath } from '../../routes.ts';
import { programName } from '../../version.ts';
import { jsonOption, profileOption, serviceUrl } from '../connection/connection.ts';
import { environmentUrl, namedUrl } from '../connection/environment-url.ts';
import { note, print, printJson } from '../print/print.ts';
import { configFolder } from '../profiles/config-folder.ts';
import type { StoredCredential } from '../profiles/credentials.ts';
import type { Profiles } from '../profiles/profiles.ts';

type Options = { profile?: string; browser: boolean; readOnly?: true; withKey?: true; json?: true };

const answerMs = 30_000;

export function addLogin(program: Command): void {
  program
    .command('login')
    .description('log in to a service in the browser, so that its commands need no API key')
    .argument(
      '[url]',
      'address of the service (default: that of the profile, TOOLHOST_URL, BASE_URL or this machine)',
      serviceUrl,
    )
    .addOption(profileOption('name of the profile (default: the one with that address, or a new one)'))
    .option('--no-browser', 'open no browser; the address that the login leads to can be pasted here')
    .option('--read-only', 'ask only for what reads (manage:read)')
    .option('--with-key', 'store an API key from standard input instead of logging in')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
The tokens are kept in a file that only you can read, and go to no other address
than that of their profile. They are renewed by the commands that use them.

Where the browser is on another machine, as over SSH, open the printed address
there. It ends at an address that begins with http://127.0.0.1 and shows nothing:
paste that address here.

Examples:
  toolhost login https://tools.example.com
  toolhost login https://tools.example.com --profile work --no-browser
  toolhost login https://tools.example.com --with-key < key.txt`,
    )
    .action(login);
}

async function login(url: string | undefined, options: Options): Promise<void> {
  const { readProfiles } = await import('../profiles/profiles.ts');
  const folder = configFolder(process.env, process.platform);
  const target = await chosen(url, options, readProfiles(folder));
  const credential = options.withKey ? await givenKey(target.url) : await loggedIn(target, options);
  const before = await store(folder, target, credential);
  if (before) await endLogin(before);
  const scopes = 'scope' in credential ? (credential.scope?.split(' ') ?? []) : undefined;
  if (options.json) printJson({ profile: target.profile, url: target.url, ...(scopes && { scopes }) });
  else
    print(`Logged in to ${target.url}; profile: ${target.profile}${scopes ? `; scopes: ${scopes.join(', ')}` : ''}.`);
}

type Target = { profile: string; url: string };

/** @throws AppError when the address would show tokens to others on the way */
async function chosen(url: string | undefined, { profile }: Options, profiles: Profiles): Promise<Target> {
  const { profileInUse } = await import('../profiles/profile-in-use.ts');
  const inUse = profileInUse(profile, process.env, profiles);
  const own = inUse === undefined ? undefined : profiles.urls.get(inUse);
  const named = profile === undefined ? (namedUrl(process.env) ?? own) : own;
  const address = url ?? named ?? environmentUrl(process.env);
  if (!isSafeUrl(address))
    throw new AppError('invalid', `${address}: tokens could be read on their way; log in with https://`);
  return { profile: profile ?? nameFor(address, profiles, inUse), url: address };
}

/** The profile for an address: the one in use or another one with that address, or a new one. */
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
    throw new AppError('invalid', 'standard input holds no API key; one line of visible characters is expected');
  const { createRestClient } = await import('../connection/rest-client.ts');
  try {
    await createRestClient({ url, credential: { token: key } }).run('listMcpServers', { limit: 1 });
  } catch (error) {
    // A key that may only call is a good one.
    if (!(error instanceof AppError && error.kind === 'forbidden')) throw error;
  }
  return { url, api_key: key };
}

async function loggedIn({ url }: Target, { browser, readOnly }: Options): Promise<StoredCredential> {
  const [{ logIn }, { terminalPerson }] = await Promise.all([
    import('../login/log-in.ts'),
    import('../login/terminal-person.ts'),
  ]);
  const web = createWebClient(fetch, answerMs);
  const target = await discovered(web, url);
  const { clientId, tokens } = await logIn(web, target, {
    clientName: `Toolhost command line on ${hostname()}`,
    scopes: readOnly ? ['manage:read'] : target.scopes,
    person: terminalPerson(browser),
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

/** The login of a service, whose endpoints are all its own. @throws AppError */
async function discovered(web: WebClient, url: string) {
  const { askOrFail, discoverLogin } = await import('../login/discover-login.ts');
  const refusal = await askOrFail(web, `${url}${apiPath}/servers`, { headers: { accept: 'application/json' } });
  if (refusal.status === 421)
    throw new AppError('invalid', `${url} is not the address of that service; its operator sets it with BASE_URL`);
  if (refusal.status !== 401)
    throw new AppError(
      'invalid',
      `${url} answered (${refusal.status}), but not as toolhost does; is the address right? It is that of the service, not of a server`,
    );
  const target = await discoverLogin(web, url + apiPath, refusal);
  const { issuer, authorizationEndpoint, tokenEndpoint, registrationEndpoint, revocationEndpoint = issuer } = target;
  const all = [issuer, authorizationEndpoint, tokenEndpoint, registrationEndpoint, revocationEndpoint];
  const foreign = all.find((address) => !new URL(address).href.startsWith(`${url}/`));
  if (foreign !== undefined) {
    const { origin, pathname } = new URL(foreign);
    throw new AppError(
      'invalid',
      `${url} wants a login at ${origin}${pathname}; a service is its own issuer, so nothing was sent there`,
    );
  }
  return target;
}

/** Stores the credential, and makes its profile the current one. Returns the credential that was there before. */
async function store(folder: string, { profile, url }: Target, credential: StoredCredential) {
  const [{ changeCredential }, { readProfiles, writeProfiles }] = await Promise.all([
    import('../profiles/credentials.ts'),
    import('../profiles/profiles.ts'),
  ]);
  return changeCredential(folder, profile, async (before, save) => {
    save(credential);
    const { urls } = readProfiles(folder);
    writeProfiles(folder, { current: profile, urls: new Map([...urls, [profile, url]]) });
    return before;
  });
}

/** Ends the login that a new one replaces. */
async function endLogin(before: StoredCredential): Promise<void> {
  try {
    const { endStoredLogin } = await import('../profiles/end-login.ts');
    await endStoredLogin(before);
  } catch (error) {
    note(`The login before could not be ended (${messageOf(error)}); end it with: ${programName} logins end`);
  }
}
