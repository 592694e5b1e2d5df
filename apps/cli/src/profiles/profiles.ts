import { homedir } from 'node:os';
import { join } from 'node:path';
import { AppError } from '@toolhost/errors/errors';
import { parseServiceUrl, programName } from '@toolhost/server/command-line';
import { parse, stringify } from 'yaml';
import { writeFileAtomically } from '../atomic-file.ts';
import { createSyntaxError } from '../file-errors.ts';
import { isValidProfileName, profileNameRule, serviceUrlRule } from '../options.ts';
import { readPrivateFile, writableByOthers } from './private-files.ts';

/** Profiles of a user, each with a service URL, and the current profile, which is the default. */
export type Profiles = { current: string | undefined; urls: ReadonlyMap<string, string> };

const getProfilesPath = (folder: string) => join(folder, 'config.yaml');

/** Reads the profiles. @throws AppError that names the file */
export function readProfiles(folder: string): Profiles {
  const path = getProfilesPath(folder);
  const text = readPrivateFile(path, writableByOthers);
  if (text === undefined) return { current: undefined, urls: new Map() };
  const { profile, profiles } = parseObject(path, text);
  const urls = new Map<string, string>();
  for (const [name, value] of Object.entries(asObject(profiles) ?? {})) {
    const { url } = asObject(value) ?? {};
    if (!isValidProfileName(name))
      throw new AppError('invalid', `${path}: profiles: found ${JSON.stringify(name)}; ${profileNameRule}`);
    const serviceUrl = typeof url === 'string' ? parseServiceUrl(url) : undefined;
    if (serviceUrl === undefined) throw new AppError('invalid', `${path}: profiles.${name}.url: ${serviceUrlRule}`);
    urls.set(name, serviceUrl);
  }
  if (profile !== undefined && typeof profile !== 'string')
    throw new AppError('invalid', `${path}: profile: allowed: the name of a profile`);
  return { current: profile, urls };
}

/** Writes the profiles and preserves everything else in the file. @throws AppError */
export function writeProfiles(folder: string, { current, urls }: Profiles): void {
  const path = getProfilesPath(folder);
  const text = readPrivateFile(path, writableByOthers);
  const {
    profile: _profile,
    profiles: previousProfiles,
    ...otherFields
  } = text === undefined ? {} : parseObject(path, text);
  const profiles = Object.fromEntries(
    [...urls].map(([name, url]) => [name, { ...asObject(asObject(previousProfiles)?.[name]), url }]),
  );
  const content = { ...(current !== undefined && { profile: current }), profiles, ...otherFields };
  writeFileAtomically(path, stringify(content), 0o600);
}

type Fields = { [field: string]: unknown };

function parseObject(path: string, text: string): Fields {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw createSyntaxError(path, 'YAML', error);
  }
  const object = asObject(value ?? {});
  if (!object) throw new AppError('invalid', `${path}: allowed: an object with profile and profiles`);
  return object;
}

function asObject(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

/**
 * Returns the settings folder of this program: below `XDG_CONFIG_HOME`, `APPDATA` on Windows, or `~/.config`. On macOS,
 * command-line programs use `~/.config`, too.
 */
export function getConfigFolder(): string {
  const { env, platform } = process;
  if (env.XDG_CONFIG_HOME) return join(env.XDG_CONFIG_HOME, 'toolhost');
  if (platform === 'win32' && env.APPDATA) return join(env.APPDATA, 'toolhost');
  return join(env.HOME || homedir(), '.config', 'toolhost');
}

/** Returns the name of the profile to use, from the option, the environment, or the file. @throws AppError invalid */
export function resolveProfile(option: string | undefined, { current }: Profiles): string | undefined {
  const name = option ?? (process.env.TOOLHOST_PROFILE?.trim() || current);
  if (name === undefined || isValidProfileName(name)) return name;
  const defaultSource = name === current ? 'profile' : 'TOOLHOST_PROFILE';
  const source = option === undefined ? defaultSource : '--profile';
  throw new AppError('invalid', `${source}: found ${JSON.stringify(name)}; ${profileNameRule}`);
}

/** Returns the service URL of an existing profile. @throws AppError notFound */
export function getProfileUrl({ urls }: Profiles, name: string): string {
  const url = urls.get(name);
  if (url !== undefined) return url;
  const existing = urls.size === 0 ? 'there are none yet' : `existing profiles: ${[...urls.keys()].join(', ')}`;
  throw new AppError(
    'notFound',
    `there is no profile "${name}" (${existing}). Create it with: ${programName} login URL --profile ${name}`,
  );
}
