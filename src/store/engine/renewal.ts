/** The least time from one renewal to the next, in ms: a server that is to stay read-only must not be flooded with connections. */
const leastMs = 5000;

/**
 * Replaces connections to a PostgreSQL that takes no changes any more (SQLSTATE 25006). After a failover it may be the old
 * primary: it goes on answering reads with old rows, and a connection to it that is in use never ends by itself, while a
 * new connection finds the new primary. All pools of a process share one renewal, since only some of them write.
 */
export class Renewal {
  readonly #openedAt = new WeakMap<object, number>();
  /** Connections opened before this monotonic time are not used again. */
  #since = Number.NEGATIVE_INFINITY;

  opened(connection: object): void {
    this.#openedAt.set(connection, performance.now());
  }

  /** Called when the server of a connection refused a change because it is read-only. */
  begin(): void {
    const now = performance.now();
    if (now - this.#since >= leastMs) this.#since = now;
  }

  isOutdated(connection: object): boolean {
    return (this.#openedAt.get(connection) ?? Number.POSITIVE_INFINITY) < this.#since;
  }
}
