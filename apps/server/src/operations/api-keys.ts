import { hasScope, keyScopes } from '@toolhost/credentials/credential';
import { formatApiKey, hashSecret } from '@toolhost/credentials/ids';
import { AppError, invalidInputError, type Problem } from '@toolhost/errors/errors';
import { createSuggestionBudget, suggestNearestOrList } from '@toolhost/errors/problems';
import { type KeyLimits, keyLimitFieldNames, type LimitInputs, limitFields } from '@toolhost/limits/call-limits';
import { singleLineText } from '@toolhost/tool-config/tool';
import { z } from 'zod';
import {
  type ApiKey,
  findActiveKeysCreatedBy,
  findApiKey,
  findApiKeys,
  findKeyAncestors,
  findKeyLimits,
  findKeyOrigins,
  insertApiKey,
  listActiveKeysCreatedBy,
  markKeyRevoked,
  markKeysRevoked,
  maxKeyChainLength,
  updateKeyLimits,
} from '../store/api-keys.ts';
import { recordChange, recordChanges } from '../store/changes/follow-changes.ts';
import { toChunks } from '../store/delete-in-steps.ts';
import { filterMembers } from '../store/people/members.ts';
import { findServer, listSlugs } from '../store/servers/servers.ts';
import { findActorNames } from './actor-names.ts';
import { suggestSlugs } from './find-server.ts';
import {
  applyLimitChanges,
  areLimitsEqual,
  keyLimitInputs,
  limitInputs,
  toKeyLimits,
  toLimitFields,
} from './limits.ts';
import { type Context, operation } from './operation.ts';
import { checkKeyQuota } from './quotas/quotas.ts';
import { nameSchema } from './schema-names.ts';
import {
  actorName,
  isUnchanged,
  lastUse,
  nextCursor,
  pageInputs,
  parsePage,
  queryInput,
  time,
  toIsoTime,
  unchangedShape,
} from './shapes.ts';

const keyRecord = z.object({
  id: z.string(),
  name: z.string(),
  scopes: z.array(z.enum(keyScopes)),
  servers: z
    .array(z.string())
    .max(100)
    .optional()
    .describe(
      'Slugs of the servers that the key is limited to; absent if it is valid for every server or is limited to views only.',
    ),
  views: z.array(z.string()).max(100).optional().describe('Views that the key is limited to, each as slug/view.'),
  created_at: time,
  created_by: z.string(),
  created_by_name: actorName,
  creator_left: z
    .literal(true)
    .optional()
    .describe('True if the person who created the key, directly or with another key, is no longer a member.'),
  expires_at: time.optional(),
  last_used_at: lastUse,
  revoked_at: time.optional(),
  limits: z.object(keyLimitInputs).optional().describe('Limits of the key; absent if it has none.'),
});
nameSchema('Key', keyRecord);

/** Current names of the creators of keys, and the IDs of keys whose creator is no longer a member. */
type Creators = { names: ReadonlyMap<string, string>; orphanedKeyIds: ReadonlySet<string> };

function toRecord(key: ApiKey, creators: Creators): z.input<typeof keyRecord> {
  const name = creators.names.get(key.createdBy);
  return {
    id: key.id,
    name: key.name,
    scopes: key.scopes,
    ...(key.servers && (key.servers.length > 0 || !key.views) && { servers: key.servers }),
    ...(key.views && { views: key.views }),
    created_at: toIsoTime(key.createdAt),
    created_by: key.createdBy,
    ...(name !== undefined && { created_by_name: name }),
    ...(creators.orphanedKeyIds.has(key.id) && { creator_left: true as const }),
    ...(key.expiresAt !== undefined && { expires_at: toIsoTime(key.expiresAt) }),
    ...(key.lastUsedAt !== undefined && { last_used_at: toIsoTime(key.lastUsedAt) }),
    ...(key.revokedAt !== undefined && { revoked_at: toIsoTime(key.revokedAt) }),
    ...(key.limits && { limits: toLimitFields(key.limits) }),
  };
}

/** Maximum length of slug/view. */
const maxViewLength = 104;
/** Low, because creating a key reads the server of each of its views. */
const maxViewsPerKey = 50;

/** Maximum lifetime of a key in seconds: a little over ten years. */
const maxLifetimeS = 3660 * 24 * 60 * 60;

