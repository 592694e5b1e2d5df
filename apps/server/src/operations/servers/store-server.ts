import { newId } from '@toolhost/credentials/ids';
import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { formatFirstNames } from '@toolhost/errors/problems';
import { yieldAfterLongText } from '@toolhost/errors/yield-to-event-loop';
import { getClaudeCodeCommand } from '@toolhost/mcp-clients/client';
import { sealedFields } from '@toolhost/tool-config/authentication';
import { getImportIds } from '@toolhost/tool-config/imports';
import { formatMovedSecret } from '@toolhost/tool-config/moved-secret';
import { getTokenOrigins } from '@toolhost/tool-config/oauth';
import { findStoredNameProblems } from '@toolhost/tool-config/personal-values';
import {
  configSecrets,
  isDescriptionSecret,
  mask,
  type ServerConfig,
  splitSecrets,
} from '@toolhost/tool-config/server-config';
import {
  createSecretOriginResolver,
  getAccess,
  isOpen,
  type SecretDestinations,
} from '@toolhost/tool-config/server-wide';
import type { Warning } from '@toolhost/tool-config/warning';
import { z } from 'zod';
import { credentialVariables } from '../../snippets/call-snippets.ts';
import { recordChange } from '../../store/changes/follow-changes.ts';
import { findDeleted, restorePeriodMs } from '../../store/servers/deleted-servers.ts';
import { resetCheck } from '../../store/servers/imports.ts';
import {
  findSecret,
  findSecrets,
  type SecretInfo,
  type SecretWithValue,
  saveSecret,
} from '../../store/servers/secrets.ts';
import { insertServer, type StoredServer, summarizeConfig, updateServer } from '../../store/servers/servers.ts';
import { getServerBytes } from '../../store/workspaces.ts';
import { programName } from '../../version.ts';
import { getStoredWarnings, requireValidConfig } from '../check-config.ts';
import { findWorkspaceServer } from '../find-server.ts';
import type { Context } from '../operation.ts';
import { checkGrowth, checkNewServer, checkToolQuota, storeWithinSecretQuota } from '../quotas/quotas.ts';
import { nameSchema } from '../schema-names.ts';
import { limitWarnings, serverRecord, toServerRecord, unchangedShape, warningsShape } from '../shapes.ts';

/**
 * Creates a server. `beforeStoring` stores rows that belong to it.
 * @throws AppError invalid, conflict if the slug was ever used
 */
export async function createServer(
  context: Context,
  raw: unknown,
  beforeStoring?: (server: StoredServer) => Promise<void>,
): Promise<StoredServer> {
  const config = await requireValidConfig(context, raw);
  const { masked, secrets } = splitSecrets(config);
  checkStoredSecrets(config, []);
  const createdAt = context.now();
  const server: StoredServer = {
    id: newId(context.random, 'srv'),
    workspaceId: context.actor.workspaceId,
    slug: config.slug,
    name: config.name,
    config: masked,
    version: 1,
    createdBy: context.actor.id,
    createdAt,
    updatedAt: createdAt,
  };
  checkToolQuota(context, config.tools.length, 0);
  await beforeStoring?.(server);
  if (!(await insertServer(context.db, server))) throw await createSlugTakenError(context, config.slug);
  await checkNewServer(context);
  await sealSecrets(context, server, secrets);
  await publishChange(context, server);
  return server;
}

/** Server after it was stored. `isUnchanged` is true if its stored state already matched. */
export type StoreResult = { server: StoredServer; isUnchanged: boolean };

/**
 * Stores a changed configuration as the next version. An unchanged configuration creates no version.
 * @throws AppError invalid, conflict if the server has changed since `expectedVersion`
 */
export async function changeServer(
  context: Context,
  current: StoredServer,
  raw: unknown,
  expectedVersion: number | undefined,
): Promise<StoreResult> {
  requireVersion(current, expectedVersion);
  const config = await requireValidConfig(context, raw, current);
  if (config.slug !== current.slug) {
    throw invalidInputError([
      { path: 'slug', message: `a slug cannot be changed; allowed: "${current.slug}", or create another server` },
    ]);
  }
  return storeConfig(context, current, config, expectedVersion);
}

