import { FairQueue } from '../../domain/work/fair-queue.ts';
import type { OnGivenUp } from '../../domain/work/given-up.ts';
import { afterRunning } from '../../domain/work/running-time.ts';
import { AppError } from '../../errors.ts';
import type { Actor, Operation } from '../operation.ts';

/**
 * Runs a few operations of a workspace at a time, because each may hold a configuration of megabytes and what is made of
 * it. Some of the others wait. No workspace waits for another one here, and within a workspace the actors take turns, so
 * that one key keeps nobody else out.
 */
export type OperationQueue = {
  /**
   * Tells the work whether it had to wait.
   * @throws AppError tooMany when too many wait or this one has waited for too long, and any error of `work`
   */
  run<Output>(asked: QueuedOperation, work: (hasWaited: boolean) => Promise<Output>): Promise<Output>;
};

/** `bytes` is the memory that its input takes. */
type QueuedOperation = { actor: Pick<Actor, 'id' | 'workspaceId'>; effect: Effect; bytes: number };

type Effect = Operation['effect'];
type Waiting = { actorId: string; start: () => void };

/** The operations of a workspace with one effect: those that run, by actor, and those that wait. */
type Line = { effect: Effect; running: Map<string, number>; all: number; waiting: FairQueue<Waiting> };

type LineLimits = { kind: string; ofActor: number; ofWorkspace: number };

/** In the queue of a workspace the actors share what workspaces share in other queues. */
const waiting = { ofWorkspace: 100, ofAll: 300 };

/** What waits for an upstream, or for another change, keeps nobody from reading: each effect has lines of its own. */
const limits: Record<Effect, LineLimits> = {
  read: { kind: 'requests that read', ofActor: 3, ofWorkspace: 6 },
  write: { kind: 'changes', ofActor: 3, ofWorkspace: 6 },
  // They mostly wait for an upstream, and the limits of calls hold for them as well.
  call: { kind: 'calls to try a tool or a login', ofActor: 50, ofWorkspace: 100 },
};
const patienceMs = 20_000;
const retryAfterS = 2;

/** Inputs that wait have `mostBytes` at most, those of a workspace no more than half of what others leave. */
export function createOperationQueue(mostBytes: number, onGivenUp: OnGivenUp = () => undefined): OperationQueue {
  const lines = new Map<string, Line>();
  const waitingBytes = createShares(mostBytes);
  const waitForTurn = async (line: Line, { id, workspaceId }: QueuedOperation['actor'], bytes: number) => {
    try {
      if (!waitingBytes.take(workspaceId, bytes)) throw refusal(line, 'others with large inputs wait already');
      await wait(line, id).finally(() => waitingBytes.giveBack(workspaceId, bytes));
    } catch (error) {
      onGivenUp('operation');
      throw error;
    }
  };
  return {
    async run({ actor, effect, bytes }, work) {
      const id = `${effect} ${actor.workspaceId}`;
      const line = lines.get(id) ?? { effect, running: new Map(), all: 0, waiting: new FairQueue(waiting) };
      lines.set(id, line);
      const hasWaited = !mayRun(line, actor.id);
      if (hasWaited) await waitForTurn(line, actor, bytes);
      else begin(line, actor.id);
      try {
        return await work(hasWaited);
      } finally {
        end(line, actor.id);
        if (line.all === 0) lines.delete(id);
      }
    },
  };
}

/** A number that workspaces share. */
function createShares(most: number) {
  const shares = new Map<string, number>();
  let all = 0;
  const change = (workspaceId: string, by: number) => {
    all += by;
    const own = (shares.get(workspaceId) ?? 0) + by;
    if (own > 0) shares.set(workspaceId, own);
    else shares.delete(workspaceId);
  };
  return {
    take(workspaceId: string, count: number): boolean {
      const own = shares.get(workspaceId) ?? 0;
      if ((own + count) * 2 > most - (all - own)) return false;
      change(workspaceId, count);
      return true;
    },
    giveBack: (workspaceId: string, count: number) => change(workspaceId, -count),
  };
}

function mayRun({ effect, running, all }: Line, actorId: string): boolean {
  const { ofActor, ofWorkspace } = limits[effect];
  return all < ofWorkspace && (running.get(actorId) ?? 0) < ofActor;
}

function begin(line: Line, actorId: string): void {
  line.all++;
  line.running.set(actorId, (line.running.get(actorId) ?? 0) + 1);
}

function end(line: Line, actorId: string): void {
  line.all--;
  const left = (line.running.get(actorId) ?? 1) - 1;
  if (left > 0) line.running.set(actorId, left);
  else line.running.delete(actorId);
  for (let next = nextOf(line); next; next = nextOf(line)) {
    begin(line, next.actorId);
    next.start();
  }
}

function nextOf(line: Line): Waiting | undefined {
  return line.waiting.next((actorId) => mayRun(line, actorId));
}

/** Resolves when the operation has begun. @throws AppError tooMany */
async function wait(line: Line, actorId: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const one: Waiting = { actorId, start: resolve };
  if (!line.waiting.add(actorId, one)) throw refusal(line, `${line.waiting.size} others wait already`);
  const cancel = afterRunning(patienceMs, () => {
    if (line.waiting.remove(actorId, one)) reject(refusal(line, `this was not begun within ${patienceMs / 1000} s`));
  });
  await promise.finally(cancel);
}

function refusal({ effect }: Line, found: string): AppError {
  const { kind, ofActor } = limits[effect];
  return new AppError(
    'tooMany',
    `${found}; of ${kind} one credential runs ${ofActor} at a time; nothing was done, try again in ${retryAfterS} s, with fewer at a time`,
    { retryAfterS },
  );
}
