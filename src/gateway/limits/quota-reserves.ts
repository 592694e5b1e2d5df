import { shareOf } from '../../domain/limits.ts';
import type { QuotaGrant, QuotaPeriod, QuotaWish } from '../../store/calls/call-quota-use.ts';
import { StoreFault } from '../../store/engine/faults.ts';

/** The part of one quota that this process holds in one minute or day. */
export type Reserve = QuotaPeriod & {
  readonly endsAt: number;
  /** The quota as of the last call. */
  quota: number;
  /** Calls that were taken from the quota and not made yet. */
  held: number;
  /** Calls that wait for the next answer of the database. */
  awaited: number;
  /** How many calls are taken at once; grows with the number of calls made. */
  step: number;
  /** Whether a call was made since the last settling. */
  isUsed: boolean;
  /** Calls to add in the database, or to give back there (below 0). */
  owed: number;
  /** Calls made without asking, because the database did not answer. */
  unasked: number;
  /** Time until which the quota counts as used up, in epoch ms. */
  usedUpUntil: number;
};

/** Takes calls of quotas from the database in batches, and gives back those that are not needed. */
export type QuotaReserves = {
  make(period: QuotaPeriod, endsAt: number, quota: number): Reserve;
  /** Takes more calls. Afterwards some are held, or the quota counts as used up for now. Never throws. */
  ask(reserve: Reserve): Promise<void>;
  /** Gives back what is held when the quota has changed. */
  change(reserve: Reserve, quota: number): void;
  /** Gives everything back. */
  stop(): Promise<void>;
};

export type QuotaReservesOptions = {
  /** @throws errors of the database */
  take: (wishes: readonly QuotaWish[]) => Promise<QuotaGrant[]>;
  /** @throws errors of the database */
  settle: (uses: readonly (QuotaPeriod & { calls: number })[]) => Promise<void>;
  processCount: () => number;
  /** Epoch ms. */
  now: () => number;
  onError: (error: unknown) => void;
  onSuccess: () => void;
};

const settleMs = 5000;
/** Time after which a used-up quota is asked for again: another process may have given some calls back. */
const againMs = 1000;
const firstStep = 8;
const mostAtOnce = 500;

/** All reserves of a process. */
type Book = QuotaReservesOptions & {
  /** Reserves that hold or owe something. */
  kept: Set<Reserve>;
  asking: Set<Reserve>;
  timer: NodeJS.Timeout | undefined;
  /** Whether the last query to the database failed. Calls do not wait for it then. */
  isDown: boolean;
};

export function createQuotaReserves(options: QuotaReservesOptions): QuotaReserves {
  const book: Book = { ...options, kept: new Set(), asking: new Set(), timer: undefined, isDown: false };
  const takeSoon = oneAtATime(() => takeAll(book));
  return {
    make(period, endsAt, quota) {
      const state = { held: 0, awaited: 0, step: firstStep, isUsed: false, owed: 0, unasked: 0, usedUpUntil: 0 };
      const reserve: Reserve = { ...period, endsAt, quota, ...state };
      fitStep(reserve, quota, book.processCount());
      return reserve;
    },
    async ask(reserve) {
      if (book.isDown) {
        takeUnasked(book, reserve, reserve.step);
        return;
      }
      reserve.awaited++;
      book.asking.add(reserve);
      await takeSoon();
    },
    change(reserve, quota) {
      reserve.quota = quota;
      reserve.usedUpUntil = 0;
      giveBack(book, reserve);
      keep(book, reserve);
    },
    async stop() {
      if (book.asking.size > 0) await takeSoon();
      clearTimeout(book.timer);
      for (const reserve of book.kept) giveBack(book, reserve);
      await settleOwed(book);
    },
  };
}