function requireVersion(current: StoredServer, expected: number | undefined): void {
  if (expected !== undefined && expected !== current.version) throw createVersionConflict(current.version);
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
): Promise<StoreResult> {
  requireVersion(current, expectedVersion);
  checkToolQuota(context, config.tools.length, current.config.tools.length);
  checkStoredSecrets(config, await findSecrets(context.db, current));
  const { masked, secrets } = splitSecrets(config);
  const before = JSON.stringify(current.config);
  await yieldAfterLongText(before);
  const isConfigUnchanged = JSON.stringify(masked) === before;
  await yieldAfterLongText(before);
  if (isConfigUnchanged && (await areSecretsStored(context, { ...current, config: masked }, secrets)))
    return { server: current, isUnchanged: true };
  const nextServer: StoredServer = {
    ...current,
    name: config.name,
    config: masked,
    version: current.version + 1,
    updatedAt: context.now(),
  };
  const bytesBefore = await getServerBytes(context.db, current);
  await beforeStoring?.();
  if (!(await updateServer(context.db, nextServer, context.actor.id, context.quotas.versions)))
    throw createVersionConflict(undefined);
  await checkGrowth(context, nextServer, bytesBefore);
  await resetImportCheck(context, current, nextServer);
  await sealSecrets(context, nextServer, secrets);
  await publishChange(context, nextServer);
  return { server: nextServer, isUnchanged: false };
}

/** Resets the check of a description if another import is now current, as after restoring an older version. */
async function resetImportCheck({ db }: Context, before: StoredServer, after: StoredServer): Promise<void> {
  const importId = getImportIds(after.config.imported);
  if (importId !== undefined && importId !== getImportIds(before.config.imported))
    await resetCheck(db, after, { importId, failures: 0 });
}

async function areSecretsStored(context: Context, server: StoredServer, secrets: ReadonlyMap<string, string>) {
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
  return matchesStoredSecret(await findSecret(context.db, context.keyring, server, name), server, value);
}

/** Returns true if a stored secret has this value, for the origins that the configuration sends it to. */
export function matchesStoredSecret(secret: SecretWithValue | undefined, server: StoredServer, value: string): boolean {
  if (secret?.value !== value) return false;
  const origins = getSecretOrigins(server, secret.name);
  return origins.length === secret.origins.length && origins.every((origin, index) => origin === secret.origins[index]);
}

/** Returns the origins that a secret of a configuration may be sent to. */
function getSecretOrigins({ config }: StoredServer, name: string): string[] {
  if (name !== configSecrets.clientSecret || !config.oauth) return createSecretOriginResolver(config)(name);
  return getTokenOrigins(config.oauth);
}

/** Creates the error for a slug that is not available. It does not reveal if another workspace uses the slug. */
async function createSlugTakenError(context: Context, slug: string): Promise<AppError> {
  const message = await getSlugTakenMessage(context, slug);
  return new AppError('conflict', `slug: ${message}`, { problems: [{ path: 'slug', message }] });
}

/** Returns why no server can be created with a slug that was used before. */
export async function getSlugTakenMessage(context: Context, slug: string): Promise<string> {
  if (await findWorkspaceServer(context, slug))
    return `"${slug}" is used by a server of this workspace; change that server with updateMcpServer (PUT /api/v1/servers/${slug}, ${programName} servers update FILE), or choose another slug`;
  if (await findRestorable(context, slug))
    return `"${slug}" is the slug of a deleted server; restore that server with restoreMcpServer (${programName} servers restore ${slug}), or choose another slug`;
  return `"${slug}" is taken or was used before; choose another slug`;
}

/** Finds a deleted server of the workspace that can be restored. */
export function findRestorable({ db, actor, now }: Context, slug: string): ReturnType<typeof findDeleted> {
  return findDeleted(db, { workspaceId: actor.workspaceId, slug }, now() - restorePeriodMs);
}

export function createVersionConflict(version: number | undefined): AppError {
  const state = version === undefined ? '' : ` and is at version ${version}`;
  return new AppError(
    'conflict',
    `the server was changed in the meantime${state}; read it again and repeat your change`,
  );
}

