import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { AppError } from '@toolhost/errors/errors';
import { CompiledQuery, type RootOperationNode, sql } from 'kysely';
import type { Actor } from '../../apps/server/src/operations/operation.ts';
import { runOperation } from '../../apps/server/src/operations/run-operation.ts';
import type { Db } from '../../apps/server/src/store/db.ts';
import { getKnownInputs } from '../../bench/reports-inputs.ts';
import { buildRequests, readOperations } from '../../bench/reports-requests.ts';
import { buildFillStatements, largeWorkspace, scaleCounts } from '../../bench/reports-rows.ts';
import { engines } from '../sets.ts';
import { type EngineToolhost, startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';

/** Tables with an unbounded number of rows. */
const unboundedTables =
  'servers|server_versions|api_keys|calls|call_counts|captures|audit_events|grants|members|invitations|users|workspaces|secrets';
const upstream = 'http://127.0.0.1:9';

const limitedServers = Array.from({ length: 100 }, (_, n) => `server-${2 * n}`);
const scopes = ['manage', 'call'] as const;
const person: Actor = {
  kind: 'user',
  id: 'usr_0',
  workspaceId: largeWorkspace,
  scopes,
  servers: undefined,
  role: 'owner',
  sessionHash: 'none',
};
const actors: Actor[] = [person, { ...person, kind: 'api_key', servers: limitedServers }];

/** Runs every reading operation with all of its inputs. Returns each statement once, with values that it had. */
async function recordStatements(world: EngineToolhost, rows: ReturnType<typeof scaleCounts>): Promise<CompiledQuery[]> {
  const { runner } = world.toolhost.running.app;
  const statementsByText = new Map<string, CompiledQuery>();
  const recordingDb = runner.db.withPlugin({
    transformQuery({ node, queryId }): RootOperationNode {
      const query = runner.db.getExecutor().compileQuery(node, queryId);
      const text = query.sql.replaceAll(/\((?:(?:\?|\$\d+)(?:, )?)+\)/g, '(…)').replaceAll(/\$\d+/g, '?');
      statementsByText.set(text, query);
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  const recorder = { ...runner, db: recordingDb, reports: recordingDb };
  for (const actor of actors)
    for (const op of readOperations)
      for (const { input } of buildRequests(op, getKnownInputs(rows, upstream))) {
        try {
          await runOperation(recorder, op, { actor, input, requestId: 'test' });
        } catch (error) {
          if (!(error instanceof AppError) || !['notFound', 'forbidden'].includes(error.kind)) throw error;
        }
      }
  return [...statementsByText.values()];
}

/** Return the plan of a statement that reads more rows as the tables grow, otherwise undefined. */
const findBadPlan = {
  async sqlite(db: Db, query: CompiledQuery): Promise<string | undefined> {
    const explained = CompiledQuery.raw(`explain query plan ${query.sql}`, [...query.parameters]);
    const plan = (await db.executeQuery<{ detail: string }>(explained)).rows.map(({ detail }) => detail);
    const isUnboundedRead = (line: string) => {
      if (new RegExp(`^SCAN (${unboundedTables})\\b`).test(line)) return true;
      // A range of a whole workspace in its order is fine for a page of all rows, but not for a search among them.
      const range = /^SEARCH (\w+) .*\(workspace_id=\?(?: AND \((?:created_at|at),.*| AND width=\? AND at>.*)?\)$/;
      const table = range.exec(line)?.[1];
      // Rows that a quota bounds may be counted. Queries read a limited number of calls. Webhooks, models, and
      // roles by group are few.
      if (
        !table ||
        ['calls', 'models', 'webhooks', 'role_groups'].includes(table) ||
        query.sql.startsWith('select count(*)')
      )
        return false;
      // Quotas bound the servers and keys that are searched or sorted, and their names are at the start of their rows.
      if (/ like | order by (?:lower\(name\)|"updated_at")/.test(query.sql)) return false;
      if (!/\blimit\b/.test(query.sql)) return true;
      // Queries compare a limited number of the newest counts.
      return table !== 'call_counts' && (/ in \(/.test(query.sql) || plan.some((each) => /ORDER BY/.test(each)));
    };
    return plan.some(isUnboundedRead) ? plan.join('; ') : undefined;
  },
  async postgres(db: Db, query: CompiledQuery): Promise<string | undefined> {
    const explained = CompiledQuery.raw(`explain ${query.sql}`, [...query.parameters]);
    const plan = (await db.executeQuery<{ 'QUERY PLAN': string }>(explained)).rows.map((row) => row['QUERY PLAN']);
    const scan = new RegExp(`Seq Scan on (${unboundedTables})\\b`);
    return plan.some((line) => scan.test(line)) ? plan.join('; ') : undefined;
  },
};

for (const engine of engines) {
  describe(`[find A4] statements of reading operations on ${engine}`, async () => {
    const rows = scaleCounts(0.001, Date.parse('2026-11-20T12:00:00Z'));
    const world = await startToolhostOnEngine(engine, {}, rows.now);
    const { db } = world.toolhost.running.app.runner;
    for (const statement of await buildFillStatements(rows, upstream)) await sql.raw(statement).execute(db);
    if (engine === 'postgres') await sql`analyze`.execute(db);
    const statements = await recordStatements(world, rows);
    after(() => world.stop());

    it('never read a whole table or a whole workspace', async () => {
      assert.ok(statements.length > 50, String(statements.length));
      const problems = await world.toolhost.running.app.runner.db.transaction().execute(async (db) => {
        // PostgreSQL prefers to scan small tables completely.
        if (engine === 'postgres') await sql`set local enable_seqscan = off`.execute(db);
        const badPlans: string[] = [];
        for (const query of statements) {
          const badPlan = await findBadPlan[engine](db, query);
          if (badPlan !== undefined) badPlans.push(`${query.sql.slice(0, 300)}: ${badPlan}`);
        }
        return badPlans;
      });
      assert.deepEqual(problems, []);
    });

    it('read no sealed values, which no response contains', () => {
      const sealed = /^select (?:\S+\.)?\* from "(?:grants|secrets|client_tokens)"|"sealed_(?:tokens?|value)"/;
      const texts = statements.map((query) => query.sql);
      assert.ok(texts.some((text) => text.includes('from "grants"')));
      const readingSealed = texts.filter((text) => sealed.test(text));
      assert.deepEqual(readingSealed, []);
    });
  });
}
