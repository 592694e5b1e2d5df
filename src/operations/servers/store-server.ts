import { z } from 'zod';
import { claudeCodeCommand } from '../../domain/clients/client.ts';
import { sealedFields } from '../../domain/config/authentication.ts';
import { configSecrets, mask, type ServerConfig, splitSecrets } from '../../domain/config/server-config.ts';
import { accessOf, isOpen, type OfSecrets, originsOfSecrets } from '../../domain/config/server-wide.ts';
import { newId } from '../../domain/ids.ts';
import { firstNames } from '../../domain/problems.ts';
import { credentialVariables } from '../../domain/snippets/call-snippets.ts';
import { movedSecretMessage } from '../../domain/warnings/moved-secret.ts';
import type { Warning } from '../../domain/warnings/warnings.ts';
import { turnAfter } from '../../domain/work/next-turn.ts';
import { AppError, invalid } from '../../errors.ts';
import { recordChange } from '../../store/changes/follow-changes.ts';
import { findDeleted, restorableMs } from '../../store/servers/deleted-servers.ts';
import { restartCheck } from '../../store/servers/imports.ts';
import { type FoundSecret, findSecret, findSecrets, type SecretInfo, saveSecret } from '../../store/servers/secrets.ts';
import { insertServer, type StoredServer, summaryOf, updateServer } from '../../store/servers/servers.ts';
import { bytesOfServer } from '../../store/workspaces.ts';
import { programName } from '../../version.ts';
import { type Precheck, precheck, validConfig, warningsOfStored } from '../check-config.ts';
import type { Context } from '../operation.ts';
import { checkGrowth, checkNewServer, checkToolQuota, withinSecretQuota } from '../quotas/quotas.ts';
import { nameSchema } from '../schema-names.ts';
import { findOwnServer, firstWarnings, serverRecord, toRecord, unchangedShape, warningsShape } from '../shapes.ts';

/**
 * Creates a server. `beforeStoring` stores rows that belong to it.
 * @throws AppError invalid, conflict if the slug was ever used
 */
export async function createServer(
  context: Context,
  raw: unknown,
  beforeStoring?: (server: StoredServer) => Promise<void>,
): Promise<StoredServer> {
  const config = await validConfig(context, raw);
  const { masked, secrets } = splitSecrets(config);
  checkMasks(config, []);
  const at = context.now();
  const server: StoredServer = {
    id: newId(context.random, 'srv'),
    workspaceId: context.actor.workspaceId,
    slug: config.slug,
    name: config.name,
    config: masked,
    version: 1,
    createdBy: context.actor.id,
    createdAt: at,
    updatedAt: at,
  };
  checkToolQuota(context, config.tools.length, 0);
  await beforeStoring?.(server);
  if (!(await insertServer(context.db, server))) throw await taken(context, config.slug);
  await checkNewServer(context);
  await sealSecrets(context, server, secrets);
  await noteChange(context, server);
  return server;
}

/** A stored server; `isUnchanged` is true if the stored state already matched. */
export type Stored = { server: StoredServer; isUnchanged: boolean };

/**
 * Stores a changed configuration as the next version. An unchanged configuration creates no version.
 * @throws AppError invalid, conflict if the server has changed since `expectedVersion`
 */
export async function changeServer(
  context: Context,
  current: StoredServer,
  raw: unknown,
  expectedVersion: number | undefined,
): Promise<Stored> {
  refuseOtherVersion(current, expectedVersion);
  const config = await validConfig(context, raw, current);
  if (config.slug !== current.slug) {
    throw invalid([
      { path: 'slug', message: `a slug cannot be changed; allowed: "${current.slug}", or create another server` },
    ]);
  }
  return storeConfig(context, current, config, expectedVersion);
}

function refuseOtherVersion(current: StoredServer, expected: number | undefined): void {
  if (expected !== undefined && expected !== current.version) throw changedMeanwhile(current.version);
}

/**
 * Stores a valid configuration as the next version. Changes of a workspace run one after the other (`countWrite`), so
 * `current`, which was read in the transaction, is still the newest version. A change without an expected version is
 * therefore never lost and never refused.
 */
