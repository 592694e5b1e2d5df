import { hasScope } from '@toolhost/credentials/credential';
import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { toPlainNumbers } from '@toolhost/json/json';
import { serverConfigSchema } from '@toolhost/tool-config/server-config';
import { accessKinds } from '@toolhost/tool-config/server-wide';
import { slugPattern } from '@toolhost/tool-config/slug';
import { z } from 'zod';
import type { Quotas } from '../../quotas.ts';
import { findImportCheck, findImportChecks } from '../../store/servers/imports.ts';
import { findSecrets } from '../../store/servers/secrets.ts';
import { setVersionMessage } from '../../store/servers/server-versions.ts';
import {
  findServingServer,
  isSlugTaken,
  listServers,
  type StoredServer,
  summarizeConfig,
  updateServerTags,
} from '../../store/servers/servers.ts';
import { findSetQuotas } from '../../store/workspaces.ts';
import { checkForReport, prepareConfig } from '../check-config.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import { describeToolExcess } from '../quotas/quotas.ts';
import {
  isCaptured,
  isUnchanged,
  limitWarnings,
  messageInput,
  nextCursor,
  pageInputs,
  parsePage,
  problemsShape,
  serverFilterInputs,
  serverRecord,
  slugInput,
  tagsInput,
  time,
  toImportedField,
  toIsoTime,
  toServerFilter,
  toServerRecord,
  unchangedShape,
  versionInput,
  warningsShape,
} from '../shapes.ts';
import { deletionOperations } from './deletion.ts';
import { copiesShape, duplicateOperations, findVisibleCopies } from './duplicate.ts';
import { maxSecrets } from './secrets.ts';
import {
  auditStored,
  changeServer,
  configOutput,
  createServer,
  createStoredResult,
  formatStored,
  getMovedSecretWarnings,
  getServerWarnings,
  getSlugTakenMessage,
  publishChange,
  type StoreResult,
  storeResultShape,
} from './store-server.ts';
import { versionOperations } from './versions.ts';

/** Maximum number of servers in a list: the default quota, so that a list without input returns all of them. */
const maxListed = 1000;
/** Number of servers that are formatted before yielding to the event loop. */
const serversPerChunk = 250;

const listMcpServers = operation({
  name: 'listMcpServers',
  summary: 'List the hosted servers of the workspace',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({
    slug: slugInput.optional(),
    ...serverFilterInputs,
    ...pageInputs,
    limit: z.int().min(1).max(maxListed).default(maxListed).describe('Maximum number of entries.'),
  }),
  output: z.object({ servers: z.array(serverRecord), next_cursor: nextCursor }),
  async run(context, input) {
    const slugs = input.slug === undefined ? context.actor.servers : [input.slug];
    const page = { ...parsePage(input), ...toServerFilter(input) };
    const { rows, next } = await listServers(context.db, context.actor.workspaceId, slugs, page);
    const ids = rows.map(({ id }) => id);
    const checks = await findImportChecks(context.db, context.actor.workspaceId, ids);
    const servers = [];
    for (const [index, server] of rows.entries()) {
      if (index % serversPerChunk === serversPerChunk - 1) await yieldToEventLoop();
      servers.push({ ...toServerRecord(server, server, context), ...toImportedField(checks.get(server.id)) });
    }
    return { servers, next_cursor: next };
  },
});

const createMcpServer = operation({
  name: 'createMcpServer',
  summary: 'Create a hosted server from its configuration',
  description:
    'If there are problems, all are reported and nothing is stored. describeConfiguration explains the fields.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: serverConfigSchema,
  validatesInput: true,
  output: storeResultShape,
  prepare: (context, input) => prepareConfig(context, input, {}),
  async run(context, input) {
    const server = await createServer(context, input);
    return createStoredResult(context, { server, isUnchanged: false });
  },
  audit: auditStored,
  toAgentText: formatStored('Created'),
});

