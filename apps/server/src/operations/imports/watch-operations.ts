import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { getImportIds } from '@toolhost/tool-config/imports';
import { z } from 'zod';
import {
  countWatched,
  findImportCheck,
  type ImportCheck,
  resetCheck,
  saveCheck,
  setWatchFrequency,
  watchFrequencies,
} from '../../store/servers/imports.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { programName } from '../../version.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import { formatImportState, importState, isUnchanged, slugInput, toImportState, unchangedShape } from '../shapes.ts';
import { checkDescription, findFetchableDescriptions, getFirstCheckTime } from './check-description.ts';

/** Maximum number of servers in a workspace whose descriptions are watched. */
export const maxWatched = 50;

const output = z.object({ slug: z.string(), imported: importState, unchanged: unchangedShape });

const compareImport = operation({
  name: 'compareImport',
  summary: 'Compare the API description of a server with its last import',
  description: 'Records what a re-import would change. reimportApi shows and applies the changes.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output,
  async prepare(context, { slug }) {
    const server = await getServer(context, slug);
    const result = await checkDescription(context, server, await getImportCheck(context, server));
    return { version: server.version, result };
  },
  async run(context, { slug }) {
    const server = await getServer(context, slug);
    const before = await getOrCreateImportCheck(context, server);
    const { result } = context.prepared;
    if (!(await saveCheck(context.db, server, result)))
      throw new AppError('conflict', 'the server was changed while its description was fetched; compare again');
    const isStateUnchanged =
      JSON.stringify([before.counts, before.error]) === JSON.stringify([result.counts, result.error]) &&
      before.checkedAt !== undefined;
    const imported = toImportState({ ...before, ...result, error: result.error });
    return { slug, imported, ...(isStateUnchanged && { unchanged: true as const }) };
  },
  isUnchanged,
  audit: ({ slug }, { imported: { counts, error } }) => ({ target: slug, detail: { ...counts, error } }),
  toAgentText: ({ slug, imported }) =>
    [
      `${slug}: ${formatImportState(imported)}`,
      ...(imported.changed ? [`Next: reimportApi shows the changes, or: ${programName} reimport ${slug}`] : []),
    ].join('\n'),
});

const watchImport = operation({
  name: 'watchImport',
  summary: 'Turn the daily comparison of an API description with its last import on or off',
  description: 'Server lists then show what has changed. reimportApi applies the changes.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    watch: z.enum(watchFrequencies).describe('daily or never.'),
  }),
  output,
  async run(context, { slug, watch }) {
    const server = await getServer(context, slug);
    const before = await getOrCreateImportCheck(context, server);
    if (before.watch === watch) return { slug, imported: toImportState(before), unchanged: true as const };
    if (watch === 'daily') await requireWatchable(context, server);
    const nextCheckAt = watch === 'daily' ? getFirstCheckTime(server.id, context.now()) : undefined;
    await setWatchFrequency(context.db, server, watch, nextCheckAt);
    return { slug, imported: toImportState({ ...before, watch, dueAt: nextCheckAt }) };
  },
  isUnchanged,
  audit: ({ slug, watch }) => ({ target: slug, detail: { watch } }),
  toAgentText: ({ slug, imported: { watch, next_check_at: nextCheck } }) =>
    watch === 'daily'
      ? `The description of ${slug} is checked every day; next check: ${nextCheck ?? 'within a day'}.`
      : `The description of ${slug} is no longer watched.`,
});

/** Returns the stored state of the description of an imported server. @throws AppError invalid for other servers */
async function getImportCheck({ db }: Context, server: StoredServer): Promise<ImportCheck> {
  const { imported } = server.config;
  if (!imported) {
    throw invalidInputError([
      { path: 'slug', message: 'this server was not imported; use importApi to create a server from a description' },
    ]);
  }
  const stored = await findImportCheck(db, server);
  return stored ?? { watch: 'never', dueAt: undefined, importId: getImportIds(imported), failures: 0 };
}

/** Returns the stored state, and stores one if there is none, as for a server that was applied from a file. */
async function getOrCreateImportCheck(context: Context, server: StoredServer): Promise<ImportCheck> {
  const check = await getImportCheck(context, server);
  if (!(await findImportCheck(context.db, server))) await resetCheck(context.db, server, check);
  return check;
}

/** @throws AppError invalid */
async function requireWatchable({ db, actor }: Context, server: StoredServer): Promise<void> {
  if ((await findFetchableDescriptions(db, server)).length === 0) {
    const message = 'the server was imported from text, which has no URL; re-import it from a URL first';
    throw invalidInputError([{ path: 'watch', message }]);
  }
  if ((await countWatched(db, actor.workspaceId)) >= maxWatched) {
    const message = `a workspace may watch at most ${maxWatched} descriptions; set another one to never first`;
    throw invalidInputError([{ path: 'watch', message }]);
  }
}

export const watchOperations = { compareImport, watchImport };
