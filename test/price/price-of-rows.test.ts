import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openDatabase } from '../../src/store/database.ts';
import { engines } from '../sets.ts';
import { patientLimits, patientUrl } from '../support/store/patient-limits.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { usualOptions } from '../support/store/usual-options.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const servers = 1000;
const tools = 1000;
const secrets = 2000;
const names = Array.from({ length: 50 }, (_, n) => `S${n}`);
/** Returns an origin with a very long host name. */
const host = (n: number) => `https://${['a', 'b', 'c'].map((letter) => letter.repeat(60)).join('.')}.h${n}.example.com`;

/** Server with many short-named tools at many hosts, whose authentication needs many secrets. */
const full = {
  name: 'Full server',
  slug: 'full',
  authentication: {
    type: 'ClientCredentials',
    token_url: 'https://token.example.com/token',
    client_id: names.map((name) => `{{${name}}}`).join(''),
    client_secret: 'hidden',
  },
  tools: Array.from({ length: tools }, (_, n) => ({
    name: `e${n.toString(36)}`,
    description: 'Reads.',
    method: 'GET',
    url: `${host(n % 50)}/x`,
    input_schema: {},
  })),
};

for (const engine of engines) {
  describe(`CPU budget of a full workspace on ${engine}`, () => {
    let postgres: TestPostgres | undefined;
    let folder: string;
    let priced: PricedToolhost;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'toolhost-rows-'));
      postgres = engine === 'postgres' ? await startPostgres() : undefined;
      const url = await postgres?.createDatabase();
      priced = await startPricedToolhost({ DATA_DIR: folder, ...(url !== undefined && { DATABASE_URL: url }) });
      const created = await priced.rest('POST', '/servers', full);
      assert.equal(created.status, 201, created.text);
      await fill(url);
    });
    after(async () => {
      await priced?.stop();
      await postgres?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    /** Stores copies of the server, and secrets for the first ten that many hosts may receive. */
    async function fill(url: string | undefined): Promise<void> {
      const database = await openDatabase({
        ...usualOptions,
        postgres: url === undefined ? undefined : { url: patientUrl(url), maxConnections: 1, authorities: undefined },
        file: join(folder, 'toolhost.sqlite'),
        postgresLimits: patientLimits,
        now: Date.now,
      });
      try {
        const { db } = database;
        const server = await db.selectFrom('servers').selectAll().where('slug', '=', 'full').executeTakeFirstOrThrow();
        const copies = Array.from({ length: servers - 1 }, (_, n) => ({
          ...server,
          id: `srv_full-${n}`,
          slug: `full-${n}`,
          config: '{}',
        }));
        for (let at = 0; at < copies.length; at += 100)
          await db
            .insertInto('servers')
            .values(copies.slice(at, at + 100))
            .execute();
        const origins = JSON.stringify(Array.from({ length: tools }, (_, n) => `https://h${n}.example.com`));
        const { workspace_id } = server;
        const rows = Array.from({ length: secrets }, (_, n) => ({
          server_id: `srv_full-${n % 10}`,
          workspace_id,
          name: `S${Math.floor(n / 10)}`,
          sealed_value: '',
          origins,
          created_by: 'test',
          updated_at: 1,
        }));
        for (let at = 0; at < rows.length; at += 100)
          await db
            .insertInto('secrets')
            .values(rows.slice(at, at + 100))
            .execute();
      } finally {
        await database.close();
      }
    }

    it('[find A4] reports on 1,000 servers of a workspace within the CPU budget', async () => {
      const ask = async (path: string): Promise<Json> => {
        const { status, text, body } = await priced.costsLittle(path, () => priced.rest('GET', path), 0.7);
        assert.equal(status, 200, text.slice(0, 300));
        return body;
      };
      const { tools: found } = await ask('/search?query=e+server&limit=200');
      assert.deepEqual(
        [...new Set((found as Json[]).map(({ tool }) => String(tool).length))],
        [2],
        'returns the tools with the shortest names',
      );
      const { servers: listed } = await ask('/servers');
      assert.equal((listed as Json[]).length, servers);
      const { servers: needing } = await ask('/needs');
      assert.deepEqual((needing as Json[])[0]?.missing_secrets, names);
    });
  });
}
