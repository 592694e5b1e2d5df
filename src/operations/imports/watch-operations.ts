import { z } from 'zod';
import { AppError, invalid } from '../../errors.ts';
import {
  countWatched,
  findImportCheck,
  type ImportCheck,
  restartCheck,
  saveCheck,
  setWatching,
  watchings,
} from '../../store/servers/imports.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { programName } from '../../version.ts';
import { type Context, operation } from '../operation.ts';
import {
  getServer,
  importState,
  importStateOf,
  isUnchanged,
  saidOfState,
  slugInput,
  unchangedShape,
} from '../shapes.ts';
import { checkDescription, descriptionOf, firstCheckAt } from './check-description.ts';

/** Maximum number of servers in a workspace whose descriptions are watched. */
export const mostWatched = 50;

const output = z.object({ slug: z.string(), imported: importState, unchanged: unchangedShape });

const compareImport = operation({
  name: 'compareImport',
  summary: 'Compare the API description of a server with its last import',
  description: 'Records what a re-import would change. importAgain shows and applies the changes.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({ slug: slugInput }),
  output,
  async prepare(context, { slug }) {
    const server = await getServer(context, slug);
    return checkDescription(context, server, await knownOf(context, server));
  },
  async run(context, { slug }) {
    const server = await getServer(context, slug);
    const before = await storedOf(context, server);
    const result = context.prepared as Awaited<ReturnType<typeof checkDescription>>;
    if (!(await saveCheck(context.db, server, result)))
      throw new AppError('conflict', 'the server was changed while its description was fetched; compare again');
    const isSame =
      JSON.stringify([before.counts, before.error]) === JSON.stringify([result.counts, result.error]) &&
      before.checkedAt !== undefined;
    const imported = importStateOf({ ...before, ...result, error: result.error });
    return { slug, imported, ...(isSame && { unchanged: true as const }) };
  },
  isUnchanged,
  audit: ({ slug }, { imported: { counts, error } }) => ({ target: slug, detail: { ...counts, error } }),
  say: ({ slug, imported }) =>
    [
      `${slug}: ${saidOfState(imported)}`,
      ...(imported.changed ? [`Next: importAgain shows the changes, or: ${programName} import-again ${slug}`] : []),
    ].join('\n'),
});

const watchImport = operation({
  name: 'watchImport',
  summary: 'Turn the daily comparison of an API description with its last import on or off',
  description: 'Server lists then show what has changed. importAgain applies the changes.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    watch: z.enum(watchings).describe('daily or never.'),
  }),
  output,
  async run(context, { slug, watch }) {
    const server = await getServer(context, slug);
    const before = await storedOf(context, server);
    if (before.watch === watch) return { slug, imported: importStateOf(before), unchanged: true as const };
    if (watch === 'daily') await checkMayWatch(context, server);
    const dueAt = watch === 'daily' ? firstCheckAt(server.id, context.now()) : undefined;
    await setWatching(context.db, server, watch, dueAt);
    return { slug, imported: importStateOf({ ...before, watch, dueAt }) };
  },
  isUnchanged,
  audit: ({ slug, watch }) => ({ target: slug, detail: { watch } }),
  say: ({ slug, imported: { watch, next_check_at: next } }) =>
    watch === 'daily'
      ? `The description of ${slug} is checked every day; next check: ${next ?? 'within a day'}.`
      : `The description of ${slug} is no longer watched.`,
});

/** Returns the stored state of the description of an imported server. @throws AppError invalid for other servers */
async function knownOf({ db }: Context, server: StoredServer): Promise<ImportCheck> {
  const { imported } = server.config;
  if (!imported) {
    throw invalid([
      { path: 'slug', message: 'this server was not imported; use importApi to create a server from a description' },
    ]);
  }
  const found = await findImportCheck(db, server);
  return found ?? { watch: 'never', dueAt: undefined, importId: imported.id, failures: 0 };
}

/** Returns the stored state, and stores one if there is none, as for a server that was applied from a file. */
async function storedOf(context: Context, server: StoredServer): Promise<ImportCheck> {
  const known = await knownOf(context, server);
  if (!(await findImportCheck(context.db, server))) await restartCheck(context.db, server, known);
  return known;
}

/** @throws AppError invalid */
async function checkMayWatch({ db, actor }: Context, server: StoredServer): Promise<void> {
  const { url } = await descriptionOf(db, server);
  if (url === undefined) {
    const message = 'the server was imported from text, which has no URL; re-import it from a URL first';
    throw invalid([{ path: 'watch', message }]);
  }
  if ((await countWatched(db, actor.workspaceId)) >= mostWatched) {
    const message = `a workspace may watch at most ${mostWatched} descriptions; set another one to never first`;
    throw invalid([{ path: 'watch', message }]);
  }
}

export const watchOperations = { compareImport, watchImport };
