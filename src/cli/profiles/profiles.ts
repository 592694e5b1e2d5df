import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { AppError, messageOf } from '../../errors.ts';
import { serviceAddress } from '../../setting-addresses.ts';
import { othersMayRead, readOwnFile, writeOwnFile } from './private-file.ts';
import { isProfileName, profileAdvice, urlAdvice } from './profile-names.ts';

/** The profiles of a person, each the address of a service, and the one that is used unless another is named. */
export type Profiles = { current: string | undefined; urls: ReadonlyMap<string, string> };

const fileOf = (folder: string) => join(folder, 'config.yaml');

/** @throws AppError that names the file */
export function readProfiles(folder: string): Profiles {
  const path = fileOf(folder);
  const text = readOwnFile(path, othersMayRead);
  if (text === undefined) return { current: undefined, urls: new Map() };
  const { profile, profiles } = objectIn(path, text);
  const urls = new Map<string, string>();
  for (const [name, value] of Object.entries(asObject(profiles) ?? {})) {
    const { url } = asObject(value) ?? {};
    if (!isProfileName(name))
      throw new AppError('invalid', `${path}: profiles: found ${JSON.stringify(name)}; ${profileAdvice}`);
    const address = typeof url === 'string' ? serviceAddress(url) : undefined;
    if (address === undefined) throw new AppError('invalid', `${path}: profiles.${name}.url: ${urlAdvice}`);
    urls.set(name, address);
  }
  if (profile !== undefined && typeof profile !== 'string')
    throw new AppError('invalid', `${path}: profile: allowed: the name of a profile`);
  return { current: profile, urls };
}

/** Changes the profiles and keeps everything else in the file. @throws AppError */
export function writeProfiles(folder: string, { current, urls }: Profiles): void {
  const path = fileOf(folder);
  const text = readOwnFile(path, othersMayRead);
  const { profile: _profile, profiles: before, ...more } = text === undefined ? {} : objectIn(path, text);
  const profiles = Object.fromEntries(
    [...urls].map(([name, url]) => [name, { ...asObject(asObject(before)?.[name]), url }]),
  );
  writeOwnFile(path, stringify({ ...(current !== undefined && { profile: current }), profiles, ...more }));
}

type Fields = { [field: string]: unknown };

function objectIn(path: string, text: string): Fields {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw new AppError('invalid', `${path}: is not YAML: ${messageOf(error).split('\n', 1)[0]}`);
  }
  const object = asObject(value ?? {});
  if (!object) throw new AppError('invalid', `${path}: allowed: an object with profile and profiles`);
  return object;
}

function asObject(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}
