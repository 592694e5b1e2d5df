import { z } from 'zod';
import { baseOf, copyOf, maskedFields, type OfCopy } from '../../domain/config/copy-config.ts';
import { secretNeedsOf, unmetNeeds } from '../../domain/config/secret-needs.ts';
import { configSecrets, type ServerConfig, splitSecrets } from '../../domain/config/server-config.ts';
import { originsOfSecrets } from '../../domain/config/server-wide.ts';
import { changesBetween } from '../../domain/config-changes.ts';
import { secretNamePattern } from '../../domain/http/placeholders.ts';
import { invalid, type Problem } from '../../errors.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { setVersionMessage } from '../../store/servers/server-versions.ts';
import { findCopies, isSlugTaken, type StoredServer, setCopied } from '../../store/servers/servers.ts';
import { precheck, reportOn } from '../check-config.ts';
import { type Context, operation } from '../operation.ts';
import {
  changesShape,
  findOwnServer,
  firstWarnings,
  getServer,
  isUnchanged,
  problemsShape,
  serverOutsideOf,
  shownChanges,
  slugInput,
  versionInput,
  warningsShape,
} from '../shapes.ts';
import { mostSecrets, secretValueInput, storeSecret } from './secrets.ts';
import { changeServer, createServer, noteChange, stored, storedAnswer, takenSentence } from './store-server.ts';

const mostCopies = 50;

export const copiesShape = z
  .array(
    z.object({
      slug: z.string(),
      name: z.string(),
      version: z.int(),
      copied_version: z.int().optional().describe('Version of this server that the copy was made from.'),
    }),
  )
  .max(mostCopies)
  .describe('Copies that were duplicated from this server.');

/** Finds the copies of a server that the actor may see. */
export async function copiesOf({ db, actor }: Context, server: StoredServer): Promise<z.input<typeof copiesShape>> {
  const copies = await findCopies(db, server, mostCopies);
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
    .refine((secrets) => Object.keys(secrets).length <= mostSecrets, `allowed: at most ${mostSecrets} secrets`)
    .optional()
    .describe(
      'Values of secrets of the copy, by the NAME of {{NAME}} or by the path of a field that is a secret. Secrets are never copied.',
    ),
  overwrite: z
    .boolean()
    .optional()
    .describe('If true, also replaces the configuration of a server that was not duplicated from this one.'),
};

type Wanted = Omit<OfCopy, 'slug'> & { slug: string; to: string; overwrite?: boolean | undefined };

type Plan = { original: StoredServer; copy: StoredServer | undefined; config: ServerConfig; problems: Problem[] };