/**
 * Checks that each mask stands for a stored value, which is still sent to the same host, and that no stored value has the
 * name of a value that people bring. @throws AppError invalid
 */
export function checkStoredSecrets(config: ServerConfig, storedSecrets: readonly SecretInfo[]): void {
  const storedNames = new Set(storedSecrets.map((secret) => secret.name));
  const nameProblems = findStoredNameProblems(config, storedNames);
  if (nameProblems.length > 0) throw invalidInputError(nameProblems);
  refuseMasks(config, storedNames);
  refuseMovedSecret(config, storedSecrets);
}

/** Refuses a mask if no value is stored, because the mask itself would be stored as the secret. */
function refuseMasks(config: ServerConfig, storedNames: ReadonlySet<string>): void {
  const refuse = (path: string) => {
    throw invalidInputError([
      { path, message: `"${mask}" stands for a stored value, but none is stored; send the value itself` },
    ]);
  };
  if (config.oauth?.client_secret === mask && !storedNames.has(configSecrets.clientSecret))
    refuse('oauth.client_secret');
  for (const { path, name, value } of sealedFields(config)) {
    if (value === mask && !storedNames.has(name)) refuse(path);
  }
}

/**
 * Requires the client secret when the token endpoint moves, so that no one can redirect a secret that they do not know.
 */
