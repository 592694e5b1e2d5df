import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { configSecrets, forgivingConfig, serverConfigSchema } from '../../domain/config/server-config.ts';
import { originsOfSecrets } from '../../domain/config/server-wide.ts';
import { secretNamePattern } from '../../domain/http/placeholders.ts';
import { parseJson } from '../../domain/json/json.ts';
import { AppError } from '../../errors.ts';
import type { SecretReference } from '../../operations/applying/server-file.ts';
import {
  type ConfigFields,
  type FileProblem,
  isInside,
  literalMessage,
  literalSecrets,
  readConfigFile,
  referenceProblems,
  type SecretReferences,
  type ServerFile,
} from './server-files.ts';

/** Where the value of a secret comes from, and the hosts that the configuration may send it to. */
export type SecretSource = { name: string; source: string; hosts: string[] };

/** A server with the values of its secrets. The values are in no message. */
export type ReadyServer = ServerFile & { values: { [name: string]: string }; sources: SecretSource[] };

/** `named`: the variables that the files may have. */
export type Sources = {
  named: readonly string[];
  more?: ReadonlyMap<string, MoreReferences> | undefined;
};
/** SecretReferences of a file of secrets, and the folder that its paths are relative to. */
export type MoreReferences = { references: SecretReferences; folder: string };

/**
 * Reads the values that a server refers to. Whoever writes a configuration also writes the hosts that get the values, so
 * it has files of its own folder and named variables only. The caller wrote a file of secrets, or chose it: it has all.
 * ConfigFields of the configuration that are sealed get theirs written in.
 */
export function readSecrets(
  server: ServerFile,
  { named, more }: Sources,
): { ready: ReadyServer; problems: FileProblem[] } {
  const problems = literalSecrets(server.config).map((path) => ({
    at: server.at,
    path,
    message: literalMessage(path),
  }));
  const config = parseJson(JSON.stringify(server.config)) as ConfigFields;
  const values: { [name: string]: string } = {};
  const sources: SecretSource[] = [];
  const hostsOf = hostsOfSecrets(config);
  const extra = more?.get(server.slug);
  const own = { folder: dirname(server.file), isBound: true };
  const all: [SecretReferences, Place][] = [[server.secrets, own]];
  if (extra) all.push([extra.references, { folder: extra.folder, isBound: false }]);
  for (const [references, place] of all) {
    for (const [name, reference] of Object.entries(references)) {
      if (reference === 'stored') continue;
      const problem = (message: string) => problems.push({ at: server.at, path: `secrets.${name}`, message });
      const hosts = hostsOf(name);
      const source = 'env' in reference ? `the variable ${reference.env}` : `the file ${reference.file}`;
      sources.push({ name, source, hosts });
      if (place.isBound && 'env' in reference && !named.includes(reference.env)) {
        problem(
          `the variable ${reference.env} is not named by the command; its value may reach ${hosts.join(', ') || 'no host'}; to allow that, add --env ${reference.env}`,
        );
        continue;
      }
      const found = secretOf(reference, place);
      if ('problem' in found) problem(found.problem);
      else if (secretNamePattern.test(name)) values[name] = found.value;
      else if (!setField(config, name, found.value)) problem('the configuration has no such field');
    }
  }
  return { ready: { ...server, config, values, sources }, problems };
}

/** The hosts that each secret of a configuration may be sent to; none where the configuration cannot be read. */
function hostsOfSecrets(config: ConfigFields): (name: string) => string[] {
  const parsed = serverConfigSchema.safeParse(forgivingConfig(config));
  if (!parsed.success) return () => [];
  const { oauth } = parsed.data;
  const originsOf = originsOfSecrets(parsed.data);
  return (name) => {
    const origins = name === configSecrets.clientSecret && oauth ? [oauth.token_url] : originsOf(name);
    return [...new Set(origins.map((origin) => new URL(origin).host))];
  };
}

type Found = { value: string } | { problem: string };
/** What references are read with. `isBound`: only files below the folder. */
type Place = { folder: string; isBound: boolean };

function secretOf(reference: Exclude<SecretReference, 'stored'>, { folder, isBound }: Place): Found {
  if ('env' in reference) {
    const value = process.env[reference.env];
    return value === undefined || value === ''
      ? { problem: `the environment variable ${reference.env} is not set` }
      : { value };
  }
  try {
    const path = resolve(folder, reference.file);
    if (isBound && !isInside(folder, path))
      return {
        problem: `the file ${reference.file} is outside of the folder of the configuration, which may read only files below it; move it there, or name it in a file that --secrets gives`,
      };
    // Editors and `echo` end a file with a line break that is not part of the secret.
    const value = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
    return value === '' ? { problem: `the file ${reference.file} is empty` } : { value };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { problem: `the file ${reference.file} cannot be read (${code ?? 'unknown reason'})` };
  }
}

/** Sets a field by its path. False when the object that would have it does not exist. */
function setField(config: ConfigFields, path: string, value: string): boolean {
  const keys = path.split(/[.[\]]+/);
  const last = keys.pop() as string;
  let found: unknown = config;
  for (const key of keys) found = isDocument(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  if (!isDocument(found)) return false;
  found[last] = value;
  return true;
}

function isDocument(value: unknown): value is ConfigFields {
  return typeof value === 'object' && value !== null;
}

/** Reads a file that has the sources of secrets by slug. @throws AppError invalid */
export async function readSecretFile(file: string): Promise<Map<string, MoreReferences>> {
  const content = await readConfigFile(file);
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw new AppError('invalid', `${file}: allowed: slugs, each with the sources of its secrets`);
  const entries = Object.entries(content);
  const problems = entries.flatMap(([slug, section]) => referenceProblems(section, slug));
  if (problems.length > 0) throw new AppError('invalid', `${file}: has sources that cannot be used`, { problems });
  const folder = dirname(file);
  return new Map(entries.map(([slug, references]) => [slug, { references: references as SecretReferences, folder }]));
}