const createApiKey = operation({
  name: 'createApiKey',
  summary: 'Create an API key; the key itself is returned only once',
  description:
    'A key that is created with another key inherits its expiry and its limits as upper bounds, and is revoked with it. Its calls also count toward the limits of that key. Keys created by a person or the operator have no such bounds.',
  scope: 'manage:write',
  effect: 'write',
  createsCredential: true,
  isTool: false,
  input: z.strictObject({
    name: singleLineText(100).describe('Purpose of the key.'),
    scopes: z
      .array(z.enum(keyScopes))
      .min(1)
      .max(keyScopes.length)
      .describe('Scopes of the key: manage (or only manage:read or manage:write), and call.'),
    servers: z
      .array(z.string().max(63))
      .min(1)
      .max(100)
      .optional()
      .describe('Slugs of the servers to limit the key to.'),
    views: z
      .array(z.string().max(maxViewLength))
      .min(1)
      .max(maxViewsPerKey)
      .optional()
      .describe(
        'Views to limit the key to, each as slug/view, in addition to servers. Such a key can only have the scope call.',
      ),
    expires_at: z.iso.datetime().optional().describe('Time when the key expires; if absent, it never expires.'),
    expires_in: z
      .int()
      .min(1)
      .max(maxLifetimeS)
      .optional()
      .describe('Seconds until the key expires, by the clock of the service. Use instead of expires_at.'),
    ...keyLimitInputs,
  }),
  output: keyRecord.extend({ key: z.string().describe('The key itself. It cannot be shown again.') }),
  async run(context, input) {
    refuseBroaderScopes(context, input.scopes);
    if (input.servers) await refuseUnknownServers(context, input.servers);
    if (input.views) await refuseUnknownViews(context, input.views, input.scopes);
    const createdAt = context.now();
    const bounds = await getKeyBounds(context);
    refuseLongChain(bounds);
    const field = input.expires_in === undefined ? 'expires_at' : 'expires_in';
    const expiresAt = getBoundedExpiry(getExpiry(input, createdAt), field, bounds);
    refuseLimitsAboveActor(input, bounds, 'The key was not created');
    const limits = toKeyLimits({ ...toLimitFields(bounds.limits), ...input });
    const { id, key } = formatApiKey(context.random(9), context.random(32));
    const newKey: ApiKey = {
      id,
      workspaceId: context.actor.workspaceId,
      name: input.name,
      secretHash: hashSecret(key),
      scopes: [...new Set(input.scopes)],
      servers: input.servers ?? (input.views && []),
      ...(input.views && { views: [...new Set(input.views)] }),
      createdBy: context.actor.id,
      createdAt,
      expiresAt,
      revokedAt: undefined,
      lastUsedAt: undefined,
      ...(limits && { limits }),
    };
    await insertApiKey(context.db, newKey);
    await checkKeyQuota(context);
    return { ...toRecord(newKey, await findCreators(context, [newKey])), key };
  },
  audit: (_input, { id, name, scopes, servers, views, limits }) => ({
    target: id,
    detail: { name, scopes, ...(servers && { servers }), ...(views && { views }), ...(limits && { limits }) },
  }),
});

/**
 * Computes the expiry. A lifetime in seconds works even if the caller's clock differs from ours.
 * @throws AppError invalid
 */
function getExpiry(input: { expires_at?: string | undefined; expires_in?: number | undefined }, now: number) {
  const { expires_at, expires_in: seconds } = input;
  if (expires_at !== undefined && seconds !== undefined) {
    throw invalidInputError([
      { path: 'expires_in', message: 'cannot be combined with expires_at; allowed: one of the two' },
    ]);
  }
  if (seconds !== undefined) return now + seconds * 1000;
  if (expires_at === undefined) return undefined;
  const expiresAt = Date.parse(expires_at);
  if (expiresAt > now) return expiresAt;
  throw invalidInputError([{ path: 'expires_at', message: 'is in the past; allowed: a future time' }]);
}

/** Refuses to create a key with more scopes than the credential of the actor has. */
function refuseBroaderScopes(context: Context, requestedScopes: readonly (typeof keyScopes)[number][]): void {
  const { scopes } = context.actor;
  for (const scope of requestedScopes) {
    const isCovered = scope === 'manage' ? scopes.includes('manage') : hasScope(scopes, scope);
    if (!isCovered)
      throw new AppError(
        'forbidden',
        `a key with the scope ${scope} can only be created with a credential that has this scope`,
      );
  }
}

