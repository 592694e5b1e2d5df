import { AppError } from '../../errors.ts';
import { tenantOf } from '../ids.ts';
import { afterRunning, runningNow } from './running-time.ts';

type GateOptions = {
  /** Rule that a refusal explains. */
  rule: string;
  atOnce: number;
  /** Maximum number of running requests per tenant. The limit of half of what the others leave also applies. */
  ofTenant?: number;
  /** Maximum number of queued requests, and maximum size of their inputs together, in bytes. */
  waiting?: number;
  waitingBytes?: number;
  patienceMs?: number;
  /** Fraction of the time in which a tenant's requests may run, from 0 to 1; all of it if absent. */
  share?: () => number;
  onRefused?: () => void;
};

/** A request: its owner, and the size of its input in bytes. */
type Asked = { tenant: string; actorId: string; bytes: number; start: () => void };

/** Default queue length and queue timeout. */
export const usualWaiting = 200;
export const usualPatienceMs = 20_000;
/** Running time that a tenant with a CPU share may save up. */
const savedMs = 2000;
const mostRemembered = 1000;
const retryAfterS = 2;

/**
 * Returns half of the capacity that the others leave, which is the maximum for one tenant or actor; 1 if any is left.
 */
const halfOf = (all: number, ofOthers: number) => Math.ceil((all - ofOthers) / 2);

/**
 * Limits the concurrency of long-running work: some of it runs, some is queued in order of arrival, and the remainder
 * is refused. Where tenants have a CPU share, the one that owes the least starts first.
 */
export class Gate {
  readonly #options: GateOptions;
  readonly #running = new Set<Asked>();
  readonly #waiting = new Set<Asked>();
  /** Time until which each tenant with a CPU share pays for the time that it used. */
  readonly #paysUntil = new Map<string, number>();
  #refused = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  counts(): { running: number; waiting: number; refused: number } {
    return { running: this.#running.size, waiting: this.#waiting.size, refused: this.#refused };
  }

  /**
   * Runs work, queued if necessary.
   * @throws AppError tooMany if the queue is full or the request was queued for too long, and any error of `work`
   */
  async run<Output>(
    actor: { workspaceId: string; id: string },
    work: () => Promise<Output>,
    bytes = 0,
  ): Promise<Output> {
    const { promise: started, resolve: start } = Promise.withResolvers<void>();
    const asked = { tenant: tenantOf(actor.workspaceId), actorId: actor.id, bytes, start };
    if (this.#mayRun(asked)) this.#running.add(asked);
    else await this.#wait(asked, started);
    // A long chunk of this work looks like a stop of the process and must not be free, so this does not use the running
    // time.
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      this.#running.delete(asked);
      this.#pay(asked, performance.now() - startedAt);
      this.#startWaiting();
    }
  }

  #mayRun(asked: Asked): boolean {
    const { atOnce, ofTenant = atOnce } = this.#options;
    const { all, own, ofActor } = countOf(this.#running, asked);
    const most = Math.min(ofTenant, halfOf(atOnce, all - own));
    return this.#paysForMs(asked) === 0 && own < most && ofActor < halfOf(most, own - ofActor);
  }

  #mayWait(asked: Asked): boolean {
    const { waiting = usualWaiting, waitingBytes = Number.POSITIVE_INFINITY } = this.#options;
    const { all, own, ofActor, bytes, ownBytes } = countOf(this.#waiting, asked);
    const most = halfOf(waiting, all - own);
    const hasRoom = asked.bytes === 0 || ownBytes + asked.bytes <= halfOf(waitingBytes, bytes - ownBytes);
    return hasRoom && own < most && ofActor < halfOf(most, own - ofActor);
  }

  async #wait(asked: Asked, started: Promise<void>): Promise<void> {
    const { patienceMs = usualPatienceMs } = this.#options;
    if (!this.#mayWait(asked)) throw this.#refusal(asked, 'Too many requests are queued');
    this.#waiting.add(asked);
    this.#startWaiting();
    const { promise: isLate, reject } = Promise.withResolvers<never>();
    const cancel = afterRunning(patienceMs, () => {
      if (this.#waiting.delete(asked))
        reject(this.#refusal(asked, `The request did not start within ${patienceMs / 1000} s`));
    });
    await Promise.race([started, isLate]).finally(cancel);
  }

  /** Starts the requests that may run now, and checks again once a tenant has paid. */
  #startWaiting(): void {
    clearTimeout(this.#timer);
    let soonest = Number.POSITIVE_INFINITY;
    const owed = ({ tenant }: Asked) => this.#paysUntil.get(tenant) ?? 0;
    const inTurn = this.#options.share ? [...this.#waiting].toSorted((a, b) => owed(a) - owed(b)) : this.#waiting;
    for (const asked of inTurn) {
      if (this.#mayRun(asked)) {
        this.#waiting.delete(asked);
        this.#running.add(asked);
        asked.start();
      } else soonest = Math.min(soonest, this.#paysForMs(asked) || soonest);
    }
    if (soonest < Number.POSITIVE_INFINITY)
      this.#timer = setTimeout(() => this.#startWaiting(), Math.ceil(soonest)).unref();
  }

  #pay({ tenant }: Asked, ms: number): void {
    const share = this.#options.share?.();
    if (share === undefined) return;
    const hasAll = runningNow() - savedMs / share;
    if (this.#paysUntil.size > mostRemembered)
      for (const [id, until] of this.#paysUntil) if (until <= hasAll) this.#paysUntil.delete(id);
    this.#paysUntil.set(tenant, Math.max(this.#paysUntil.get(tenant) ?? hasAll, hasAll) + ms / share);
  }

  #paysForMs({ tenant }: Asked): number {
    return Math.max(0, (this.#paysUntil.get(tenant) ?? 0) - runningNow());
  }

  #refusal(asked: Asked, found: string): AppError {
    this.#refused++;
    this.#options.onRefused?.();
    const afterS = Math.max(retryAfterS, Math.ceil(this.#paysForMs(asked) / 1000));
    return new AppError(
      'tooMany',
      `${found} (${this.#options.rule}). Nothing was changed; retry in ${afterS} s with fewer parallel requests.`,
      { retryAfterS: afterS },
    );
  }
}

/** Returns counts and bytes: in total, of the tenant, and of the actor. */
function countOf(all: ReadonlySet<Asked>, { tenant, actorId }: Asked) {
  const count = { all: all.size, own: 0, ofActor: 0, bytes: 0, ownBytes: 0 };
  for (const one of all) {
    count.bytes += one.bytes;
    if (one.tenant !== tenant) continue;
    count.own++;
    count.ownBytes += one.bytes;
    if (one.actorId === actorId) count.ofActor++;
  }
  return count;
}
