import {
  type ConfiguredLimits,
  circuitStates,
  type KeyLimits,
  type keyLimitFieldNames,
  type LimitField,
  type LimitInputs,
  type LimitUse,
  limitFieldNames,
  limitFields,
  limitSources,
  resolveServerLimit,
  resolveWorkspaceLimit,
  type SourcedLimit,
  workspaceLimitFactor,
} from '@toolhost/limits/call-limits';
import { maxTools } from '@toolhost/tool-config/server-config';
import { getOrigins } from '@toolhost/tool-config/server-wide';
import { z } from 'zod';
import { recordChange } from '../store/changes/follow-changes.ts';
import { type StoredServer, updateServerLimits as storeServerLimits } from '../store/servers/servers.ts';
import { findWorkspaceLimits, updateWorkspaceLimits as storeWorkspaceLimits } from '../store/workspaces.ts';
import { getServer } from './find-server.ts';
import { type Context, operation } from './operation.ts';
import { nameSchema } from './schema-names.ts';
import { publishChange } from './servers/store-server.ts';
import { isUnchanged, slugInput, time, toIsoTime, unchangedShape } from './shapes.ts';

type KeyField = (typeof keyLimitFieldNames)[number];

const boundedLimit = (field: LimitField) => z.int().min(1).max(limitFields[field].max);

const settableLimit = (field: LimitField) => {
  const nullEffect =
    field.startsWith('calls_per_') && field !== 'calls_per_second' ? 'removes the quota' : 'resets it to the default';
  return boundedLimit(field).nullable().optional().describe(`${limitFields[field].label}; null ${nullEffect}.`);
};

/** Inputs for the limits of a server or a workspace. Absent limits stay as they are. */
export const limitInputs = {
  calls_per_second: settableLimit('calls_per_second'),
  concurrent_calls: settableLimit('concurrent_calls'),
  calls_per_minute: settableLimit('calls_per_minute'),
  calls_per_day: settableLimit('calls_per_day'),
};

const keyLimit = (field: KeyField) =>
  boundedLimit(field).optional().describe(`${limitFields[field].label} with this key.`);

export const keyLimitInputs = {
  calls_per_second: keyLimit('calls_per_second'),
  calls_per_minute: keyLimit('calls_per_minute'),
  calls_per_day: keyLimit('calls_per_day'),
};

/** Converts public fields to stored limits, without null and absent fields. */
export function toStoredLimits(input: LimitInputs): ConfiguredLimits {
  const limits: ConfiguredLimits = {};
  for (const field of limitFieldNames) {
    const value = input[field];
    if (typeof value === 'number') limits[limitFields[field].name] = value;
  }
  return limits;
}

/** Converts stored limits to public fields. */
export function toLimitFields(limits: ConfiguredLimits): { [Field in LimitField]?: number } {
  const fields: { [Field in LimitField]?: number } = {};
  for (const field of limitFieldNames) {
    const value = limits[limitFields[field].name];
    if (value !== undefined) fields[field] = value;
  }
  return fields;
}

/** Applies a change to limits: a number replaces a limit, null removes it. */
export function applyLimitChanges(before: ConfiguredLimits, input: LimitInputs): ConfiguredLimits {
  return toStoredLimits({
    ...toLimitFields(before),
    ...Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)),
  });
}

export function areLimitsEqual(a: ConfiguredLimits, b: ConfiguredLimits): boolean {
  return limitFieldNames.every((field) => a[limitFields[field].name] === b[limitFields[field].name]);
}

/** Returns the limits of a key, or undefined if it has none. */
export function toKeyLimits(input: LimitInputs): KeyLimits | undefined {
  const { concurrentCalls: _, ...limits } = toStoredLimits(input);
  return Object.keys(limits).length > 0 ? limits : undefined;
}

const limitRecord = z.object({
  limit: z.number().optional().describe('Limit in effect; absent if there is no limit.'),
  from: z
    .enum(limitSources)
    .describe('Origin of the limit. With workspace, the limit for all servers of the workspace together applies.'),
  set: z.number().optional().describe('Limit that was set here; absent if none was set.'),
});
nameSchema('Limit', limitRecord);
const useRecord = z
  .object({
    running: z.int(),
    waiting: z.int(),
    refused: z.int().describe('Calls that were refused in the last minute.'),
  })
  .describe('Current usage in the process that responds; absent if it serves no calls.');
