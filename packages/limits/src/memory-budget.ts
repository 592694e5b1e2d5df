import { getTenantId } from '@toolhost/credentials/ids';
import { AppError } from '@toolhost/errors/errors';
import { getFairShare } from './concurrency-limiter.ts';

/** Bodies, responses, and arguments up to this size, in bytes, are not counted: a connection itself takes as much. */
export const minCountedBytes = 16 * 1024;

const retryAfterS = 5;

/**
 * Limits the memory of the process that work and slow clients may fill: bodies, arguments, responses, job inputs,
 * configurations. Bytes are charged to a tenant or, because anyone can send a token to any server, to the network of an
 * unverified caller. Each has its fair share, and unverified callers together get at most half of the budget. A
 * reservation that does not fit is refused immediately.
 */
export class MemoryBudget {
  readonly #maxBytes: number;
  readonly #onShed: OnShed;
  readonly #bytesByOwner = new Map<string, number>();
  #totalBytes = 0;
  #unverifiedBytes = 0;

  constructor(maxBytes: number, onShed: OnShed = () => undefined) {
    this.#maxBytes = maxBytes;
    this.#onShed = onShed;
  }

  get bytes(): number {
    return this.#totalBytes;
  }

  /** Maximum size of one reservation. Even with a small budget, the largest configuration must fit. */
  get maxReservationBytes(): number {
    return this.#maxBytes / 2;
  }

  /** Opens an empty reservation, which costs one object. `network` is that of an unverified caller. */
  reserve(workspaceId: string, network?: string): MemoryReservation {
    return new MemoryReservation(this, workspaceId, network);
  }

  /** Charges bytes. Returns false, without charging them, if they do not fit. */
  tryCharge(workspaceId: string, network: string | undefined, bytes: number): boolean {
    this.charge(workspaceId, network, bytes);
    if (!this.isOverLimit(workspaceId, network)) return true;
    this.charge(workspaceId, network, -bytes);
    this.#onShed('memory');
    return false;
  }

  /** Returns true if the tenant or network uses more than its share. */
  isOverLimit(workspaceId: string, network: string | undefined): boolean {
    const ownerBytes = this.#bytesByOwner.get(network ?? getTenantId(workspaceId)) ?? 0;
    return (
      ownerBytes > getFairShare(this.#maxBytes - this.#totalBytes, ownerBytes) ||
      (network !== undefined && this.#unverifiedBytes > this.maxReservationBytes)
    );
  }

  /** Charges or returns bytes without checking whether they fit. */
  charge(workspaceId: string, network: string | undefined, bytes: number): void {
    const owner = network ?? getTenantId(workspaceId);
    const ownerBytes = (this.#bytesByOwner.get(owner) ?? 0) + bytes;
    if (ownerBytes > 0) this.#bytesByOwner.set(owner, ownerBytes);
    else this.#bytesByOwner.delete(owner);
    this.#totalBytes += bytes;
    if (network !== undefined) this.#unverifiedBytes += bytes;
  }
}

/** A memory reservation for one unit of work, until that work ends. */
export class MemoryReservation {
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
  grow(bytes: number): boolean {
    if (!this.#budget.tryCharge(this.#workspaceId, this.#network, bytes)) return false;
    this.bytes += bytes;
    return true;
  }

  get isOverLimit(): boolean {
    return this.#budget.isOverLimit(this.#workspaceId, this.#network);
  }

  /**
   * Ensures that at least this many bytes are reserved. Work that already has a reservation is not refused, because its
   * work so far would be wasted.
   * @throws AppError tooMany
   */
  growTo(bytes: number): void {
    const missing = Math.min(bytes, this.#budget.maxReservationBytes) - this.bytes;
    if (this.bytes > 0) this.forceGrow(missing);
    else if (missing > 0 && !this.grow(missing))
      throw new AppError(
        'tooMany',
        `Not enough memory is free for this request. Nothing was changed; retry in ${retryAfterS} s with fewer large requests in parallel.`,
        { retryAfterS },
      );
  }

  /** Reserves bytes that the work already uses, without checking whether they fit. */
  forceGrow(bytes: number): void {
    if (bytes <= 0) return;
    this.#budget.charge(this.#workspaceId, this.#network, bytes);
    this.bytes += bytes;
  }

  release(): void {
    if (this.bytes > 0) this.#budget.charge(this.#workspaceId, this.#network, -this.bytes);
    this.bytes = 0;
  }
}

/** Kinds of work that is ended or refused to free capacity for others, or because its client is too slow. */
export const shedKinds = ['connection', 'unread_answer', 'memory', 'operation'] as const;

/** Called for each unit of work that is shed. */
export type OnShed = (kind: (typeof shedKinds)[number]) => void;
