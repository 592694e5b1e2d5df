import { getTenantId } from '@toolhost/credentials/ids';
import { AppError } from '@toolhost/errors/errors';
import { getRunningTimeMs, setRunningTimeout } from './running-time.ts';

/**
 * Returns the maximum that one owner (a tenant, a caller of a tenant, or a network) may use of a shared resource: half
 * of what the other owners leave, which is what is `free` and what the owner uses already (`own`). If outsiders decide
 * how long they use the resource, an owner gets one of three `parts`. So owners that take all they can get leave some
 * to the next one.
 */
export function getFairShare(free: number, own: number, parts: 2 | 3 = 2): number {
  const left = free + own;
  // Rounded up, so that the last unit can be used. An owner with half of what is free, a third, may take one more.
  return parts === 2 ? Math.ceil(left / 2) : Math.min(left, Math.floor(left / 3) + 1);
}

type ConcurrencyLimiterOptions = {
  /** Rule that a refusal explains. */
  rule: string;
  maxConcurrent: number;
  /** Maximum number of running requests per tenant. The fair share also applies. */
  perTenant?: number;
  /** Maximum number of queued requests, and maximum size of their inputs together, in bytes. */
  maxQueued?: number;
  maxQueuedBytes?: number;
  queueTimeoutMs?: number;
  /** Fraction of the time in which a tenant's requests may run, from 0 to 1; all of it if absent. */
  cpuShare?: () => number;
  onRefused?: () => void;
};

/** A request: its owner, and the size of its input in bytes. */
type QueuedRequest = { tenant: string; actorId: string; bytes: number; start: () => void };

/** Default queue length and queue timeout. */
export const defaultMaxQueued = 200;
export const defaultQueueTimeoutMs = 20_000;
/** Running time that a tenant with a CPU share may save up. */
const maxSavedMs = 2000;
const maxTrackedTenants = 1000;
const retryAfterS = 2;

/**
 * Limits the concurrency of long-running work: some of it runs, some is queued in order of arrival, and the remainder
 * is refused. Where tenants have a CPU share, the one that owes the least starts first.
 */