const limitsRecord = z.object({
  calls_per_second: limitRecord,
  concurrent_calls: limitRecord,
  calls_per_minute: limitRecord.optional().describe('Absent if there is no quota.'),
  calls_per_day: limitRecord.optional().describe('Absent if there is no quota.'),
  use: useRecord.optional(),
});
nameSchema('Limits', limitsRecord);
const serverLimits = limitsRecord.extend({
  slug: z.string(),
  concurrent_calls_per_key: z.number().optional().describe('Concurrent calls with one key or login.'),
  workspace: limitsRecord.describe('Limits for all servers of the workspace together.'),
  upstreams: z
    .array(
      z.object({
        origin: z.string(),
        state: z
          .enum(circuitStates)
          .describe('With open, the upstream fails too often, so no requests are sent until the next attempt.'),
        calls: z.int().describe('Calls in the last 30 seconds.'),
        failures: z.int().describe('Failures among these calls.'),
        next_attempt_at: time.optional(),
      }),
    )
    .max(maxTools)
    .describe('State of the upstreams in the process that responds.'),
});
nameSchema('ServerLimits', serverLimits);

const toLimitRecord = ({ value, from }: SourcedLimit, set: number | undefined): z.input<typeof limitRecord> => ({
  ...(value !== 0 && { limit: value }),
  from,
  ...(set !== undefined && { set }),
});

const quotaFields = ['calls_per_minute', 'calls_per_day'] as const;

/** Returns the output fields of the quotas that have a limit. */
function toQuotaRecords(
  recordFor: (
    name: 'callsPerMinute' | 'callsPerDay',
    field: (typeof quotaFields)[number],
  ) => z.input<typeof limitRecord>,
) {
  const records = quotaFields.map((field) => [field, recordFor(limitFields[field].name, field)] as const);
  return Object.fromEntries(records.filter(([, { limit }]) => limit !== undefined));
}

async function getWorkspaceRecord(context: Context): Promise<z.input<typeof limitsRecord>> {
  const { defaultLimits, actor } = context;
  const configured = await findWorkspaceLimits(context.db, actor.workspaceId);
  return {
    calls_per_second: toLimitRecord(
      resolveWorkspaceLimit('callsPerSecond', defaultLimits, configured),
      configured.callsPerSecond,
    ),
    concurrent_calls: toLimitRecord(
      resolveWorkspaceLimit('concurrentCalls', defaultLimits, configured),
      configured.concurrentCalls,
    ),
    ...toQuotaRecords((name) =>
      toLimitRecord(resolveWorkspaceLimit(name, defaultLimits, configured), configured[name]),
    ),
    ...toUseField(context.serving?.currentUsage.getWorkspaceUsage(actor.workspaceId)),
  };
}

async function getServerRecord(context: Context, server: StoredServer): Promise<z.input<typeof serverLimits>> {
  const { defaultLimits } = context;
  const currentUsage = context.serving?.currentUsage;
  const workspace = await getWorkspaceRecord(context);
  const configured = server.limits ?? {};
  const toCappedRecord = (name: keyof ConfiguredLimits, cap: z.input<typeof limitRecord> = { from: 'default' }) =>
    toLimitRecord(
      resolveServerLimit(name, defaultLimits, configured, { value: cap.limit ?? 0, from: cap.from }),
      configured[name],
    );
  return {
    slug: server.slug,
    calls_per_second: toCappedRecord('callsPerSecond', workspace.calls_per_second),
    concurrent_calls: toCappedRecord('concurrentCalls', workspace.concurrent_calls),
    ...toQuotaRecords((name, field) => toCappedRecord(name, workspace[field])),
    ...(defaultLimits.concurrentPerKey !== 0 && { concurrent_calls_per_key: defaultLimits.concurrentPerKey }),
    ...toUseField(currentUsage?.getServerUsage(server.id)),
    workspace,
    upstreams: currentUsage ? getOrigins(server.config).map((origin) => toUpstreamRecord(context, server, origin)) : [],
  };
}

