import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { sql } from 'kysely';
import type { Database } from '../../apps/server/src/store/database.ts';
import { engines } from '../sets.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const minuteMs = 60_000;

/** Records each update of a key in the table `key_updates`. */
async function recordKeyUpdates({ db, engine }: Database): Promise<void> {
  const insertUpdate = 'insert into key_updates (id) values (new.id);';
  const statements =
    engine === 'sqlite'
      ? [`create trigger record_update after update on api_keys begin ${insertUpdate} end`]
      : [
          `create function record_update() returns trigger language plpgsql as $$ begin ${insertUpdate} return new; end $$`,
          'create trigger record_update after update on api_keys for each row execute function record_update()',
        ];
  for (const statement of ['create table key_updates (id text not null)', ...statements])
    await sql.raw(statement).execute(db);
}

for (const engine of engines)
  describe(`the last use of an API key on ${engine}`, async () => {
    const world = await startToolhostOnEngine(engine);
    after(() => world.stop());
    const database = await world.database();
    await recordKeyUpdates(database);
    const key = await world.toolhost.createKey();

    /** Uses the key, writes its use, and returns its record. The list flushes all pending writes. */
    const useKey = async (): Promise<Json> => {
      assert.equal((await world.toolhost.rpc('manage', key, 'ping')).status, 200);
      const { body } = await world.toolhost.rest('GET', '/keys', { key });
      const found = (body.keys as Json[]).find(({ id }) => key.includes(String(id).slice('key_'.length)));
      assert.ok(found);
      return found;
    };
    const countUpdates = async (id: unknown): Promise<number> => {
      const { rows } = await sql<{ id: string }>`select id from key_updates where id = ${id}`.execute(database.db);
      return rows.length;
    };

    it('is written at most once per minute, and again in a later minute', async () => {
      const startedAt = world.now();
      for (let n = 0; n < 20; n += 1) await useKey();
      await world.advanceTime(minuteMs - 1);
      const { id, last_used_at } = await useKey();
      assert.equal(Date.parse(String(last_used_at)), startedAt);
      assert.equal(await countUpdates(id), 1);
      await world.advanceTime(1);
      for (let n = 0; n < 20; n += 1) await useKey();
      assert.equal(Date.parse(String((await useKey()).last_used_at)), startedAt + minuteMs);
      assert.equal(await countUpdates(id), 2);
    });
  });
