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

/** Source of a secret value, and the hosts that the configuration may send it to. */
export type SecretSource = { name: string; source: string; hosts: string[] };

/** Server with the values of its secrets. No message contains a value. */
export type ReadyServer = ServerFile & { values: { [name: string]: string }; sources: SecretSource[] };

/** Allowed sources of secrets. `named` lists the environment variables that the files may read. */
export type Sources = {
  named: readonly string[];
  more?: ReadonlyMap<string, MoreReferences> | undefined;
};
/** References of a secrets file, and the folder that its paths are relative to. */
export type MoreReferences = { references: SecretReferences; folder: string };

/**
 * Reads the secret values that a server refers to. The author of a configuration also chooses the hosts that receive
 * the values, so a configuration may only read files below its own folder and variables that the command names. A
 * secrets file was chosen by the caller, so it may read any file and variable. Values of sealed fields are written into
 * the configuration.
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
          `the command does not name the variable ${reference.env}, whose value may reach ${hosts.join(', ') || 'no host'}. To allow this, add --env ${reference.env}`,
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

/** Returns a function that lists the hosts a secret may be sent to. Empty for a configuration that cannot be read. */
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
/** Base folder of references. `isBound` allows only files below the folder. */
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
        problem: `the file ${reference.file} is outside the folder of the configuration, which may only read files below it. Move it there, or name it in the --secrets file`,
      };
    // Editors and `echo` end a file with a line break that is not part of the secret.
    const value = readFileSync(path, 'utf8').replace(/\r?\n$/, '');
    return value === '' ? { problem: `the file ${reference.file} is empty` } : { value };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { problem: `the file ${reference.file} cannot be read (${code ?? 'unknown reason'})` };
  }
}

/** Sets a field by its path. Returns false if its parent object does not exist. */
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

/** Reads a secrets file: sources of secrets by slug. @throws AppError invalid */
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
