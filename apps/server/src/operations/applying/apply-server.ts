import { hasScope } from '@toolhost/credentials/credential';
import { AppError, invalidInputError, type Problem } from '@toolhost/errors/errors';
import type { ConfiguredLimits, LimitInputs } from '@toolhost/limits/call-limits';
import { diffConfigs, type FieldChange, findOverwrittenPaths } from '@toolhost/tool-config/config-changes';
import { type ServerConfig, splitSecrets } from '@toolhost/tool-config/server-config';
import type { Warning } from '@toolhost/tool-config/warning';
import { z } from 'zod';
import { findSecrets } from '../../store/servers/secrets.ts';
import { findVersion } from '../../store/servers/server-versions.ts';
import { isSlugTaken, type StoredServer, setAppliedVersion, updateServerLimits } from '../../store/servers/servers.ts';
import { checkConfig, findSecretNames, prepareConfig } from '../check-config.ts';
import { findWorkspaceServer } from '../find-server.ts';
import { limitInputs, toLimitFields, toStoredLimits } from '../limits.ts';
import { type Context, operation } from '../operation.ts';
import { findNameProblem, maxSecrets, secretNameInput, secretValueInput, storeSecret } from '../servers/secrets.ts';
import {
  changeServer,
  checkStoredSecrets,
  createServer,
  createStoredResult,
  getSlugTakenMessage,
  isSecretStored,
  publishChange,
  storeResultShape,
} from '../servers/store-server.ts';
import {
  changesShape,
  formatChanges,
  isUnchanged,
  limitWarnings,
  maxChanges,
  problemsShape,
  slugInput,
  unchangedShape,
  warningsShape,
} from '../shapes.ts';

