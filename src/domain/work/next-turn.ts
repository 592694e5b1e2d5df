import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import type { Party } from '../visit.ts';
import { TurnQueue } from './turn-queue.ts';

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
