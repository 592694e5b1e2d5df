import type { Command } from 'commander';
import { AppError, messageOf } from '../../errors.ts';
import { programName } from '../../version.ts';
import { jsonOption, profileOption } from '../connection/connection.ts';
import { print, printJson } from '../print/print.ts';
import { configFolder } from '../profiles/config-folder.ts';

type Options = { profile?: string; local?: true; json?: true };

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
    .action(logout);
}

async function logout({ profile: option, local, json }: Options): Promise<void> {
  const [{ readProfiles }, { profileInUse, urlOfProfile }, { changeCredential }, { endStoredLogin }] =
    await Promise.all([
      import('../profiles/profiles.ts'),
      import('../profiles/profile-in-use.ts'),
      import('../profiles/credentials.ts'),
      import('../profiles/end-login.ts'),
    ]);
  const folder = configFolder(process.env, process.platform);
  const profiles = readProfiles(folder);
  const profile = profileInUse(option, process.env, profiles);
  if (profile === undefined) throw new AppError('notFound', 'there is no profile, so there is no login to end');
  const url = urlOfProfile(profiles, profile);
  await changeCredential(folder, profile, async (before, save) => {
    if (!before) throw new AppError('notFound', `the profile "${profile}" has no login`);
    if (!local) await endStoredLogin(before).catch(failed(profile));
    save(undefined);
  });
  if (json) printJson({ profile, url });
  else print(`Logged out of ${url}; profile: ${profile}.`);
}

function failed(profile: string) {
  return (error: unknown): never => {
    throw new AppError(
      'unavailable',
      `${messageOf(error)}; nothing was removed. Try again, or remove the tokens only here: ${programName} logout --profile ${profile} --local`,
    );
  };
}
