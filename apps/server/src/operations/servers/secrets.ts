import { containsOwnCredential } from '@toolhost/credentials/own-credentials';
import { AppError } from '@toolhost/errors/errors';
import { createSuggestionBudget, suggestNearestOrList } from '@toolhost/errors/problems';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { secretNamePattern } from '@toolhost/tool-config/http/placeholders';
import { getPersonalNames } from '@toolhost/tool-config/personal-values';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import {
  createSecretOriginResolver,
  getServerSecretUses,
  getToolSecretUses,
  type SecretUse,
} from '@toolhost/tool-config/server-wide';
import type { Tool } from '@toolhost/tool-config/tool';
import { z } from 'zod';
import { findSecret, findSecrets, removeSecret, type SecretInfo } from '../../store/servers/secrets.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import { isUnchanged, slugInput, time, toIsoTime, unchangedShape } from '../shapes.ts';
import { findRestorable, matchesStoredSecret, publishChange, sealSecrets } from './store-server.ts';

export const secretNameInput = z
  .string()
  .regex(secretNamePattern, 'allowed: a letter or _, then up to 63 letters, digits, and _')
  .describe('NAME of the placeholder {{NAME}}.');

/** Visible text on one line, because secrets are sent in headers. */
export const secretValueInput = z
  .string()
  .min(1)
  .max(8192)
  .regex(/^[\x20-\x7e\x80-\xff]+$/, 'allowed: one line of visible text')
  .refine(
    (value) => !containsOwnCredential(value),
    'contains a Toolhost API key or token, which is never sent to an upstream; store a credential of the upstream',
  )
  .describe('Value of the secret. It is stored sealed and never shown again.');

/** Maximum number of secrets per server. */
export const maxSecrets = 200;

/**
 * Stores a secret for the origins of the server's configuration, unless it is already stored that way.
 * @throws AppError forbidden, conflict
 */
export async function storeSecret(
  context: Context,
  server: StoredServer,
  name: string,
  value: string,
): Promise<{ updatedAt: number; isUnchanged: boolean }> {
  const problem = findNameProblem(server.config, name);
  if (problem !== undefined) throw new AppError('conflict', problem);
  const current = await findSecret(context.db, context.keyring, server, name);
  if (current && matchesStoredSecret(current, server, value))
    return { updatedAt: current.updatedAt, isUnchanged: true };
  if (!current) await refuseTooManySecrets(context, server);
  const updatedAt = context.now();
  await sealSecrets(context, server, new Map([[name, value]]), updatedAt);
  return { updatedAt, isUnchanged: false };
}

/** Returns why a secret cannot have a name, or undefined if it can. */
export function findNameProblem(config: ServerConfig, name: string): string | undefined {
  if (Object.hasOwn(config.variables ?? {}, name))
    return `${name} is a variable of the server, which already defines {{${name}}}; choose another name`;
  return getPersonalNames(config).has(name)
    ? `${name} is not a secret of the server: each person provides {{${name}}} at login, and a stored value never replaces it; choose another name`
    : undefined;
}

/**
 * Returns true if a stored value is a secret. Credentials of a configuration are stored alongside, under names that no
 * secret can have.
 */
const isSecret = ({ name }: SecretInfo) => secretNamePattern.test(name);

/** @throws AppError forbidden */
async function refuseTooManySecrets({ db }: Context, server: StoredServer): Promise<void> {
  const secrets = (await findSecrets(db, server)).filter(isSecret);
  if (secrets.length < maxSecrets) return;
  throw new AppError(
    'forbidden',
    `the server has ${secrets.length} secrets; allowed: ${maxSecrets} per server; delete a secret that you do not need`,
  );
}

/** Number of tools that are searched before yielding to the event loop. */
const toolsPerChunk = 20;

