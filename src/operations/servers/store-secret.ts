import { z } from 'zod';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { originsOfSecrets } from '../../domain/config/server-wide.ts';
import { holdsOurCredential } from '../../domain/credentials/own-credentials.ts';
import { secretNamePattern } from '../../domain/http/placeholders.ts';
import { AppError } from '../../errors.ts';
import type { Db } from '../../store/db.ts';
import { findSecret, findSecrets, type SecretInfo, saveSecret } from '../../store/servers/secrets.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import type { Context } from '../operation.ts';
import { withinSecretQuota } from '../quotas/quota-rules.ts';
import { sameOrigins } from '../shapes.ts';

export const secretNameInput = z
  .string()
  .regex(secretNamePattern, 'allowed: a letter or _, then up to 63 letters, digits and _')
  .describe('NAME of the placeholder {{NAME}}.');

/** Visible text on one line, because a secret is sent in a header. */
export const secretValueInput = z
  .string()
  .min(1)
  .max(8192)
  .regex(/^[\x20-\x7e\x80-\xff]+$/, 'allowed: one line of visible text')
  .refine(
    (value) => !holdsOurCredential(value),
    'holds an API key or a token of this service, which is never sent to an upstream; store a credential of the upstream itself',
  )
  .describe('The secret itself. It is stored sealed and never shown again.');

type FoundSecret = SecretInfo & { value: string | undefined };

/** Most secrets of one server. */
export const mostSecrets = 200;

/** Whether a secret has this value, for the origins of the server's configuration. */
export async function isSecretStored(
  context: Context,
  server: StoredServer,
  name: string,
  value: string,
): Promise<boolean> {
  return isSame(await findSecret(context.db, context.keyring, server, name), server, value);
}

function isSame(known: FoundSecret | undefined, server: StoredServer, value: string): boolean {
  return known?.value === value && sameOrigins(known.origins, originsOfSecrets(server.config)(known.name));
}

/** Stores a secret for the origins of the server's configuration, unless it is stored so. @throws AppError forbidden, conflict */
export async function storeSecret(
  context: Context,
  server: StoredServer,
  name: string,
  value: string,
): Promise<{ updatedAt: number; isUnchanged: boolean }> {
  const problem = secretNameProblem(server.config, name);
  if (problem !== undefined) throw new AppError('conflict', problem);
  const known = await findSecret(context.db, context.keyring, server, name);
  if (known && isSame(known, server, value)) return { updatedAt: known.updatedAt, isUnchanged: true };
  if (!known) await refuseTooMany(context.db, server);
  const updatedAt = context.now();
  const secret = {
    name,
    value,
    origins: originsOfSecrets(server.config)(name),
    createdBy: context.actor.id,
    updatedAt,
  };
  await withinSecretQuota(context, () => saveSecret(context.db, context.keyring, server, secret));
  return { updatedAt, isUnchanged: false };
}

/** Why a secret cannot have a name. */
export function secretNameProblem({ variables = {} }: ServerConfig, name: string): string | undefined {
  if (!Object.hasOwn(variables, name)) return undefined;
  return `${name} is a variable of the server, which fills {{${name}}}; choose another name`;
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
