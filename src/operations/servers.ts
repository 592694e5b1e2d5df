import { z } from 'zod';
import { nextTurn } from '../domain/next-turn.ts';
import { serverConfigSchema } from '../domain/server-config.ts';
import { AppError } from '../errors.ts';
import { namesOfActors } from '../store/audit-events.ts';
import { revokeServerGrants } from '../store/grants.ts';
import { listSecrets } from '../store/secrets.ts';
import { listServers, summaryOf } from '../store/server-list.ts';
import { findVersion, listVersions } from '../store/server-versions.ts';
import { deleteServer, type StoredServer } from '../store/servers.ts';
import { isCaptured } from './captures.ts';
import { changed, changeInput, versionOf } from './change-input.ts';
import { checkMcpServer } from './check-server.ts';
import { foresee } from './judge-config.ts';
import { type Context, operation } from './operation.ts';
import { mostSecrets } from './secrets.ts';
import {
  actorName,
  getServer,
  isoTime,
  nextCursor,
  pageFrom,
  pageInputs,
  serverRecord,
  slugInput,
  time,
  toRecord,
  versionInput,
  warningsShape,
} from './shapes.ts';
import {
  changeServer,
  createServer,
  foreseeChange,
  mostSteps,
  nextSteps,
  noteChange,
  warningsFor,
} from './store-server.ts';

const configOutput = z.record(z.string(), z.unknown()).describe('The configuration, secrets masked.');
const stored = z.object({
  server: serverRecord,
  url: z.string().describe('Address of the MCP server.'),
  warnings: warningsShape,
  next_steps: z.array(z.string()).max(mostSteps).describe('What the person must still do.'),
});

/** What every operation that stores a server answers. */
async function answer(context: Context, server: StoredServer): Promise<z.input<typeof stored>> {
  const warnings = await warningsFor(context, server);
  return {
    server: toRecord(server, summaryOf(server.config), context.serverUrl),
    url: context.serverUrl(server.slug),
    warnings,
    next_steps: nextSteps(context, server, warnings),
  };
}

function saidOf(verb: string) {
  return (output: z.input<typeof stored>): string =>
    [
      `${verb} the server "${output.server.name}" (version ${output.server.version}) at ${output.url}`,
      `Access: ${output.server.access}. Tools: ${output.server.tool_count}.`,
      ...output.warnings.map((warning) => `Warning: ${warning.path}: ${warning.message}`),
      ...output.next_steps.map((step) => `Next: ${step}`),
    ].join('\n');
}

const auditStored = (_input: unknown, output: z.input<typeof stored>) => ({
  target: output.server.slug,
  detail: {
    version: output.server.version,
    name: output.server.name,
    tools: output.server.tool_count,
    access: output.server.access,
  },
});

/** As many as a workspace usually may have, so that a list without input is all of them. */
const mostListed = 1000;
/** How many are put into words before what else is due. */
const shownAtOnce = 250;

const listMcpServers = operation({
  name: 'listMcpServers',
  summary: 'List the hosted servers of the workspace',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({
    slug: slugInput.optional(),
    ...pageInputs,
    limit: z.int().min(1).max(mostListed).default(mostListed).describe('Most servers to return.'),
  }),
  output: z.object({ servers: z.array(serverRecord), next_cursor: nextCursor }),
  async run(context, input) {
    const slugs = input.slug === undefined ? context.actor.servers : [input.slug];
    const { rows, next } = await listServers(context.db, context.actor.workspaceId, slugs, pageFrom(input));
    const servers = [];
    for (const [index, server] of rows.entries()) {
      if (index % shownAtOnce === shownAtOnce - 1) await nextTurn();
      servers.push(toRecord(server, server, context.serverUrl));
    }
    return { servers, next_cursor: next };
  },
});

const createMcpServer = operation({
  name: 'createMcpServer',
  summary: 'Create a hosted server from its configuration',
  description: 'Every problem of the configuration is reported at once, and then nothing is stored.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: serverConfigSchema,
  judgesInput: true,
  output: stored,
  foresee,
  async run(context, input) {
    const server = await createServer(context, input);
    return answer(context, server);
  },
  audit: auditStored,
  say: saidOf('Created'),
});