export async function storeConfig(
  context: Context,
  current: StoredServer,
  config: ServerConfig,
  expectedVersion: number | undefined,
  beforeStoring?: () => Promise<void>,
): Promise<Stored> {
  refuseOtherVersion(current, expectedVersion);
  checkToolQuota(context, config.tools.length, current.config.tools.length);
  const stored = await findSecrets(context.db, current);
  checkMasks(config, stored);
  const { masked, secrets } = splitSecrets(config);
  const before = JSON.stringify(current.config);
  await turnAfter(before);
  const isSame = JSON.stringify(masked) === before;
  await turnAfter(before);
  if (isSame && (await areStored(context, { ...current, config: masked }, secrets)))
    return { server: current, isUnchanged: true };
  const next: StoredServer = {
    ...current,
    name: config.name,
    config: masked,
    version: current.version + 1,
    updatedAt: context.now(),
  };
  const bytesBefore = await bytesOfServer(context.db, current);
  await beforeStoring?.();
  if (!(await updateServer(context.db, next, context.actor.id, context.quotas.versions)))
    throw changedMeanwhile(undefined);
  await checkGrowth(context, next, bytesBefore);
  await noteImport(context, current, next);
  await sealSecrets(context, next, secrets);
  await noteChange(context, next);
  return { server: next, isUnchanged: false };
}

/**
 * Resets the check of a description if the configuration is now based on another import, as after restoring an older
 * version.
 */
async function noteImport({ db }: Context, before: StoredServer, after: StoredServer): Promise<void> {
  const { imported } = after.config;
  if (imported && imported.id !== before.config.imported?.id)
    await restartCheck(db, after, { importId: imported.id, failures: 0 });
}

async function areStored(context: Context, server: StoredServer, secrets: ReadonlyMap<string, string>) {
  for (const [name, value] of secrets) if (!(await isSecretStored(context, server, name, value))) return false;
  return true;
}

/** Returns true if a secret is stored with this value, for the origins that the configuration sends it to. */
export async function isSecretStored(
  context: Context,
  server: StoredServer,
  name: string,
  value: string,
): Promise<boolean> {
  return isSameSecret(await findSecret(context.db, context.keyring, server, name), server, value);
}

/** Returns true if a stored secret has this value, for the origins that the configuration sends it to. */
export function isSameSecret(known: FoundSecret | undefined, server: StoredServer, value: string): boolean {
  if (known?.value !== value) return false;
  const origins = originsOfSecret(server, known.name);
  return origins.length === known.origins.length && origins.every((origin, index) => origin === known.origins[index]);
}

/** Returns the origins that a secret of a configuration may be sent to. */
function originsOfSecret({ config }: StoredServer, name: string): string[] {
  if (name !== configSecrets.clientSecret || !config.oauth) return originsOfSecrets(config)(name);
  return [new URL(config.oauth.token_url).origin];
}

/** Checks a large configuration of a server before the transaction that stores it. */
export async function precheckChange(
  context: Context,
  current: StoredServer,
  raw: unknown,
): Promise<Precheck | undefined> {
  const secrets = await findSecrets(context.db, current);
  return precheck(context, raw, { current, stored: secrets.map((secret) => secret.name) });
}

/** Creates the error for a slug that is not available. For a slug of another workspace it reveals nothing more. */
async function taken(context: Context, slug: string): Promise<AppError> {
  const message = await takenSentence(context, slug);
  return new AppError('conflict', `slug: ${message}`, { problems: [{ path: 'slug', message }] });
}

/** Returns why no server can be created with a slug that was used before. */
export async function takenSentence(context: Context, slug: string): Promise<string> {
  return (await findOwnServer(context, slug))
    ? `"${slug}" is used by a server of this workspace; change that server with updateMcpServer (PUT /api/v1/servers/${slug}, ${programName} servers update FILE), or choose another slug`
    : (await findRestorable(context, slug))
      ? `"${slug}" is the slug of a deleted server; restore that server with restoreMcpServer (${programName} servers restore ${slug}), or choose another slug`
      : `"${slug}" is taken or was used before; choose another slug`;
}

