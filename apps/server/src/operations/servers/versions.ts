import { hasScope } from '@toolhost/credentials/credential';
import { AppError } from '@toolhost/errors/errors';
import { diffConfigs } from '@toolhost/tool-config/config-changes';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { z } from 'zod';
import { findVersion, findVersions, setVersionMessage } from '../../store/servers/server-versions.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { findActorNames } from '../actor-names.ts';
import { prepareConfig } from '../check-config.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import {
  actorName,
  changesShape,
  formatChanges,
  isUnchanged,
  messageInput,
  nextCursor,
  pageInputs,
  parsePage,
  slugInput,
  time,
  toIsoTime,
  unchangedShape,
  versionInput,
} from '../shapes.ts';
import { changeServer, configOutput, createStoredResult, formatStored, storeResultShape } from './store-server.ts';

const versionRecord = z.object({
  version: z.int(),
  created_at: time,
  created_by: z.string(),
  created_by_name: actorName,
  message: z.string().optional().describe('Message of the version.'),
  config: configOutput,
});
nameSchema('Version', versionRecord);

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
    const { rows, next } = await findVersions(context.db, server, parsePage(page));
    const ids = rows.map(({ createdBy }) => createdBy);
    const names = await findActorNames(context, ids);
    return {
      next_cursor: next,
      versions: rows.map(({ version, config, createdAt, createdBy, message }) => ({
        version,
        created_at: toIsoTime(createdAt),
        created_by: createdBy,
        created_by_name: names.get(createdBy),
        ...(message !== undefined && { message }),
        config,
      })),
    };
  },
});

const describeVersion = (description: string) => z.int().min(1).describe(description);

const compareVersions = operation({
  name: 'compareVersions',
  summary: 'Compare two versions of a hosted server semantically',
  description: 'Tools are matched by name. Secrets are masked in both versions.',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({
    slug: slugInput,
    before: describeVersion('The older version.'),
    version: describeVersion('The newer version.'),
  }),
  output: z.object({ changes: changesShape }),
  async run(context, { slug, before, version }) {
    const server = await getServer(context, slug);
    const [older, newer] = [await getVersion(context, server, before), await getVersion(context, server, version)];
    return { changes: formatChanges(await diffConfigs(older.config, newer.config)) };
  },
});

/** @throws AppError notFound */
async function getVersion({ db }: Pick<Context, 'db'>, server: StoredServer, version: number) {
  const storedVersion = await findVersion(db, server, version);
  if (storedVersion) return storedVersion;
  throw new AppError(
    'notFound',
    `the server has no version ${version}; the current version is ${server.version}, and old versions are deleted when there are too many`,
  );
}

const updateVersion = operation({
  name: 'updateVersion',
  summary: 'Set the message of a version of a hosted server',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: z.strictObject({
    slug: slugInput,
    version: describeVersion('Version number.'),
    message: messageInput.describe('Message to show with the version; absent to remove it.'),
  }),
  output: z.object({ version: z.int(), unchanged: unchangedShape }),
  async run(context, { slug, version, message }) {
    const server = await getServer(context, slug);
    const current = await getVersion(context, server, version);
    if (current.message === message) return { version, unchanged: true as const };
    await setVersionMessage(context.db, { ...server, version }, message);
    return { version };
  },
  isUnchanged,
  audit: ({ slug, version }) => ({ target: slug, detail: { version } }),
});

const restoreVersion = operation({
  name: 'restoreVersion',
  summary: 'Restore an older version of a hosted server',
  description: 'It becomes a new version, so nothing is lost. Secrets stay as they are.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    version: z.int().min(1).describe('Version to restore.'),
    expected_version: versionInput,
  }),
  output: storeResultShape,
  async prepare(context, { slug, version }) {
    const current = await getServer(context, slug);
    return prepareConfig(context, (await findVersion(context.db, current, version))?.config, { current });
  },
  async run(context, { slug, version, expected_version }) {
    const current = await getServer(context, slug);
    const older = await getVersion(context, current, version);
    const changed = await changeServer(context, current, older.config, expected_version);
    if (!changed.isUnchanged) await setVersionMessage(context.db, changed.server, `Restores version ${version}`);
    return createStoredResult(context, changed);
  },
  isUnchanged,
  audit: (input, output) => ({
    target: input.slug,
    detail: { restored: input.version, version: output.server.version },
  }),
  toAgentText: formatStored('Restored'),
});

/**
 * Returns the configuration of an older version; undefined for the current one.
 * @throws AppError forbidden, because tools may have been removed from callers since then
 * @throws AppError notFound
 */
export async function getOlderVersion(
  { db, actor }: Context,
  server: StoredServer,
  version: number | undefined,
): Promise<{ version: number; config: ServerConfig } | undefined> {
  if (version === undefined || version === server.version) return undefined;
  if (!hasScope(actor.scopes, 'manage:write'))
    throw new AppError(
      'forbidden',
      'tools of an older version need the scope manage:write; use a credential with this scope',
    );
  return { version, config: (await getVersion({ db }, server, version)).config };
}

export const versionOperations = { listVersions, compareVersions, updateVersion, restoreVersion };
