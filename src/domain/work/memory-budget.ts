import { AppError } from '../../errors.ts';
import { FairQueue } from './fair-queue.ts';
import type { OnGivenUp } from './given-up.ts';
import { afterRunning } from './running-time.ts';

/** Work that can be ended because its memory is needed by others. */
type Ending = { giveUp(): void };

type Share = { bytes: number; taken: number; holds: Set<Held> };
type Waiting = { held: Held; bytes: number; start: () => void };

const patienceMs = 20_000;
const retryAfterS = 5;

/** Of the budget: what all that was taken may fill, because nobody can take it back before its work ends. */
const takenPart = 3 / 4;
/** Of the budget: a workspace that holds no more is served although others hold all of it and cannot be ended, up to `beyond`. */
const smallPart = 1 / 16;
const beyond = 5 / 4;

/**
 * The memory of the process that the work of workspaces may fill: answers that arrive, arguments, inputs of jobs,
 * configurations. Above the limit the workspace that holds most loses, and in it the party that holds most, so whoever
 * holds less is not touched. Of one party the work that began last loses, so that the rest of it is finished. Where those
 * who hold more cannot be ended, one who holds little may exceed the limit.
 */
export class MemoryBudget {
  readonly #most: number;
  readonly #onGivenUp: OnGivenUp;
  #bytes = 0;
  #taken = 0;
  readonly #shares = new Map<string, Share>();
  readonly #waiting = new FairQueue<Waiting>({ ofWorkspace: 100, ofAll: 1000 });

  constructor(mostBytes: number, onGivenUp: OnGivenUp = () => undefined) {
    this.#most = mostBytes;
    this.#onGivenUp = onGivenUp;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** What one piece of work takes at most: the largest configuration runs also where the budget is small. */
  get mostOfOne(): number {
    return this.#most / 2;
  }

  /** A hold of nothing yet. It costs an object; only what it holds is registered. */
  hold(workspaceId: string, party = ''): Held {
    return new Held(this, workspaceId, party);
  }

  /** Counts bytes of a hold. False, and not counted, when this hold is the one that loses: its work must end. */
  add(held: Held, bytes: number): boolean {
    const isCounted = this.#tryAdd(held, bytes);
    if (!isCounted) this.#onGivenUp('memory');
    return isCounted;
  }

  #tryAdd(held: Held, bytes: number): boolean {
    // A hold of nothing would be registered, and its end forgets only what holds something.
    if (bytes === 0) return true;
    const own = this.#shareOf(held);
    this.#count(held, own, bytes);
    while (this.#bytes > this.#most) {
      const heavier = this.#lastOfHeavier(own);
      if (!heavier && this.#mayExceed(own)) return true;
      const loser = heavier ?? lastOfLargestParty(own, held) ?? held;
      if (loser === held) {
        this.#count(held, own, -bytes);
        this.#forgetIdle(held, own);
        return false;
      }
      const { ending } = loser;
      this.#release(loser);
      this.#onGivenUp('memory');
      ending?.giveUp();
    }
    return true;
  }

  /**
   * Counts bytes that their work keeps to its end, when there is room; until then it waits. Such work of a workspace gets
   * no more than half of what the others leave. Work of those who hold more is ended only where that makes room enough.
   * @throws AppError tooMany
   */
  async take(held: Held, bytes: number): Promise<void> {
    if (this.#tryTake(held, bytes, 0) || this.#tryTake(held, bytes, this.#endableAbove(held, bytes))) return;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiting: Waiting = { held, bytes, start: resolve };
    const { workspaceId } = held;
    if (!this.#waiting.add(workspaceId, waiting)) throw this.#noRoom('too many others wait for it');
    const cancel = afterRunning(patienceMs, () => {
      if (this.#waiting.remove(workspaceId, waiting))
        reject(this.#noRoom(`there was none within ${patienceMs / 1000} s`));
    });
    await promise.finally(cancel);
  }

  /** Counts more of work that has its bytes already. To wait again, or to be refused now, would waste what was done. */
  takeMore(held: Held, bytes: number): void {
    this.#count(held, this.#shareOf(held), bytes);
    this.#noteTaken(held, bytes);
  }

  /** The work of a hold has ended. */
  end(held: Held): void {
    if (held.bytes === 0) return;
    this.#release(held);
    if (this.#waiting.size > 0) this.#startWaiting();
  }

  #release(held: Held): void {
    const share = this.#shareOf(held);
    this.#noteTaken(held, -held.taken);
    held.ending = undefined;
    this.#count(held, share, -held.bytes);
    this.#forgetIdle(held, share);
  }

  #shareOf(held: Held): Share {
    let share = this.#shares.get(held.workspaceId);
    if (!share) {
      share = { bytes: 0, taken: 0, holds: new Set() };
      this.#shares.set(held.workspaceId, share);
    }
    share.holds.add(held);
    return share;
  }

  #count(held: Held, share: Share, bytes: number): void {
    held.bytes += bytes;
    share.bytes += bytes;
    this.#bytes += bytes;
  }

  #forgetIdle(held: Held, share: Share): void {
    if (held.bytes === 0) share.holds.delete(held);
    if (share.holds.size === 0) this.#shares.delete(held.workspaceId);
  }

  #noteTaken(held: Held, bytes: number): void {
    this.#shareOf(held).taken += bytes;
    held.taken += bytes;
    this.#taken += bytes;
  }

  /** `endable`: bytes of others that may be ended for this. */
  #tryTake(held: Held, bytes: number, endable: number): boolean {
    const { bytes: own = 0, taken = 0 } = this.#shares.get(held.workspaceId) ?? {};
    const left = this.#most - (this.#bytes - own);
    if (taken > 0 && (taken + bytes) * 2 > left) return false;
    if (this.#taken + bytes > this.#most * takenPart) return false;
    if (this.#bytes + bytes > this.#most + endable) return false;
    if (!this.#tryAdd(held, bytes)) return false;
    this.#noteTaken(held, bytes);
    return true;
  }

  /** What waits ends nobody: it is tried again at every end of other work. */
  #startWaiting(): void {
    const next = () => this.#waiting.next((_, { held, bytes }) => this.#tryTake(held, bytes, 0));
    for (let one = next(); one; one = next()) one.start();
  }

  /** Bytes that `add` surely gets from those who still hold more than this workspace with `bytes` more. */
  #endableAbove({ workspaceId }: Held, bytes: number): number {
    const own = bytes + (this.#shares.get(workspaceId)?.bytes ?? 0);
    let sum = 0;
    for (const { bytes: theirs, holds } of this.#shares.values()) {
      if (theirs <= own) continue;
      let endable = 0;
      for (const held of holds) if (held.ending) endable += held.bytes;
      sum += Math.min(endable, theirs - own);
    }
    return sum;
  }

  #noRoom(found: string): AppError {
    this.#onGivenUp('memory');
    return new AppError(
      'tooMany',
      `this needs memory that is in use, and ${found}; nothing was done, try again in ${retryAfterS} s, with fewer large requests at a time`,
      { retryAfterS },
    );
  }

  #mayExceed({ bytes }: Share): boolean {
    return bytes <= this.#most * smallPart && this.#bytes <= this.#most * beyond;
  }

