import { applyServer, type ServerOutcome } from './apply-files.ts';
import { planServers } from './plan-files.ts';
import { type FileProblem, filesOf, readDocuments } from './read-files.ts';
import type { Sources } from './secret-values.ts';
import { duplicateSlug, type ServerFile, serverOf } from './server-files.ts';

/** The servers of a service that follows files. */
type Served = Parameters<typeof planServers>[0] & { remove(slug: string): Promise<void> };

/** Result of one reading of the files. */
export type FileReading = { outcomes: ServerOutcome[]; problems: FileProblem[] };

/**
 * Keeps a service like files, reading by reading. A file with a problem keeps its servers as they were; a server that no
 * file describes any more is removed.
 */
export function createFileServing(
  servers: Served,
  paths: readonly string[],
  sources: Sources,
): () => Promise<FileReading> {
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