/** Runs the work in rounds: all requests made during a round share the next one. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let underWay: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  return function start(): Promise<void> {
    if (underWay) {
      next ??= underWay.then(() => {
        next = undefined;
        return start();
      });
      return next;
    }
    underWay = work().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}

function keep(book: Book, reserve: Reserve): void {
  book.kept.add(reserve);
  book.timer ??= setTimeout(() => void settle(book), settleMs).unref();
}

/** A process takes a fraction of its share of the remainder, which leaves enough for the others. */
function fitStep(reserve: Reserve, left: number, processes: number): void {
  reserve.step = Math.max(1, Math.min(reserve.step, Math.floor(left / (4 * processes))));
}

function giveBack({ processCount }: Book, reserve: Reserve): void {
  reserve.owed -= reserve.held;
  reserve.held = 0;
  reserve.step = firstStep;
  fitStep(reserve, reserve.quota, processCount());
}

async function takeAll(book: Book): Promise<void> {
  const reserves = [...book.asking];
  book.asking.clear();
  for (let at = 0; at < reserves.length; at += mostAtOnce) await takeFor(book, reserves.slice(at, at + mostAtOnce));
}

async function takeFor(book: Book, reserves: readonly Reserve[]): Promise<void> {
  const wishes = reserves.map((reserve) => {
    const { kind, ref, span, startsAt, quota, awaited, step } = reserve;
    reserve.awaited = 0;
    return { kind, ref, span, startsAt, quota, calls: Math.max(awaited, step) };
  });
  try {
    const grants = await book.take(wishes);
    book.onSuccess();
    for (const [index, reserve] of reserves.entries()) {
      const { granted, taken } = grants[index] as QuotaGrant;
      hold(book, reserve, granted);
      reserve.step *= 2;
      fitStep(reserve, reserve.quota - taken, book.processCount());
    }
  } catch (error) {
    book.onError(error);
    book.isDown = true;
    for (const [index, reserve] of reserves.entries()) takeUnasked(book, reserve, wishes[index]?.calls ?? 1);
  }
}

/** Without the database, this process may make its share of the quota. */
function takeUnasked(book: Book, reserve: Reserve, wanted: number): void {
  const share = shareOf(reserve.quota, book.processCount());
  const calls = Math.max(0, Math.min(wanted, share - reserve.unasked));
  reserve.unasked += calls;
  reserve.owed += calls;
  hold(book, reserve, calls);
}

function hold(book: Book, reserve: Reserve, calls: number): void {
  reserve.held += calls;
  if (calls > 0) keep(book, reserve);
  else reserve.usedUpUntil = book.now() + againMs;
}

/** Gives back what was not needed since the last time, and reports to the database what it does not know. */
async function settle(book: Book): Promise<void> {
  const { kept, now } = book;
  book.timer = undefined;
  for (const reserve of kept) {
    if (!reserve.isUsed) giveBack(book, reserve);
    reserve.isUsed = false;
    if (reserve.endsAt <= now()) kept.delete(reserve);
  }
  await settleOwed(book);
  for (const reserve of kept) {
    if (reserve.held === 0 && reserve.owed === 0) kept.delete(reserve);
    else keep(book, reserve);
  }
}

async function settleOwed(book: Book): Promise<void> {
  const owing = [...book.kept].filter(({ owed }) => owed !== 0);
  for (let at = 0; at < owing.length; at += mostAtOnce) await settleSome(book, owing.slice(at, at + mostAtOnce));
}

async function settleSome(book: Book, reserves: readonly Reserve[]): Promise<void> {
  const uses = reserves.map(({ kind, ref, span, startsAt, owed }) => ({ kind, ref, span, startsAt, calls: owed }));
  for (const reserve of reserves) reserve.owed = 0;
  try {
    await book.settle(uses);
    book.isDown = false;
    book.onSuccess();
    for (const reserve of reserves) reserve.unasked = 0;
  } catch (error) {
    book.onError(error);
    // Calls that may have been given back already are not given back again: more calls than the quota would be made.
    const least = error instanceof StoreFault && error.isOpen ? 0 : Number.NEGATIVE_INFINITY;
    for (const [index, reserve] of reserves.entries()) reserve.owed += Math.max(least, uses[index]?.calls ?? 0);
  }
}
