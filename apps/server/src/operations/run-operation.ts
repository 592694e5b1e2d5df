import { getRoleScopes, hasScope } from '@toolhost/credentials/credential';
import { newId } from '@toolhost/credentials/ids';
import { AppError, invalidInputError, Unauthenticated } from '@toolhost/errors/errors';
import { toProblems } from '@toolhost/errors/problems';
import { bodyLimits, configurationLimits, eventLoopLimits } from '@toolhost/json/body-limits';
import { containsNul, parseJsonInChunks, toPlainNumbers } from '@toolhost/json/json';
import type { BodyLimits } from '@toolhost/json/json-scan';
import { countLargeValueBytes, LargeValue } from '@toolhost/json/large-value';
import { coerceValue } from '@toolhost/json-schema/coerce-value';
import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import type { MemoryBudget } from '@toolhost/limits/memory-budget';
import { createAuthorizationSnapshot } from '@toolhost/mcp-protocol/mcp';
import type { Kysely, Transaction } from 'kysely';
import type { Quotas } from '../quotas.ts';
import { findApiKey } from '../store/api-keys.ts';
import { insertAuditEvent } from '../store/audit-events.ts';
import type { Db } from '../store/db.ts';
import { transact } from '../store/engine/watched-dialect.ts';
import { findGrant } from '../store/logins/grants.ts';
import { findSession } from '../store/people/sessions.ts';
import { findRole } from '../store/people/users.ts';
import type { Tables } from '../store/schema.ts';
import { countWrite } from '../store/workspaces.ts';
import { StalePreparation } from './check-config.ts';
import { createOutsideLimitsError } from './find-server.ts';
import { nulProblem, type ReadLongBody } from './long-body.ts';
import type { Actor, Context, Operation, OperationDeps, OperationOutput, Stream } from './operation.ts';
import type { ConcurrencyLimiters } from './quotas/concurrency-limiters.ts';
import { checkWriteQuota } from './quotas/quotas.ts';

/** Databases, limits, and dependencies that operations run with. */
export type Runner = {
  db: Kysely<Tables>;
  /** Runs the transactions of operations that write, in a separate thread with SQLite. */
  transactions: Kysely<Tables>;
  deps: OperationDeps;
  /** Connection for reports, which take long, separate from all other queries. */
  reports: Kysely<Tables>;
  concurrencyLimiters: ConcurrencyLimiters;
  memory: MemoryBudget;
  /** Returns monotonic ms. */
  clock: () => number;
  /** Called after a commit, so that the change takes effect in this process immediately. */
  onCommitted: () => Promise<void>;
};

/** A runner of a service, where threads parse long bodies. */
export type ServingRunner = Runner & { readLongBody: ReadLongBody };

/** A request for an operation, with its actor and its input. */
export type OperationRequest = { actor: Actor; input: unknown; requestId: string; stream?: Stream };

/**
 * Runs an operation: authorizes the actor, validates the input, runs the operation (in a transaction if it writes), and
 * audits it. All interfaces use this function.
 * @throws AppError forbidden, notFound, invalid, conflict, tooMany
 * @throws Unauthenticated if the credential ended before the change, or while the operation was queued
 */
export async function runOperation<Op extends Operation>(
  runner: Runner,
  op: Op,
  { actor, input: raw, requestId, stream }: OperationRequest,
): Promise<OperationOutput<Op>> {
  authorize(op, actor, raw);
  const { concurrencyLimiters, deps } = runner;
  const authorization = createAuthorizationSnapshot(
    async () => checkScope(op, await refreshActor(runner.db, actor, deps.now())),
    runner.clock,
  );
  const bytes = countLargeValueBytes(raw ?? {});
  const work = async () => {
    if (authorization.isStale()) await authorization.refresh();
    const reservation = runner.memory.reserve(actor.workspaceId);
    // The credential may end while an operation that takes long waits for more memory.
    const reserveBytes = async (memory: number) => {
      await reservation.growTo(memory);
      if (authorization.isStale()) await authorization.refresh();
    };
    const reserveMemory = (length: number) => reserveBytes(length * configurationMemoryFactor);
    try {
      // A document is only passed on, so it needs no memory for parsing.
      await (op.longField?.characters === undefined ? reserveMemory(bytes) : reserveBytes(bytes));
      const input = await parseInput(op, raw);
      const db = op.isReport ? runner.reports : runner.db;
      const quotas = deps.defaultQuotas;
      const context = { ...deps, db, actor, requestId, prepared: undefined, reserveMemory, stream, quotas };
      if (op.effect === 'write') return await runWrite(runner, op, context, input);
      return (await op.run(context, input)) as OperationOutput<Op>;
    } finally {
      reservation.release();
    }
  };
  return getLimiter(op, concurrencyLimiters).run(actor, work, bytes);
}