/** Maximum number of unknown slugs that get a hint. */
const maxHints = 5;

/** Refuses a key for an unknown server. A key stays valid if its server is deleted later. */
async function refuseUnknownServers(context: Context, slugs: readonly string[]): Promise<void> {
  const page = { limit: slugs.length, after: undefined };
  const { rows } = await listSlugs(context.db, context.actor.workspaceId, slugs, page);
  const knownSlugs = new Set(rows.map((row) => row.slug));
  const unknown = [...slugs.entries()].filter(([, slug]) => !knownSlugs.has(slug));
  if (unknown.length === 0) return;
  const problems: Problem[] = [];
  const suggestionBudget = createSuggestionBudget();
  for (const [index, slug] of unknown) {
    const suggestion = problems.length < maxHints ? await suggestSlugs(context, slug, suggestionBudget) : '';
    problems.push({
      path: `servers[${index}]`,
      message: `there is no server ${JSON.stringify(slug)} in this workspace${suggestion}`,
    });
  }
  throw invalidInputError(problems, 'The key was not created');
}

/** Refuses views that do not exist, and scopes other than `call`. @throws AppError invalid */
async function refuseUnknownViews(
  context: Context,
  views: readonly string[],
  scopes: readonly string[],
): Promise<void> {
  const unsupportedScope = scopes.find((scope) => scope !== 'call');
  if (unsupportedScope !== undefined) {
    const message = `a key that is limited to views can only call tools; found ${unsupportedScope}; allowed: call`;
    throw invalidInputError([{ path: 'scopes', message }], 'The key was not created');
  }
  const viewsBySlug = new Map<string, ReadonlySet<string>>();
  const problems: Problem[] = [];
  const suggestionBudget = createSuggestionBudget();
  for (const [index, requested] of views.entries()) {
    const [slug = '', view = '', ...extraSegments] = requested.split('/');
    const knownViews = viewsBySlug.get(slug) ?? (await getViewNames(context, slug));
    viewsBySlug.set(slug, knownViews);
    if (extraSegments.length === 0 && knownViews.has(view)) continue;
    const suggestion = suggestNearestOrList(
      requested,
      [...knownViews].map((name) => `${slug}/${name}`),
      suggestionBudget,
      { none: '', all: '; it has: ' },
    );
    problems.push({
      path: `views[${index}]`,
      message: `there is no view ${JSON.stringify(requested)} in this workspace; allowed: slug/view${suggestion}`,
    });
  }
  if (problems.length > 0) throw invalidInputError(problems, 'The key was not created');
}

async function getViewNames({ db, actor }: Context, slug: string): Promise<ReadonlySet<string>> {
  const server = await findServer(db, actor.workspaceId, slug);
  return new Set(Object.keys(server?.config.views ?? {}));
}

const listApiKeys = operation({
  name: 'listApiKeys',
  summary: 'List the API keys of the workspace, without the keys themselves',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({
    creator_id: z
      .string()
      .max(100)
      .optional()
      .describe('ID of a member. Returns only active keys that the member created, directly or with another key.'),
    query: queryInput.optional().describe('Words in the name, or the ID of a key. Cannot be combined with creator_id.'),
    ...pageInputs,
  }),
  output: z.object({ keys: z.array(keyRecord), next_cursor: nextCursor }),
  async run(context, input) {
    await context.serving?.flushCalls();
    const { db, actor } = context;
    const { workspaceId } = actor;
    const { creator_id: userId } = input;
    const { rows, next } = await (userId === undefined
      ? findApiKeys(db, workspaceId, { ...parsePage(input), query: input.query })
      : listActiveKeysCreatedBy(db, { workspaceId, userId, now: context.now() }, parsePage(input)));
    const creators = await findCreators(context, rows);
    return { keys: rows.map((key) => toRecord(key, creators)), next_cursor: next };
  },
});

