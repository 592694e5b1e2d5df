import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openDatabase } from '../../apps/server/src/store/database.ts';
import { engines } from '../sets.ts';
import { times } from '../support/long-values.ts';
import { buildDatabaseOptions } from '../support/store/default-options.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const servers = 1000;
const tools = 1000;
const secrets = 2000;
const names = times(50, (n) => `S${n}`);
/** Returns an origin with a very long host name. */
const makeOrigin = (n: number) =>
  `https://${['a', 'b', 'c'].map((letter) => letter.repeat(60)).join('.')}.h${n}.example.com`;

/** Server with many short-named tools at many hosts, whose authentication needs many secrets. */
const fullServer = {
  name: 'Full server',
  slug: 'full',
  authentication: {
    type: 'ClientCredentials',
    token_url: 'https://token.example.com/token',
    client_id: names.map((name) => `{{${name}}}`).join(''),
    client_secret: 'hidden',
  },
  tools: times(tools, (n) =>
    buildToolAt(`${makeOrigin(n % 50)}/x`, { name: `e${n.toString(36)}`, description: 'Reads.', input_schema: {} }),
  ),
};

for (const engine of engines) {
  describe(`CPU budget of a full workspace on ${engine}`, () => {
    let postgres: TestPostgres | undefined;
    let folder: string;
    let toolhost: CpuBudgetToolhost;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'toolhost-rows-'));
      postgres = engine === 'postgres' ? await startPostgres() : undefined;
      const url = await postgres?.createDatabase();
      toolhost = await startCpuBudgetToolhost({ DATA_DIR: folder, ...(url !== undefined && { DATABASE_URL: url }) });
      await toolhost.createServer(fullServer);
      await fillWorkspace(url);
    });
    after(async () => {
      await toolhost?.stop();
      await postgres?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    /** Stores copies of the server, and secrets for the first ten that many hosts may receive. */
    async function fillWorkspace(url: string | undefined): Promise<void> {
      const database = await openDatabase(buildDatabaseOptions(url, join(folder, 'toolhost.sqlite')));
      try {
        const { db } = database;
        const server = await db.selectFrom('servers').selectAll().where('slug', '=', 'full').executeTakeFirstOrThrow();
        const makeCopy = (n: number) => ({ ...server, id: `srv_full-${n}`, slug: `full-${n}`, config: '{}' });
        for (let at = 0; at < servers - 1; at += 111)
          await db
            .insertInto('servers')
            .values(times(111, (n) => makeCopy(at + n)))
            .execute();
        const origins = JSON.stringify(times(tools, (n) => `https://h${n}.example.com`));
        const { workspace_id } = server;
        const makeSecret = (n: number) => ({
          server_id: `srv_full-${n % 10}`,
          workspace_id,
          name: `S${Math.floor(n / 10)}`,
          sealed_value: '',
          origins,
          created_by: 'test',
          updated_at: 1,
        });
        for (let at = 0; at < secrets; at += 100)
          await db
            .insertInto('secrets')
            .values(times(100, (n) => makeSecret(at + n)))
            .execute();
      } finally {
        await database.close();
      }
    }

    it('[find A4] reports on 1,000 servers of a workspace within the CPU budget', async () => {
      const getReport = async (path: string): Promise<Json> => {
        const { status, text, body } = await toolhost.measure(path, 0.7).rest('GET', path);
        assert.equal(status, 200, text.slice(0, 300));
        return body;
      };
      const { tools: foundTools } = await getReport('/search?query=e+server&limit=200');
      const lengths = new Set((foundTools as Json[]).map(({ tool }) => String(tool).length));
      assert.deepEqual([...lengths], [2], 'returns the tools with the shortest names');
      const { servers: listedServers } = await getReport('/servers');
      assert.equal((listedServers as Json[]).length, servers);
      const { servers: serversWithNeeds } = await getReport('/pending-actions');
      assert.deepEqual((serversWithNeeds as Json[])[0]?.missing_secrets, names);
    });
  });
}
