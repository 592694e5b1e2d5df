import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import type { Party } from '../visit.ts';
import type { MaybePromise } from './maybe-promise.ts';
import { TooMuchWork } from './steps.ts';

/** Work that has begun goes first, but work that has not gets at least every sixteenth turn. */
const mostBefore = 15;

/** Those of one network who wait, or the known callers of a workspace. */
class Line<Item> {
  readonly #begun: Item[] = [];
  readonly #notBegun: Item[] = [];
  #before = 0;

  get size(): number {
    return this.#begun.length + this.#notBegun.length;
  }

  add(item: Item, hasBegun: boolean): void {
    (hasBegun ? this.#begun : this.#notBegun).push(item);
  }

  take(): Item {
    const isForBegun = this.#begun.length > 0 && (this.#notBegun.length === 0 || this.#before < mostBefore);
    this.#before = isForBegun && this.#notBegun.length > 0 ? this.#before + 1 : 0;
    return (isForBegun ? this.#begun : this.#notBegun).shift() as Item;
  }
}

/**
 * Those who wait for a turn. Workspaces take turns, and within a workspace networks do, so a workspace waits for one turn
 * of each other one, however many of them wait. Within a network, first come, first served.
 */
class TurnQueue<Item> {
  /** In the order of their turns: whose turn it was goes to the end. */
  readonly #workspaces = new Map<string, Map<string, Line<Item>>>();

  get isEmpty(): boolean {
    return this.#workspaces.size === 0;
  }

  add({ workspaceId, network = '' }: Party, item: Item, hasBegun: boolean): void {
    const lines = this.#workspaces.get(workspaceId) ?? new Map<string, Line<Item>>();
    const line = lines.get(network) ?? new Line<Item>();
    line.add(item, hasBegun);
    lines.set(network, line);
    this.#workspaces.set(workspaceId, lines);
  }

  take(): Item | undefined {
    const [ofWorkspace] = this.#workspaces;
    if (!ofWorkspace) return undefined;
    const [workspaceId, lines] = ofWorkspace;
    const [[network, line]] = lines as unknown as [[string, Line<Item>]];
    const item = line.take();
    moveToEnd(lines, network, line.size > 0);
    moveToEnd(this.#workspaces, workspaceId, lines.size > 0);
    return item;
  }
}

/** Moves the first entry to the end, or takes it away. An only one stays: moving it would give the map a new table each time. */
function moveToEnd<Value>(map: Map<string, Value>, first: string, isKept: boolean): void {
  if (isKept && map.size === 1) return;
  const value = map.get(first) as Value;
  map.delete(first);
  if (isKept) map.set(first, value);
}

/** Work of the service itself. */
const nobody: Party = { workspaceId: '' };

/**
 * Whom the work of a request is done for. It follows the request through all its steps, because the functions that wait
 * for a turn in the middle of their work know texts and values, and not whose these are.
 */
const parties = new AsyncLocalStorage<Party>();

/** Does work, in which all waits for a turn are those of a party. */
export function workFor<Result>(party: Party, work: () => Result): Result {
  return parties.run(party, work);
}

/** Node runs all immediates in one turn of the event loop, so those who wait are given a turn each. */
const waiting = new TurnQueue<() => void>();

/**
 * Lets other work have the event loop between two pieces of long work. Those who wait get a turn each, one party after
 * the other. Not on the way of an ordinary call, which would wait without need.
 */
export function nextTurn(party = parties.getStore() ?? nobody): Promise<void> {
  return waitIn(party, true);
}

/**
 * Waits for a turn in which long work begins. Otherwise all requests that come at once would be half done at the same
 * time, and keep places that others wait for.
 */
export function turnToBegin(party: Party = nobody): Promise<void> {
  return waitIn(party, false);
}

function waitIn(party: Party, hasBegun: boolean): Promise<void> {
  if (waiting.isEmpty) setImmediate(giveTurn);
  return new Promise((resolve) => waiting.add(party, resolve, hasBegun));
}

function giveTurn(): void {
  waiting.take()?.();
  if (!waiting.isEmpty) setImmediate(giveTurn);
  // What is read after this turn has a turn of its own, which begins after the timers.
  setTimeout(endTurn, 0);
}

/** How long short work may take in one turn of the event loop, before the rest of it waits for the next one. */
const mostMs = 10;
let begunAt: number | undefined;

/** Short work that waits. As much of it as fits is done in one turn, and what comes meanwhile waits behind it. */
const waitingShort = new TurnQueue<() => void>();

/**
 * Whether short work must wait, because what came before has spent this turn of the event loop, or waits itself. However
 * short each request and each answer is, hundreds that come at once would hold the event loop for all of them.
 */
export function isTurnSpent(): boolean {
  return !waitingShort.isEmpty || hasTakenLong();
}

/** Waits for a turn among other short work that waits. */
export function shortTurn(party = parties.getStore() ?? nobody): Promise<void> {
  if (waitingShort.isEmpty) setImmediate(giveShortTurns);
  return new Promise((resolve) => waitingShort.add(party, resolve, false));
}

function hasTakenLong(): boolean {
  const now = performance.now();
  if (begunAt !== undefined) return now - begunAt > mostMs;
  begunAt = now;
  setImmediate(endTurn);
  return false;
}

function endTurn(): void {
  begunAt = undefined;
}

/** Gives turns, one after the other, until they have taken long enough. */
function giveShortTurns(): void {
  if (waitingShort.isEmpty) return;
  if (hasTakenLong()) {
    setImmediate(giveShortTurns);
    return;
  }
  waitingShort.take()?.();
  // The work is done in microtasks. A tick that is set in one of them comes after them all.
  queueMicrotask(() => process.nextTick(giveShortTurns));
}

/** Reading, writing or storing a text of this length takes some milliseconds. */
const longText = 500_000;

/** Lets other work have the event loop after work on a text, when it is long. */
export async function turnAfter(text: string): Promise<void> {
  if (text.length > longText) await nextTurn();
}

/** Work in so many steps, a quarter of a millisecond, is done at once. */
const promptSteps = 5000;

/** Work in more steps, 5 to 10 ms, is too long for the event loop. */
const longSteps = 200_000;

/**
 * Does work on untrusted input that counts its steps. Work that is not known to be long is tried at once, with few steps;
 * when they do not suffice, it is done again in a turn of the event loop that is not shared with other requests. So it
 * must have no effects. Where others have spent the turn in which it comes, it waits.
 * `party` is whose work it is, when that is not known from the request.
 * @throws TooMuchWork in its promise, when the work is too long for the event loop
 */
export function doInTurn<Result>(
  isLong: boolean,
  work: (mostSteps: number) => MaybePromise<Result>,
  party?: Party,
): MaybePromise<Result> {
  const again = () => nextTurn(party).then(() => work(longSteps));
  if (isLong) return again();
  const attempt = () => {
    try {
      return work(promptSteps);
    } catch (error) {
      if (!(error instanceof TooMuchWork)) throw error;
      return again();
    }
  };
  return isTurnSpent() ? shortTurn(party).then(attempt) : attempt();
}

/** Whether work that may take so many steps is done again when they do not suffice. */
export function isDoneAgain(mostSteps: number): boolean {
  return mostSteps <= promptSteps;
}