/** State of a server as a file describes it. Absent fields stay as they are. */
export type DesiredServer = {
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
export async function planApply(context: Context, desired: DesiredServer): Promise<ApplyPlan> {
  const current = await findWorkspaceServer(context, desired.slug);
  const secretNames = await findSecretNames(context, current, desired.secrets);
  const { config, problems, warnings } = await checkConfig(context, desired.config, { current, secrets: secretNames });
  const base = { current, config, undone: [], notCompared: [], problems, warnings };
  if (!config) return { ...base, changes: [] };
  const refusals = await findRefusals(context, desired, { current, config });
  if (refusals.length > 0) return { ...base, config: undefined, problems: refusals, changes: [] };
  const { masked, secrets } = splitSecrets(config);
  const changes = current ? await diffConfigs(current.config, masked) : [];
  const compared = await compareSecrets(context, current, {
    masked,
    configSecrets: secrets,
    named: desired.secrets ?? {},
  });
  return {
    ...base,
    changes: [
      ...changes,
      ...compared.changes,
      ...(await getLimitChanges(current?.limits ?? {}, desired.limits)),
      ...getLabelChanges(current?.label, desired.label),
    ],
    undone: current ? await findUndonePaths(context, current, masked) : [],
    notCompared: compared.notCompared,
  };
}

async function findRefusals(
  context: Context,
  { slug, secrets = {} }: DesiredServer,
  { current, config }: { current: StoredServer | undefined; config: ServerConfig },
): Promise<readonly Problem[]> {
  if (config.slug !== slug)
    return [{ path: 'slug', message: `found "${config.slug}"; allowed: "${slug}", the slug in the request` }];
  if (!current && (await isSlugTaken(context.db, slug)))
    return [{ path: 'slug', message: await getSlugTakenMessage(context, slug) }];
  const nameProblems = Object.keys(secrets).flatMap((name) => {
    const message = findNameProblem(config, name);
    return message === undefined ? [] : [{ path: `secrets.${name}`, message }];
  });
  if (nameProblems.length > 0) return nameProblems;
  try {
    checkStoredSecrets(config, current ? await findSecrets(context.db, current) : []);
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
  desired: { masked: ServerConfig; configSecrets: ReadonlyMap<string, string>; named: { [name: string]: string } },
): Promise<{ changes: FieldChange[]; notCompared: string[] }> {
  const values = [...desired.configSecrets, ...Object.entries(desired.named)];
  if (!hasScope(context.actor.scopes, 'manage:write'))
    return { changes: [], notCompared: values.map(([name]) => name) };
  const changes: FieldChange[] = [];
  const storedNames = new Set(current ? (await findSecrets(context.db, current)).map(({ name }) => name) : []);
  const server = current && { ...current, config: desired.masked };
  for (const [name, value] of values) {
    const isInConfig = desired.configSecrets.has(name);
    const isSecretUnchanged = server && (await isSecretStored(context, server, name, value));
    if (!isSecretUnchanged)
      changes.push({ path: isInConfig ? name : `secrets.${name}`, ...maskChange(storedNames.has(name)) });
  }
  return { changes, notCompared: [] };
}

const hiddenSecret = '(a secret)';
const maskChange = (wasStored: boolean) => ({ ...(wasStored && { before: hiddenSecret }), after: hiddenSecret });

async function getLimitChanges(before: ConfiguredLimits, desired: LimitInputs | undefined): Promise<FieldChange[]> {
  if (!desired) return [];
  const after = toLimitFields(toStoredLimits(desired));
  return (await diffConfigs(toLimitFields(before), after)).map((change) => ({
    ...change,
    path: `limits.${change.path}`,
  }));
}

function getLabelChanges(before: string | undefined, desired: string | undefined): FieldChange[] {
  if (desired === undefined || desired === before) return [];
  return [{ path: 'label', ...(before !== undefined && { before }), after: desired }];
}

async function findUndonePaths(context: Context, current: StoredServer, masked: ServerConfig): Promise<string[]> {
  const { appliedVersion } = current;
  if (appliedVersion === undefined || appliedVersion === current.version) return [];
  const base = await findVersion(context.db, current, appliedVersion);
  return findOverwrittenPaths(base?.config, current.config, masked);
}

const labelInput = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, 'allowed: 1 to 63 letters, digits, . _ / -')
  .describe('Name of the set of files that the server belongs to; unchanged if absent.');

const desiredShape = {
  slug: slugInput,
  config: z.record(z.string(), z.unknown()).describe('Complete configuration, with the same slug.'),
  secrets: z
    .record(secretNameInput, secretValueInput)
    .refine((secrets) => Object.keys(secrets).length <= maxSecrets, `allowed: at most ${maxSecrets} secrets`)
    .optional()
    .describe('Values of secrets, by name. Other stored secrets stay as they are.'),
  limits: z
    .strictObject(limitInputs)
    .optional()
    .describe('Complete set of limits. Limits that are absent from the object are reset to their defaults.'),
  label: labelInput.optional(),
};

const changeKinds = ['created', 'changed', 'same'] as const;
/** Returns the differences for a response. A new server has none, because the caller has its whole configuration. */
function getChanges({ current, changes }: ApplyPlan): z.input<typeof changesShape> {
  return current ? formatChanges(changes) : [];
}

function getChangeKind({ current, changes }: ApplyPlan): (typeof changeKinds)[number] {
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
  input: z.strictObject(desiredShape),
  longField: { field: 'config' },
  output: z.object({
    change: z.enum(changeKinds).describe('With created, the server does not exist yet.'),
    version: z.int().min(0).describe('Version of the server; 0 if it does not exist.'),
    applied_version: z.int().optional().describe('Version that was applied last; absent if none was.'),
    label: z.string().optional(),
    changes: changesShape,
    undone: z
      .array(z.string())
      .max(maxChanges)
      .describe('Paths of changes that would undo a change made elsewhere since the last apply.'),
    not_compared: z
      .array(z.string())
      .max(maxSecrets + 10)
      .describe('Secrets that this credential may not compare.'),
    problems: problemsShape,
    warnings: warningsShape,
  }),
  async run(context, input) {
    const plan = await planApply(context, input);
    const { current } = plan;
    return {
      change: getChangeKind(plan),
      version: current?.version ?? 0,
      ...(current?.appliedVersion !== undefined && { applied_version: current.appliedVersion }),
      ...(current?.label !== undefined && { label: current.label }),
      changes: getChanges(plan),
      undone: plan.undone.slice(0, maxChanges),
      not_compared: plan.notCompared,
      problems: [...plan.problems],
      warnings: plan.config ? limitWarnings(plan.warnings) : [],
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
    ...desiredShape,
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
  longField: { field: 'config' },
  output: storeResultShape.extend({
    change: z.enum(changeKinds),
    changes: changesShape,
    unchanged: unchangedShape,
  }),
  async prepare(context, { slug, config, secrets }) {
    return prepareConfig(context, config, { current: await findWorkspaceServer(context, slug), newSecrets: secrets });
  },
  async run(context, input) {
    const plan = await planApply(context, input);
    if (plan.problems.length > 0)
      throw invalidInputError(plan.problems, 'The server was not stored; its configuration is not valid');
    refuseConflicts(plan, input);
    const kind = getChangeKind(plan);
    const server = await storeDesired(context, plan, input);
    const isServerUnchanged = kind === 'same' && plan.current?.appliedVersion === server.version;
    return {
      ...(await createStoredResult(context, { server, isUnchanged: isServerUnchanged })),
      change: kind,
      changes: getChanges(plan),
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

async function storeDesired(context: Context, { current }: ApplyPlan, desired: DesiredServer): Promise<StoredServer> {
  const server = current
    ? (await changeServer(context, current, desired.config, undefined)).server
    : await createServer(context, desired.config);
  for (const [name, value] of Object.entries(desired.secrets ?? {})) await storeSecret(context, server, name, value);
  const limits = desired.limits ? toStoredLimits(desired.limits) : server.limits;
  if (desired.limits) await updateServerLimits(context.db, server, toStoredLimits(desired.limits));
  const applied = { label: desired.label ?? server.label, appliedVersion: server.version };
  await setAppliedVersion(context.db, server, applied);
  await publishChange(context, server);
  return {
    ...server,
    appliedVersion: server.version,
    ...(limits && { limits }),
    ...(applied.label !== undefined && { label: applied.label }),
  };
}

export const applyOperations = { planMcpServer, applyMcpServer };