const getMcpServer = operation({
  name: 'getMcpServer',
  summary: 'Get a hosted server with its configuration, secrets masked',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({
    server: serverRecord,
    config: configOutput,
    warnings: warningsShape,
    secrets: z.array(z.string()).max(mostSecrets).describe('Names of the secrets that have a value.'),
    callback_url: z.string().optional().describe('Redirect URI to register with the OAuth provider.'),
    capture_until: time.optional().describe('Until when calls are captured; absent when they are not.'),
  }),
  async run(context, { slug }) {
    const server = await getServer(context, slug);
    const secrets = await listSecrets(context.db, server);
    return {
      server: toRecord(server, summaryOf(server.config), context.serverUrl),
      config: server.config,
      warnings: await warningsFor(context, server),
      secrets: secrets
        .map((secret) => secret.name)
        .filter((name) => !name.includes('.'))
        .slice(0, mostSecrets),
      ...(server.config.oauth && { callback_url: context.callbackUrl(slug) }),
      ...(isCaptured(server, context.now()) && { capture_until: isoTime(server.captureUntil) }),
    };
  },
});

const updateMcpServer = operation({
  name: 'updateMcpServer',
  summary: 'Change fields of a hosted server',
  description:
    'Fields that are sent replace the stored ones, fields that are absent stay, null removes description, authentication or oauth. A secret shown as ******** stays when it is sent back so.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: changeInput,
  judgesInput: true,
  output: stored,
  async foresee(context, input) {
    const current = await getServer(context, String(input.slug));
    return foreseeChange(context, current, changed(current, input));
  },
  async run(context, input) {
    const current = await getServer(context, String(input.slug));
    const server = await changeServer(context, current, changed(current, input), versionOf(input));
    return answer(context, server);
  },
  audit: auditStored,
  say: saidOf('Updated'),
});

const replaceMcpServer = operation({
  name: 'replaceMcpServer',
  summary: 'Replace the whole configuration of a hosted server',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: serverConfigSchema.extend({ expected_version: versionInput }),
  judgesInput: true,
  output: stored,
  async foresee(context, { expected_version: _, ...config }) {
    return foreseeChange(context, await getServer(context, String(config.slug)), config);
  },
  async run(context, { expected_version, ...config }) {
    const current = await getServer(context, String(config.slug));
    const server = await changeServer(context, current, config, versionOf({ expected_version }));
    return answer(context, server);
  },
  audit: auditStored,
});

const deleteMcpServer = operation({
  name: 'deleteMcpServer',
  summary: 'Delete a hosted server with its secrets; its slug stays reserved',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({ deleted: z.string().describe('Slug of the server that is gone.') }),
  async run(context, { slug }) {
    const server = await getServer(context, slug);
    await revokeServerGrants(context.db, server, context.now());
    await deleteServer(context.db, server, context.now());
    await noteChange(context, server);
    return { deleted: slug };
  },
  audit: ({ slug }) => ({ target: slug }),
  say: ({ deleted }) => `Deleted the server ${deleted}. Its slug cannot be used again.`,
});

const versionRecord = z.object({
  version: z.int(),
  created_at: time,
  created_by: z.string(),
  created_by_name: actorName,
  config: configOutput,
});

const listServerVersions = operation({
  name: 'listVersions',
  summary: 'List the stored versions of a hosted server, newest first',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({ slug: slugInput, ...pageInputs }),
  output: z.object({ versions: z.array(versionRecord), next_cursor: nextCursor }),
  async run(context, { slug, ...page }) {
    const server = await getServer(context, slug);
    const { rows, next } = await listVersions(context.db, server, pageFrom(page));
    const ids = rows.map(({ createdBy }) => createdBy);
    const names = await namesOfActors(context.db, context.actor.workspaceId, ids);
    return {
      next_cursor: next,
      versions: rows.map(({ version, config, createdAt, createdBy }) => ({
        version,
        created_at: isoTime(createdAt),
        created_by: createdBy,
        created_by_name: names.get(createdBy),
        config,
      })),
    };
  },
});

const restoreVersion = operation({
  name: 'restoreVersion',
  summary: 'Make an older version of a hosted server the current one',
  description: 'The older configuration becomes a new version, so nothing is lost. Secrets stay as they are.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    version: z.int().min(1).describe('Version to restore.'),
    expected_version: versionInput,
  }),
  output: stored,
  async foresee(context, { slug, version }) {
    const current = await getServer(context, slug);
    return foreseeChange(
      context,
      current,
      (await findVersion(context.db, current, version))?.config,
    );
  },
  async run(context, { slug, version, expected_version }) {
    const current = await getServer(context, slug);
    const old = await findVersion(context.db, current, version);
    if (!old) throw new AppError('notFound', `the server has no version ${version}`);
    const server = await changeServer(context, current, old.config, expected_version);
    return answer(context, server);
  },
  audit: (input, output) => ({
    target: input.slug,
    detail: { restored: input.version, version: output.server.version },
  }),
  say: saidOf('Restored'),
});

export const serverOperations = {
  listMcpServers,
  createMcpServer,
  getMcpServer,
  updateMcpServer,
  replaceMcpServer,
  deleteMcpServer,
  checkMcpServer,
  listVersions: listServerVersions,
  restoreVersion,
};