/** Finds a deleted server of the workspace that can be restored. */
export function findRestorable({ db, actor, now }: Context, slug: string): ReturnType<typeof findDeleted> {
  return findDeleted(db, { workspaceId: actor.workspaceId, slug }, now() - restorableMs);
}

export function changedMeanwhile(version: number | undefined): AppError {
  const now = version === undefined ? '' : ` and is at version ${version}`;
  return new AppError('conflict', `the server was changed in the meantime${now}; read it again and repeat your change`);
}

/** Checks that each mask stands for a stored value, which is still sent to the same host. @throws AppError invalid */
export function checkMasks(config: ServerConfig, stored: readonly SecretInfo[]): void {
  refuseMasks(config, new Set(stored.map((secret) => secret.name)));
  refuseMovedSecret(config, stored);
}

/** Refuses a mask if no value is stored, because the mask itself would be stored as the secret. */
function refuseMasks(config: ServerConfig, stored: ReadonlySet<string>): void {
  const refuse = (path: string) => {
    throw invalid([
      { path, message: `"${mask}" stands for a stored value, but none is stored; send the value itself` },
    ]);
  };
  if (config.oauth?.client_secret === mask && !stored.has(configSecrets.clientSecret)) refuse('oauth.client_secret');
  for (const { path, name, value } of sealedFields(config)) {
    if (value === mask && !stored.has(name)) refuse(path);
  }
}

/**
 * Requires the client secret when the token endpoint moves, so that no one can redirect a secret that they do not know.
 */
function refuseMovedSecret(config: ServerConfig, stored: readonly SecretInfo[]): void {
  if (config.oauth?.client_secret !== mask) return;
  const { origin } = new URL(config.oauth.token_url);
  if (stored.some((secret) => secret.name === configSecrets.clientSecret && secret.origins.includes(origin))) return;
  throw invalid([
    { path: 'oauth.client_secret', message: 'token_url moves to another host; send the client secret again' },
  ]);
}

/** Stores secrets for the origins that the configuration sends them to. @throws AppError forbidden */
export async function sealSecrets(
  context: Context,
  server: StoredServer,
  secrets: ReadonlyMap<string, string>,
  updatedAt = server.updatedAt,
): Promise<void> {
  if (secrets.size === 0) return;
  const createdBy = context.actor.id;
  await withinSecretQuota(context, async () => {
    for (const [name, value] of secrets) {
      const secret = { name, value, origins: originsOfSecret(server, name), createdBy, updatedAt };
      await saveSecret(context.db, context.keyring, server, secret);
    }
  });
}

/** Invalidates a server in the caches of every replica. */
export async function noteChange(context: Context, server: Pick<StoredServer, 'id' | 'slug'>): Promise<void> {
  await recordChange(context.db, context, 'server', server.id);
  await recordChange(context.db, context, 'server', server.slug);
}

/** Returns the warnings of a stored server, including warnings about secrets without a value or for other hosts. */
export async function warningsFor(context: Context, server: StoredServer): Promise<Warning[]> {
  const secrets = await findSecrets(context.db, server);
  const names = secrets.map((secret) => secret.name);
  const found = await warningsOfStored(context, server.config, names);
  return firstWarnings([...movedWarnings(secrets, server.config), ...found]);
}

/**
 * Returns warnings about secrets that may not be sent to every host of the tools. They come first, because they may
 * make every call fail.
 */
export function movedWarnings(secrets: readonly SecretInfo[], config: OfSecrets): Warning[] {
  const paths = new Map(sealedFields(config).map(({ name, path }) => [name, path]));
  return movedSecrets(secrets, config).map(({ name, origins }) => ({
    path: paths.get(name) ?? 'tools',
    message: movedSecretMessage(name, firstNames(origins)),
  }));
}

/** Maximum number of steps: 50 secrets without a value, and two more. */
export const mostSteps = 52;