const getMcpServer = operation({
  name: 'getMcpServer',
  summary: 'Get a hosted server with its configuration; secrets are masked',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({
    server: serverRecord,
    config: configOutput,
    warnings: warningsShape,
    secrets: z.array(z.string()).max(maxSecrets).describe('Names of the secrets that have a value.'),
    callback_url: z.string().optional().describe('Redirect URI to register with the OAuth provider.'),
    copies: copiesShape,
    capture_until: time.optional().describe('Time when capturing of calls ends; absent if calls are not captured.'),
  }),
  async run(context, { slug }) {
    const server = await getServer(context, slug);
    const secrets = await findSecrets(context.db, server);
    const record = toServerRecord(server, summarizeConfig(server.config), context);
    return {
      server: { ...record, ...toImportedField(await findImportCheck(context.db, server)) },
      config: server.config,
      warnings: await getServerWarnings(context, server),
      secrets: secrets
        .map((secret) => secret.name)
        .filter((name) => !name.includes('.'))
        .slice(0, maxSecrets),
      copies: await findVisibleCopies(context, server),
      ...(server.config.oauth && { callback_url: context.callbackUrl(slug) }),
      ...(isCaptured(server, context.now()) && { capture_until: toIsoTime(server.captureUntil) }),
    };
  },
});

const configFields = serverConfigSchema.shape;

const changeInput = z.strictObject({
  slug: slugInput,
  expected_version: versionInput,
  // The complete rule, `messageInput`, is checked later, because its pattern would cost every agent tokens.
  message: z.string().max(200).optional(),
  name: configFields.name.optional(),
  description: configFields.description.nullable(),
  authentication: configFields.authentication.nullable(),
  credentials: configFields.credentials.nullable(),
  oauth: configFields.oauth.nullable(),
  base_url: configFields.base_url.nullable(),
  headers: configFields.headers.nullable(),
  forward_headers: configFields.forward_headers.nullable(),
  variables: configFields.variables.nullable(),
  tool_mode: configFields.tool_mode.nullable(),
  max_response_tokens: configFields.max_response_tokens.nullable(),
  views: configFields.views.nullable(),
  tools: configFields.tools.optional(),
});

/** Fields of a stored configuration that a change removes with null. */
const removableFields = Object.entries(changeInput.shape).flatMap(([name, field]) =>
  field.safeParse(null).success ? [name] : [],
);

/** Merges the fields of an update into a stored configuration. */
function mergeChange(
  config: object,
  { slug: _, expected_version: _version, message: _message, ...fields }: RawFields,
): RawFields {
  const merged: RawFields = { ...config, ...fields };
  for (const field of removableFields) if (merged[field] === null) delete merged[field];
  return merged;
}

/** Fields as received, in which `LargeValue`s stay as they are. */
export type RawFields = { [field: string]: unknown };

/** @throws AppError invalid */
export function parseExpectedVersion(raw: RawFields): number | undefined {
  const parsed = versionInput.safeParse(toPlainNumbers(raw.expected_version));
  if (!parsed.success) throw new AppError('invalid', 'expected_version: allowed: a positive integer');
  return parsed.data;
}

/** Stores a change with its message. @throws AppError invalid, conflict */
async function changeWithMessage(
  context: Context,
  current: StoredServer,
  config: RawFields,
  raw: RawFields,
): Promise<StoreResult> {
  const message = messageInput.safeParse(raw.message);
  if (!message.success)
    throw invalidInputError([{ path: 'message', message: 'allowed: one line of text, up to 200 characters' }]);
  const result = await changeServer(context, current, config, parseExpectedVersion(raw));
  if (message.data !== undefined && !result.isUnchanged)
    await setVersionMessage(context.db, result.server, message.data);
  return result;
}

const updateMcpServer = operation({
  name: 'updateMcpServer',
  summary: 'Change fields of a hosted server',
  description:
    'Fields that you send replace the stored ones; null removes a field. A secret sent back as ******** stays unchanged.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: changeInput,
  validatesInput: true,
  output: storeResultShape,
  async prepare(context, input) {
    const current = await getServer(context, String(input.slug));
    return prepareConfig(context, mergeChange(current.config, input), { current });
  },
  async run(context, input) {
    const current = await getServer(context, String(input.slug));
    return createStoredResult(
      context,
      await changeWithMessage(context, current, mergeChange(current.config, input), input),
    );
  },
  isUnchanged,
  audit: auditStored,
  toAgentText: formatStored('Updated'),
});

function toReplacement({ expected_version: _, message: _message, ...config }: RawFields): RawFields {
  return config;
}

