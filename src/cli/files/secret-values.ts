import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { secretNamePattern } from '../../domain/http/placeholders.ts';
import type { SecretReference } from '../../operations/applying/server-file.ts';
import type { FileProblem } from './read-files.ts';
import {
  type ConfigFields,
  literalMessage,
  literalSecrets,
  type SecretReferences,
  type ServerFile,
} from './server-files.ts';

/** A server with the values of its secrets. The values are in no message. */
export type ReadyServer = ServerFile & { values: { [name: string]: string } };

type Sources = { env: NodeJS.ProcessEnv; more?: ReadonlyMap<string, MoreReferences> | undefined };
/** SecretReferences of a file of secrets, and the folder that its paths are relative to. */
export type MoreReferences = { references: SecretReferences; folder: string };

/** Reads the values that a server refers to. ConfigFields of the configuration that are sealed get theirs written in. */
export function readSecrets(
  server: ServerFile,
  { env, more }: Sources,
): { ready: ReadyServer; problems: FileProblem[] } {
  const problems = literalSecrets(server.config).map((path) => ({
    at: server.at,
    path,
    message: literalMessage(path),
  }));
  const config = structuredClone(server.config);
  const values: { [name: string]: string } = {};
  const extra = more?.get(server.slug);
  const sources: [SecretReferences, string][] = [[server.secrets, dirname(server.file)]];
  if (extra) sources.push([extra.references, extra.folder]);
  for (const [references, folder] of sources) {
    for (const [name, reference] of Object.entries(references)) {
      const found = secretOf(reference, folder, env);
      if ('problem' in found) problems.push({ at: server.at, path: `secrets.${name}`, message: found.problem });
      else if (found.value === undefined) continue;
      else if (secretNamePattern.test(name)) values[name] = found.value;
      else if (!setField(config, name, found.value))
        problems.push({ at: server.at, path: `secrets.${name}`, message: 'the configuration has no such field' });
    }
  }
  return { ready: { ...server, config, values }, problems };
}

type Found = { value: string | undefined } | { problem: string };

function secretOf(reference: SecretReference, folder: string, env: NodeJS.ProcessEnv): Found {
  if (reference === 'stored') return { value: undefined };
  if ('env' in reference) {
    const value = env[reference.env];
    return value === undefined || value === ''
      ? { problem: `the environment variable ${reference.env} is not set` }
      : { value };
  }
  try {
    // Editors and `echo` end a file with a line break that is not part of the secret.
    const value = readFileSync(resolve(folder, reference.file), 'utf8').replace(/\r?\n$/, '');
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
