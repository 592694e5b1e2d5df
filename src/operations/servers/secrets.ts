import { z } from 'zod';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { originsOfSecrets } from '../../domain/config/server-wide.ts';
import { secretNamePattern } from '../../domain/http/placeholders.ts';
import { nearestOrAll, newGuesses } from '../../domain/problems/did-you-mean.ts';
import { AppError } from '../../errors.ts';
import { findSecrets, removeSecret } from '../../store/servers/secrets.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { type Context, operation } from '../operation.ts';
import { getServer, isoTime, isUnchanged, slugInput, time, unchangedShape } from '../shapes.ts';
import { forEachSecretUse } from './secret-uses.ts';
import { mostSecrets, secretNameInput, secretValueInput, storeSecret } from './store-secret.ts';
import { noteChange } from './store-server.ts';

/** Limits of one secret. */
const mostUses = 100;
const mostOrigins = 50;

const secretRecord = z.object({
  name: z.string(),
  origins: z
    .array(z.string())
    .max(mostOrigins)
    .describe('The only origins that the value is sent to: those of the server when it was set. At most the first 50.'),
  used_by: z.array(z.string()).max(mostUses).describe('Where the configuration refers to it, at first.'),
  updated_at: time,
});

/** Where a configuration refers to each of its secrets. */
async function usesIn(config: ServerConfig): Promise<ReadonlyMap<string, string[]>> {
  const uses = new Map<string, string[]>();
  await forEachSecretUse(config, config.tools, ({ path, names }, tool) => {
    const where = tool ? `${tool.name}: ${shownPath(path)}` : path;
    for (const name of names) {
      const known = uses.get(name);
      if (!known) uses.set(name, [where]);
      else if (known.length < mostUses) known.push(where);
    }
  });
  return uses;
}

/** A header is known by its name. */
function shownPath(path: string): string {
  return path.replace(/^headers\./, '');
}

const setSecret = operation({
  name: 'setSecret',
  summary: 'Store a secret of a hosted server, or replace its value',
  description:
    'The value fills {{NAME}}. It goes only to the hosts that the tools of the server call now, and to the token endpoint that it is for.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput, name: secretNameInput, value: secretValueInput }),
  output: secretRecord.extend({ unchanged: unchangedShape }),
  async run(context, { slug, name, value }) {
    const server = await getServer(context, slug);
    const origins = originsOfSecrets(server.config)(name);
    const used_by = (await usesIn(server.config)).get(name) ?? [];
    const record = { name, origins: origins.slice(0, mostOrigins), used_by };
    const { updatedAt, isUnchanged: isSame } = await storeSecret(context, server, name, value);
    if (isSame) return { ...record, updated_at: isoTime(updatedAt), unchanged: true as const };
    await noteChange(context, server);
    return { ...record, updated_at: isoTime(updatedAt) };
  },
  isUnchanged,
  audit: ({ slug, name }, { origins }) => ({ target: slug, detail: { name, origins } }),
});

const deleteSecret = operation({
  name: 'deleteSecret',
  summary: 'Delete a secret of a hosted server',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: true,
  input: z.strictObject({ slug: slugInput, name: secretNameInput }),
  output: z.object({ deleted: z.string() }),
  async run(context, { slug, name }) {
    const server = await getServer(context, slug);
    if (!(await removeSecret(context.db, server, name))) throw await unknownSecret(context, server, name);
    await noteChange(context, server);
    return { deleted: name };
  },
  audit: ({ slug, name }) => ({ target: slug, detail: { name } }),
});

async function unknownSecret({ db }: Context, server: StoredServer, name: string): Promise<AppError> {
  const names = (await findSecrets(db, server)).map((secret) => secret.name).filter((stored) => isSecretName(stored));
  return new AppError('notFound', `the server has no secret ${name}${nearestOrAll(name, names, newGuesses())}`);
}

/** Whether a stored value is a secret. Credentials of a configuration are stored with it, under names no secret can have. */
function isSecretName(name: string): boolean {
  return secretNamePattern.test(name);
}

const listSecrets = operation({
  name: 'listSecrets',
  summary: 'List the names of the secrets of a hosted server; values are never shown',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({ secrets: z.array(secretRecord).max(mostSecrets) }),
  async run(context, { slug }) {
    const server = await getServer(context, slug);
    const secrets = (await findSecrets(context.db, server)).filter(({ name }) => isSecretName(name));
    const uses = await usesIn(server.config);
    return {
      secrets: secrets.slice(0, mostSecrets).map(({ name, origins, updatedAt }) => ({
        name,
        origins: origins.slice(0, mostOrigins),
        used_by: uses.get(name) ?? [],
        updated_at: isoTime(updatedAt),
      })),
    };
  },
});

export const secretOperations = { setSecret, deleteSecret, listSecrets };
