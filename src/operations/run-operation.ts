import type { Kysely, Transaction } from 'kysely';
import { covers } from '../domain/credentials/scopes.ts';
import { newId } from '../domain/ids.ts';
import { type BodyLimits, bodyLimits, configurationLimits, shortLimits } from '../domain/json/body-limits.ts';
import { holdsNul, isLargerThan, plainNumbers } from '../domain/json/json.ts';
import { LongInput } from '../domain/json/long-input.ts';
import { LongText } from '../domain/json/long-text.ts';
import type { Admission } from '../domain/mcp.ts';
import { problemsOf } from '../domain/problems/problems.ts';
import type { Quotas } from '../domain/quotas.ts';
import type { MemoryBudget } from '../domain/work/memory-budget.ts';
import { nextTurn } from '../domain/work/next-turn.ts';
import { AppError, invalid } from '../errors.ts';
import { insertAuditEvent } from '../store/audit-events.ts';
import { countWrite } from '../store/quotas.ts';
import type { Tables } from '../store/schema.ts';
import { transact } from '../store/transact.ts';
import { actorNow } from './actor-now.ts';
import type { Actor, Context, Operation, OutputOf, Parts } from './operation.ts';
import type { Gates } from './quotas/gate.ts';
import { memoryOfConfiguration, memoryOfInput } from './quotas/input-memory.ts';
import { checkWriteQuota } from './quotas/quota-rules.ts';
import { type Precheck, StalePrecheck } from './servers/checked-config.ts';
import { errorOfFault, nulFault } from './servers/sent-config.ts';
import { serverOutsideOf } from './servers/unknown-server.ts';

export type Runner = {
  db: Kysely<Tables>;
  /** Runs the transactions of operations that write; see `Database`. */
  transactions: Kysely<Tables>;
  parts: Parts;
  /** Runs reports, which take long, beside everything else. */
  reports: Kysely<Tables>;
  gates: Gates;
  memory: MemoryBudget;
  /** A decision that counts from now, and is old after half a second. */
  createAdmission: (decide: () => Promise<void>) => Admission<void>;
  /** Called after a commit, so that the change takes effect in this process at once. */
  onCommitted: () => Promise<void>;
};

/** A request for an operation: its actor and its input. */
export type Asked = { actor: Actor; input: unknown; requestId: string };

/**
 * Runs an operation: authorises, validates, runs it in a transaction, audits. All interfaces use this function.
 * @throws AppError forbidden, notFound, invalid, conflict, tooMany
 * @throws Unauthenticated when the credential ended before the change, or while the operation waited for its turn or memory
 */
export async function runOperation<Op extends Operation>(
  runner: Runner,
  op: Op,
  { actor, input: raw, requestId }: Asked,
): Promise<OutputOf<Op>> {
  authorise(op, actor, raw);
  const { gates, parts } = runner;
  const db = op.isReport ? runner.reports : runner.db;
  const context = (of: Context['db']): Context => {
    return { ...parts, db: of, actor, requestId, room: noRoom, held: () => undefined, quotas: parts.defaultQuotas };
  };
  const admission = runner.createAdmission(async () => checkScope(op, await actorNow(runner.db, actor, parts.now())));
  const { waiting: bytes, running } = memoryOfInput(raw);
  const work = async () => {
    if (admission.isOld()) await admission.again();
    const held = runner.memory.hold(actor.workspaceId);
    // The wait for memory takes seconds, in which the credential may end.
    const take = async (memory: number) => {
      await held.takeUpTo(memory);
      if (admission.isOld()) await admission.again();
    };
    try {
      if (running > ordinary) await take(running);
      const input = await inputOf(op, raw);
      const room = (length: number) => take(memoryOfConfiguration(length));
      const own = { ...context(db), room, held: () => (held.bytes > 0 ? held : undefined) };
      if (op.effect === 'write') return await change(runner, op, own, input);
      return (await op.run(own, input)) as OutputOf<Op>;
    } finally {
      held.end();
    }
  };
  return gates[op.isReport ? 'report' : op.effect].run(actor, work, bytes);
}

/** Less memory than this, in bytes, is not counted: the queues bound how many inputs there are. */
const ordinary = 100_000;

/** A transaction must not wait. */
async function noRoom(): Promise<void> {}

/** Reads an input in several turns: that of a configuration takes some milliseconds, and many requests may come at once. */
async function inputOf(op: Operation, raw: unknown): Promise<Input> {
  await nextTurn();
  const isLarge = isLargerThan(raw, large);
  if (isLarge) await nextTurn();
  // A long input is searched by the thread that parses it.
  if (holdsNul(raw)) throw errorOfFault(nulFault);
  if (isLarge) await nextTurn();
  const input = op.validatesInput ? ((raw ?? {}) as Input) : parseInput(op, raw);
  if (isLarge) await nextTurn();
  return input;
}

