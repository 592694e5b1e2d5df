import type { Command } from 'commander';
import { createJsonOption, createProfileOption, parseServiceUrlOption } from '../options.ts';
import type { LoginOptions, LogoutOptions, ProfilesOptions } from './login.ts';

export function addLogin(program: Command): void {
  program
    .command('login')
    .description('log in to a service with the browser, so that commands need no API key')
    .argument(
      '[url]',
      'service URL (default: that of the profile, TOOLHOST_URL, BASE_URL, or this machine)',
      parseServiceUrlOption,
    )
    .addOption(createProfileOption('name of the profile (default: the one with that URL, or a new one)'))
    .option('--no-browser', 'do not open a browser; paste the URL that the login redirects to')
    .option('--read-only', 'request read access only (manage:read)')
    .option('--with-key', 'store an API key from standard input instead of logging in')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
The tokens are stored in a file that only you can read, and are only sent to the
URL of their profile. The commands that use them renew them.

If the browser is on another machine, as with SSH, open the printed URL there.
The login ends at a URL that starts with http://127.0.0.1 and does not load.
Paste that URL here.

Examples:
  toolhost login https://tools.example.com
  toolhost login https://tools.example.com --profile work --no-browser
  toolhost login https://tools.example.com --with-key < key.txt`,
    )
    .action(async (url: string | undefined, options: LoginOptions) => (await import('./login.ts')).login(url, options));
}

export function addLogout(program: Command): void {
  program
    .command('logout')
    .description('end the login of a profile at its service, and remove the local tokens')
    .addOption(createProfileOption())
    .option('--local', 'only remove the local tokens or API key')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
An API key stored by login --with-key is removed locally but stays valid.
Revoke it on the service.

Examples:
  toolhost logout
  toolhost logout --profile work`,
    )
    .action(async (options: LogoutOptions) => (await import('./login.ts')).logout(options));
}

export function addProfiles(program: Command): void {
  const profiles = program
    .command('profiles')
    .description('list and switch the services that you are logged in to')
    .addHelpText(
      'after',
      `
Options take precedence over the environment, and the environment over the profile.
Profiles are stored in config.yaml, and their tokens in credentials.json, in the
folder ~/.config/toolhost (below XDG_CONFIG_HOME; on Windows, below APPDATA).

Examples:
  toolhost profiles
  toolhost profiles use work
  TOOLHOST_PROFILE=work toolhost servers list`,
    );
  profiles
    .command('list', { isDefault: true })
    .description('list the profiles; a * marks the one in use')
    .addOption(createJsonOption())
    .action(async (options: ProfilesOptions) => (await import('./login.ts')).listProfiles(options));
  profiles
    .command('use')
    .description('switch to a profile')
    .argument('<profile>', 'name of the profile')
    .addOption(createJsonOption())
    .action(async (name: string, options: ProfilesOptions) => (await import('./login.ts')).useProfile(name, options));
  profiles
    .command('remove')
    .description('remove a profile that is logged out')
    .argument('<profile>', 'name of the profile')
    .addOption(createJsonOption())
    .action(async (name: string, options: ProfilesOptions) =>
      (await import('./login.ts')).removeProfile(name, options),
    );
}