/** Plans the copy. @throws AppError notFound */
async function planOf(context: Context, { slug, to, overwrite, ...given }: Wanted): Promise<Plan> {
  const { actor } = context;
  if (actor.servers && !actor.servers.includes(to)) throw serverOutsideOf(actor.servers, to);
  const original = await getServer(context, slug);
  const copy = await findOwnServer(context, to);
  const config = copyOf(original.config, copy?.config, { ...given, slug: to });
  const problems: Problem[] = [];
  if (to === slug) problems.push({ path: 'to', message: 'is the slug of the server itself; choose another slug' });
  else if (copy && copy.copiedFrom !== original.id && !overwrite)
    problems.push({
      path: 'to',
      message: `${to} was not duplicated from ${slug}; choose another slug, or replace it with overwrite`,
    });
  else if (!copy && (await isSlugTaken(context.db, to)))
    problems.push({ path: 'to', message: await takenSentence(context, to) });
  if (given.base_url !== undefined && baseOf(original.config) === undefined)
    problems.push({ path: 'base_url', message: 'the tools call several hosts; change their URLs in the copy' });
  const known = new Set(maskedFields(config).map(({ path }) => path));
  for (const name of Object.keys(given.secrets ?? {}))
    if (!secretNamePattern.test(name) && !known.has(name))
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
  .max(mostSecrets * 2)
  .describe('Secrets that the copy still needs. Secrets are never copied.');

/** Finds the secrets that the copy still needs. */
async function missingOf(
  { db }: Context,
  { copy, config }: Pick<Plan, 'copy' | 'config'>,
  given: OfCopy['secrets'] = {},
): Promise<z.input<typeof missingShape>> {
  const fields = maskedFields(config);
  const pathOf = new Map(fields.map(({ name, path }) => [name, path]));
  const originsOf = originsOfSecrets(config);
  const set = [...Object.keys(given), ...fields.filter(({ isMasked }) => !isMasked).map(({ name }) => name)];
  const before = (copy ? await findSecrets(db, copy) : []).filter(
    ({ name }) => !set.includes(name) && name !== configSecrets.description,
  );
  const now = [...before, ...set.map((name) => ({ name, origins: originsOf(name) }))];
  const { missing, moved } = unmetNeeds(await secretNeedsOf(config), now);
  const isStored = new Set(now.map(({ name }) => name));
  const masked = fields.filter(({ name, isMasked }) => isMasked && !isStored.has(name));
  return [
    ...masked.map(({ path }) => ({ name: path, why: 'no_value' as const, required: true })),
    ...missing.map((name) => ({ name, why: 'no_value' as const, required: false })),
    ...moved
      .filter((name) => name !== configSecrets.clientSecret)
      .map((name) => ({ name: pathOf.get(name) ?? name, why: 'other_host' as const, required: false })),
  ].slice(0, mostSecrets * 2);
}

/**
 * Returns the server and the secret names to check a copy with, so that masked fields without a value are reported as
 * problems.
 */
const checkOf = async (context: Context, { copy }: Pick<Plan, 'copy'>, secrets: OfCopy['secrets'] = {}) => ({
  current: copy,
  stored: [...(copy ? await findSecrets(context.db, copy) : []).map(({ name }) => name), ...Object.keys(secrets)],
});

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
    const plan = await planOf(context, input);
    const { original, copy, config } = plan;
    const { masked } = splitSecrets(config);
    const changes = await changesBetween((copy ?? original).config, masked);
    const { stored } = await checkOf(context, plan, input.secrets);
    const checked = await reportOn(context, config, stored);
    const base = baseOf(config);
    return {
      change: !copy ? ('created' as const) : changes.length > 0 ? ('changed' as const) : ('same' as const),
      version: copy?.version ?? 0,
      name: config.name,
      ...(base !== undefined && { base_url: base }),
      changes: shownChanges(changes),
      missing: await missingOf(context, plan, input.secrets),
      problems: [...plan.problems, ...checked.problems.map(atInput)],
      warnings: firstWarnings(checked.warnings),
    };
  },
});

/** Maps a problem of the copy's slug to the input `to`. */
function atInput({ path, message }: Problem): Problem {
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
  output: stored,
  async precheck(context, input) {
    const plan = await planOf(context, input);
    return precheck(context, plan.config, await checkOf(context, plan, input.secrets));
  },
  async run(context, input) {
    const { original, copy, config, problems } = await planOf(context, input);
    if (problems.length > 0) throw invalid(problems, 'Nothing was duplicated');
    const { secrets = {}, expected_version } = input;
    const { server, isUnchanged: isSame } = copy
      ? await changeServer(context, copy, config, expected_version)
      : { server: await createServer(context, config), isUnchanged: false };
    const named = Object.entries(secrets).filter(([name]) => secretNamePattern.test(name));
    const kept: boolean[] = [];
    for (const [name, value] of named) kept.push((await storeSecret(context, server, name, value)).isUnchanged);
    if (!isSame)
      await setVersionMessage(context.db, server, `Duplicated from ${original.slug}, version ${original.version}`);
    await setCopied(context.db, server, original);
    await noteChange(context, server);
    return storedAnswer(context, { server, isUnchanged: isSame && kept.every(Boolean) });
  },
  audit: ({ slug, to, secrets }, { server }) => ({
    target: to,
    detail: { from: slug, version: server.version, ...(secrets && { secrets: Object.keys(secrets) }) },
  }),
  isUnchanged,
});

export const duplicateOperations = { planDuplicate, duplicateMcpServer };
