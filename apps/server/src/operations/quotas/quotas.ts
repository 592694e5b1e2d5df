import { AppError } from '@toolhost/errors/errors';
import { z } from 'zod';
import { type ConfiguredQuotas, maxQuota, type QuotaName, type Quotas, quotaKinds, quotaNames } from '../../quotas.ts';
import { dayMs, minuteMs } from '../../store/calls/call-writer.ts';
import { findEarliestDeleted, purgeServer } from '../../store/servers/deleted-servers.ts';
import { deleteOldestVersions } from '../../store/servers/server-versions.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import {
  countKeys,
  countMembersAndInvitations,
  countSecrets,
  countServers,
  countSlugs,
  countWritesAt,
  findSetQuotas,
  getServerBytes,
  type StoredServers,
  setQuotas,
  type WriteCounts,
} from '../../store/workspaces.ts';
import { type Context, operation } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import { isUnchanged, unchangedShape } from '../shapes.ts';

const megabyte = 1_000_000;

/**
 * Checks the quotas after a server was created. All quotas are checked after a change, within its transaction, so
 * exceeding one rolls the change back. Changes of a workspace run one after the other (`countWrite`), so two changes
 * never use the same free slot.
 * @throws AppError forbidden
 */
export async function checkNewServer(context: Context): Promise<void> {
  const { db, actor, quotas } = context;
  if (quotas.slugs !== 0) {
    const slugs = await countSlugs(db, actor.workspaceId);
    refuseExcess(context, 'slugs', slugs, 'change an existing server instead of deleting it and creating another one');
  }
  await checkServers(context);
}

/** Checks the quotas after a server was created or restored. @throws AppError forbidden */
export async function checkServers(context: Context): Promise<void> {
  const stored = await countStored(context);
  refuseExcess(context, 'servers', stored.servers, 'delete a server that you do not need');
  await freeSpace(context, stored.bytes);
}

/**
 * Checks the quotas after a server was changed. A workspace above a quota may still shrink.
 * @throws AppError forbidden
 */
export async function checkGrowth(context: Context, server: StoredServer, bytesBefore: number): Promise<void> {
  if ((await getServerBytes(context.db, server)) <= bytesBefore) return;
  await freeSpace(context, (await countStored(context)).bytes);
}

async function countStored({ db, actor, quotas }: Context): Promise<StoredServers> {
  const isUnlimited = quotas.servers === 0 && quotas.megabytes === 0;
  return isUnlimited ? { servers: 0, bytes: 0 } : countServers(db, actor.workspaceId);
}

/**
 * Permanently deletes deleted servers, and then the oldest versions, while the workspace is above its byte quota.
 * @throws AppError forbidden
 */
async function freeSpace(context: Context, bytes: number): Promise<void> {
  const { db, actor, quotas } = context;
  const maxBytes = quotas.megabytes * megabyte;
  if (quotas.megabytes === 0 || bytes <= maxBytes) return;
  let remainingBytes = bytes - (await purgeDeleted(context, (freed) => bytes - freed <= maxBytes));
  if (remainingBytes > maxBytes)
    remainingBytes -= await deleteOldestVersions(db, actor.workspaceId, remainingBytes - maxBytes);
  const remedy = 'make configurations smaller or delete servers that you do not need';
  refuseExcess(context, 'megabytes', Math.ceil(remainingBytes / megabyte), remedy);
}

/** Permanently deletes the earliest deleted servers until there is enough space. Returns the number of freed bytes. */
async function purgeDeleted({ db, actor, now }: Context, isEnough: (freed: number) => boolean | Promise<boolean>) {
  let freed = 0;
  while (!(await isEnough(freed))) {
    const oldestDeleted = await findEarliestDeleted(db, actor.workspaceId);
    if (!oldestDeleted) break;
    await purgeServer(db, { workspaceId: actor.workspaceId, id: oldestDeleted.id }, now());
    freed += oldestDeleted.bytes;
  }
  return freed;
}

/**
 * Checks the number of tools of a server. A server above the quota may still change and shrink.
 * @throws AppError forbidden
 */
export function checkToolQuota({ quotas }: Context, tools: number, before: number): void {
  const excess = tools > before ? describeToolExcess(tools, quotas) : undefined;
  if (excess !== undefined) throw new AppError('forbidden', `with this change, the server would have ${excess}`);
}

/** Describes by how much a number of tools exceeds the quota; undefined if it does not. */
export function describeToolExcess(tools: number, { tools: allowed }: Quotas): string | undefined {
  if (allowed === 0 || tools <= allowed) return undefined;
  return `${tools} tools; allowed: ${allowed}; split them into several servers, or ask the operator for a higher quota`;
}

/** @throws AppError forbidden */
export async function checkKeyQuota(context: Context): Promise<void> {
  if (context.quotas.keys === 0) return;
  const keys = await countKeys(context.db, context.actor.workspaceId, context.now());
  refuseExcess(context, 'keys', keys, 'revoke a key that you do not need');
}

/** Runs `store`, and then checks the secret quota. @throws AppError forbidden */
export async function storeWithinSecretQuota(context: Context, store: () => Promise<void>): Promise<void> {
  const { workspaceId } = context.actor;
  const before = await countSecrets(context.db, workspaceId);
  await store();
  const count = () => countSecrets(context.db, workspaceId);
  const maxSecrets = context.quotas.secrets;
  if (maxSecrets === 0 || (await count()) <= before) return;
  await purgeDeleted(context, async () => (await count()) <= maxSecrets);
  refuseExcess(context, 'secrets', await count(), 'delete a secret that you do not need');
}