const replaceMcpServer = operation({
  name: 'replaceMcpServer',
  summary: 'Replace the complete configuration of a hosted server',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: serverConfigSchema.extend({ expected_version: versionInput, message: messageInput }),
  validatesInput: true,
  output: storeResultShape,
  async prepare(context, input) {
    return prepareConfig(context, toReplacement(input), { current: await getServer(context, String(input.slug)) });
  },
  async run(context, input) {
    const current = await getServer(context, String(input.slug));
    return createStoredResult(context, await changeWithMessage(context, current, toReplacement(input), input));
  },
  isUnchanged,
  audit: auditStored,
});

const setServerTags = operation({
  name: 'setServerTags',
  summary: 'Set the tags of a hosted server',
  description:
    'People use tags to organize servers. The new tags replace the current ones. Tags are not part of the configuration, and agents never see them.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({ slug: slugInput, tags: tagsInput.describe('Tags to set; an empty list removes all tags.') }),
  output: z.object({ slug: z.string(), tags: tagsInput, unchanged: unchangedShape }),
  async run(context, { slug, tags: tagsInRequest }) {
    const server = await getServer(context, slug);
    const tags = [...new Set(tagsInRequest)].toSorted();
    if (tags.join() === (server.tags ?? []).join()) return { slug, tags, unchanged: true as const };
    await updateServerTags(context.db, server, tags);
    await publishChange(context, server);
    return { slug, tags };
  },
  isUnchanged,
  audit: ({ slug }, { tags }) => ({ target: slug, detail: { tags } }),
});

const createScope = 'manage:write';

const checkMcpServer = operation({
  name: 'checkMcpServer',
  summary: 'Check a configuration without storing it',
  description:
    'Returns the problems and warnings that storing it would report. For the slug of a server of yours, it also checks the stored secrets, including those to set again for another host.',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: serverConfigSchema,
  validatesInput: true,
  output: z.object({
    valid: z.boolean(),
    problems: problemsShape,
    warnings: warningsShape,
    access: z.enum(accessKinds).optional(),
    slug_taken: z
      .string()
      .optional()
      .describe(
        'Reason why no server can be created with this slug. An existing server of the workspace can still be updated. Only present if you may create servers.',
      ),
  }),
  async run(context, input) {
    const slug = (input as { slug?: unknown }).slug;
    const current = typeof slug === 'string' ? await findServingServer(context.db, slug) : undefined;
    const isInWorkspace = current?.workspaceId === context.actor.workspaceId;
    const secrets = isInWorkspace ? await findSecrets(context.db, current) : [];
    const names = secrets.map(({ name }) => name);
    const { facts, problems, warnings } = await checkForReport(context, input, names);
    const excess = facts && describeToolExcess(facts.tools, await getEffectiveQuotas(context));
    if (excess !== undefined) return { valid: false, problems: [{ path: 'tools', message: excess }], warnings: [] };
    const slug_taken = await getSlugTakenReason(context, slug);
    const slugResult = slug_taken === undefined ? {} : { slug_taken };
    if (!facts) return { valid: false, problems: [...problems], warnings: [], ...slugResult };
    const moved = getMovedSecretWarnings(secrets, facts.secretScope);
    return {
      valid: true,
      problems: [],
      warnings: limitWarnings([...moved, ...warnings]),
      access: facts.access,
      ...slugResult,
    };
  },
});

async function getEffectiveQuotas({ db, actor, defaultQuotas }: Context): Promise<Quotas> {
  return { ...defaultQuotas, ...(await findSetQuotas(db, actor.workspaceId)) };
}

/**
 * Returns why a slug is taken. Only for actors that may create servers, because it would reveal servers to others that
 * they may not see.
 */
async function getSlugTakenReason(context: Context, slug: unknown): Promise<string | undefined> {
  const { scopes, servers } = context.actor;
  const canCreate = hasScope(scopes, createScope) && servers === undefined;
  if (!canCreate || typeof slug !== 'string' || !slugPattern.test(slug)) return undefined;
  return (await isSlugTaken(context.db, slug)) ? getSlugTakenMessage(context, slug) : undefined;
}

export const serverOperations = {
  listMcpServers,
  createMcpServer,
  getMcpServer,
  updateMcpServer,
  replaceMcpServer,
  ...deletionOperations,
  setServerTags,
  checkMcpServer,
  ...versionOperations,
  ...duplicateOperations,
};