  /** The hold that loses so that one of a workspace that holds less may grow. */
  #lastOfHeavier(own: Share): Held | undefined {
    const heavier = [...this.#shares.values()].filter(({ bytes }) => bytes > own.bytes);
    for (const share of heavier.sort((a, b) => b.bytes - a.bytes)) {
      const loser = lastOfLargestParty(share, undefined);
      if (loser) return loser;
    }
    return undefined;
  }
}

/** The hold that began last, of the party that holds most, among those that can be ended, and `asking`. */
function lastOfLargestParty({ holds }: Share, asking: Held | undefined): Held | undefined {
  const parties = new Map<string, { bytes: number; last: Held }>();
  for (const held of holds) {
    if (held.ending === undefined && held !== asking) continue;
    const { bytes = 0 } = parties.get(held.party) ?? {};
    parties.set(held.party, { bytes: bytes + held.bytes, last: held });
  }
  let largest: { bytes: number; last: Held } | undefined;
  for (const party of parties.values()) if (!largest || party.bytes > largest.bytes) largest = party;
  return largest?.last;
}

/** What one piece of work holds of the memory. */
export class Held {
  readonly #budget: MemoryBudget;
  readonly workspaceId: string;
  readonly party: string;
  bytes = 0;
  /** Bytes that were taken, which are kept to the end. */
  taken = 0;
  /** Ends the work; undefined while it cannot be ended. */
  ending: Ending | undefined = undefined;

  constructor(budget: MemoryBudget, workspaceId: string, party: string) {
    this.#budget = budget;
    this.workspaceId = workspaceId;
    this.party = party;
  }

  /** False when there is no room for them; the work must end then. */
  add(bytes: number): boolean {
    return this.#budget.add(this, bytes);
  }

  /** Makes sure that so many bytes are taken; the first ones when there is room. @throws AppError tooMany */
  async takeUpTo(bytes: number): Promise<void> {
    const more = Math.min(bytes, this.#budget.mostOfOne) - this.taken;
    if (more <= 0) return;
    if (this.taken > 0) this.#budget.takeMore(this, more);
    else await this.#budget.take(this, more);
  }

  /** Counts bytes that its work has and keeps, whether there is room for them or not. */
  keep(bytes: number): void {
    if (bytes > 0) this.#budget.takeMore(this, bytes);
  }

  end(): void {
    this.#budget.end(this);
  }
}