/** Calls `onUse` for each field that refers to secrets: fields for all tools, and fields of the given tools. */
export async function forEachSecretUse(
  config: ServerConfig,
  tools: readonly Tool[],
  onUse: (use: SecretUse, tool?: Tool) => void,
): Promise<void> {
  for (const use of getServerSecretUses(config)) onUse(use);
  for (const [index, tool] of tools.entries()) {
    if (index % toolsPerChunk === toolsPerChunk - 1) await yieldToEventLoop();
    for (const use of getToolSecretUses(tool, config)) onUse(use, tool);
  }
}

/** Maximum number of uses and origins of a secret in a response. */
const maxUses = 100;
const maxOrigins = 50;

const secretRecord = z.object({
  name: z.string(),
  origins: z
    .array(z.string())
    .max(maxOrigins)
    .describe('Only origins that the value is sent to: those that the server called when it was set; at most 50.'),
  used_by: z.array(z.string()).max(maxUses).describe('First places in the configuration that refer to the secret.'),
  updated_at: time,
});
nameSchema('Secret', secretRecord);

/** Finds the places where a configuration refers to each of its secrets. */
async function findSecretUses(config: ServerConfig): Promise<ReadonlyMap<string, string[]>> {
  const uses = new Map<string, string[]>();
  await forEachSecretUse(config, config.tools, ({ path, names }, tool) => {
    // The name of a header is clear without this prefix.
    const place = tool ? `${tool.name}: ${path.replace(/^headers\./, '')}` : path;
    for (const name of names) {
      const places = uses.get(name);
      if (!places) uses.set(name, [place]);
      else if (places.length < maxUses) places.push(place);
    }
  });
  return uses;
}

const setSecret = operation({
  name: 'setSecret',
  summary: 'Store a secret of a hosted server, or replace its value',
  description:
    'The value replaces {{NAME}}. It is sent only to the hosts that the tools currently call, and to the token endpoint that uses it.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput, name: secretNameInput, value: secretValueInput }),
  output: secretRecord.extend({ unchanged: unchangedShape }),
  async run(context, { slug, name, value }) {
    const server = await getServer(context, slug);
    const origins = createSecretOriginResolver(server.config)(name);
    const used_by = (await findSecretUses(server.config)).get(name) ?? [];
    const record = { name, origins: origins.slice(0, maxOrigins), used_by };
    const { updatedAt, isUnchanged: wasUnchanged } = await storeSecret(context, server, name, value);
    if (wasUnchanged) return { ...record, updated_at: toIsoTime(updatedAt), unchanged: true as const };
    await publishChange(context, server);
    return { ...record, updated_at: toIsoTime(updatedAt) };
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
    const server = (await findRestorable(context, slug)) ?? (await getServer(context, slug));
    if (!(await removeSecret(context.db, server, name))) throw await createUnknownSecretError(context, server, name);
    await publishChange(context, server);
    return { deleted: name };
  },
  audit: ({ slug, name }) => ({ target: slug, detail: { name } }),
});

async function createUnknownSecretError(
  { db }: Context,
  server: Pick<StoredServer, 'workspaceId' | 'id'>,
  name: string,
): Promise<AppError> {
  const names = (await findSecrets(db, server)).filter(isSecret).map((secret) => secret.name);
  return new AppError(
    'notFound',
    `the server has no secret ${name}${suggestNearestOrList(name, names, createSuggestionBudget())}`,
  );
}

const listSecrets = operation({
  name: 'listSecrets',
  summary: 'List the secrets of a hosted server; values are never shown',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({ secrets: z.array(secretRecord).max(maxSecrets) }),
  async run(context, { slug }) {
    const server = await getServer(context, slug);
    const secrets = (await findSecrets(context.db, server)).filter(isSecret);
    const uses = await findSecretUses(server.config);
    return {
      secrets: secrets.slice(0, maxSecrets).map(({ name, origins, updatedAt }) => ({
        name,
        origins: origins.slice(0, maxOrigins),
        used_by: uses.get(name) ?? [],
        updated_at: toIsoTime(updatedAt),
      })),
    };
  },
});

export const secretOperations = { setSecret, deleteSecret, listSecrets };
