import { z } from 'zod';
import { type ServerConfig, splitSecrets } from '../../domain/config/server-config.ts';
import { changesBetween, type FieldChange, undonePaths } from '../../domain/config-changes.ts';
import { covers } from '../../domain/credentials/credential.ts';
import type { SetLimits } from '../../domain/limits.ts';
import type { Warning } from '../../domain/warnings/warnings.ts';
import { AppError, invalid, type Problem } from '../../errors.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { findVersion } from '../../store/servers/server-versions.ts';
import { isSlugTaken, type StoredServer, setApplied, updateServerLimits } from '../../store/servers/servers.ts';
import { checkConfig, precheck } from '../check-config.ts';
import { fieldsOf, type LimitInputs, limitInputs, limitsFrom } from '../limits.ts';
import { type Context, operation } from '../operation.ts';
import { mostSecrets, secretNameInput, secretNameProblem, secretValueInput, storeSecret } from '../servers/secrets.ts';
import {
  changeServer,
  checkMasks,
  createServer,
  isSecretStored,
  noteChange,
  stored,
  storedAnswer,
  takenSentence,
} from '../servers/store-server.ts';
import {
  changesShape,
  findOwnServer,
  firstWarnings,
  isUnchanged,
  mostChanges,
  problemsShape,
  shownChanges,
  slugInput,
  unchangedShape,
  warningsShape,
} from '../shapes.ts';

/** State of a server as a file describes it. Absent fields stay as they are. */
export type Wanted = {
  slug: string;
  config: unknown;
  secrets?: { [name: string]: string } | undefined;
  limits?: LimitInputs | undefined;
  label?: string | undefined;
};

/** Differences between a server and its desired state. They never contain values of secrets. */
type ApplyPlan = {
  /** Undefined for a server that does not exist yet. */
  current: StoredServer | undefined;
  /** The configuration with its defaults, secrets included; undefined if it has problems. */
  config: ServerConfig | undefined;
  changes: FieldChange[];
  /** Paths of changes that would undo a change made elsewhere since the last apply. */
  undone: string[];
  /** Names of secrets that were provided but that this actor may not compare. */
  notCompared: string[];
  problems: readonly Problem[];
  warnings: readonly Warning[];
};

/** Compares a server with its desired state. @throws AppError tooLarge, tooMany */
export async function planOf(context: Context, wanted: Wanted): Promise<ApplyPlan> {
  const of = await checkOf(context, wanted);
  const { current } = of;
  const { config, problems, warnings } = await checkConfig(context, wanted.config, of);
  const base = { current, config, undone: [], notCompared: [], problems, warnings };
  if (!config) return { ...base, changes: [] };
  const refused = await refusals(context, wanted, { current, config });
  if (refused.length > 0) return { ...base, config: undefined, problems: refused, changes: [] };
  const { masked, secrets } = splitSecrets(config);
  const changes = current ? await changesBetween(current.config, masked) : [];
  const compared = await compareSecrets(context, current, { masked, inConfig: secrets, given: wanted.secrets ?? {} });
  return {
    ...base,
    changes: [
      ...changes,
      ...compared.changes,
      ...(await limitChanges(current?.limits ?? {}, wanted.limits)),
      ...labelChange(current?.label, wanted.label),
    ],
    undone: current ? await undoneBy(context, current, masked) : [],
    notCompared: compared.notCompared,
  };
}

/** Finds the server, and the names of the secrets that will have a value. */
export async function checkOf(
  context: Context,
  { slug, secrets }: Pick<Wanted, 'slug' | 'secrets'>,
): Promise<{ current: StoredServer | undefined; stored: string[] }> {
  const current = await findOwnServer(context, slug);
  const known = current ? await findSecrets(context.db, current) : [];
  return { current, stored: [...known.map(({ name }) => name), ...Object.keys(secrets ?? {})] };
}

async function refusals(
  context: Context,
  { slug, secrets = {} }: Wanted,
  { current, config }: { current: StoredServer | undefined; config: ServerConfig },
): Promise<readonly Problem[]> {
  if (config.slug !== slug)
    return [{ path: 'slug', message: `found "${config.slug}"; allowed: "${slug}", the slug in the request` }];
  if (!current && (await isSlugTaken(context.db, slug)))
    return [{ path: 'slug', message: await takenSentence(context, slug) }];
  const names = Object.keys(secrets).flatMap((name) => {
    const message = secretNameProblem(config, name);
    return message === undefined ? [] : [{ path: `secrets.${name}`, message }];
  });
  if (names.length > 0) return names;
  try {
    checkMasks(config, current ? await findSecrets(context.db, current) : []);
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return error.problems;
  }
}

