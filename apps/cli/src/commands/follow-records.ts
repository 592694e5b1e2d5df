import { AppError } from '@toolhost/errors/errors';
import { type ListPage, type ReadPage, readPages } from '../connection/lists.ts';

export type FollowRecordsOptions<Item> = {
  read: ReadRecords<Item>;
  /** Shows records, oldest first. */
  showRecords: (records: readonly Item[]) => void;
  /** Start time in epoch ms, by the service's clock. If undefined, the last `initialCount` records are shown first. */
  since: number | undefined;
  initialCount: number;
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
const lookbackMs = 180_000;
const pollIntervalMs = 1000;
const maxPauseMs = 30_000;
/** Every tenth poll reads the whole window. Other polls end at the first page without a new record. */
const pollsPerFullPoll = 10;

/**
 * Shows the existing records, then each new one once, until the process ends.
 * @throws AppError if the service refuses
 */
export async function followRecords<Item extends DatedRecord>(options: FollowRecordsOptions<Item>): Promise<never> {
  const { read, showRecords, since, initialCount, now, wait } = options;
  /** Times of the records that were read, by ID. */
  const seenAt = new Map<string, number>();
  let newestAt = now;
  const start = Math.min(since ?? Number.POSITIVE_INFINITY, now - lookbackMs);
  // Reads the whole window, so that no record in it is shown as new later.
  const { entries: records } = await readNewestRecords(read, Number.POSITIVE_INFINITY, start);
  const initialRecords =
    since === undefined && records.length < initialCount
      ? (await readNewestRecords(read, initialCount)).entries
      : records;
  addUnseen(initialRecords);
  addUnseen(records);
  const recordsToShow =
    since === undefined ? initialRecords.slice(0, initialCount) : records.filter(({ at }) => Date.parse(at) >= since);
  showRecords(recordsToShow.toReversed());

  function addUnseen(candidates: readonly Item[]): Item[] {
    const unseen = candidates.filter(({ id }) => !seenAt.has(id));
    for (const { id, at } of unseen) {
      seenAt.set(id, Date.parse(at));
      newestAt = Math.max(newestAt, Date.parse(at));
    }
    return unseen;
  }

  async function poll(isFullPoll: boolean): Promise<Item[]> {
    const sinceMs = Math.max(newestAt - lookbackMs, since ?? 0);
    for (const [id, at] of seenAt) if (at < sinceMs) seenAt.delete(id);
    const newRecords: Item[] = [];
    for await (const { entries } of readPages((request) => read({ since: sinceMs, ...request }))) {
      const unseen = addUnseen(entries);
      newRecords.push(...unseen);
      if (entries.length > 0 && unseen.length === 0 && !isFullPoll) break;
    }
    return newRecords;
  }

  for (let polls = 1; ; polls++) {
    await wait(pollIntervalMs);
    const newRecords = await retryPoll(() => poll(polls % pollsPerFullPoll === 0), options);
    showRecords(newRecords.toSorted(compareByTime));
  }
}

function compareByTime(a: DatedRecord, b: DatedRecord): number {
  if (a.at !== b.at) return a.at < b.at ? -1 : 1;
  return a.id < b.id ? -1 : 1;
}

/** Retries a poll while the service is unavailable or rate-limits it. @throws AppError for any other failure */
async function retryPoll<Result>(
  poll: () => Promise<Result>,
  { wait, note }: Pick<FollowRecordsOptions<never>, 'wait' | 'note'>,
): Promise<Result> {
  for (let pause = pollIntervalMs; ; pause = Math.min(2 * pause, maxPauseMs)) {
    try {
      return await poll();
    } catch (error) {
      const isTemporary = error instanceof AppError && (error.kind === 'unavailable' || error.kind === 'tooMany');
      if (!isTemporary) throw error;
      if (pause === pollIntervalMs) note(`${error.message}; retrying until it responds`);
      await wait(pause);
    }
  }
}

/** Record of a list that is sorted newest first. */
export type DatedRecord = { id: string; at: string };

/** Reads one page. `since` is in epoch ms. */
export type ReadRecords<Item> = (
  request: { since?: number | undefined } & Parameters<ReadPage<Item>>[0],
) => Promise<ListPage<Item>>;

/** Reads the newest records, newest first, and the cursor to older ones. @throws AppError as `readPages` does */
export async function readNewestRecords<Item extends DatedRecord>(
  read: ReadRecords<Item>,
  maxRecords: number,
  since?: number,
): Promise<ListPage<Item>> {
  const entries: Item[] = [];
  let nextCursor: string | undefined;
  for await (const page of readPages((request) => read({ since, ...request }), { maxEntries: maxRecords })) {
    entries.push(...page.entries);
    nextCursor = page.nextCursor;
  }
  return { entries, nextCursor };
}
