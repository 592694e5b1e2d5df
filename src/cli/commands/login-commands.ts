import type { Command } from 'commander';
import { jsonOption, profileOption, serviceUrl } from '../options.ts';
import type { LoginOptions, LogoutOptions, ProfilesOptions } from './login.ts';

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
    .action(async (url: string | undefined, options: LoginOptions) => (await import('./login.ts')).login(url, options));
}

export function addLogout(program: Command): void {
  program
    .command('logout')
    .description('end the login of a profile at its service, and remove its tokens here')
    .addOption(profileOption())
    .option('--local', 'only remove the tokens or the API key here')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
An API key that login --with-key stored is removed here and stays good;
revoke it at the service.

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
    .action(async (options: ProfilesOptions) => (await import('./login.ts')).listProfiles(options));
  profiles
    .command('use')
    .description('make a profile the current one')
    .argument('<profile>', 'name of the profile')
    .addOption(jsonOption())
    .action(async (name: string, options: ProfilesOptions) => (await import('./login.ts')).useProfile(name, options));
  profiles
    .command('remove')
    .description('forget a profile that is logged out')
    .argument('<profile>', 'name of the profile')
    .addOption(jsonOption())
    .action(async (name: string, options: ProfilesOptions) =>
      (await import('./login.ts')).removeProfile(name, options),
    );
}
