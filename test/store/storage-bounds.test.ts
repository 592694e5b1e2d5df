import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import type { Database } from '../../src/store/database.ts';
import { prunings } from '../../src/store/pruning/prunings.ts';
import { engines } from '../sets.ts';
import { type Stores, startStores } from '../support/store/stores.ts';

type Row = { tables: string[]; bound: string; by: string };

/** The rows of the table in ARCHITECTURE.md. */
function declared(): Row[] {
  const text = readFileSync(join(import.meta.dirname, '..', '..', 'ARCHITECTURE.md'), 'utf8');
  const section = text.split('\n## ').find((part) => part.startsWith('Every table is bounded')) ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => {
      const [names = '', bound = '', by = ''] = line.split('|').slice(1, -1);
      return { tables: [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name as string), bound: bound.trim(), by };
    });
}

for (const engine of engines) {
  describe(`the tables of ${engine}`, () => {
    let stores: Stores;
    let database: Database;
    before(async () => {
      stores = await startStores(engine);
      database = await stores.open();
    });
    after(() => stores?.stop());

    const tables = async () => {
      const names =
        engine === 'sqlite'
          ? sql<{ name: string }>`select name from sqlite_master where type = 'table' and name not like 'sqlite_%'`
          : sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`;
      return (await names.execute(database.db)).rows.map(({ name }) => name).toSorted();
    };

    it('[find A5] each have a bound, and those that upkeep prunes are declared', async () => {
      const rows = declared();
      assert.deepEqual(rows.flatMap((row) => row.tables).toSorted(), await tables());
      for (const { tables: names, bound } of rows) assert.ok(bound.length > 5, `${names} has no bound`);
      const pruned = rows.filter(({ by }) => /\bupkeep\b/.test(by)).flatMap((row) => row.tables);
      assert.deepEqual(prunings.flatMap((pruning) => pruning.tables).toSorted(), pruned.toSorted());
    });
  });
}
