import type { Kysely, Transaction } from 'kysely';
import { covers, scopesOf } from '../domain/credentials/credential.ts';
import { newId } from '../domain/ids.ts';
import { bodyLimits, configurationLimits, shortLimits } from '../domain/json/body-limits.ts';
import { holdsNul, parseJsonInTurns, plainNumbers } from '../domain/json/json.ts';
import type { BodyLimits } from '../domain/json/json-scan.ts';
import { LongValue, longBytesOf } from '../domain/json/long-value.ts';
import type { Admission } from '../domain/mcp.ts';
import { problemsOf } from '../domain/problems.ts';
import type { Quotas } from '../domain/quotas.ts';
import { coerceValue } from '../domain/schema/coerce-value.ts';
import type { JsonSchema } from '../domain/schema/json-schema.ts';
import type { MemoryBudget } from '../domain/work/memory-budget.ts';
import { AppError, invalid, Unauthenticated } from '../errors.ts';
import { findApiKey } from '../store/api-keys.ts';
import { insertAuditEvent } from '../store/audit-events.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import { findGrant } from '../store/logins/grants.ts';
import { findSession } from '../store/people/sessions.ts';
import { findRole } from '../store/people/users.ts';
import type { Tables } from '../store/schema.ts';
import { countWrite } from '../store/workspaces.ts';
import { StalePrecheck } from './check-config.ts';
import { nulFault, type ReadLongBody } from './long-body.ts';
import type { Actor, Context, Operation, OutputOf, Parts, Stream } from './operation.ts';
import type { Gates } from './quotas/gate.ts';
import { checkWriteQuota } from './quotas/quotas.ts';
import { serverOutsideOf } from './shapes.ts';

export type Runner = {
  db: Kysely<Tables>;
  /** Runs the transactions of operations that write; see `Database`. */
  transactions: Kysely<Tables>;
  parts: Parts;
  /** Connection for reports, which take long, separate from all other queries. */
  reports: Kysely<Tables>;
  gates: Gates;
  memory: MemoryBudget;
  /** Creates a snapshot of an authorization decision, which is valid from now on and stale after half a second. */
  createAdmission: (decide: () => Promise<void>) => Admission<void>;
  /** Called after a commit, so that the change takes effect in this process immediately. */
  onCommitted: () => Promise<void>;
};

/** A runner of a service, where threads parse long bodies. */
export type ServingRunner = Runner & { readLong: ReadLongBody };

/** A request for an operation, with its actor and its input. */
export type Asked = { actor: Actor; input: unknown; requestId: string; stream?: Stream };

/**
 * Runs an operation: authorizes the actor, validates the input, runs the operation (in a transaction if it writes), and
 * audits it. All interfaces use this function.
 * @throws AppError forbidden, notFound, invalid, conflict, tooMany
 * @throws Unauthenticated if the credential ended before the change, or while the operation was queued
 */
export async function runOperation<Op extends Operation>(
  runner: Runner,
  op: Op,
  { actor, input: raw, requestId, stream }: Asked,
): Promise<OutputOf<Op>> {
  authorise(op, actor, raw);
  const { gates, parts } = runner;
  const admission = runner.createAdmission(async () => checkScope(op, await actorNow(runner.db, actor, parts.now())));
  const bytes = longBytesOf(raw ?? {});
  const work = async () => {
    if (admission.isOld()) await admission.again();
    const held = runner.memory.hold(actor.workspaceId);
    // The credential may end while an operation that takes long waits for more memory.
    const take = async (memory: number) => {
      await held.takeUpTo(memory);
      if (admission.isOld()) await admission.again();
    };
    const room = (length: number) => take(length * timesOfConfiguration);
    try {
      // A document is only passed on, so it needs no memory for parsing.
      await (op.long?.characters === undefined ? room(bytes) : take(bytes));
      const input = await inputOf(op, raw);
      const db = op.isReport ? runner.reports : runner.db;
      const context = { ...parts, db, actor, requestId, room, stream, quotas: parts.defaultQuotas };
      if (op.effect === 'write') return await change(runner, op, context, input);
      return (await op.run(context, input)) as OutputOf<Op>;
    } finally {
      held.end();
    }
  };
  return gates[op.isReport ? 'report' : op.asksModel ? 'model' : op.effect].run(actor, work, bytes);
}

/** Peak memory of an operation, as a multiple of the configuration's size: texts, values, and the response. */
const timesOfConfiguration = 8;

/** Reserves nothing, because a transaction must not wait for memory. */
async function noRoom(): Promise<void> {}