/** Runs an operation that writes, with what it prepares, and makes the change known. */
async function change<Op extends Operation>(
  runner: Runner,
  op: Op,
  context: Context,
  input: Input,
): Promise<OutputOf<Op>> {
  const { actor, requestId } = context;
  const prepared = await op.prepare?.(context, input);
  const changeIn = async (transaction: Transaction<Tables>, precheck: Precheck | undefined) => {
    const quotas = await countedQuotas(runner, actor, transaction);
    checkScope(op, await actorNow(transaction, actor, runner.parts.now()));
    const result = await op.run({ ...context, db: transaction, room: noRoom, prepared, precheck, quotas }, input);
    if (op.isUnchanged?.(result)) return result;
    const entry = op.audit?.(input, result) ?? {};
    await insertAuditEvent(transaction, {
      id: newId(runner.parts.random, 'aud'),
      workspace_id: actor.workspaceId,
      at: runner.parts.now(),
      actor_kind: actor.kind,
      actor_id: actor.id,
      operation: op.name,
      target: entry.target ?? null,
      detail: JSON.stringify(entry.detail ?? {}),
      request_id: requestId,
    });
    return result;
  };
  const attempt = async () => {
    const precheck = await op.precheck?.({ ...context, prepared }, input);
    return runner.gates.transaction.run(actor, () => transact(runner.transactions, (db) => changeIn(db, precheck)));
  };
  const output = await untilPrecheckHolds(attempt);
  await runner.onCommitted();
  return output as OutputOf<Op>;
}

const mostAttempts = 5;

/** Repeats a change while others overtake the check of its configuration. @throws AppError conflict */
async function untilPrecheckHolds<Output>(attempt: () => Promise<Output>): Promise<Output> {
  for (let attempts = 0; attempts < mostAttempts; attempts++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof StalePrecheck)) throw error;
    }
  }
  throw new AppError('conflict', 'the server was changed again and again meanwhile; repeat your change');
}

/** Counts the change. Changes of the operator at the machine have no limit. @throws AppError tooMany */
async function countedQuotas({ parts }: Runner, actor: Actor, db: Context['db']): Promise<Quotas> {
  const now = parts.now();
  const { writes, quotas } = await countWrite(db, actor.workspaceId, now);
  const allowed = { ...parts.defaultQuotas, ...quotas };
  if (actor.kind !== 'operator') checkWriteQuota(writes, allowed, now);
  return allowed;
}

/** Larger inputs are searched in several turns of the event loop. */
const large = { values: 5000, characters: 200_000 };

type Input = Record<string, unknown>;

/** Converts exact numbers to plain ones, but for the arguments of a tool and for whole configurations. */
function parseInput(op: Operation, raw: unknown): Input {
  const given = (raw ?? {}) as Input;
  const held = heldField(op, given);
  const checked = Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      name === held?.field ? held.standIn : name === 'arguments' || name === op.longField ? value : plainNumbers(value),
    ]),
  );
  const parsed = op.input.safeParse(checked);
  if (!parsed.success) throw invalid(problemsOf(parsed.error.issues, raw, () => Object.keys(op.input.shape)));
  return held ? { ...parsed.data, [held.field]: given[held.field] } : parsed.data;
}

/** The field that only threads read, and a value that stands for it while the others are checked. */
function heldField({ longField, longText }: Operation, given: Input): { field: string; standIn: unknown } | undefined {
  if (longField !== undefined && given[longField] instanceof LongInput) return { field: longField, standIn: {} };
  const isHeld = longText !== undefined && given[longText.field] instanceof LongText;
  return isHeld ? { field: longText.field, standIn: 'long' } : undefined;
}

/** Checks an actor before any input is read. @throws AppError forbidden */
export function checkScope(op: Operation, actor: Actor): void {
  if (!covers(actor.scopes, op.scope)) {
    throw new AppError(
      'forbidden',
      `this needs the scope ${op.scope}; the credential has ${actor.scopes.join(', ') || 'none'}`,
    );
  }
  // People in the dashboard have a role; tokens of a login have none.
  if (op.makesCredential && actor.kind === 'user' && actor.role === undefined)
    throw new AppError(
      'forbidden',
      'a login cannot make API keys, which would outlive it; make one in the dashboard or with an API key',
    );
  if (op.people && actor.role === undefined)
    throw new AppError('forbidden', 'this is only possible in the dashboard, signed in');
  if (op.people === 'owner' && actor.role !== 'owner')
    throw new AppError('forbidden', 'this is for owners of the workspace');
  if (actor.servers && !('slug' in op.input.shape)) {
    throw new AppError(
      'forbidden',
      'a key that is limited to some servers cannot do this; use one for the whole workspace',
    );
  }
}

/** Whether an operation takes a whole configuration. */
export function takesConfiguration(op: Operation): boolean {
  return 'tools' in op.input.shape;
}

/** Whether an operation takes neither a configuration nor arguments or a document, so that its input is never long. */
export function takesShortInput(op: Operation): boolean {
  const isLong = op.validatesInput || op.longField !== undefined || op.longText !== undefined;
  return !isLong && !('arguments' in op.input.shape);
}

/** Limits of the body of a request. Only those who may store a configuration may send a large one. */
export function bodyLimitsFor(op: Operation, actor: Actor): BodyLimits {
  if (takesShortInput(op)) return shortLimits;
  const mayStore = covers(actor.scopes, 'manage:write');
  if (op.longText && mayStore) return { ...bodyLimits, bytes: op.longText.characters + bodyLimits.bytes };
  return takesConfiguration(op) && mayStore ? configurationLimits : bodyLimits;
}

/** Hides all other servers, and whether they exist, from a key that is limited to some servers. */
function authorise(op: Operation, actor: Actor, raw: unknown): void {
  checkScope(op, actor);
  if (!actor.servers) return;
  const slug = (raw as { slug?: unknown } | null | undefined)?.slug;
  const isOptional = op.input.shape.slug?.safeParse(undefined).success;
  // A list leaves other servers out. What makes a server has to say which.
  if (slug === undefined && isOptional && op.effect === 'read') return;
  if (typeof slug !== 'string' || !actor.servers.includes(slug)) {
    throw serverOutsideOf(actor.servers, typeof slug === 'string' ? slug : '');
  }
}
