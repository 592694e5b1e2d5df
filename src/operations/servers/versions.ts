import { z } from 'zod';
import type { ServerConfig } from '../../domain/config/server-config.ts';
import { covers } from '../../domain/credentials/credential.ts';
import { AppError } from '../../errors.ts';
import { namesOfActors } from '../../store/audit-events.ts';
import { findVersion, findVersions } from '../../store/servers/server-versions.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { type Context, operation } from '../operation.ts';
import {
  actorName,
  getServer,
  isoTime,
  isUnchanged,
  nextCursor,
  pageFrom,
  pageInputs,
  slugInput,
  time,
  versionInput,
} from '../shapes.ts';
import { changeServer, configOutput, precheckChange, saidOf, stored, storedAnswer } from './store-server.ts';

const versionRecord = z.object({
  version: z.int(),
  created_at: time,
  created_by: z.string(),
  created_by_name: actorName,
  config: configOutput,
});

const listVersions = operation({
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
    const { rows, next } = await findVersions(context.db, server, pageFrom(page));
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
  description: 'It becomes a new version, so nothing is lost. Secrets stay.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    version: z.int().min(1).describe('Version to restore.'),
    expected_version: versionInput,
  }),
  output: stored,
  async precheck(context, { slug, version }) {
    const current = await getServer(context, slug);
    return precheckChange(context, current, (await findVersion(context.db, current, version))?.config);
  },
  async run(context, { slug, version, expected_version }) {
    const current = await getServer(context, slug);
    const old = await findVersion(context.db, current, version);
    if (!old) throw unknownVersion(current, version);
    return storedAnswer(context, await changeServer(context, current, old.config, expected_version));
  },
  isUnchanged,
  audit: (input, output) => ({
    target: input.slug,
    detail: { restored: input.version, version: output.server.version },
  }),
  say: saidOf('Restored'),
});

/**
 * The configuration of an older version; undefined for the current one.
 * @throws AppError forbidden, for tools may have been taken from callers since; notFound
 */
export async function olderConfig(
  { db, actor }: Context,
  server: StoredServer,
  version: number | undefined,
): Promise<ServerConfig | undefined> {
  if (version === undefined || version === server.version) return undefined;
  if (!covers(actor.scopes, 'manage:write'))
    throw new AppError('forbidden', 'the tools of an older version need the scope manage:write');
  const old = await findVersion(db, server, version);
  if (!old) throw unknownVersion(server, version);
  return old.config;
}

function unknownVersion({ version: current }: StoredServer, version: number): AppError {
  return new AppError('notFound', `the server has no version ${version}; the current one is ${current}`);
}

export const versionOperations = { listVersions, restoreVersion };
