import { z } from 'zod';
import { nearestOrAll } from '../domain/near-names.ts';
import { holdsOurCredential } from '../domain/own-credentials.ts';
import { placeholderNames, secretNamePattern } from '../domain/placeholders.ts';
import { maxTools, type ServerConfig } from '../domain/server-config.ts';
import { AppError } from '../errors.ts';
import type { Db } from '../store/database.ts';
import { findSecret, listSecrets as findSecrets, deleteSecret as removeSecret, saveSecret } from '../store/secrets.ts';
import type { StoredServer } from '../store/servers.ts';
import { type Context, operation } from './operation.ts';
import { withinSecretQuota } from './quota-rules.ts';
import { getServer, isoTime, isUnchanged, originsOf, sameOrigins, slugInput, time, unchangedShape } from './shapes.ts';
import { noteChange } from './store-server.ts';

const nameInput = z
  .string()
  .regex(secretNamePattern, 'allowed: a letter or _, then up to 63 letters, digits and _')
  .describe('NAME of the placeholder {{NAME}}.');

/** Visible text on one line: a secret ends up in a header. */
const valueInput = z
  .string()
  .min(1)
  .max(8192)
  .regex(/^[\x20-\x7e\x80-\xff]+$/, 'allowed: one line of visible text')
  .refine(
    (value) => !holdsOurCredential(value),
    'holds an API key or a token of this service, which is never sent to an upstream; store a credential of the upstream itself',
  )
  .describe('The secret itself. It is stored sealed and never shown again.');

/** Of one server. */
export const mostSecrets = 200;
const mostUses = 100;

const secretRecord = z.object({
  name: z.string(),
  origins: z
    .array(z.string())
    .max(maxTools)
    .describe('The only places that the value is sent to: those of the server when it was set.'),
  used_by: z.array(z.string()).max(mostUses).describe('Where the configuration refers to it, at first.'),
  updated_at: time,
});

function usesOf(config: ServerConfig, name: string): string[] {
  const uses = placeholderNames(config.authentication?.token ?? '').includes(name) ? ['authentication.token'] : [];
  for (const tool of config.tools) {
    for (const [header, value] of Object.entries(tool.headers)) {
      if (placeholderNames(value).includes(name)) uses.push(`${tool.name}: ${header}`);
    }
  }
  return uses.slice(0, mostUses);
}

/** @throws AppError forbidden */
async function refuseTooMany(db: Db, server: StoredServer): Promise<void> {
  const secrets = (await findSecrets(db, server)).filter((secret) => secretNamePattern.test(secret.name));
  if (secrets.length < mostSecrets) return;
  throw new AppError(
    'forbidden',
    `the server has ${secrets.length} secrets; allowed: ${mostSecrets} of one server; delete one that is not needed`,
  );
}

const setSecret = operation({
  name: 'setSecret',
  summary: 'Store a secret of a hosted server, or replace its value',
  description:
    'The value fills {{NAME}} in headers and in authentication.token. It goes only to the hosts that the tools of the server call now.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput, name: nameInput, value: valueInput }),
  output: secretRecord.extend({ unchanged: unchangedShape }),
  async run(context, { slug, name, value }) {
    const server = await getServer(context, slug);
    const origins = originsOf(server.config);
    const used_by = usesOf(server.config, name);
    const known = await findSecret(context.db, context.keyring, server, name);
    if (known?.value === value && sameOrigins(known.origins, origins))
      return { name, origins, used_by, updated_at: isoTime(known.updatedAt), unchanged: true as const };
    if (!known) await refuseTooMany(context.db, server);
    const updatedAt = context.now();
    await withinSecretQuota(context, () =>
      saveSecret(context.db, context.keyring, server, { name, value, origins, createdBy: context.actor.id, updatedAt }),
    );
    await noteChange(context, server);
    return { name, origins, used_by, updated_at: isoTime(updatedAt) };
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
  input: z.strictObject({ slug: slugInput, name: nameInput }),
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
  return new AppError('notFound', `the server has no secret ${name}${nearestOrAll(name, names)}`);
}

/** The credentials of a configuration are stored beside the secrets, under names that no secret can have. */
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
    return {
      secrets: secrets.slice(0, mostSecrets).map(({ name, origins, updatedAt }) => ({
        name,
        origins,
        used_by: usesOf(server.config, name),
        updated_at: isoTime(updatedAt),
      })),
    };
  },
});

export const secretOperations = { setSecret, deleteSecret, listSecrets };
