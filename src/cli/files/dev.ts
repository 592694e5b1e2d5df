import { type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '../../errors.ts';
import { startDevService, stopDevOnSignals } from '../../process/dev.ts';
import { routes, urlOf } from '../../routes.ts';
import { note, print } from '../print.ts';
import { applyServer, planServers, type ServerOutcome } from './applying.ts';
import type { Sources } from './secret-values.ts';
import { type FileProblem, filesOf, readDocuments, type ServerFile, serverOf, takenSlugs } from './server-files.ts';

export type DevOptions = { port?: number; env?: string[] };

export async function dev(paths: readonly string[], options: DevOptions): Promise<void> {
  const port = options.port === undefined ? {} : { PORT: String(options.port) };
  const service = await startDevService({ ...process.env, ...port });
  const read = createFileServing(service.servers, paths, { named: options.env ?? [] });
  let isStopped = false;
  let last = Promise.resolve();
  const update = () => {
    const next = last.then(async () => {
      if (!isStopped) show(await read(), service.baseUrl);
    });
    last = next.catch(() => undefined);
    return next;
  };
  // Watched before the first read, so that no change in between is missed.
  const stopFollowing = followFiles(paths, () => void update().catch((error) => note(messageOf(error))));
  stopDevOnSignals(service, async () => {
    stopFollowing();
    isStopped = true;
    // An update in progress still needs the service.
    await last;
  });
  const { key } = await service.servers.run('createApiKey', { name: 'dev', scopes: ['manage', 'call'] });
  note(`Dashboard  ${service.baseUrl}\nAPI key    ${key} (until this command ends)`);
  await update();
  print(`toolhost ready ${service.baseUrl}`);
}

function show({ outcomes, problems }: FileReading, baseUrl: string): void {
  for (const { slug, result, message, changes, warnings } of outcomes) {
    if (result === 'same') continue;
    const detail = result === 'changed' ? changes.map(({ path }) => path).join(', ') : (message ?? '');
    const at = result === 'pruned' ? '' : `  ${urlOf(baseUrl, routes.mcp, slug)}`;
    print(`${result === 'pruned' ? 'removed' : result}  ${slug}${at}  ${detail}`.trimEnd());
    for (const warning of warnings) note(`  warning: ${warning.path}: ${warning.message}`);
  }
  for (const { at, path, message } of problems)
    note(`problem  ${at}: ${path === '' ? '' : `${path}: `}${message} (not applied)`);
}

/** Servers of a service that follows files. */
type Served = Parameters<typeof planServers>[0] & { remove(slug: string): Promise<void> };

/** Result of reading and applying the files once. */
type FileReading = { outcomes: ServerOutcome[]; problems: FileProblem[] };

/**
 * Returns a function that reads the files and makes the service match them. A file with a problem leaves its servers
 * unchanged. A server that no file describes any more is removed.
 */
function createFileServing(servers: Served, paths: readonly string[], sources: Sources): () => Promise<FileReading> {
  /** Slugs of each file when it was last readable. */
  const known = new Map<string, string[]>();
  const applied = new Set<string>();
  return async () => {
    const { wanted, kept, problems } = await readAll(paths, known);
    const outcomes: ServerOutcome[] = [];
    const stays = new Set([...wanted.map(({ slug }) => slug), ...kept]);
    for (const slug of [...applied].filter((one) => !stays.has(one))) {
      await servers.remove(slug);
      applied.delete(slug);
      outcomes.push({ slug, result: 'pruned', changes: [], warnings: [] });
    }
    const planning = await planServers(servers, wanted, sources);
    const faulty = new Set(planning.problems.map(({ at }) => at));
    for (const planned of planning.planned.filter(({ server }) => !faulty.has(server.at))) {
      outcomes.push(await applyServer(servers, planned, { overwrite: true }));
      applied.add(planned.server.slug);
    }
    return { outcomes, problems: [...problems, ...planning.problems] };
  };
}

type Read = { wanted: ServerFile[]; kept: string[]; problems: FileProblem[] };

/** Reads the files and updates `known`, the slugs of each file when it was last readable. */
async function readAll(paths: readonly string[], known: Map<string, string[]>): Promise<Read> {
  const read: Read = { wanted: [], kept: [], problems: [] };
  const owners = new Map<string, string>();
  const files = new Set(paths.flatMap(filesOf));
  for (const file of known.keys()) if (!files.has(file)) known.delete(file);
  for (const file of files) {
    const { documents, problems } = await readDocuments(file);
    const found = documents.map(serverOf);
    const servers = found.flatMap(({ server }) => server ?? []);
    const faults = [...problems, ...found.flatMap((one) => one.problems), ...takenSlugs(servers, owners)];
    // An empty folder or a deleted file describes no server.
    if (faults.some(({ message }) => /^there is no such file|^is a folder/.test(message))) {
      known.delete(file);
      continue;
    }
    read.problems.push(...faults);
    if (faults.length > 0) read.kept.push(...(known.get(file) ?? []));
    else {
      const slugs = servers.map(({ slug }) => slug);
      known.set(file, slugs);
      read.wanted.push(...servers);
    }
  }
  return read;
}

/** Debounce time before files are read, because editors save in several steps. */
const quietMs = 100;

/** Calls `onChange` after files or folders change, once for changes in quick succession. Returns a stop function. */
function followFiles(paths: readonly string[], onChange: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, quietMs);
  };
  // A file is watched through its folder, because editors save by renaming a new file over the old one.
  const folders = new Set(paths.map((path) => (isFolder(path) ? path : dirname(path))));
  const watchers: FSWatcher[] = [...folders].map((folder) => watch(folder, changed));
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
