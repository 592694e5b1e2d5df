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

/** Most servers of a workspace whose descriptions are watched. */
export const mostWatched = 50;

const output = z.object({ slug: z.string(), imported: importState, unchanged: unchangedShape });

const compareImport = operation({
  name: 'compareImport',
  summary: 'Compare the API description of a server with its last import',
  description: 'Notes what importing again would change. importAgain shows the changes and applies them.',
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
      throw new AppError('conflict', 'the server was changed while its description was read; check again');
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
  summary: 'Choose whether the API description of a server is compared with its last import every day',
  description: 'Lists of servers then say what has changed, and importAgain applies it.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    watch: z.enum(watchings).describe('daily, or never.'),
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
      ? `The description of ${slug} is read every day, next at ${next ?? 'its time'}.`
      : `The description of ${slug} is no longer watched.`,
});

/** What is known of the description of an imported server. @throws AppError invalid for other servers */
async function knownOf({ db }: Context, server: StoredServer): Promise<ImportCheck> {
  const { imported } = server.config;
  if (!imported) {
    throw invalid([
      { path: 'slug', message: 'this server was not imported; importApi makes a server of a description' },
    ]);
  }
  const found = await findImportCheck(db, server);
  return found ?? { watch: 'never', dueAt: undefined, importId: imported.id, failures: 0 };
}

/** The same, with a row for it: a server that was applied from a file has none. */
async function storedOf(context: Context, server: StoredServer): Promise<ImportCheck> {
  const known = await knownOf(context, server);
  if (!(await findImportCheck(context.db, server))) await restartCheck(context.db, server, known);
  return known;
}

/** @throws AppError invalid */
async function checkMayWatch({ db, actor }: Context, server: StoredServer): Promise<void> {
  const { url } = await descriptionOf(db, server);
  if (url === undefined) {
    const message = 'the server was imported from a text, which has no address; import it again from an address first';
    throw invalid([{ path: 'watch', message }]);
  }
  if ((await countWatched(db, actor.workspaceId)) >= mostWatched) {
    const message = `at most ${mostWatched} descriptions of a workspace are watched; set another one to never first`;
    throw invalid([{ path: 'watch', message }]);
  }
}

export const watchOperations = { compareImport, watchImport };