/** Prepares an operation that writes, runs it, and publishes the change. */
async function change<Op extends Operation>(
  runner: Runner,
  op: Op,
  context: Context,
  input: Input,
): Promise<OutputOf<Op>> {
  const prepared = await op.prepare?.(context, input);
  const attempt = async () => {
    const precheck = await op.precheck?.({ ...context, prepared }, input);
    const run = (db: Transaction<Tables>) =>
      changeIn(runner, op, { ...context, db, room: noRoom, prepared, precheck }, input);
    return runner.gates.transaction.run(context.actor, () => transact(runner.transactions, run));
  };
  const output = await attempt().catch((error) => {
    if (!(error instanceof StalePrecheck)) throw error;
    return attempt();
  });
  await runner.onCommitted();
  return output;
}

/** Counts the change, makes it, and writes the audit event, all in one transaction. */
async function changeIn<Op extends Operation>(
  runner: Runner,
  op: Op,
  context: Context,
  input: Input,
): Promise<OutputOf<Op>> {
  const { db, actor, now, random, requestId } = context;
  const quotas = await countedQuotas(runner, actor, db);
  checkScope(op, await actorNow(db, actor, now()));
  const result = (await op.run({ ...context, quotas }, input)) as OutputOf<Op>;
  if (op.isUnchanged?.(result)) return result;
  const entry = op.audit?.(input, result) ?? {};
  await insertAuditEvent(db, {
    id: newId(random, 'aud'),
    workspace_id: entry.workspaceId ?? actor.workspaceId,
    at: now(),
    actor_kind: actor.kind,
    actor_id: actor.id,
    operation: op.name,
    target: entry.target ?? null,
    detail: JSON.stringify({ ...entry.detail, ...(entry.people && { people: entry.people }) }),
    request_id: requestId,
  });
  return result;
}

/** Counts the change. The operator at the machine may make any number of changes. @throws AppError tooMany */
async function countedQuotas({ parts }: Runner, actor: Actor, db: Context['db']): Promise<Quotas> {
  const now = parts.now();
  const { writes, quotas } = await countWrite(db, actor.workspaceId, now);
  const allowed = { ...parts.defaultQuotas, ...quotas };
  if (actor.kind !== 'operator') checkWriteQuota(writes, allowed, now);
  return allowed;
}

type Input = Record<string, unknown>;

/**
 * Parses and validates the input of an operation. Exact numbers become plain numbers, except in tool arguments and
 * configurations.
 * @throws AppError invalid, tooLarge
 */
async function inputOf(op: Operation, raw: unknown): Promise<Input> {
  const given = op.validatesInput ? coerceFields(op, (raw ?? {}) as Input) : ((raw ?? {}) as Input);
  if (holdsNul(given)) throw invalid([nulFault]);
  if (op.validatesInput) return given;
  const fields = await opened(given, op.long?.field);
  const long = op.long && fields[op.long.field];
  const checked = Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (value instanceof LongValue) return [name, value.isText ? 'a long text' : {}];
      return [name, name === 'arguments' || name === op.long?.field ? value : plainNumbers(value)];
    }),
  );
  const exact = op.input.safeParse(checked);
  const meant = exact.success ? checked : coerceValue(checked, op.inputSchema());
  if (meant !== checked && holdsNul(meant)) throw invalid([nulFault]);
  const parsed = exact.success ? exact : op.input.safeParse(meant);
  if (!parsed.success) {
    const keysAt = (path: string) => (path === '' ? Object.keys(op.input.shape) : []);
    throw invalid(problemsOf(parsed.error.issues, meant, keysAt));
  }
  return long instanceof LongValue ? { ...parsed.data, [op.long?.field ?? '']: long } : parsed.data;
}

/**
 * Coerces fields that do not match their schema, for an operation that validates its input itself. Values inside lists
 * and objects stay as they are, because a configuration is checked strictly.
 */
function coerceFields(op: Operation, given: Input): Input {
  const properties = () => op.inputSchema().properties as { [name: string]: JsonSchema };
  const isPlain = (value: unknown) => typeof value !== 'object' || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => {
      const field = Object.hasOwn(op.input.shape, name) && isPlain(value) ? op.input.shape[name] : undefined;
      const fits = !field || field.safeParse(value).success;
      return [name, fits ? value : coerceValue(value, properties()[name] as JsonSchema)];
    }),
  );
}