/** Compares secrets. Only actors that may store secrets learn if a value equals the stored one. */
async function compareSecrets(
  context: Context,
  current: StoredServer | undefined,
  given: { masked: ServerConfig; inConfig: ReadonlyMap<string, string>; given: { [name: string]: string } },
): Promise<{ changes: FieldChange[]; notCompared: string[] }> {
  const values = [...given.inConfig, ...Object.entries(given.given)];
  if (!covers(context.actor.scopes, 'manage:write')) return { changes: [], notCompared: values.map(([name]) => name) };
  const changes: FieldChange[] = [];
  const known = new Set(current ? (await findSecrets(context.db, current)).map(({ name }) => name) : []);
  const server = current && { ...current, config: given.masked };
  for (const [name, value] of values) {
    const isInConfig = given.inConfig.has(name);
    const isSame = server && (await isSecretStored(context, server, name, value));
    if (!isSame) changes.push({ path: isInConfig ? name : `secrets.${name}`, ...maskedChange(known.has(name)) });
  }
  return { changes, notCompared: [] };
}

const hidden = '(a secret)';
const maskedChange = (isKnown: boolean) => ({ ...(isKnown && { before: hidden }), after: hidden });

async function limitChanges(before: SetLimits, wanted: LimitInputs | undefined): Promise<FieldChange[]> {
  if (!wanted) return [];
  const after = fieldsOf(limitsFrom(wanted));
  return (await changesBetween(fieldsOf(before), after)).map((change) => ({
    ...change,
    path: `limits.${change.path}`,
  }));
}

function labelChange(before: string | undefined, wanted: string | undefined): FieldChange[] {
  if (wanted === undefined || wanted === before) return [];
  return [{ path: 'label', ...(before !== undefined && { before }), after: wanted }];
}

async function undoneBy(context: Context, current: StoredServer, masked: ServerConfig): Promise<string[]> {
  const { appliedVersion } = current;
  if (appliedVersion === undefined || appliedVersion === current.version) return [];
  const base = await findVersion(context.db, current, appliedVersion);
  return undonePaths(base?.config, current.config, masked);
}

const labelInput = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, 'allowed: 1 to 63 letters, digits, . _ / -')
  .describe('Name of the set of files that the server belongs to; unchanged if absent.');

const wantedShape = {
  slug: slugInput,
  config: z.record(z.string(), z.unknown()).describe('Complete configuration, with the same slug.'),
  secrets: z
    .record(secretNameInput, secretValueInput)
    .refine((secrets) => Object.keys(secrets).length <= mostSecrets, `allowed: at most ${mostSecrets} secrets`)
    .optional()
    .describe('Values of secrets, by name. Other stored secrets stay as they are.'),
  limits: z
    .strictObject(limitInputs)
    .optional()
    .describe('Complete set of limits. Limits that are absent from the object are reset to their defaults.'),
  label: labelInput.optional(),
};

const changeKinds = ['created', 'changed', 'same'] as const;
/**
 * Returns the differences for a response. A new server has none, because they are its whole configuration, which the
 * caller has.
 */
function changesOf({ current, changes }: ApplyPlan): z.input<typeof changesShape> {
  return current ? shownChanges(changes) : [];
}

function kindOf({ current, changes }: ApplyPlan): (typeof changeKinds)[number] {
  if (!current) return 'created';
  return changes.length > 0 ? 'changed' : 'same';
}

const planMcpServer = operation({
  name: 'planMcpServer',
  summary: 'Compare a hosted server with a configuration without storing anything',
  description:
    'Returns what applyMcpServer would do. Values of secrets are only compared if the credential has the scope manage:write.',
  scope: 'manage:read',
  effect: 'read',
  isTool: false,
  input: z.strictObject(wantedShape),
  long: { field: 'config' },
  output: z.object({
    change: z.enum(changeKinds).describe('With created, the server does not exist yet.'),
    version: z.int().min(0).describe('Version of the server; 0 if it does not exist.'),
    applied_version: z.int().optional().describe('Version that was applied last; absent if none was.'),
    label: z.string().optional(),
    changes: changesShape,
    undone: z
      .array(z.string())
      .max(mostChanges)
      .describe('Paths of changes that would undo a change made elsewhere since the last apply.'),
    not_compared: z
      .array(z.string())
      .max(mostSecrets + 10)
      .describe('Secrets that this credential may not compare.'),
    problems: problemsShape,
    warnings: warningsShape,
  }),
  async run(context, input) {
    const plan = await planOf(context, input);
    const { current } = plan;
    return {
      change: kindOf(plan),
      version: current?.version ?? 0,
      ...(current?.appliedVersion !== undefined && { applied_version: current.appliedVersion }),
      ...(current?.label !== undefined && { label: current.label }),
      changes: changesOf(plan),
      undone: plan.undone.slice(0, mostChanges),
      not_compared: plan.notCompared,
      problems: [...plan.problems],
      warnings: plan.config ? firstWarnings(plan.warnings) : [],
    };
  },
});

