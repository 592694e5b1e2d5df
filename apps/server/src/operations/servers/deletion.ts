import { AppError } from '@toolhost/errors/errors';
import { z } from 'zod';
import {
  deleteAllSecrets,
  deleteServer,
  listDeleted,
  restorePeriodMs,
  restoreServer,
} from '../../store/servers/deleted-servers.ts';
import { programName } from '../../version.ts';
import { findWorkspaceServer, getServer } from '../find-server.ts';
import { operation } from '../operation.ts';
import { checkServers } from '../quotas/quotas.ts';
import { nameSchema } from '../schema-names.ts';
import {
  isUnchanged,
  nextCursor,
  pageInputs,
  parsePage,
  slugInput,
  time,
  toIsoTime,
  unchangedShape,
  versionInput,
} from '../shapes.ts';
import {
  auditStored,
  createStoredResult,
  createVersionConflict,
  findRestorable,
  formatStored,
  publishChange,
  storeResultShape,
} from './store-server.ts';

const restorableDays = restorePeriodMs / 86_400_000;

const deleteMcpServer = operation({
  name: 'deleteMcpServer',
  summary: `Delete a hosted server; it can be restored for ${restorableDays} days`,
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: true,
  input: z.strictObject({ slug: slugInput, expected_version: versionInput }),
  output: z.object({
    deleted: z.string().describe('Slug of the deleted server.'),
    restorable_until: time.describe('Time until which restoreMcpServer can restore the server.'),
  }),
  async run(context, { slug, expected_version }) {
    const server = await getServer(context, slug);
    if (expected_version !== undefined && expected_version !== server.version)
      throw createVersionConflict(server.version);
    const at = context.now();
    await deleteServer(context.db, server, at);
    await publishChange(context, server);
    return { deleted: slug, restorable_until: toIsoTime(at + restorePeriodMs) };
  },
  audit: ({ slug }) => ({ target: slug }),
  toAgentText: ({ deleted, restorable_until }) =>
    `Deleted the server ${deleted}. It can be restored until ${restorable_until} with restoreMcpServer (servers restore). Its slug stays reserved.`,
});

const deletedRecord = z.object({
  slug: z.string(),
  name: z.string(),
  tool_count: z.int(),
  secret_count: z.int().describe('Number of stored secrets, including those of its configuration.'),
  deleted_at: time,
  restorable_until: time.describe(
    'Time when the server is permanently deleted; earlier if the workspace needs its space.',
  ),
});
nameSchema('DeletedServer', deletedRecord);

const listDeletedServers = operation({
  name: 'listDeletedServers',
  summary: 'List the deleted servers that can be restored, most recently deleted first',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject(pageInputs),
  output: z.object({ servers: z.array(deletedRecord), next_cursor: nextCursor }),
  async run({ db, actor, now }, input) {
    const { rows, next } = await listDeleted(db, actor.workspaceId, now() - restorePeriodMs, parsePage(input));
    return {
      servers: rows.map(({ slug, name, toolCount, secretCount, deletedAt }) => ({
        slug,
        name,
        tool_count: toolCount,
        secret_count: secretCount,
        deleted_at: toIsoTime(deletedAt),
        restorable_until: toIsoTime(deletedAt + restorePeriodMs),
      })),
      next_cursor: next,
    };
  },
});

const createNotRestorableError = () =>
  new AppError(
    'notFound',
    `there is no such deleted server in this workspace; list those that can be restored with GET /api/v1/deleted-servers (${programName} servers deleted)`,
  );

const deleteDeletedServerSecrets = operation({
  name: 'deleteDeletedServerSecrets',
  summary: 'Delete all secrets of a deleted server, including those of its configuration',
  description: 'The server can still be restored, but its secrets then have to be set again.',
  scope: 'manage:write',
  effect: 'write',
  destructive: true,
  isTool: false,
  input: z.strictObject({ slug: slugInput }),
  output: z.object({ deleted: z.int().describe('Number of deleted secrets.'), unchanged: unchangedShape }),
  async run(context, { slug }) {
    const server = await findRestorable(context, slug);
    if (!server) throw createNotRestorableError();
    const deleted = await deleteAllSecrets(context.db, server);
    return { deleted, ...(deleted === 0 && { unchanged: true as const }) };
  },
  isUnchanged,
  audit: ({ slug }, { deleted }) => ({ target: slug, detail: { secrets: deleted } }),
});

const restoreMcpServer = operation({
  name: 'restoreMcpServer',
  summary: 'Restore a deleted server',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output: storeResultShape,
  async run(context, { slug }) {
    const { db, actor } = context;
    const at = context.now();
    if (!(await restoreServer(db, { workspaceId: actor.workspaceId, slug }, { since: at - restorePeriodMs, at }))) {
      const server = await findWorkspaceServer(context, slug);
      if (server) return createStoredResult(context, { server, isUnchanged: true });
      throw createNotRestorableError();
    }
    await checkServers(context);
    const server = await getServer(context, slug);
    await publishChange(context, server);
    return createStoredResult(context, { server, isUnchanged: false });
  },
  isUnchanged,
  audit: auditStored,
  toAgentText: formatStored('Restored'),
});

export const deletionOperations = {
  deleteMcpServer,
  listDeletedServers,
  deleteDeletedServerSecrets,
  restoreMcpServer,
};