export class ConcurrencyLimiter {
  readonly #options: ConcurrencyLimiterOptions;
  readonly #running = new Set<QueuedRequest>();
  readonly #queue = new Set<QueuedRequest>();
  /** Time until which each tenant with a CPU share pays for the time that it used. */
  readonly #paidUntilByTenant = new Map<string, number>();
  #refused = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(options: ConcurrencyLimiterOptions) {
    this.#options = options;
  }

  getCounts(): { running: number; waiting: number; refused: number } {
    return { running: this.#running.size, waiting: this.#queue.size, refused: this.#refused };
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
    const { promise: startSignal, resolve: start } = Promise.withResolvers<void>();
    const request = { tenant: getTenantId(actor.workspaceId), actorId: actor.id, bytes, start };
    if (this.#canRun(request)) this.#running.add(request);
    else await this.#waitForStart(request, startSignal);
    // A long chunk of this work looks like a stop of the process and must not be free, so this does not use the running
    // time.
    const startedAt = performance.now();
    try {
      return await work();
    } finally {
      this.#running.delete(request);
      this.#chargeTime(request, performance.now() - startedAt);
      this.#startQueued();
    }
  }

  #canRun(request: QueuedRequest): boolean {
    const { maxConcurrent, perTenant = maxConcurrent } = this.#options;
    const { total, tenantCount, actorCount } = countRequests(this.#running, request);
    const limit = Math.min(perTenant, getFairShare(maxConcurrent - total, tenantCount));
    return (
      this.#getDebtMs(request) === 0 &&
      tenantCount < limit &&
      actorCount < getFairShare(limit - tenantCount, actorCount)
    );
  }

  #canQueue(request: QueuedRequest): boolean {
    const { maxQueued = defaultMaxQueued, maxQueuedBytes = Number.POSITIVE_INFINITY } = this.#options;
    const { total, tenantCount, actorCount, bytes, tenantBytes } = countRequests(this.#queue, request);
    const limit = getFairShare(maxQueued - total, tenantCount);
    const fitsInQueue =
      request.bytes === 0 || tenantBytes + request.bytes <= getFairShare(maxQueuedBytes - bytes, tenantBytes);
    return fitsInQueue && tenantCount < limit && actorCount < getFairShare(limit - tenantCount, actorCount);
  }

  async #waitForStart(request: QueuedRequest, startSignal: Promise<void>): Promise<void> {
    const { queueTimeoutMs = defaultQueueTimeoutMs } = this.#options;
    if (!this.#canQueue(request)) throw this.#refuse(request, 'Too many requests are queued');
    this.#queue.add(request);
    this.#startQueued();
    const { promise: timedOut, reject } = Promise.withResolvers<never>();
    const cancel = setRunningTimeout(queueTimeoutMs, () => {
      if (this.#queue.delete(request))
        reject(this.#refuse(request, `The request did not start within ${queueTimeoutMs / 1000} s`));
    });
    await Promise.race([startSignal, timedOut]).finally(cancel);
  }

  /** Starts the requests that may run now, and checks again once a tenant has paid. */
  #startQueued(): void {
    this.#cancelTimer?.();
    let nextPaidMs = Number.POSITIVE_INFINITY;
    const getPaidUntil = ({ tenant }: QueuedRequest) => this.#paidUntilByTenant.get(tenant) ?? 0;
    const orderedQueue = this.#options.cpuShare
      ? [...this.#queue].toSorted((a, b) => getPaidUntil(a) - getPaidUntil(b))
      : this.#queue;
    for (const request of orderedQueue) {
      if (this.#canRun(request)) {
        this.#queue.delete(request);
        this.#running.add(request);
        request.start();
      } else nextPaidMs = Math.min(nextPaidMs, this.#getDebtMs(request) || nextPaidMs);
    }
    if (nextPaidMs < Number.POSITIVE_INFINITY)
      this.#cancelTimer = setRunningTimeout(nextPaidMs, () => this.#startQueued());
  }

  #chargeTime({ tenant }: QueuedRequest, ms: number): void {
    const cpuShare = this.#options.cpuShare?.();
    if (cpuShare === undefined) return;
    const fullCreditAt = getRunningTimeMs() - maxSavedMs / cpuShare;
    if (this.#paidUntilByTenant.size > maxTrackedTenants)
      for (const [id, paidUntil] of this.#paidUntilByTenant)
        if (paidUntil <= fullCreditAt) this.#paidUntilByTenant.delete(id);
    this.#paidUntilByTenant.set(
      tenant,
      Math.max(this.#paidUntilByTenant.get(tenant) ?? fullCreditAt, fullCreditAt) + ms / cpuShare,
    );
  }

  #getDebtMs({ tenant }: QueuedRequest): number {
    return Math.max(0, (this.#paidUntilByTenant.get(tenant) ?? 0) - getRunningTimeMs());
  }

  #refuse(request: QueuedRequest, reason: string): AppError {
    this.#refused++;
    this.#options.onRefused?.();
    const retrySeconds = Math.max(retryAfterS, Math.ceil(this.#getDebtMs(request) / 1000));
    return new AppError(
      'tooMany',
      `${reason} (${this.#options.rule}). Nothing was changed; retry in ${retrySeconds} s with fewer parallel requests.`,
      { retryAfterS: retrySeconds },
    );
  }
}

/** Returns counts and bytes: in total, of the tenant, and of the actor. */
function countRequests(requests: ReadonlySet<QueuedRequest>, { tenant, actorId }: QueuedRequest) {
  const count = { total: requests.size, tenantCount: 0, actorCount: 0, bytes: 0, tenantBytes: 0 };
  for (const request of requests) {
    count.bytes += request.bytes;
    if (request.tenant !== tenant) continue;
    count.tenantCount++;
    count.tenantBytes += request.bytes;
    if (request.actorId === actorId) count.actorCount++;
  }
  return count;
}
