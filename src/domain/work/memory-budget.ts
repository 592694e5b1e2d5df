import { AppError } from '../../errors.ts';
import { tenantOf } from '../ids.ts';

/** Bodies, responses, and arguments up to this size, in bytes, are not counted: a connection itself takes as much. */
export const uncountedBytes = 16 * 1024;

const retryAfterS = 5;

/**
 * Limits the memory of the process that work and slow clients may fill: bodies, arguments, responses, job inputs,
 * configurations. Bytes are charged to a tenant or, because anyone can send a token to any server, to the network of an
 * unverified caller. One of them may use at most half of what the others leave free, and unverified callers together at
 * most half of the budget. A reservation that does not fit is refused immediately.
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

  /** Maximum size of one reservation. Even with a small budget, the largest configuration must fit. */
  get mostOfOne(): number {
    return this.#most / 2;
  }

  /** Opens an empty reservation, which costs one object. `network` is that of an unverified caller. */
  hold(workspaceId: string, network?: string): Held {
    return new Held(this, workspaceId, network);
  }

  /** Charges bytes. Returns false, without charging them, if they do not fit. */
  take(workspaceId: string, network: string | undefined, bytes: number): boolean {
    this.count(workspaceId, network, bytes);
    if (!this.isOver(workspaceId, network)) return true;
    this.count(workspaceId, network, -bytes);
    this.#onGivenUp('memory');
    return false;
  }

  /** Returns true if the tenant or network uses more than its share. */
  isOver(workspaceId: string, network: string | undefined): boolean {
    const own = this.#parties.get(network ?? tenantOf(workspaceId)) ?? 0;
    const isStranger = network !== undefined;
    return own * 2 > this.#most - (this.#all - own) || (isStranger && this.#ofStrangers * 2 > this.#most);
  }

  /** Charges or returns bytes without checking whether they fit. */
  count(workspaceId: string, network: string | undefined, bytes: number): void {
    const party = network ?? tenantOf(workspaceId);
    const own = (this.#parties.get(party) ?? 0) + bytes;
    if (own > 0) this.#parties.set(party, own);
    else this.#parties.delete(party);
    this.#all += bytes;
    if (network !== undefined) this.#ofStrangers += bytes;
  }
}

/** A memory reservation for one unit of work, until that work ends. */
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

  /** Reserves more bytes. Returns false if they do not fit; the work must then end. */
  add(bytes: number): boolean {
    if (!this.#budget.take(this.#workspaceId, this.#network, bytes)) return false;
    this.bytes += bytes;
    return true;
  }

  get isOver(): boolean {
    return this.#budget.isOver(this.#workspaceId, this.#network);
  }

  /**
   * Ensures that at least this many bytes are reserved. Work that already has a reservation is not refused, because its
   * work so far would be wasted.
   * @throws AppError tooMany
   */
  takeUpTo(bytes: number): void {
    const more = Math.min(bytes, this.#budget.mostOfOne) - this.bytes;
    if (this.bytes > 0) this.keep(more);
    else if (more > 0 && !this.add(more))
      throw new AppError(
        'tooMany',
        `Not enough memory is free for this request. Nothing was changed; retry in ${retryAfterS} s with fewer large requests in parallel.`,
        { retryAfterS },
      );
  }

  /** Reserves bytes that the work already uses, without checking whether they fit. */
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

/** Kinds of work that is ended or refused to free capacity for others, or because its client is too slow. */
export const givenUpKinds = ['connection', 'unread_answer', 'memory', 'operation'] as const;

/** Called for each unit of work that is shed. */
export type OnGivenUp = (what: (typeof givenUpKinds)[number]) => void;