const toUseField = (use: LimitUse | undefined) => (use ? { use } : {});

function toUpstreamRecord(context: Context, server: StoredServer, origin: string) {
  const circuit = context.serving?.currentUsage.getCircuit(server.workspaceId, origin);
  const { state = 'closed', calls = 0, failures = 0, retryAfterMs } = circuit ?? {};
  const nextAttempt = retryAfterMs === undefined ? {} : { next_attempt_at: toIsoTime(context.now() + retryAfterMs) };
  return { origin, state, calls, failures, ...nextAttempt };
}

const formatLimit = ({ limit, from }: z.input<typeof limitRecord>) =>
  `${limit ?? 'any number'} (${from === 'workspace' ? 'capped by the workspace' : from})`;

function formatServerLimits(output: z.input<typeof serverLimits>): string {
  const lines = [
    `The server ${output.slug} accepts ${formatLimit(output.calls_per_second)} calls per second and runs ${formatLimit(output.concurrent_calls)} concurrently.`,
  ];
  for (const [span, quota] of [
    ['minute', output.calls_per_minute],
    ['day', output.calls_per_day],
  ] as const) {
    if (quota) lines.push(`It accepts ${formatLimit(quota)} calls per ${span}.`);
  }
  const { use } = output;
  if (use)
    lines.push(`Now: ${use.running} running, ${use.waiting} waiting, ${use.refused} refused in the last minute.`);
  for (const { origin, state, next_attempt_at } of output.upstreams) {
    if (state !== 'closed') lines.push(`${origin} is failing: no requests are sent to it until ${next_attempt_at}.`);
  }
  return lines.join('\n');
}

const getServerLimits = operation({
  name: 'getServerLimits',
  summary: 'Get the call limits of a hosted server and their current usage',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output: serverLimits,
  run: async (context, { slug }) => getServerRecord(context, await getServer(context, slug)),
  toAgentText: formatServerLimits,
});

const setServerLimits = operation({
  name: 'setServerLimits',
  summary: 'Set or reset the call limits of a hosted server',
  description: 'Absent limits stay as they are. The workspace limits, which the operator sets, cap them.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput, ...limitInputs }),
  output: serverLimits.extend({ unchanged: unchangedShape }),
  async run(context, input) {
    const server = await getServer(context, input.slug);
    const before = server.limits ?? {};
    const limits = applyLimitChanges(before, input);
    if (areLimitsEqual(before, limits))
      return { ...(await getServerRecord(context, server)), unchanged: true as const };
    await storeServerLimits(context.db, server, limits);
    await publishChange(context, server);
    return getServerRecord(context, { ...server, limits });
  },
  isUnchanged,
  audit: ({ slug, ...limits }) => ({ target: slug, detail: limits }),
  toAgentText: formatServerLimits,
});

const getWorkspaceLimits = operation({
  name: 'getWorkspaceLimits',
  summary: 'Get the call limits for all servers of the workspace together and their current usage',
  description: `By default, they are ${workspaceLimitFactor} times those of one server.`,
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({}),
  output: limitsRecord,
  run: getWorkspaceRecord,
});

export const setWorkspaceLimits = operation({
  name: 'setWorkspaceLimits',
  summary: 'Set or reset the call limits for all servers of a workspace together',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject(limitInputs),
  output: limitsRecord.extend({ unchanged: unchangedShape }),
  async run(context, input) {
    const { workspaceId } = context.actor;
    const before = await findWorkspaceLimits(context.db, workspaceId);
    const limits = applyLimitChanges(before, input);
    if (areLimitsEqual(before, limits)) return { ...(await getWorkspaceRecord(context)), unchanged: true as const };
    await storeWorkspaceLimits(context.db, workspaceId, limits);
    await recordChange(context.db, context, 'workspace', workspaceId);
    return getWorkspaceRecord(context);
  },
  isUnchanged,
  audit: (input) => ({ detail: input }),
});

export const limitOperations = { getServerLimits, setServerLimits, getWorkspaceLimits };