function getLimiter(op: Operation, limiters: ConcurrencyLimiters) {
  if (op.isReport) return limiters.report;
  return op.callsModel ? limiters.model : limiters[op.effect];
}

/** Peak memory of an operation, as a multiple of the configuration's size: texts, values, and the response. */
const configurationMemoryFactor = 8;

/** Prepares an operation that writes, runs it, and publishes the change. */
async function runWrite<Op extends Operation>(
  runner: Runner,
  op: Op,
  context: Context<undefined>,
  input: Input,
): Promise<OperationOutput<Op>> {
  const attempt = async () => {
    const prepared = await op.prepare?.(context, input);
    const run = (db: Transaction<Tables>) =>
      runInTransaction(runner, op, { ...context, db, reserveMemory: undefined, prepared }, input);
    return runner.concurrencyLimiters.transaction.run(context.actor, () => transact(runner.transactions, run));
  };
  const output = await attempt().catch((error) => {
    if (!(error instanceof StalePreparation)) throw error;
    return attempt();
  });
  await runner.onCommitted();
  return output;
}

/** Counts the change, makes it, and writes the audit event, all in one transaction. */
async function runInTransaction<Op extends Operation>(
  runner: Runner,
  op: Op,
  context: Context,
  input: Input,
): Promise<OperationOutput<Op>> {
  const { db, actor, now, random, requestId } = context;
  const quotas = await countChange(runner, actor, db);
  checkScope(op, await refreshActor(db, actor, now()));
  const result = (await op.run({ ...context, quotas }, input)) as OperationOutput<Op>;
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
async function countChange({ deps }: Runner, actor: Actor, db: Context['db']): Promise<Quotas> {
  const now = deps.now();
  const { writes: writeCounts, quotas } = await countWrite(db, actor.workspaceId, now);
  const allowed = { ...deps.defaultQuotas, ...quotas };
  if (actor.kind !== 'operator') checkWriteQuota(writeCounts, allowed, now);
  return allowed;
}

type Input = Record<string, unknown>;

/**
 * Parses and validates the input of an operation. Exact numbers become plain numbers, except in tool arguments and
 * configurations.
 * @throws AppError invalid, tooLarge
 */
async function parseInput(op: Operation, raw: unknown): Promise<Input> {
  const input = op.validatesInput ? coerceFields(op, (raw ?? {}) as Input) : ((raw ?? {}) as Input);
  if (containsNul(input)) throw invalidInputError([nulProblem]);
  if (op.validatesInput) return input;
  const fields = await parseLongValues(input, op.longField?.field);
  const longValue = op.longField && fields[op.longField.field];
  const candidate = Object.fromEntries(
    Object.entries(fields).map(([name, value]) => {
      if (value instanceof LargeValue) return [name, value.isRawText ? 'a long text' : {}];
      return [name, name === 'arguments' || name === op.longField?.field ? value : toPlainNumbers(value)];
    }),
  );
  const exact = op.input.safeParse(candidate);
  const coerced = exact.success ? candidate : coerceValue(candidate, op.inputSchema());
  if (coerced !== candidate && containsNul(coerced)) throw invalidInputError([nulProblem]);
  const parsed = exact.success ? exact : op.input.safeParse(coerced);
  if (!parsed.success) {
    const getKnownKeys = (path: string) => (path === '' ? Object.keys(op.input.shape) : []);
    throw invalidInputError(toProblems(parsed.error.issues, coerced, getKnownKeys));
  }
  return longValue instanceof LargeValue ? { ...parsed.data, [op.longField?.field ?? '']: longValue } : parsed.data;
}

/**
 * Coerces fields that do not match their schema, for an operation that validates its input itself. Values inside lists
 * and objects stay as they are, because a configuration is checked strictly.
 */
function coerceFields(op: Operation, input: Input): Input {
  const properties = () => op.inputSchema().properties as { [name: string]: JsonSchema };
  const isPlain = (value: unknown) => typeof value !== 'object' || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(
    Object.entries(input).map(([name, value]) => {
      const field = Object.hasOwn(op.input.shape, name) && isPlain(value) ? op.input.shape[name] : undefined;
      const isValid = !field || field.safeParse(value).success;
      return [name, isValid ? value : coerceValue(value, properties()[name] as JsonSchema)];
    }),
  );
}

/** Parses all long values except the one named `exceptName`. @throws AppError tooLarge */
async function parseLongValues(fields: Input, exceptName: string | undefined): Promise<Input> {
  const bytes = countLargeValueBytes(exceptName === undefined ? fields : { ...fields, [exceptName]: undefined });
  if (bytes === 0) return fields;
  if (bytes > bodyLimits.bytes)
    throw new AppError(
      'tooLarge',
      `the body without ${exceptName ?? 'long texts'} is larger than ${bodyLimits.bytes} bytes; send less`,
    );
  const parsed = { ...fields };
  for (const [name, value] of Object.entries(fields))
    if (value instanceof LargeValue && name !== exceptName) parsed[name] = await parseJsonInChunks(value.json);
  return parsed;
}

/** Checks an actor before any input is read. @throws AppError forbidden */
export function checkScope(op: Operation, actor: Actor): void {
  if (!hasScope(actor.scopes, op.scope)) {
    throw new AppError(
      'forbidden',
      `this operation needs the scope ${op.scope}; the credential has ${actor.scopes.join(', ') || 'none'}`,
    );
  }
  // People in the dashboard have a role; tokens of a login do not.
  if (op.createsCredential && actor.kind === 'user' && actor.role === undefined)
    throw new AppError(
      'forbidden',
      'a login cannot create API keys, because they would outlive it; create the key in the dashboard or with an API key',
    );
  if (op.dashboardRole && actor.role === undefined)
    throw new AppError('forbidden', 'this operation is only available to people who are signed in to the dashboard');
  if (op.dashboardRole === 'owner' && actor.role !== 'owner')
    throw new AppError('forbidden', 'only workspace owners can do this; ask an owner');
  if (actor.servers && !('slug' in op.input.shape)) {
    throw new AppError(
      'forbidden',
      'a key that is limited to some servers cannot do this; use a key for the whole workspace',
    );
  }
}

/** Returns true if no input of an operation can be long: no configuration, arguments, document, or conversation. */
export function hasShortInput(op: Operation): boolean {
  return !op.validatesInput && op.longField === undefined && !op.callsModel && !('arguments' in op.input.shape);
}

/** Returns the limits of a request body. Only an actor that may store a configuration may send a large body. */
export function getBodyLimits(op: Operation, actor: Actor): BodyLimits {
  if (hasShortInput(op)) return eventLoopLimits;
  if (!hasScope(actor.scopes, 'manage:write')) return bodyLimits;
  if (op.longField?.characters !== undefined)
    return { ...bodyLimits, bytes: op.longField.characters + bodyLimits.bytes };
  return 'tools' in op.input.shape ? configurationLimits : bodyLimits;
}

/** Hides all other servers, including their existence, from a key that is limited to some servers. */
function authorize(op: Operation, actor: Actor, raw: unknown): void {
  checkScope(op, actor);
  if (!actor.servers) return;
  const slug = (raw as { slug?: unknown } | null | undefined)?.slug;
  const isOptional = op.input.shape.slug?.safeParse(undefined).success;
  // A list omits other servers. An operation that creates a server must name it.
  if (slug === undefined && isOptional && op.effect === 'read') return;
  if (typeof slug !== 'string' || !actor.servers.includes(slug)) {
    throw createOutsideLimitsError(actor.servers, typeof slug === 'string' ? slug : '');
  }
}

/**
 * Returns the actor with its current rights. Between the authorization of a request and its change, a body arrives, a
 * description is fetched, and other changes are written first. A credential that was revoked in the meantime must
 * change nothing. Within the transaction of the change, after the workspace row was updated, a revocation comes either
 * before or after the change.
 * @throws Unauthenticated
 */
export async function refreshActor(db: Db, actor: Actor, now: number): Promise<Actor> {
  if (actor.kind === 'operator') return actor;
  if (actor.kind === 'api_key') {
    const key = await findApiKey(db, actor.id);
    if (!key || key.revokedAt !== undefined || (key.expiresAt !== undefined && key.expiresAt <= now))
      throw createCredentialEndedError('the API key');
    return actor;
  }
  if (!(await isSignedIn(db, actor, now)))
    throw createCredentialEndedError(actor.sessionHash === undefined ? 'the login' : 'the session');
  const role = await findRole(db, actor.id, actor.workspaceId);
  if (!role) throw createCredentialEndedError('the membership');
  const roleScopes = getRoleScopes(role);
  const scopes = actor.scopes.filter(
    (scope) => roleScopes.includes(scope) || (scope !== 'manage' && hasScope(roleScopes, scope)),
  );
  return { ...actor, scopes, ...(actor.role !== undefined && { role }) };
}

async function isSignedIn(db: Db, { sessionHash, grantId }: Actor, now: number): Promise<boolean> {
  if (sessionHash !== undefined) return (await findSession(db, sessionHash, now)) !== undefined;
  const grant = grantId === undefined ? undefined : await findGrant(db, grantId);
  return grant !== undefined && grant.revoked_at === null;
}

function createCredentialEndedError(credential: string): Unauthenticated {
  return new Unauthenticated('invalid', `${credential} ended while the request was in progress; nothing was changed`);
}
