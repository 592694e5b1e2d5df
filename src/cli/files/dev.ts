import { type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { messageOf } from '../../errors.ts';
import { startDevService, stopDevOnSignals } from '../../process/dev.ts';
import { routes, urlOf } from '../../routes.ts';
import { note, print } from '../print.ts';
import { applyServer, planServers, type ServerOutcome } from './applying.ts';
import type { Sources } from './secret-values.ts';
import { duplicateSlug, type FileProblem, filesOf, readDocuments, type ServerFile, serverOf } from './server-files.ts';

export type DevOptions = { port?: number; env?: string[] };

export async function dev(paths: readonly string[], options: DevOptions): Promise<void> {
  const port = options.port === undefined ? {} : { PORT: String(options.port) };
  const service = await startDevService({ ...process.env, ...port });
  const read = createFileServing(service.servers, paths, { named: options.env ?? [] });
  const update = oneAfterAnother(async () => show(await read(), service.baseUrl));
  // Watched before the first reading, so that no change in between is missed.
  const stopFollowing = followFiles(paths, () => void update.run().catch((error) => note(messageOf(error))));
  stopDevOnSignals(service, async () => {
    stopFollowing();
    // What it still applies needs the service.
    await update.stop();
  });
  const { key } = await service.servers.run('createApiKey', { name: 'dev', scopes: ['manage', 'call'] });
  note(`Dashboard  ${service.baseUrl}\nAPI key    ${key} (until this command ends)`);
  await update.run();
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
    note(`problem  ${at}: ${path === '' ? '' : `${path}: `}${message}; it stays as it was`);
}

/** The servers of a service that follows files. */
type Served = Parameters<typeof planServers>[0] & { remove(slug: string): Promise<void> };

/** Result of one reading of the files. */
type FileReading = { outcomes: ServerOutcome[]; problems: FileProblem[] };

/**
 * Keeps a service like files, reading by reading. A file with a problem keeps its servers as they were; a server that no
 * file describes any more is removed.
 */
function createFileServing(servers: Served, paths: readonly string[], sources: Sources): () => Promise<FileReading> {
  /** Slugs that each file had when it was last readable. */
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

async function readAll(paths: readonly string[], known: Map<string, string[]>): Promise<Read> {
  const read: Read = { wanted: [], kept: [], problems: [] };
  const good = new Map<string, ServerFile[]>();
  const before = new Map(known);
  known.clear();
  const keep = (file: string) => {
    const slugs = before.get(file) ?? [];
    known.set(file, slugs);
    read.kept.push(...slugs);
  };
  for (const file of new Set(paths.flatMap(filesOf))) {
    const { documents, problems } = await readDocuments(file);
    const found = documents.map(serverOf);
    const faults = [...problems, ...found.flatMap((one) => one.problems)];
    // A folder that has become empty, or a file that is gone, describes no server.
    if (isGone(faults)) continue;
    read.problems.push(...faults);
    if (faults.length > 0) keep(file);
    else
      good.set(
        file,
        found.flatMap(({ server }) => server ?? []),
      );
  }
  const owners = ownersOf(good, before);
  for (const [file, servers] of good) {
    const taken = servers.filter((server) => owners.get(server.slug) !== server);
    const problems = taken.map(({ at, slug }) => ({ at, ...duplicateSlug(slug, owners.get(slug)?.at ?? '') }));
    read.problems.push(...problems);
    if (taken.length > 0) keep(file);
    else {
      const slugs = servers.map(({ slug }) => slug);
      known.set(file, slugs);
      read.wanted.push(...servers);
    }
  }
  return read;
}

/** The server of each slug: the one in the file that had it before, or else the first. */
function ownersOf(
  files: ReadonlyMap<string, readonly ServerFile[]>,
  before: ReadonlyMap<string, readonly string[]>,
): Map<string, ServerFile> {
  const owners = new Map<string, ServerFile>();
  for (const server of [...files.values()].flat()) {
    const owner = owners.get(server.slug);
    const hadIt = (one: ServerFile) => before.get(one.file)?.includes(one.slug) === true;
    if (!owner || (!hadIt(owner) && hadIt(server))) owners.set(server.slug, server);
  }
  return owners;
}

function isGone(faults: readonly FileProblem[]): boolean {
  return faults.some(({ message }) => /^there is no such file|^is a folder/.test(message));
}

/** Time without a change after which files are read: editors save in several steps. */
const quietMs = 100;

/** Calls `onChange` after files or folders changed, once for changes that come together. Returns what stops it. */
function followFiles(paths: readonly string[], onChange: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(onChange, quietMs);
  };
  // A file is watched through its folder, because editors replace files by renaming others.
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

/** Work that runs again and again, one run at a time. */
type RepeatedWork = {
  /** Runs it; a request during a run causes one more run after it. @throws whatever the work throws */
  run(): Promise<void>;
  /** Resolves when the run that is under way has ended; none follows it. */
  stop(): Promise<void>;
};

function oneAfterAnother(work: () => Promise<void>): RepeatedWork {
  let running: Promise<void> | undefined;
  let isAskedAgain = false;
  let isStopped = false;
  const runAll = async () => {
    try {
      do {
        isAskedAgain = false;
        await work();
      } while (isAskedAgain && !isStopped);
    } finally {
      running = undefined;
    }
  };
  return {
    async run() {
      if (isStopped) return;
      if (running) isAskedAgain = true;
      else running = runAll();
      await running;
    },
    async stop() {
      isStopped = true;
      await running?.catch(() => undefined);
    },
  };
}