const applyMcpServer = operation({
  name: 'applyMcpServer',
  summary: 'Create a hosted server or change it to match a configuration, secrets, limits, and label',
  description:
    'Everything or nothing is stored. The operation is idempotent. It does not undo a change made elsewhere since the last apply unless overwrite is true.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({
    ...wantedShape,
    expected_version: z
      .int()
      .min(0)
      .optional()
      .describe(
        'Version that planMcpServer reported; 0 if there was no server. If the current version differs, the request fails with a conflict.',
      ),
    overwrite: z
      .boolean()
      .optional()
      .describe(
        'If true, also undoes changes that were made elsewhere, and takes over a server that belongs to another label.',
      ),
  }),
  long: { field: 'config' },
  output: stored.extend({
    change: z.enum(changeKinds),
    changes: changesShape,
    unchanged: unchangedShape,
  }),
  precheck: async (context, input) => precheck(context, input.config, await checkOf(context, input)),
  async run(context, input) {
    const plan = await planOf(context, input);
    if (plan.problems.length > 0)
      throw invalid(plan.problems, 'The server was not stored; its configuration is not valid');
    refuseConflicts(plan, input);
    const kind = kindOf(plan);
    const server = await storeWanted(context, plan, input);
    const isSame = kind === 'same' && plan.current?.appliedVersion === server.version;
    return {
      ...(await storedAnswer(context, { server, isUnchanged: isSame })),
      change: kind,
      changes: changesOf(plan),
    };
  },
  isUnchanged,
  audit: ({ slug, label, secrets }, { server, change, changes }) => ({
    target: slug,
    detail: {
      version: server.version,
      change,
      fields: changes.slice(0, 20).map(({ path }) => path),
      ...(secrets && { secrets: Object.keys(secrets) }),
      ...(label !== undefined && { label }),
    },
  }),
});

/** @throws AppError conflict */
function refuseConflicts(
  { current, undone }: ApplyPlan,
  {
    expected_version,
    overwrite,
    label,
  }: { expected_version?: number | undefined; overwrite?: boolean | undefined; label?: string | undefined },
): void {
  const version = current?.version ?? 0;
  if (expected_version !== undefined && expected_version !== version)
    throw new AppError('conflict', `the server was changed in the meantime and is at version ${version}; apply again`);
  if (overwrite) return;
  if (current?.label !== undefined && label !== undefined && label !== current.label)
    throw new AppError(
      'conflict',
      `the server belongs to the label ${current.label}; apply it with that label, or with overwrite`,
    );
  if (undone.length > 0)
    throw new AppError(
      'conflict',
      `the server was changed elsewhere since it was applied (version ${current?.appliedVersion}, now ${version}); this would undo: ${undone.slice(0, 5).join(', ')}; update the configuration, or apply with overwrite`,
    );
}

async function storeWanted(context: Context, { current }: ApplyPlan, wanted: Wanted): Promise<StoredServer> {
  const server = current
    ? (await changeServer(context, current, wanted.config, undefined)).server
    : await createServer(context, wanted.config);
  for (const [name, value] of Object.entries(wanted.secrets ?? {})) await storeSecret(context, server, name, value);
  const limits = wanted.limits ? limitsFrom(wanted.limits) : server.limits;
  if (wanted.limits) await updateServerLimits(context.db, server, limitsFrom(wanted.limits));
  const applied = { label: wanted.label ?? server.label, appliedVersion: server.version };
  await setApplied(context.db, server, applied);
  await noteChange(context, server);
  return {
    ...server,
    appliedVersion: server.version,
    ...(limits && { limits }),
    ...(applied.label !== undefined && { label: applied.label }),
  };
}

export const applyOperations = { planMcpServer, applyMcpServer };