/** Returns the steps that a person must still do before the server works. */
function nextSteps(context: Context, server: StoredServer, warnings: readonly Warning[]): string[] {
  const url = context.serverUrl(server.slug);
  const steps = secretSteps(server, warnings);
  if (server.config.oauth)
    steps.push(
      `Register the callback URL ${context.callbackUrl(server.slug)} with the OAuth provider, exactly in this form`,
    );
  steps.push(`Connect a client: ${connection(server, url)}`);
  return steps;
}

/** Returns a command that connects a client, with an explanation of the variable in it. */
function connection({ slug: name, config }: StoredServer, url: string): string {
  if (config.oauth) return claudeCodeCommand({ name, url, token: undefined });
  const access = accessOf(config);
  const takesAny = isOpen(config, access);
  const variable = credentialVariables[access === 'api_key' || takesAny ? 'api_key' : 'caller_token'];
  const orAny = takesAny ? ', or any other text, because the API gets no credential' : '';
  return `${claudeCodeCommand({ name, url, token: `$${variable.name}` })} (${variable.about}${orAny})`;
}

/** Returns a step for each secret that has to be set. */
export function secretSteps({ slug }: StoredServer, warnings: readonly Warning[]): string[] {
  const missing = warnings.flatMap((warning) => /^\{\{(\w+)\}\} has no value/.exec(warning.message)?.[1] ?? []);
  return [...new Set(missing)]
    .slice(0, mostSteps - 2)
    .map((name) => `Set the secret ${name} (tool setSecret, or: ${programName} secrets set ${slug} ${name})`);
}

export const configOutput = z.record(z.string(), z.unknown()).describe('Configuration with masked secrets.');
export const stored = z.object({
  server: serverRecord,
  url: z.string().describe('URL of the MCP server.'),
  warnings: warningsShape,
  next_steps: z.array(z.string()).max(mostSteps).describe('Steps that a person must still do.'),
  unchanged: unchangedShape,
});
nameSchema('StoredServer', stored);

/** Creates the response of every operation that stores a server. */
export async function storedAnswer(context: Context, { server, isUnchanged }: Stored): Promise<z.input<typeof stored>> {
  const warnings = await warningsFor(context, server);
  return {
    server: toRecord(server, summaryOf(server.config), context),
    url: context.serverUrl(server.slug),
    warnings,
    next_steps: nextSteps(context, server, warnings),
    ...(isUnchanged && { unchanged: true as const }),
  };
}

export function saidOf(verb: string) {
  return (output: z.input<typeof stored>): string =>
    [
      `${output.unchanged ? 'Nothing changed in' : verb} the server "${output.server.name}" (version ${output.server.version}) at ${output.url}`,
      `Access: ${output.server.access}. Tools: ${output.server.tool_count}.`,
      ...output.warnings.map((warning) => `Warning: ${warning.path}: ${warning.message}`),
      ...output.next_steps.map((step) => `Next: ${step}`),
    ].join('\n');
}

export const auditStored = (_input: unknown, output: z.input<typeof stored>) => ({
  target: output.server.slug,
  detail: {
    version: output.server.version,
    name: output.server.name,
    tools: output.server.tool_count,
    access: output.server.access,
  },
});

/**
 * Returns secrets that may not be sent to every origin where the configuration needs them, because they were set before
 * it did. Secrets whose new value is in the configuration are not included.
 */
export function movedSecrets(secrets: readonly SecretInfo[], config: OfSecrets): SecretInfo[] {
  const neededBy = originsOfSecrets(config);
  // Most secrets share one list of origins, which is compared only once.
  const isMissing = new Map<readonly string[], boolean>();
  const misses = ({ name, origins: allowed }: SecretInfo) => {
    const needed = neededBy(name);
    const isShared = needed === neededBy('');
    const known = isShared ? isMissing.get(allowed) : undefined;
    if (known !== undefined) return known;
    const set = new Set(allowed);
    const missing = needed.some((origin) => !set.has(origin));
    if (isShared) isMissing.set(allowed, missing);
    return missing;
  };
  const sealed = sealedFields(config).filter(({ value }) => value !== mask);
  const apart = new Set<string>([...Object.values(configSecrets), ...sealed.map(({ name }) => name)]);
  return secrets.filter((secret) => !apart.has(secret.name) && misses(secret));
}