async function findCreators(context: Context, keys: readonly ApiKey[]): Promise<Creators> {
  const { db, actor } = context;
  const creatorIds = keys.map(({ createdBy }) => createdBy);
  const names = await findActorNames(context, creatorIds);
  const origins = await findKeyOrigins(db, actor.workspaceId, keys);
  const members = await filterMembers(db, actor.workspaceId, [...new Set(origins.values())]);
  const withoutCreator = [...origins].filter(([, origin]) => origin.startsWith('usr_') && !members.has(origin));
  return { names, orphanedKeyIds: new Set(withoutCreator.map(([id]) => id)) };
}

/** Maximum number of revoked keys that a response lists; the count includes all. */
const maxListedKeys = 100;

/** Revokes many keys, a batch per statement. */
export async function revokeKeys(context: Context, keyIds: readonly string[], revokedAt: number): Promise<void> {
  const { db, actor } = context;
  for (const ids of toChunks(keyIds)) {
    await markKeysRevoked(db, actor.workspaceId, ids, revokedAt);
    await recordChanges(db, context, 'key', ids);
  }
}

const revokeApiKey = operation({
  name: 'revokeApiKey',
  summary: 'Revoke an API key and the keys that were created with it; they stop working everywhere within two seconds',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: false,
  input: z.strictObject({ id: z.string().max(100).describe('ID of the key (key_…).') }),
  output: z.object({
    revoked: z.string(),
    revoked_keys: z
      .array(z.string())
      .max(maxListedKeys)
      .optional()
      .describe(`IDs of the keys that were created with this key and are revoked with it; at most ${maxListedKeys}.`),
    revoked_key_count: z
      .int()
      .optional()
      .describe('Number of keys that were revoked with this key; absent if there were none.'),
  }),
  async run(context, { id }) {
    const { db, actor } = context;
    const at = context.now();
    const childKeyIds = (await findActiveKeysCreatedBy(db, actor.workspaceId, id, at)).map((key) => key.id);
    if (!(await markKeyRevoked(db, actor.workspaceId, id, at))) {
      throw new AppError('notFound', 'there is no such key in this workspace, or it is already revoked');
    }
    await recordChange(db, context, 'key', id);
    await revokeKeys(context, childKeyIds, at);
    if (childKeyIds.length === 0) return { revoked: id };
    return { revoked: id, revoked_keys: childKeyIds.slice(0, maxListedKeys), revoked_key_count: childKeyIds.length };
  },
  audit: ({ id }, { revoked: _, ...revokedKeys }) => ({ target: id, detail: revokedKeys }),
});

/** Upper bounds of a key for the keys that are created and changed with it; empty if the actor is not a key. */
type KeyBounds = {
  expiresAt: number | undefined;
  limits: KeyLimits;
  /** Number of keys that created each other, up to the actor. */
  chainLength: number;
};

async function getKeyBounds({ db, actor }: Context): Promise<KeyBounds> {
  const ownKey = actor.kind === 'api_key' ? await findApiKey(db, actor.id) : undefined;
  if (!ownKey) return { expiresAt: undefined, limits: {}, chainLength: 0 };
  const chain = [ownKey, ...(await findKeyAncestors(db, ownKey))];
  const limits = chain.reduce<KeyLimits>((limitsSoFar, key) => getLowerLimits(limitsSoFar, key.limits ?? {}), {});
  return { expiresAt: ownKey.expiresAt, limits, chainLength: chain.length };
}

/** @throws AppError forbidden */
function refuseLongChain({ chainLength }: KeyBounds): void {
  if (chainLength <= maxKeyChainLength) return;
  throw new AppError(
    'forbidden',
    `this key is the last of a chain of ${maxKeyChainLength} keys, each created with the previous one; create the key with an earlier one`,
  );
}

/** Returns the expiry of a new key, at the latest that of the key that creates it. @throws AppError invalid */
function getBoundedExpiry(requested: number | undefined, field: string, { expiresAt }: KeyBounds): number | undefined {
  if (requested === undefined || expiresAt === undefined || requested <= expiresAt) return requested ?? expiresAt;
  const message = `is after the expiry of the key that you use; allowed: until ${toIsoTime(expiresAt)}, which is also the default`;
  throw invalidInputError([{ path: field, message }], 'The key was not created');
}

