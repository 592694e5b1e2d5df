import type { Command } from 'commander';
import { AppError } from '../../errors.ts';
import { programName } from '../../version.ts';
import { jsonOption } from '../connection/connection.ts';
import { print, printJson, table } from '../print/print.ts';
import { configFolder } from '../profiles/config-folder.ts';
import type { StoredCredential } from '../profiles/credentials.ts';
import type { Profiles } from '../profiles/profiles.ts';

type Options = { json?: true };

export function addProfiles(program: Command): void {
  const profiles = program
    .command('profiles')
    .description('list and switch the services that you are logged in to')
    .addHelpText(
      'after',
      `
Options count more than the environment, and the environment more than the profile.
The profiles are in config.yaml, and their tokens in credentials.json, in the
folder ~/.config/toolhost (below XDG_CONFIG_HOME; on Windows below APPDATA).

Examples:
  toolhost profiles
  toolhost profiles use work
  TOOLHOST_PROFILE=work toolhost servers list`,
    );
  profiles
    .command('list', { isDefault: true })
    .description('list the profiles; a * marks the one in use')
    .addOption(jsonOption())
    .action(list);
  profiles
    .command('use')
    .description('make a profile the current one')
    .argument('<profile>', 'name of the profile')
    .addOption(jsonOption())
    .action(use);
  profiles
    .command('remove')
    .description('forget a profile that is logged out')
    .argument('<profile>', 'name of the profile')
    .addOption(jsonOption())
    .action(remove);
}

async function readAll() {
  const [{ readProfiles, writeProfiles }, { lockFileIn, readCredentials }, { profileInUse, urlOfProfile }, lock] =
    await Promise.all([
      import('../profiles/profiles.ts'),
      import('../profiles/credentials.ts'),
      import('../profiles/profile-in-use.ts'),
      import('../profiles/lock.ts'),
    ]);
  const folder = configFolder(process.env, process.platform);
  const profiles = readProfiles(folder);
  return {
    profiles,
    credentials: readCredentials(folder),
    inUse: profileInUse(undefined, process.env, profiles),
    urlOf: (name: string) => urlOfProfile(profiles, name),
    /** Changes the profiles as they are now, while no other command does. */
    change: (next: (now: Profiles) => Profiles) =>
      lock.whileLocked(lockFileIn(folder), async () => writeProfiles(folder, next(readProfiles(folder)))),
  };
}

function kindOf(credential: StoredCredential | undefined, url: string): 'login' | 'api_key' | 'none' {
  if (credential?.url !== url) return 'none';
  return 'api_key' in credential ? 'api_key' : 'login';
}

async function list({ json }: Options): Promise<void> {
  const { profiles, credentials, inUse } = await readAll();
  const shown = [...profiles.urls].map(([name, url]) => ({
    name,
    url,
    credential: kindOf(credentials.get(name), url),
    in_use: name === inUse,
  }));
  if (json) return printJson({ profiles: shown });
  if (shown.length === 0) return print(`There are no profiles yet; log in with: ${programName} login URL`);
  const texts = { login: 'logged in', api_key: 'API key', none: 'logged out' };
  const rows = shown.map((one) => [one.in_use ? '*' : '', one.name, one.url, texts[one.credential]]);
  print(table(['', 'PROFILE', 'URL', 'LOGIN'], rows));
}

async function use(name: string, { json }: Options): Promise<void> {
  const { urlOf, change } = await readAll();
  const url = urlOf(name);
  await change(({ urls }) => ({ current: name, urls }));
  if (json) printJson({ profile: name, url });
  else print(`The profile ${name} is used from now on: ${url}`);
}

async function remove(name: string, { json }: Options): Promise<void> {
  const { credentials, urlOf, change } = await readAll();
  const url = urlOf(name);
  if (kindOf(credentials.get(name), url) !== 'none')
    throw new AppError('conflict', `log out first: ${programName} logout --profile ${name}`);
  await change(({ current, urls }) => ({
    current: current === name ? undefined : current,
    urls: new Map([...urls].filter(([other]) => other !== name)),
  }));
  if (json) printJson({ profile: name, url });
  else print(`The profile ${name} is removed.`);
}
