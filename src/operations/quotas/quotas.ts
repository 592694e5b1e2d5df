import { z } from 'zod';
import { mostQuota, type QuotaName, type Quotas, quotaKinds, quotaNames, type SetQuotas } from '../../domain/quotas.ts';
import {
  countKeys,
  countPeople,
  countSecrets,
  countServers,
  countSlugs,
  findSetQuotas,
  setQuotas,
  writesAt,
} from '../../store/quotas.ts';
import { type Context, operation } from '../operation.ts';
import { isUnchanged, unchangedShape } from '../shapes.ts';

const quotaRecord = z.object({
  limit: z.int().optional().describe('What is allowed; absent when there is no limit.'),
  from: z.enum(['default', 'set']),
  used: z
    .number()
    .optional()
    .describe('What there is now; absent for tools and versions, which are counted for each server.'),
});

type Each<Value> = { [Name in QuotaName]: Value };

function each<Value>(make: (name: QuotaName) => Value): Each<Value> {
  return Object.fromEntries(quotaNames.map((name) => [name, make(name)])) as Each<Value>;
}

const quotasOutput = z.object(each((name) => quotaRecord.describe(`${sentence(quotaKinds[name].what)}.`)));
const quotaInput = z.int().min(0).max(mostQuota).nullable().optional();

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

async function shown(context: Context): Promise<z.input<typeof quotasOutput>> {
  const { db, actor, defaultQuotas } = context;
  const set = await findSetQuotas(db, actor.workspaceId);
  const used = await usedIn(context);
  return each((name) => {
    const limit = set[name] ?? defaultQuotas[name];
    const found = used[name];
    return {
      ...(limit !== 0 && { limit }),
      from: set[name] === undefined ? ('default' as const) : ('set' as const),
      ...(found !== undefined && { used: found }),
    };
  });
}

async function usedIn({ db, actor, now }: Context): Promise<Partial<Quotas>> {
  const { workspaceId } = actor;
  const { servers, bytes } = await countServers(db, workspaceId);
  const { inMinute, inDay } = await writesAt(db, workspaceId, now());
  return {
    servers,
    slugs: await countSlugs(db, workspaceId),
    megabytes: Math.round(bytes / 10_000) / 100,
    secrets: await countSecrets(db, workspaceId),
    keys: await countKeys(db, workspaceId, now()),
    members: await countPeople(db, workspaceId),
    writes: inMinute,
    dailywrites: inDay,
  };
}

const getWorkspaceQuotas = operation({
  name: 'getWorkspaceQuotas',
  summary: 'Get how much the workspace may store and change, and how much of it is used',
  description: 'What is above a quota is refused. The operator of the service sets them.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({}),
  output: quotasOutput,
  run: shown,
});

export const setWorkspaceQuotas = operation({
  name: 'setWorkspaceQuotas',
  summary: 'Set or reset how much a workspace may store and change',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject(
    each((name) =>
      quotaInput.describe(`${sentence(quotaKinds[name].what)}; 0 is no limit, null goes back to the default.`),
    ),
  ),
  output: quotasOutput.extend({ unchanged: unchangedShape }),
  async run(context, input) {
    const before = await findSetQuotas(context.db, context.actor.workspaceId);
    const after = each((name) => (input[name] === undefined ? before[name] : (input[name] ?? undefined)));
    if (quotaNames.every((name) => before[name] === after[name]))
      return { ...(await shown(context)), unchanged: true as const };
    await setQuotas(context.db, context.actor.workspaceId, JSON.parse(JSON.stringify(after)) as SetQuotas);
    return shown(context);
  },
  isUnchanged,
  audit: (input) => ({ detail: input }),
});

export const quotaOperations = { getWorkspaceQuotas };
