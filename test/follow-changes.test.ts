import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { Kysely, PostgresDialect } from 'kysely';
import { recordChange } from '../src/store/changes.ts';
import type { Database } from '../src/store/database.ts';
import { type ChangeFollower, type FollowOptions, followChanges } from '../src/store/follow-changes.ts';
import type { Tables } from '../src/store/schema.ts';
import { eventually } from './support/eventually.ts';
import { engines, type Stores, startStores } from './support/stores.ts';

const staleMs = 60_000;
const minute = 60_000;

for (const engine of engines) {
  describe(`following changes on ${engine}`, () => {
    let stores: Stores;
    let database: Database;
    let now = 0;
    let seen: string[] = [];
    let follower: ChangeFollower;
    const options = (): FollowOptions => ({
      db: database.db,
      now: () => now,
      staleMs,
      onChanges: (changes) => seen.push(...changes.map((change) => change.ref)),
      onError: () => undefined,
    });
    const record = (ref: string, at = now) => recordChange(database.db, { id: `chg_${ref}`, at, kind: 'server', ref });
    before(async () => {
      stores = await startStores(engine);
    });
    after(() => stores.stop());
    beforeEach(async () => {
      database = await stores.open();
      now = 1_000_000;
      seen = [];
      follower = followChanges(options());
    });
    afterEach(() => follower.stop());

    it('reports each change once, also the ones that were committed late', async () => {
      await record('first');
      await follower.look();
      now += 5000;
      await record('late', now - 10_000);
      await record('ahead', now + 10_000);
      await follower.look();
      await follower.look();
      assert.deepEqual(seen.toSorted(), ['ahead', 'first', 'late']);
    });

    it('sees a change of another within a second without being asked', async () => {
      await record('theirs');
      const begun = performance.now();
      await eventually(() => assert.deepEqual(seen, ['theirs']));
      assert.ok(performance.now() - begun < 1500);
    });

    it('sees a change that was committed while a look was under way', async () => {
      const looks = [follower.look()];
      const recorded = record('meanwhile').then(() => follower.lookAfterCommit());
      await Promise.all([...looks, recorded]);
      assert.deepEqual(seen, ['meanwhile']);
    });

    it('reports everything that happened while it could not look', async () => {
      await follower.look();
      await record('long ago', now + minute);
      await record('lately', now + 3 * 60 * minute);
      now += 4 * 60 * minute;
      assert.equal(follower.isFresh(), false);
      await follower.look();
      assert.equal(follower.isFresh(), true);
      assert.deepEqual(seen, ['long ago', 'lately']);
    });

    it('forgets changes when every process has had a day to see them', async () => {
      await record('old');
      now += 25 * 60 * minute;
      await record('new');
      await follower.look();
      const left = await database.db.selectFrom('changes').select('ref').execute();
      assert.deepEqual(
        left.map((row) => row.ref),
        ['new'],
      );
    });
  });
}

describe('following changes of a database that does not answer', () => {
  it('does not trust what it knows for longer than it may, and a failure to look undoes no commit', async () => {
    let now = 0;
    const errors: unknown[] = [];
    const pool = { connect: () => Promise.reject(new Error('down')), end: async () => undefined, options: {} };
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
    const follower = followChanges({
      db,
      now: () => now,
      staleMs,
      onChanges: () => undefined,
      onError: (error) => errors.push(error),
    });
    await follower.lookAfterCommit();
    assert.equal(errors.length, 1);
    await assert.rejects(follower.look(), /down/);
    now = staleMs - 1;
    assert.equal(follower.isFresh(), true);
    now = staleMs;
    assert.equal(follower.isFresh(), false);
    await follower.stop();
  });

  it('does not pile up looks', async () => {
    const waiting: ((error: Error) => void)[] = [];
    const pool = {
      connect: () => new Promise<never>((_, reject) => waiting.push(reject)),
      end: async () => undefined,
      options: {},
    };
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
    const follower = followChanges({
      db,
      now: Date.now,
      staleMs,
      onChanges: () => undefined,
      onError: () => undefined,
    });
    const asked = Promise.allSettled(Array.from({ length: 50 }, () => follower.look()));
    for (let n = 0; n < 2; n += 1) {
      await eventually(() => assert.equal(waiting.length, n + 1));
      waiting[n]?.(new Error('down'));
    }
    assert.ok((await asked).every(({ status }) => status === 'rejected'));
    assert.equal(waiting.length, 2);
    await follower.stop();
  });
});
