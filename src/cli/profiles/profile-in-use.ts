import { AppError } from '../../errors.ts';
import { programName } from '../../version.ts';
import { isProfileName, profileAdvice } from './profile-names.ts';
import type { Profiles } from './profiles.ts';

/** Name of the profile to use: of the option, the environment or the file. @throws AppError invalid */
export function profileInUse(
  option: string | undefined,
  env: NodeJS.ProcessEnv,
  { current }: Profiles,
): string | undefined {
  const name = option ?? (env.TOOLHOST_PROFILE?.trim() || current);
  if (name === undefined || isProfileName(name)) return name;
  const source = option !== undefined ? '--profile' : name === current ? 'profile' : 'TOOLHOST_PROFILE';
  throw new AppError('invalid', `${source}: found ${JSON.stringify(name)}; ${profileAdvice}`);
}

/** The address of a profile that must exist. @throws AppError notFound */
export function urlOfProfile({ urls }: Profiles, name: string): string {
  const url = urls.get(name);
  if (url !== undefined) return url;
  const known = urls.size === 0 ? 'there are none yet' : `there are ${[...urls.keys()].join(', ')}`;
  throw new AppError(
    'notFound',
    `there is no profile "${name}"; ${known}; make it with: ${programName} login URL --profile ${name}`,
  );
}
