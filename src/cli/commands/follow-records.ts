import { AppError } from '../../errors.ts';
import { type ListPage, pagesOf, type ReadPage } from '../connection/lists.ts';

export type Following<Item> = {
  read: ReadRecords<Item>;
  /** Shows records, oldest first. */
  show: (records: readonly Item[]) => void;
  /** Start time in epoch ms, by the service's clock. If undefined, the last `first` records are shown first. */
  since: number | undefined;
  first: number;
  /** Current time of the service in epoch ms. */
  now: number;
  wait: (ms: number) => Promise<void>;
  note: (text: string) => void;
};

/**
 * Time window in which new records can appear. A record is written when its call ends but is listed by the time when
 * the call began, so new records appear among older ones. The window is longer than any call, including queueing and
 * writing.
 */
const windowMs = 180_000;
const pauseMs = 1000;
const longestPauseMs = 30_000;
/** Number of polls after which the whole window is read. Other polls end at the first page without a new record. */
const wholeEvery = 10;

/**
 * Shows the existing records, then each new one once, until the process ends.
 * @throws AppError if the service refuses
 */
export async function followRecords<Item extends Dated>(following: Following<Item>): Promise<never> {
  const { read, show, since, first, now, wait } = following;
  const seen = new Map<string, number>();
  let newest = now;
  const start = Math.min(since ?? Number.POSITIVE_INFINITY, now - windowMs);
  const { entries: records } = await newestRecords(read, Number.POSITIVE_INFINITY, start);
  const older = since === undefined && records.length < first ? (await newestRecords(read, first)).entries : records;
  keep(older);
  keep(records);
  const wanted = since === undefined ? older.slice(0, first) : records.filter(({ at }) => Date.parse(at) >= since);
  show(wanted.toReversed());

  function keep(some: readonly Item[]): Item[] {
    const fresh = some.filter(({ id }) => !seen.has(id));
    for (const { id, at } of fresh) {
      seen.set(id, Date.parse(at));
      newest = Math.max(newest, Date.parse(at));
    }
    return fresh;
  }

  async function poll(isWhole: boolean): Promise<Item[]> {
    const from = Math.max(newest - windowMs, since ?? 0);
    for (const [id, at] of seen) if (at < from) seen.delete(id);
    const found: Item[] = [];
    for await (const { entries } of pagesOf((wanted) => read({ since: from, ...wanted }))) {
      const fresh = keep(entries);
      found.push(...fresh);
      if (entries.length > 0 && fresh.length === 0 && !isWhole) break;
    }
    return found;
  }

  for (let polls = 1; ; polls++) {
    await wait(pauseMs);
    const found = await patiently(() => poll(polls % wholeEvery === 0), following);
    show(found.toSorted((a, b) => (a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1)));
  }
}

/** Retries a poll while the service is unavailable or rate-limits it. @throws AppError for any other failure */
async function patiently<Result>(
  poll: () => Promise<Result>,
  { wait, note }: Pick<Following<never>, 'wait' | 'note'>,
): Promise<Result> {
  for (let pause = pauseMs; ; pause = Math.min(2 * pause, longestPauseMs)) {
    try {
      return await poll();
    } catch (error) {
      const isPassing = error instanceof AppError && (error.kind === 'unavailable' || error.kind === 'tooMany');
      if (!isPassing) throw error;
      if (pause === pauseMs) note(`${error.message}; retrying until it responds`);
      await wait(pause);
    }
  }
}

/** Record of a list that is sorted newest first. */
export type Dated = { id: string; at: string };

/** Reads one page. `since` is in epoch ms. */
export type ReadRecords<Item> = (
  wanted: { since?: number | undefined } & Parameters<ReadPage<Item>>[0],
) => Promise<ListPage<Item>>;

/** Reads the newest records, newest first, and the cursor to older ones. @throws AppError as `pagesOf` does */
export async function newestRecords<Item extends Dated>(
  read: ReadRecords<Item>,
  most: number,
  since?: number,
): Promise<ListPage<Item>> {
  const entries: Item[] = [];
  let next: string | undefined;
  for await (const page of pagesOf((wanted) => read({ since, ...wanted }), { most })) {
    entries.push(...page.entries);
    next = page.next;
  }
  return { entries, next };
}