/** @throws AppError forbidden */
export async function checkMemberQuota(context: Context): Promise<void> {
  if (context.quotas.members === 0) return;
  const people = await countMembersAndInvitations(context.db, context.actor.workspaceId);
  refuseExcess(context, 'members', people, 'remove a member or withdraw an invitation');
}

function refuseExcess({ quotas }: Context, name: QuotaName, count: number, remedy: string): void {
  const allowed = quotas[name];
  if (allowed === 0 || count <= allowed) return;
  const { description: noun } = quotaKinds[name];
  throw new AppError(
    'forbidden',
    `with this change, the workspace would have ${count} ${noun}; allowed: ${allowed}; ${remedy}, or ask the operator for a higher quota`,
  );
}

/** @throws AppError tooMany */
export function checkWriteQuota({ inMinute, inDay }: WriteCounts, { writes, daily_writes }: Quotas, now: number): void {
  if (daily_writes !== 0 && inDay > daily_writes)
    throw createTooManyWritesError(daily_writes, 'day', dayMs - (now % dayMs));
  if (writes !== 0 && inMinute > writes) throw createTooManyWritesError(writes, 'minute', minuteMs - (now % minuteMs));
}

function createTooManyWritesError(allowed: number, span: string, retryAfterMs: number): AppError {
  const retryAfterS = Math.ceil(retryAfterMs / 1000);
  return new AppError(
    'tooMany',
    `the workspaces of this creator reached their limit of ${allowed} changes per ${span}; retry in ${retryAfterS} s`,
    { retryAfterS },
  );
}

const quotaRecord = z.object({
  limit: z.int().optional().describe('Maximum; absent if there is no limit.'),
  from: z.enum(['default', 'set']),
  used: z.number().optional().describe('Current usage; absent for tools and versions, which are counted per server.'),
});
nameSchema('Quota', quotaRecord);

type PerQuota<Value> = { [Name in QuotaName]: Value };

function mapQuotas<Value>(getValue: (name: QuotaName) => Value): PerQuota<Value> {
  return Object.fromEntries(quotaNames.map((name) => [name, getValue(name)])) as PerQuota<Value>;
}

const quotasOutput = z.object(
  mapQuotas((name) => quotaRecord.describe(`${capitalize(quotaKinds[name].description)}.`)),
);
const quotaInput = z.int().min(0).max(maxQuota).nullable().optional();

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

async function getQuotas(context: Context): Promise<z.input<typeof quotasOutput>> {
  const { db, actor, defaultQuotas } = context;
  const configured = await findSetQuotas(db, actor.workspaceId);
  const used = await getQuotaUsage(db, actor.workspaceId, context.now());
  return mapQuotas((name) => {
    const limit = configured[name] ?? defaultQuotas[name];
    const usedCount = used[name];
    return {
      ...(limit !== 0 && { limit }),
      from: configured[name] === undefined ? ('default' as const) : ('set' as const),
      ...(usedCount !== undefined && { used: usedCount }),
    };
  });
}

/** Returns the usage of each quota. Quotas that are counted per server are absent. */
export async function getQuotaUsage(db: Context['db'], workspaceId: string, now: number): Promise<Partial<Quotas>> {
  const { servers, bytes } = await countServers(db, workspaceId);
  const { inMinute, inDay } = await countWritesAt(db, workspaceId, now);
  return {
    servers,
    slugs: await countSlugs(db, workspaceId),
    megabytes: Math.round(bytes / 10_000) / 100,
    secrets: await countSecrets(db, workspaceId),
    keys: await countKeys(db, workspaceId, now),
    members: await countMembersAndInvitations(db, workspaceId),
    writes: inMinute,
    daily_writes: inDay,
  };
}

const getWorkspaceQuotas = operation({
  name: 'getWorkspaceQuotas',
  summary: 'Get how much the workspace may store and change, and its current usage',
  description: 'The operator of the service sets these quotas.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({}),
  output: quotasOutput,
  run: getQuotas,
});

export const setWorkspaceQuotas = operation({
  name: 'setWorkspaceQuotas',
  summary: 'Set or reset the quotas of a workspace',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject(
    mapQuotas((name) =>
      quotaInput.describe(
        `${capitalize(quotaKinds[name].description)}; 0 means no limit, null resets it to the default.`,
      ),
    ),
  ),
  output: quotasOutput.extend({ unchanged: unchangedShape }),
  async run(context, input) {
    const before = await findSetQuotas(context.db, context.actor.workspaceId);
    const after = mapQuotas((name) => (input[name] === undefined ? before[name] : (input[name] ?? undefined)));
    if (quotaNames.every((name) => before[name] === after[name]))
      return { ...(await getQuotas(context)), unchanged: true as const };
    await setQuotas(context.db, context.actor.workspaceId, JSON.parse(JSON.stringify(after)) as ConfiguredQuotas);
    return getQuotas(context);
  },
  isUnchanged,
  audit: (input) => ({ detail: input }),
});

export const quotaOperations = { getWorkspaceQuotas };