/** Parses all long values except the one named `exceptName`. @throws AppError tooLarge */
async function opened(fields: Input, kept: string | undefined): Promise<Input> {
  const bytes = longBytesOf(kept === undefined ? fields : { ...fields, [kept]: undefined });
  if (bytes === 0) return fields;
  if (bytes > bodyLimits.bytes)
    throw new AppError(
      'tooLarge',
      `the body without ${kept ?? 'long texts'} is larger than ${bodyLimits.bytes} bytes; send less`,
    );
  const all = { ...fields };
  for (const [name, value] of Object.entries(fields))
    if (value instanceof LongValue && name !== kept) all[name] = await parseJsonInTurns(value.json);
  return all;
}

/** Checks an actor before any input is read. @throws AppError forbidden */
export function checkScope(op: Operation, actor: Actor): void {
  if (!covers(actor.scopes, op.scope)) {
    throw new AppError(
      'forbidden',
      `this operation needs the scope ${op.scope}; the credential has ${actor.scopes.join(', ') || 'none'}`,
    );
  }
  // People in the dashboard have a role; tokens of a login do not.
  if (op.makesCredential && actor.kind === 'user' && actor.role === undefined)
    throw new AppError(
      'forbidden',
      'a login cannot create API keys, because they would outlive it; create the key in the dashboard or with an API key',
    );
  if (op.people && actor.role === undefined)
    throw new AppError('forbidden', 'this operation is only available to people who are signed in to the dashboard');
  if (op.people === 'owner' && actor.role !== 'owner')
    throw new AppError('forbidden', 'only workspace owners can do this; ask an owner');
  if (actor.servers && !('slug' in op.input.shape)) {
    throw new AppError(
      'forbidden',
      'a key that is limited to some servers cannot do this; use a key for the whole workspace',
    );
  }
}

/**
 * Returns true if an operation takes no configuration, arguments, document, or conversation, so its input is never
 * long.
 */
export function takesShortInput(op: Operation): boolean {
  return !op.validatesInput && op.long === undefined && !op.asksModel && !('arguments' in op.input.shape);
}

/** Returns the limits of a request body. Only an actor that may store a configuration may send a large body. */
export function bodyLimitsFor(op: Operation, actor: Actor): BodyLimits {
  if (takesShortInput(op)) return shortLimits;
  if (!covers(actor.scopes, 'manage:write')) return bodyLimits;
  if (op.long?.characters !== undefined) return { ...bodyLimits, bytes: op.long.characters + bodyLimits.bytes };
  return 'tools' in op.input.shape ? configurationLimits : bodyLimits;
}

/** Hides all other servers, including their existence, from a key that is limited to some servers. */
function authorise(op: Operation, actor: Actor, raw: unknown): void {
  checkScope(op, actor);
  if (!actor.servers) return;
  const slug = (raw as { slug?: unknown } | null | undefined)?.slug;
  const isOptional = op.input.shape.slug?.safeParse(undefined).success;
  // A list omits other servers. An operation that creates a server must name it.
  if (slug === undefined && isOptional && op.effect === 'read') return;
  if (typeof slug !== 'string' || !actor.servers.includes(slug)) {
    throw serverOutsideOf(actor.servers, typeof slug === 'string' ? slug : '');
  }
}

/**
 * Returns the actor with its current rights. Between the authorization of a request and its change, a body arrives, a
 * description is fetched, and other changes are written first. A credential that was revoked in the meantime must
 * change nothing. Within the transaction of the change, after the workspace row was updated, a revocation comes either
 * before or after the change.
 * @throws Unauthenticated
 */
export async function actorNow(db: Db, actor: Actor, now: number): Promise<Actor> {
  if (actor.kind === 'operator') return actor;
  if (actor.kind === 'api_key') {
    const key = await findApiKey(db, actor.id);
    if (!key || key.revokedAt !== undefined || (key.expiresAt !== undefined && key.expiresAt <= now))
      throw ended('the API key');
    return actor;
  }
  if (!(await isSignedIn(db, actor, now))) throw ended(actor.sessionHash === undefined ? 'the login' : 'the session');
  const role = await findRole(db, actor.id, actor.workspaceId);
  if (!role) throw ended('the membership');
  const own = scopesOf(role);
  const scopes = actor.scopes.filter((scope) => own.includes(scope) || (scope !== 'manage' && covers(own, scope)));
  return { ...actor, scopes, ...(actor.role !== undefined && { role }) };
}

async function isSignedIn(db: Db, { sessionHash, grantId }: Actor, now: number): Promise<boolean> {
  if (sessionHash !== undefined) return (await findSession(db, sessionHash, now)) !== undefined;
  const grant = grantId === undefined ? undefined : await findGrant(db, grantId);
  return grant !== undefined && grant.revoked_at === null;
}

function ended(what: string): Unauthenticated {
  return new Unauthenticated('invalid', `${what} ended while the request was in progress; nothing was changed`);
}
