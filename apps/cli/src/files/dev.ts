import { type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { getErrorMessage } from '@toolhost/errors/errors';
import { buildUrl, loadDevService, routes } from '@toolhost/server/command-line';
import { print, printMessage } from '../print.ts';
import { applyServer, planServers, type ServerOutcome } from './plan-and-apply.ts';
import type { Sources } from './secret-values.ts';
import {
  type FileProblem,
  findTakenSlugs,
  listFiles,
  readDocuments,
  type ServerFile,
  toServer,
} from './server-files.ts';

export type DevOptions = { port?: number; env?: string[] };

export async function runDev(paths: readonly string[], options: DevOptions): Promise<void> {
  const portVariable = options.port === undefined ? {} : { PORT: String(options.port) };
  const { startDevService, stopDevOnSignals } = await loadDevService();
  const service = await startDevService({ ...process.env, ...portVariable });
  const readAndApply = createFileApplier(service.servers, paths, { allowedVariables: options.env ?? [] });
  let isStopped = false;
  let lastUpdate = Promise.resolve();
  const update = () => {
    const nextUpdate = lastUpdate.then(async () => {
      if (!isStopped) printUpdate(await readAndApply(), service.baseUrl);
    });
    lastUpdate = nextUpdate.catch(() => undefined);
    return nextUpdate;
  };
  // Watches before the first read, so that no change in between is missed.
  const stopWatching = watchFiles(paths, () => void update().catch((error) => printMessage(getErrorMessage(error))));
  stopDevOnSignals(service, async () => {
    stopWatching();
    isStopped = true;
    // An update in progress still needs the service.
    await lastUpdate;
  });
  const { key } = await service.servers.run('createApiKey', { name: 'dev', scopes: ['manage', 'call'] });
  printMessage(`Dashboard  ${service.dashboardUrl}\nAPI key    ${key} (until this command ends)`);
  await update();
  print(`toolhost ready ${service.baseUrl}`);
}

function printUpdate({ outcomes, problems }: FileUpdate, baseUrl: string): void {
  for (const { slug, result, message, changes, warnings } of outcomes) {
    if (result === 'same') continue;
    const detail = result === 'changed' ? changes.map(({ path }) => path).join(', ') : (message ?? '');
    const url = result === 'pruned' ? '' : `  ${buildUrl(baseUrl, routes.mcp, slug)}`;
    print(`${result === 'pruned' ? 'removed' : result}  ${slug}${url}  ${detail}`.trimEnd());
    for (const warning of warnings) printMessage(`  warning: ${warning.path}: ${warning.message}`);
  }
  for (const { at, path, message } of problems)
    printMessage(`problem  ${at}: ${path === '' ? '' : `${path}: `}${message} (not applied)`);
}

/** Client of the local service, which can also remove a server permanently. */
type DevTarget = Parameters<typeof planServers>[0] & { remove(slug: string): Promise<void> };

/** Result of reading and applying the files once. */
type FileUpdate = { outcomes: ServerOutcome[]; problems: FileProblem[] };

/**
 * Returns a function that reads the files and makes the service match them. A file with a problem leaves its servers
 * unchanged. A server that no file describes any more is removed.
 */
function createFileApplier(servers: DevTarget, paths: readonly string[], sources: Sources): () => Promise<FileUpdate> {
  /** Slugs of each file when it was last readable. */
  const knownSlugs = new Map<string, string[]>();
  const appliedSlugs = new Set<string>();
  return async () => {
    const { servers: desiredServers, unchangedSlugs, problems } = await readAllFiles(paths, knownSlugs);
    const outcomes: ServerOutcome[] = [];
    const retainedSlugs = new Set([...desiredServers.map(({ slug }) => slug), ...unchangedSlugs]);
    for (const slug of [...appliedSlugs].filter((appliedSlug) => !retainedSlugs.has(appliedSlug))) {
      await servers.remove(slug);
      appliedSlugs.delete(slug);
      outcomes.push({ slug, result: 'pruned', changes: [], warnings: [] });
    }
    const planResult = await planServers(servers, desiredServers, sources);
    const problemFiles = new Set(planResult.problems.map(({ at }) => at));
    for (const planned of planResult.planned.filter(({ server }) => !problemFiles.has(server.at))) {
      outcomes.push(await applyServer(servers, planned, { overwrite: true }));
      appliedSlugs.add(planned.server.slug);
    }
    return { outcomes, problems: [...problems, ...planResult.problems] };
  };
}

type ReadResult = { servers: ServerFile[]; unchangedSlugs: string[]; problems: FileProblem[] };

/** Reads the files and updates `knownSlugs`, the slugs of each file when it was last readable. */
async function readAllFiles(paths: readonly string[], knownSlugs: Map<string, string[]>): Promise<ReadResult> {
  const result: ReadResult = { servers: [], unchangedSlugs: [], problems: [] };
  const owners = new Map<string, string>();
  const files = new Set(paths.flatMap(listFiles));
  for (const file of knownSlugs.keys()) if (!files.has(file)) knownSlugs.delete(file);
  for (const file of files) {
    const { documents, problems } = await readDocuments(file);
    const parsed = documents.map(toServer);
    const servers = parsed.flatMap(({ server }) => server ?? []);
    const fileProblems = [
      ...problems,
      ...parsed.flatMap((parsedDocument) => parsedDocument.problems),
      ...findTakenSlugs(servers, owners),
    ];
    // An empty folder or a deleted file describes no server.
    if (fileProblems.some(({ message }) => /^there is no such file|^is a folder/.test(message))) {
      knownSlugs.delete(file);
      continue;
    }
    result.problems.push(...fileProblems);
    if (fileProblems.length > 0) result.unchangedSlugs.push(...(knownSlugs.get(file) ?? []));
    else {
      const slugs = servers.map(({ slug }) => slug);
      knownSlugs.set(file, slugs);
      result.servers.push(...servers);
    }
  }
  return result;
}

/** Time without further changes before files are read, because editors save in several steps. */
const debounceMs = 100;

/** Calls `onChange` after files or folders change, once for changes in quick succession. Returns a stop function. */
function watchFiles(paths: readonly string[], onChange: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const scheduleChange = () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, debounceMs);
  };
  // A file is watched through its folder, because editors save by renaming a new file over the old one.
  const folders = new Set(paths.map((path) => (isFolder(path) ? path : dirname(path))));
  const watchers: FSWatcher[] = [...folders].map((folder) => watch(folder, scheduleChange));
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
