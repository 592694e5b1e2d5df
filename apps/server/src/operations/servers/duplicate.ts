import { invalidInputError, type Problem } from '@toolhost/errors/errors';
import { diffConfigs } from '@toolhost/tool-config/config-changes';
import { type CopyOptions, createCopyConfig, getBaseUrl, listSealedFields } from '@toolhost/tool-config/copy-config';
import { secretNamePattern } from '@toolhost/tool-config/http/placeholders';
import { findUnmetNeeds, getSecretNeeds } from '@toolhost/tool-config/secret-needs';
import {
  configSecrets,
  isDescriptionSecret,
  type ServerConfig,
  splitSecrets,
} from '@toolhost/tool-config/server-config';
import { createSecretOriginResolver } from '@toolhost/tool-config/server-wide';
import { z } from 'zod';
import { findSecrets } from '../../store/servers/secrets.ts';
import { setVersionMessage } from '../../store/servers/server-versions.ts';
import { findCopies, isSlugTaken, type StoredServer, setCopySource } from '../../store/servers/servers.ts';
import { checkForReport, findSecretNames, prepareConfig, StalePreparation } from '../check-config.ts';
import { createOutsideLimitsError, findWorkspaceServer, getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import {
  changesShape,
  formatChanges,
  isUnchanged,
  limitWarnings,
  problemsShape,
  slugInput,
  versionInput,
  warningsShape,
} from '../shapes.ts';
import { maxSecrets, secretValueInput, storeSecret } from './secrets.ts';
import {
  changeServer,
  createServer,
  createStoredResult,
  getSlugTakenMessage,
  publishChange,
  storeResultShape,
} from './store-server.ts';

const maxCopies = 50;

export const copiesShape = z
  .array(
    z.object({
      slug: z.string(),
      name: z.string(),
      version: z.int(),
      copied_version: z.int().optional().describe('Version of this server that the copy was made from.'),
    }),
  )
  .max(maxCopies)
  .describe('Copies that were duplicated from this server.');

/** Finds the copies of a server that the actor may see. */
export async function findVisibleCopies(
  { db, actor }: Context,
  server: StoredServer,
): Promise<z.input<typeof copiesShape>> {
  const copies = await findCopies(db, server, maxCopies);
  return copies
    .filter(({ slug }) => actor.servers?.includes(slug) ?? true)
    .map(({ copied_version, ...copy }) => ({ ...copy, ...(copied_version !== null && { copied_version }) }));
}

const inputShape = {
  slug: slugInput,
  to: slugInput.describe('Slug of the copy: a new slug, or the slug of an existing copy.'),
  name: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe(
      'Name of the copy. If absent, an existing copy stays as it is and a new copy gets the name of the original.',
    ),
  base_url: z
    .string()
    .min(1)
    .max(2000)
    .optional()
    .describe(
      'Base URL of the copy. If absent, an existing copy stays as it is and a new copy gets the base URL of the original.',
    ),
  secrets: z
    .record(z.string().max(200), secretValueInput)
    .refine((secrets) => Object.keys(secrets).length <= maxSecrets, `allowed: at most ${maxSecrets} secrets`)
    .optional()
    .describe(
      'Values of secrets of the copy, by the NAME of {{NAME}} or by the path of a field that is a secret. Secrets are never copied.',
    ),
  overwrite: z
    .boolean()
    .optional()
    .describe('If true, also replaces the configuration of a server that was not duplicated from this one.'),
};

type DuplicateRequest = Omit<CopyOptions, 'slug'> & { slug: string; to: string; overwrite?: boolean | undefined };

type Plan = { original: StoredServer; copy: StoredServer | undefined; config: ServerConfig; problems: Problem[] };

/** Plans the copy. @throws AppError notFound */
async function planCopy(context: Context, { slug, to, overwrite, ...changes }: DuplicateRequest): Promise<Plan> {
  const { actor } = context;
  if (actor.servers && !actor.servers.includes(to)) throw createOutsideLimitsError(actor.servers, to);
  const original = await getServer(context, slug);
  const copy = await findWorkspaceServer(context, to);
  const config = createCopyConfig(original.config, copy?.config, { ...changes, slug: to });
  const problems: Problem[] = [];
  if (to === slug) problems.push({ path: 'to', message: 'is the slug of the server itself; choose another slug' });
  else if (copy && copy.copiedFrom !== original.id && !overwrite)
    problems.push({
      path: 'to',
      message: `${to} was not duplicated from ${slug}; choose another slug, or replace it with overwrite`,
    });
  else if (!copy && (await isSlugTaken(context.db, to)))
    problems.push({ path: 'to', message: await getSlugTakenMessage(context, to) });
  if (changes.base_url !== undefined && getBaseUrl(original.config) === undefined)
    problems.push({ path: 'base_url', message: 'the tools call several hosts; change their URLs in the copy' });
  const secretPaths = new Set(listSealedFields(config).map(({ path }) => path));
  for (const name of Object.keys(changes.secrets ?? {}))
    if (!secretNamePattern.test(name) && !secretPaths.has(name))
      problems.push({
        path: `secrets.${name}`,
        message: 'is neither the NAME of a placeholder nor the path of a field that is a secret',
      });
  return { original, copy, config, problems };
}

const missingShape = z
  .array(
    z.object({
      name: z.string().describe('NAME of {{NAME}}, or the path of a field that is a secret.'),
      why: z
        .enum(['no_value', 'other_host'])
        .describe('With other_host, the secret was set for other hosts than it is needed for now.'),
      required: z.boolean().describe('True if the copy cannot be stored without this secret.'),
    }),
  )
  .max(maxSecrets * 2)
  .describe('Secrets that the copy still needs. Secrets are never copied.');

/** Finds the secrets that the copy still needs. */
async function findMissingSecrets(
  { db }: Context,
  { copy, config }: Pick<Plan, 'copy' | 'config'>,
  secrets: CopyOptions['secrets'] = {},
): Promise<z.input<typeof missingShape>> {
  const fields = listSealedFields(config);
  const pathByName = new Map(fields.map(({ name, path }) => [name, path]));
  const getOrigins = createSecretOriginResolver(config);
  const providedNames = [
    ...Object.keys(secrets),
    ...fields.filter(({ isMasked }) => !isMasked).map(({ name }) => name),
  ];
  const storedSecrets = (copy ? await findSecrets(db, copy) : []).filter(
    ({ name }) => !providedNames.includes(name) && !isDescriptionSecret(name),
  );
  const available = [...storedSecrets, ...providedNames.map((name) => ({ name, origins: getOrigins(name) }))];
  const { missing, moved } = findUnmetNeeds(await getSecretNeeds(config), available);
  const availableNames = new Set(available.map(({ name }) => name));
  const masked = fields.filter(({ name, isMasked }) => isMasked && !availableNames.has(name));
  return [
    ...masked.map(({ path }) => ({ name: path, why: 'no_value' as const, required: true })),
    ...missing.map((name) => ({ name, why: 'no_value' as const, required: false })),
    ...moved
      .filter((name) => name !== configSecrets.clientSecret)
      .map((name) => ({ name: pathByName.get(name) ?? name, why: 'other_host' as const, required: false })),
  ].slice(0, maxSecrets * 2);
}

const planDuplicate = operation({
  name: 'planDuplicate',
  summary: 'Show what duplicateMcpServer would do, without storing anything',
  scope: 'manage:read',
  effect: 'read',
  isTool: false,
  input: z.strictObject(inputShape),
  output: z.object({
    change: z.enum(['created', 'changed', 'same']).describe('With created, the copy does not exist yet.'),
    version: z.int().describe('Version of the copy; 0 if it does not exist.'),
    name: z.string().describe('Resulting name of the copy.'),
    base_url: z.string().optional().describe('Resulting base URL of the copy; absent if its tools call several hosts.'),
    changes: changesShape.describe('Differences from the current copy, or from the original if there is no copy yet.'),
    missing: missingShape,
    problems: problemsShape,
    warnings: warningsShape,
  }),
  async run(context, input) {
    const plan = await planCopy(context, input);
    const { original, copy, config } = plan;
    const { masked } = splitSecrets(config);
    const changes = await diffConfigs((copy ?? original).config, masked);
    const checked = await checkForReport(context, config, await findSecretNames(context, copy, input.secrets));
    const base = getBaseUrl(config);
    const change = changes.length > 0 ? ('changed' as const) : ('same' as const);
    return {
      change: copy ? change : ('created' as const),
      version: copy?.version ?? 0,
      name: config.name,
      ...(base !== undefined && { base_url: base }),
      changes: formatChanges(changes),
      missing: await findMissingSecrets(context, plan, input.secrets),
      problems: [...plan.problems, ...checked.problems.map(toInputProblem)],
      warnings: limitWarnings(checked.warnings),
    };
  },
});

/** Maps a problem of the copy's slug to the input `to`. */
function toInputProblem({ path, message }: Problem): Problem {
  return { path: path === 'slug' ? 'to' : path, message };
}

const duplicateMcpServer = operation({
  name: 'duplicateMcpServer',
  summary: 'Duplicate a hosted server with another slug, base URL, and secrets, or update a copy',
  description:
    'Use it for environments such as staging and production. Repeating it with the same `to` updates the copy from its original; its name, base URL, variable values, login, and secrets stay. Use planDuplicate to see the differences and the missing secrets.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({ ...inputShape, expected_version: versionInput }),
  output: storeResultShape,
  async prepare(context, input) {
    const { original, copy, config } = await planCopy(context, input);
    const prepared = await prepareConfig(context, config, { current: copy, newSecrets: input.secrets });
    return { ...prepared, originalVersion: original.version };
  },
  async run(context, input) {
    const { original, copy, config, problems } = await planCopy(context, input);
    if (problems.length > 0) throw invalidInputError(problems, 'Nothing was duplicated');
    const { check, originalVersion } = context.prepared;
    if (check && originalVersion !== original.version) throw new StalePreparation();
    const { secrets = {}, expected_version } = input;
    const { server, isUnchanged: isConfigUnchanged } = copy
      ? await changeServer(context, copy, config, expected_version)
      : { server: await createServer(context, config), isUnchanged: false };
    const namedSecrets = Object.entries(secrets).filter(([name]) => secretNamePattern.test(name));
    const unchangedSecrets: boolean[] = [];
    for (const [name, value] of namedSecrets)
      unchangedSecrets.push((await storeSecret(context, server, name, value)).isUnchanged);
    if (!isConfigUnchanged)
      await setVersionMessage(context.db, server, `Duplicated from ${original.slug}, version ${original.version}`);
    await setCopySource(context.db, server, original);
    await publishChange(context, server);
    return createStoredResult(context, { server, isUnchanged: isConfigUnchanged && unchangedSecrets.every(Boolean) });
  },
  audit: ({ slug, to, secrets }, { server }) => ({
    target: to,
    detail: { from: slug, version: server.version, ...(secrets && { secrets: Object.keys(secrets) }) },
  }),
  isUnchanged,
});

export const duplicateOperations = { planDuplicate, duplicateMcpServer };