/** Refuses limits above those of the actor, and the removal of limits that the actor has. @throws AppError invalid */
function refuseLimitsAboveActor(input: LimitInputs, { limits }: KeyBounds, outcome: string): void {
  const problems: Problem[] = [];
  for (const field of keyLimitFieldNames) {
    const ownLimit = limits[limitFields[field].name];
    const value = input[field];
    if (ownLimit === undefined || value === undefined || (value !== null && value <= ownLimit)) continue;
    problems.push({ path: field, message: `is above the limit of the key that you use; allowed: at most ${ownLimit}` });
  }
  if (problems.length > 0) throw invalidInputError(problems, outcome);
}

/** @throws AppError forbidden when a key would change its own limits */
function refuseChangingOwnLimits({ actor }: Context, id: string): void {
  if (actor.kind !== 'api_key' || actor.id !== id) return;
  throw new AppError(
    'forbidden',
    'a key cannot change its own limits; use another key with the scope manage, or the command line of the operator',
  );
}

const { calls_per_second, calls_per_minute, calls_per_day } = limitInputs;

const setKeyLimits = operation({
  name: 'setKeyLimits',
  summary: 'Set or remove the limits of an API key',
  description:
    'Absent limits stay as they are, and null removes a limit. Limits of keys that were created with this key, directly or indirectly, are lowered to the new limits. A key cannot change its own limits, and cannot raise limits of other keys above its own. The change takes effect in every process within two seconds.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({
    id: z.string().max(100).describe('ID of the key (key_…).'),
    calls_per_second,
    calls_per_minute,
    calls_per_day,
  }),
  output: z.object({ id: z.string(), limits: z.object(keyLimitInputs), unchanged: unchangedShape }),
  async run(context, { id, ...input }) {
    const { db, actor } = context;
    refuseChangingOwnLimits(context, id);
    refuseLimitsAboveActor(input, await getKeyBounds(context), 'The limits were not set');
    const before = await findKeyLimits(db, actor.workspaceId, id);
    if (!before) throw new AppError('notFound', 'there is no such key in this workspace, or it is revoked');
    const limits = toKeyLimits(toLimitFields(applyLimitChanges(before, input)));
    if (areLimitsEqual(before, limits ?? {})) return { id, limits: toLimitFields(before), unchanged: true as const };
    const childLimits = await findLoweredLimits(context, id, limits ?? {});
    await storeKeyLimits(context, new Map([[id, limits ?? {}], ...childLimits]));
    return { id, limits: toLimitFields(limits ?? {}) };
  },
  audit: ({ id, ...limits }) => ({ target: id, detail: limits }),
  isUnchanged,
});

/** Returns the lowered limits of all keys that were created with a key, even indirectly, and exceed its limits. */
async function findLoweredLimits(
  { db, actor, now }: Context,
  id: string,
  upperBounds: KeyLimits,
): Promise<[string, KeyLimits][]> {
  const childKeys = await findActiveKeysCreatedBy(db, actor.workspaceId, id, now());
  return childKeys.flatMap(({ id: key, limits = {} }): [string, KeyLimits][] => {
    const lowered = getLowerLimits(limits, upperBounds);
    return areLimitsEqual(limits, lowered) ? [] : [[key, lowered]];
  });
}

/** Stores the limits of keys. Keys with equal limits share statements, so thousands need only a few. */
async function storeKeyLimits(context: Context, limitsByKey: ReadonlyMap<string, KeyLimits>): Promise<void> {
  const { db, actor } = context;
  const groups = Map.groupBy(limitsByKey.keys(), (id) => JSON.stringify(limitsByKey.get(id)));
  for (const [limitsJson, keyIds] of groups) {
    const limits = toKeyLimits(toLimitFields(JSON.parse(limitsJson) as KeyLimits));
    for (const ids of toChunks(keyIds)) {
      await updateKeyLimits(db, actor.workspaceId, ids, limits);
      await recordChanges(db, context, 'key', ids);
    }
  }
}

/** Returns the lower of each limit; an absent limit is unlimited. */
function getLowerLimits(a: KeyLimits, b: KeyLimits): KeyLimits {
  const names = new Set([...Object.keys(a), ...Object.keys(b)] as (keyof KeyLimits)[]);
  return Object.fromEntries([...names].map((name) => [name, Math.min(a[name] ?? Infinity, b[name] ?? Infinity)]));
}

export const apiKeyOperations = { createApiKey, listApiKeys, revokeApiKey, setKeyLimits };
