import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { AppError } from '@toolhost/errors/errors';
import { parseJson } from '@toolhost/json/json';
import { secretNamePattern } from '@toolhost/tool-config/http/placeholders';
import { getTokenOrigins } from '@toolhost/tool-config/oauth';
import { configSecrets, normalizeConfig, serverConfigSchema } from '@toolhost/tool-config/server-config';
import type { SecretReference } from '@toolhost/tool-config/server-file';
import { createSecretOriginResolver } from '@toolhost/tool-config/server-wide';
import {
  type ConfigFields,
  checkReferences,
  type FileProblem,
  findLiteralSecrets,
  formatLiteralMessage,
  isInside,
  readConfigFile,
  type SecretReferences,
  type ServerFile,
} from './server-files.ts';

/** Source of a secret value, and the hosts that the configuration may send it to. */
export type SecretSource = { name: string; source: string; hosts: string[] };

/** Server with the values of its secrets. Messages must not contain them. */
export type ReadyServer = ServerFile & { values: { [name: string]: string }; sources: SecretSource[] };

/** Allowed sources of secrets. `allowedVariables` lists the environment variables that the files may read. */
export type Sources = {
  allowedVariables: readonly string[];
  secretsFile?: ReadonlyMap<string, SecretsFileReferences> | undefined;
};
/** References of a secrets file, and the folder that its paths are relative to. */
export type SecretsFileReferences = { references: SecretReferences; folder: string };

/**
 * Reads the secret values that a server refers to. The author of a configuration also chooses the hosts that receive
 * the values, so a configuration may only read files below its own folder and variables that the command names. The user
 * of the command chose the secrets file, so it may read any file and variable. Values of sealed fields are written into
 * the configuration.
 */
export function readSecrets(
  server: ServerFile,
  { allowedVariables, secretsFile }: Sources,
): { ready: ReadyServer; problems: FileProblem[] } {
  const problems = findLiteralSecrets(server.config).map((path) => ({
    at: server.at,
    path,
    message: formatLiteralMessage(path),
  }));
  const config = parseJson(JSON.stringify(server.config)) as ConfigFields;
  const values: { [name: string]: string } = {};
  const sources: SecretSource[] = [];
  const getHosts = createHostLookup(config);
  const fileReferences = secretsFile?.get(server.slug);
  const configBase = { folder: dirname(server.file), isConfined: true };
  const referenceGroups: [SecretReferences, ReferenceBase][] = [[server.secrets, configBase]];
  if (fileReferences)
    referenceGroups.push([fileReferences.references, { folder: fileReferences.folder, isConfined: false }]);
  for (const [references, base] of referenceGroups) {
    for (const [name, reference] of Object.entries(references)) {
      if (reference === 'stored') continue;
      const addProblem = (message: string) => problems.push({ at: server.at, path: `secrets.${name}`, message });
      const hosts = getHosts(name);
      const source = 'env' in reference ? `the variable ${reference.env}` : `the file ${reference.file}`;
      sources.push({ name, source, hosts });
      if (base.isConfined && 'env' in reference && !allowedVariables.includes(reference.env)) {
        addProblem(
          `the command does not name the variable ${reference.env}, whose value may reach ${hosts.join(', ') || 'no host'}. To allow this, add --env ${reference.env}`,
        );
        continue;
      }
      const result = readSecret(reference, base);
      if ('problem' in result) addProblem(result.problem);
      else if (secretNamePattern.test(name)) values[name] = result.value;
      else if (!setField(config, name, result.value)) addProblem('the configuration has no such field');
    }
  }
  return { ready: { ...server, config, values, sources }, problems };
}

/** Returns a function that lists the hosts a secret may be sent to; none if the configuration is not valid. */
function createHostLookup(config: ConfigFields): (name: string) => string[] {
  const parsed = serverConfigSchema.safeParse(normalizeConfig(config));
  if (!parsed.success) return () => [];
  const { oauth } = parsed.data;
  const getOrigins = createSecretOriginResolver(parsed.data);
  return (name) => {
    const origins = name === configSecrets.clientSecret && oauth ? getTokenOrigins(oauth) : getOrigins(name);
    return [...new Set(origins.map((origin) => origin.replace(/^https?:\/\//, '')))];
  };
}

type SecretValue = { value: string } | { problem: string };
/** Base folder of references. `isConfined` allows only files below the folder. */
type ReferenceBase = { folder: string; isConfined: boolean };

function readSecret(reference: Exclude<SecretReference, 'stored'>, { folder, isConfined }: ReferenceBase): SecretValue {
  if ('env' in reference) {
    const value = process.env[reference.env];
    return value === undefined || value === ''
      ? { problem: `the environment variable ${reference.env} is not set` }
      : { value };
  }
  try {
    const path = resolve(folder, reference.file);
    if (isConfined && !isInside(folder, path))
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
  const lastKey = keys.pop() as string;
  let target: unknown = config;
  for (const key of keys) target = isContainer(target) && Object.hasOwn(target, key) ? target[key] : undefined;
  if (!isContainer(target)) return false;
  target[lastKey] = value;
  return true;
}

function isContainer(value: unknown): value is ConfigFields {
  return typeof value === 'object' && value !== null;
}

/** Reads a secrets file: sources of secrets by slug. @throws AppError invalid */
export async function readSecretsFile(file: string): Promise<Map<string, SecretsFileReferences>> {
  const content = await readConfigFile(file);
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw new AppError('invalid', `${file}: allowed: slugs, each with the sources of its secrets`);
  const entries = Object.entries(content);
  const problems = entries.flatMap(([slug, section]) => checkReferences(section, slug));
  if (problems.length > 0) throw new AppError('invalid', `${file}: has sources that cannot be used`, { problems });
  const folder = dirname(file);
  return new Map(entries.map(([slug, references]) => [slug, { references: references as SecretReferences, folder }]));
}