function refuseMovedSecret(config: ServerConfig, storedSecrets: readonly SecretInfo[]): void {
  if (config.oauth?.client_secret !== mask) return;
  const secret = storedSecrets.find(({ name }) => name === configSecrets.clientSecret);
  if (getTokenOrigins(config.oauth).every((origin) => secret?.origins.includes(origin))) return;
  throw invalidInputError([
    { path: 'oauth.client_secret', message: 'the token endpoint moves to another host; send the client secret again' },
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
  await storeWithinSecretQuota(context, async () => {
    for (const [name, value] of secrets) {
      const secret = { name, value, origins: getSecretOrigins(server, name), createdBy, updatedAt };
      await saveSecret(context.db, context.keyring, server, secret);
    }
  });
}

/** Invalidates a server in the caches of every process. */
export async function publishChange(context: Context, server: Pick<StoredServer, 'id' | 'slug'>): Promise<void> {
  await recordChange(context.db, context, 'server', server.id);
  await recordChange(context.db, context, 'server', server.slug);
}

/** Returns the warnings of a stored server, including warnings about secrets without a value or for other hosts. */
export async function getServerWarnings(context: Context, server: StoredServer): Promise<Warning[]> {
  const secrets = await findSecrets(context.db, server);
  const names = secrets.map((secret) => secret.name);
  const warnings = await getStoredWarnings(context, server.config, names);
  return limitWarnings([...getMovedSecretWarnings(secrets, server.config), ...warnings]);
}

/**
 * Returns warnings about secrets that may not be sent to every host of the tools. They come first, because they may
 * make every call fail.
 */
export function getMovedSecretWarnings(secrets: readonly SecretInfo[], config: SecretDestinations): Warning[] {
  const paths = new Map(sealedFields(config).map(({ name, path }) => [name, path]));
  return findMovedSecrets(secrets, config).map(({ name, origins }) => ({
    path: paths.get(name) ?? 'tools',
    message: formatMovedSecret(name, formatFirstNames(origins)),
  }));
}

/** Maximum number of steps: 50 secrets without a value, and two more. */
export const maxSteps = 52;

/** Returns the steps that a person must still do before the server works. */
function getNextSteps(context: Context, server: StoredServer, warnings: readonly Warning[]): string[] {
  const url = context.serverUrl(server.slug);
  const steps = getSecretSteps(server, warnings);
  if (server.config.oauth)
    steps.push(
      `Register the callback URL ${context.callbackUrl(server.slug)} with the OAuth provider, exactly in this form`,
    );
  steps.push(`Connect a client: ${formatConnectCommand(server, url)}`);
  return steps;
}

/** Returns a command that connects a client, with an explanation of the variable in it. */
function formatConnectCommand({ slug: name, config }: StoredServer, url: string): string {
  if (config.oauth || config.login) return getClaudeCodeCommand({ name, url, token: undefined });
  const access = getAccess(config);
  const acceptsAnyToken = isOpen(config, access);
  const variable = credentialVariables[access === 'api_key' || acceptsAnyToken ? 'api_key' : 'caller_token'];
  const anyTokenHint = acceptsAnyToken ? ', or any other text, because the API gets no credential' : '';
  return `${getClaudeCodeCommand({ name, url, token: `$${variable.name}` })} (${variable.about}${anyTokenHint})`;
}

/** Returns a step for each secret that has to be set. */
export function getSecretSteps({ slug }: StoredServer, warnings: readonly Warning[]): string[] {
  const missing = warnings.flatMap((warning) => /^\{\{(\w+)\}\} has no value/.exec(warning.message)?.[1] ?? []);
  return [...new Set(missing)]
    .slice(0, maxSteps - 2)
    .map((name) => `Set the secret ${name} (tool setSecret, or: ${programName} secrets set ${slug} ${name})`);
}

export const configOutput = z.record(z.string(), z.unknown()).describe('Configuration with masked secrets.');
export const storeResultShape = z.object({
  server: serverRecord,
  url: z.string().describe('URL of the MCP server.'),
  warnings: warningsShape,
  next_steps: z.array(z.string()).max(maxSteps).describe('Steps that a person must still do.'),
  unchanged: unchangedShape,
});
nameSchema('StoredServer', storeResultShape);

/** Creates the response of every operation that stores a server. */
export async function createStoredResult(
  context: Context,
  { server, isUnchanged }: StoreResult,
): Promise<z.input<typeof storeResultShape>> {
  const warnings = await getServerWarnings(context, server);
  return {
    server: toServerRecord(server, summarizeConfig(server.config), context),
    url: context.serverUrl(server.slug),
    warnings,
    next_steps: getNextSteps(context, server, warnings),
    ...(isUnchanged && { unchanged: true as const }),
  };
}

export function formatStored(verb: string) {
  return (output: z.input<typeof storeResultShape>): string =>
    [
      `${output.unchanged ? 'Nothing changed in' : verb} the server "${output.server.name}" (version ${output.server.version}) at ${output.url}`,
      `Access: ${output.server.access}. Tools: ${output.server.tool_count}.`,
      ...output.warnings.map((warning) => `Warning: ${warning.path}: ${warning.message}`),
      ...output.next_steps.map((step) => `Next: ${step}`),
    ].join('\n');
}

export const auditStored = (_input: unknown, output: z.input<typeof storeResultShape>) => ({
  target: output.server.slug,
  detail: {
    version: output.server.version,
    name: output.server.name,
    tools: output.server.tool_count,
    access: output.server.open ? 'open' : output.server.access,
  },
});

/**
 * Returns secrets that were set before the configuration needed them at all of its current origins, so they may not be
 * sent to the new origins. Excludes secrets whose new value is in the configuration.
 */
export function findMovedSecrets(secrets: readonly SecretInfo[], config: SecretDestinations): SecretInfo[] {
  const getNeededOrigins = createSecretOriginResolver(config);
  // Most secrets share one list of origins, which is compared only once.
  const missingByOrigins = new Map<readonly string[], boolean>();
  const isMissingOrigin = ({ name, origins: allowed }: SecretInfo) => {
    const needed = getNeededOrigins(name);
    const isShared = needed === getNeededOrigins('');
    const cached = isShared ? missingByOrigins.get(allowed) : undefined;
    if (cached !== undefined) return cached;
    const allowedOrigins = new Set(allowed);
    const isMissing = needed.some((origin) => !allowedOrigins.has(origin));
    if (isShared) missingByOrigins.set(allowed, isMissing);
    return isMissing;
  };
  const sealed = sealedFields(config).filter(({ value }) => value !== mask);
  const excluded = new Set<string>([configSecrets.clientSecret, ...sealed.map(({ name }) => name)]);
  return secrets.filter(
    (secret) => !excluded.has(secret.name) && !isDescriptionSecret(secret.name) && isMissingOrigin(secret),
  );
}
