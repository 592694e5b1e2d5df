import { AppError } from '../../errors.ts';
import { type ListPage, pagesOf, type ReadPage } from '../connection/lists.ts';

export type Following<Item> = {
  read: ReadRecords<Item>;
  /** Shows records, oldest first. */
  show: (records: readonly Item[]) => void;
  /** Epoch ms by the service: those from then on are shown first; otherwise the last `first` ones. */
  since: number | undefined;
  first: number;
  /** Time of the service in epoch ms. */
  now: number;
  wait: (ms: number) => Promise<void>;
  note: (text: string) => void;
};

/**
 * A record is written when its call ends, and is listed at the time when the call began, so new ones appear among older
 * ones. This is longer than any call takes, its waiting and its writing included.
 */
const windowMs = 180_000;
const pauseMs = 1000;
const longestPauseMs = 30_000;
/** Every so many polls the whole window is read; the others end at the first page without a new record. */
const wholeEvery = 10;

/** Shows the records that there are, and then each new one once, until the process ends. @throws AppError when refused */
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

/** Repeats a poll while the service is away or asks for patience. @throws AppError for every other refusal */
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
      if (pause === pauseMs) note(`${error.message}; trying again until it answers`);
      await wait(pause);
    }
  }
}

/** A record of a list that is ordered newest first. */
export type Dated = { id: string; at: string };

/** Reads one page. `since` is in epoch ms. */
export type ReadRecords<Item> = (
  wanted: { since?: number | undefined } & Parameters<ReadPage<Item>>[0],
) => Promise<ListPage<Item>>;

/** The newest records, newest first, and the cursor of those before them. @throws AppError as `pagesOf` */
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
