import { z } from 'zod';
import { AppError, invalid } from '../../errors.ts';
import { type StoredServer, setApplied, updateServerLimits } from '../../store/servers/servers.ts';
import { limitInputs, limitsFrom } from '../limit-fields.ts';
import { type Context, operation } from '../operation.ts';
import { precheck } from '../servers/check-config.ts';
import { mostSecrets, secretNameInput, secretValueInput, storeSecret } from '../servers/store-secret.ts';
import { changeServer, createServer, noteChange } from '../servers/store-server.ts';
import { stored, storedAnswer } from '../servers/stored-answer.ts';
import { firstWarnings, isUnchanged, problemsShape, slugInput, unchangedShape, warningsShape } from '../shapes.ts';
import { type ApplyPlan, checkOf, planOf, type Wanted } from './apply-plan.ts';

export const labelInput = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, 'allowed: 1 to 63 letters, digits, . _ / -')
  .describe('Name of the set of files that the server belongs to; kept as it is when absent.');

const wantedShape = {
  slug: slugInput,
  config: z.record(z.string(), z.unknown()).describe('The whole configuration, with the same slug.'),
  secrets: z
    .record(secretNameInput, secretValueInput)
    .refine((secrets) => Object.keys(secrets).length <= mostSecrets, `allowed: at most ${mostSecrets} secrets`)
    .optional()
    .describe('Values of secrets by name; other stored secrets stay as they are.'),
  limits: z
    .strictObject(limitInputs)
    .optional()
    .describe('Exactly these limits: what is absent in the object goes back to the default.'),
  label: labelInput.optional(),
};

const mostChanges = 500;
const changeKinds = ['created', 'changed', 'same'] as const;
const changesShape = z
  .array(
    z.object({
      path: z.string(),
      before: z.unknown().optional().describe('Absent where the field does not exist; a secret is not shown.'),
      after: z.unknown().optional().describe('Absent where the field is removed; a secret is not shown.'),
    }),
  )
  .max(mostChanges)
  .describe(`The first ${mostChanges} differences.`);

/** Differences as they are answered. Those of a new server are its whole configuration, which the caller has. */
function shownChanges({ current, changes }: ApplyPlan): z.input<typeof changesShape> {
  return current ? changes.slice(0, mostChanges) : [];
}

function kindOf({ current, changes }: ApplyPlan): (typeof changeKinds)[number] {
  if (!current) return 'created';
  return changes.length > 0 ? 'changed' : 'same';
}

const planMcpServer = operation({
  name: 'planMcpServer',
  summary: 'Compare a hosted server with a configuration, without storing anything',
  description:
    'Returns what applyMcpServer would do. Whether a secret has another value is only compared with the scope manage:write.',
  scope: 'manage:read',
  effect: 'read',
  isTool: false,
  input: z.strictObject(wantedShape),
  long: { field: 'config' },
  output: z.object({
    change: z.enum(changeKinds).describe('created: there is no such server yet.'),
    version: z.int().min(0).describe('Version of the server; 0 when there is none.'),
    applied_version: z.int().optional().describe('Version that was applied last; absent when none was.'),
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
      changes: shownChanges(plan),
      undone: plan.undone.slice(0, mostChanges),
      not_compared: plan.notCompared,
      problems: [...plan.problems],
      warnings: plan.config ? firstWarnings(plan.warnings) : [],
    };
  },
});

const applyMcpServer = operation({
  name: 'applyMcpServer',
  summary: 'Create a hosted server, or change it to match: configuration, secrets, limits and label',
  description:
    'All of it or nothing is stored. Applied again, it changes nothing. A change made elsewhere since the last apply is not undone, unless overwrite is true.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({
    ...wantedShape,
    expected_version: z
      .int()
      .min(0)
      .optional()
      .describe('Version that planMcpServer reported; 0 when there was no server. A conflict is reported otherwise.'),
    overwrite: z
      .boolean()
      .optional()
      .describe('true also undoes changes that were made elsewhere, and takes the server from another label.'),
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
      changes: shownChanges(plan),
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
    throw new AppError('conflict', `the server was changed meanwhile and is at version ${version}; apply again`);
  if (overwrite) return;
  if (current?.label !== undefined && label !== undefined && label !== current.label)
    throw new AppError('conflict', `the server belongs to the label ${current.label}; apply it with that label`);
  if (undone.length > 0)
    throw new AppError(
      'conflict',
      `the server was changed elsewhere since it was applied (version ${current?.appliedVersion}, now ${version}), and this would undo: ${undone.slice(0, 5).join(', ')}`,
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
