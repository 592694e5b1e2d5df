import { AppError } from '../../errors.ts';
import { tenantOf } from '../ids.ts';

/** Shorter bodies, answers and arguments, in bytes, are not counted: a connection itself takes as much. */
export const uncountedBytes = 16 * 1024;

const retryAfterS = 5;

/**
 * The bytes of the process that work and slow clients may fill: bodies, arguments, answers, inputs of jobs,
 * configurations. They count for a party: a tenant, or the network of a stranger, because anybody can bring a token to
 * any server. Nobody gets more than half of what others leave, and strangers together no more than half of all. What
 * finds no room is refused at once.
 */
export class MemoryBudget {
  readonly #most: number;
  readonly #onGivenUp: OnGivenUp;
  readonly #parties = new Map<string, number>();
  #all = 0;
  #ofStrangers = 0;

  constructor(mostBytes: number, onGivenUp: OnGivenUp = () => undefined) {
    this.#most = mostBytes;
    this.#onGivenUp = onGivenUp;
  }

  get bytes(): number {
    return this.#all;
  }

  /** What one piece of work takes at most: the largest configuration runs also where the budget is small. */
  get mostOfOne(): number {
    return this.#most / 2;
  }

  /** A hold of nothing yet, which costs an object. `network` is that of a stranger. */
  hold(workspaceId: string, network?: string): Held {
    return new Held(this, workspaceId, network);
  }

  /** Counts bytes of a party. False, and not counted, when there is no room. */
  take(workspaceId: string, network: string | undefined, bytes: number): boolean {
    this.count(workspaceId, network, bytes);
    if (!this.isOver(workspaceId, network)) return true;
    this.count(workspaceId, network, -bytes);
    this.#onGivenUp('memory');
    return false;
  }

  /** Whether a party holds more than it may. */
  isOver(workspaceId: string, network: string | undefined): boolean {
    const own = this.#parties.get(network ?? tenantOf(workspaceId)) ?? 0;
    const isStranger = network !== undefined;
    return own * 2 > this.#most - (this.#all - own) || (isStranger && this.#ofStrangers * 2 > this.#most);
  }

  /** Counts bytes that are held or given back, whether there is room or not. */
  count(workspaceId: string, network: string | undefined, bytes: number): void {
    const party = network ?? tenantOf(workspaceId);
    const own = (this.#parties.get(party) ?? 0) + bytes;
    if (own > 0) this.#parties.set(party, own);
    else this.#parties.delete(party);
    this.#all += bytes;
    if (network !== undefined) this.#ofStrangers += bytes;
  }
}

/** What one piece of work holds of the memory, until it ends. */
export class Held {
  readonly #budget: MemoryBudget;
  readonly #workspaceId: string;
  readonly #network: string | undefined;
  bytes: number;

  constructor(budget: MemoryBudget, workspaceId: string, network: string | undefined) {
    this.#budget = budget;
    this.#workspaceId = workspaceId;
    this.#network = network;
    this.bytes = 0;
  }

  /** False when there is no room for them; the work must end then. */
  add(bytes: number): boolean {
    if (!this.#budget.take(this.#workspaceId, this.#network, bytes)) return false;
    this.bytes += bytes;
    return true;
  }

  get isOver(): boolean {
    return this.#budget.isOver(this.#workspaceId, this.#network);
  }

  /** Makes sure that so many bytes are counted. What has some already is not refused: its work would be wasted. @throws AppError tooMany */
  takeUpTo(bytes: number): void {
    const more = Math.min(bytes, this.#budget.mostOfOne) - this.bytes;
    if (this.bytes > 0) this.keep(more);
    else if (more > 0 && !this.add(more))
      throw new AppError(
        'tooMany',
        `this needs memory that is in use; nothing was done, try again in ${retryAfterS} s, with fewer large requests at a time`,
        { retryAfterS },
      );
  }

  /** Counts bytes that its work has and keeps, whether there is room for them or not. */
  keep(bytes: number): void {
    if (bytes <= 0) return;
    this.#budget.count(this.#workspaceId, this.#network, bytes);
    this.bytes += bytes;
  }

  end(): void {
    if (this.bytes > 0) this.#budget.count(this.#workspaceId, this.#network, -this.bytes);
    this.bytes = 0;
  }
}

/** What is ended or refused so that others have room, or because its client is too slow. */
export const givenUpKinds = ['connection', 'unread_answer', 'memory', 'operation'] as const;

/** Is told of each one. */
export type OnGivenUp = (what: (typeof givenUpKinds)[number]) => void;
