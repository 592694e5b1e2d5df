import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { engines } from '../../../../../test/sets.ts';
import { startStores } from '../../../../../test/support/store/stores.ts';
import { useStores } from '../../../../../test/support/store/use-stores.ts';
import type { Database } from '../database.ts';
import {
  type ChangeFollower,
  changesRetentionMs,
  type FollowOptions,
  followChanges,
  nextPosition,
  pruneChanges,
  recordChange,
} from './follow-changes.ts';

const staleMs = 60_000;
const minute = 60_000;

/** Returns the time of one process, by its own clock on both engines. */
function createTime(now: () => number): FollowOptions['time'] {
  return { now, applyReading: () => undefined };
}

for (const engine of engines)
  describe(`the change follower on ${engine}`, () => {
    const stores = useStores(engine);
    let database: Database;
    let now = 0;
    let reportedRefs: string[] = [];
    let gapCount = 0;
    let follower: ChangeFollower;
    const options = (): FollowOptions => ({
      db: database.db,
      clock: () => now,
      time: createTime(() => now),
      staleMs,
      onChanges: (changes) => reportedRefs.push(...changes.map((change) => change.ref)),
      onGap: () => {
        gapCount += 1;
      },
      onError: () => undefined,
      onSuccess: () => undefined,
    });
    const insertChange = (ref: string, at = now) =>
      recordChange(database.db, { random: randomBytes, now: () => at }, 'server', ref);

    beforeEach(async () => {
      database = await stores.open();
      now = 1_000_000;
      reportedRefs = [];
      gapCount = 0;
      follower = followChanges(options());
      await follower.poll();
      assert.equal(gapCount, 1, 'the first poll cannot know about earlier changes');
    });
    afterEach(() => follower.stop());

    it('[find B1] reports each change once, regardless of the clock of its writer', async () => {
      await insertChange('first');
      await follower.poll();
      await insertChange('behind', now - 60 * minute);
      await insertChange('ahead', now + 60 * minute);
      await insertChange('in another century', 1);
      await follower.poll();
      await follower.poll();
      assert.deepEqual(reportedRefs.toSorted(), ['ahead', 'behind', 'first', 'in another century']);
      assert.equal(gapCount, 1);
    });

    it('reports a change that was committed during a poll', async () => {
      const polls = [follower.poll()];
      const recorded = insertChange('meanwhile').then(() => follower.pollAfterCommit());
      await Promise.all([...polls, recorded]);
      assert.deepEqual(reportedRefs, ['meanwhile']);
    });

    it('reports all changes from a period when it could not poll', async () => {
      await insertChange('long ago', now + minute);
      await insertChange('lately', now + 3 * 60 * minute);
      now += 4 * 60 * minute;
      assert.equal(follower.isFresh(), false);
      await follower.poll();
      assert.equal(follower.isFresh(), true);
      assert.deepEqual(reportedRefs, ['long ago', 'lately']);
    });

    it('reports possibly missed changes after half a day without a poll', async () => {
      await insertChange('pruned by others');
      now += 13 * 60 * minute;
      await follower.poll();
      assert.equal(gapCount, 2);
    });

    it('continues the positions after changes are deleted when they are a day old', async () => {
      for (const ref of ['old', 'older', 'oldest']) await insertChange(ref);
      const rows = () => database.db.selectFrom('changes').select(['ref', 'position']).execute();
      const last = Math.max(...(await rows()).map((row) => row.position ?? 0));
      now += 25 * 60 * minute;
      await pruneChanges(database.db, now - changesRetentionMs);
      await follower.poll();
      for (const { position } of await rows()) assert.equal(position, last);
      reportedRefs = [];
      await insertChange('new');
      await follower.poll();
      assert.deepEqual(reportedRefs, ['new']);
    });

    it('reports a very large number of changes as a reset, and then continues as before', async () => {
      const position = nextPosition(database.db);
      const change = (n: number) => ({ id: `chg_${n}`, at: now, kind: 'key' as const, ref: `${n}`, position });
      const changes = Array.from({ length: 2500 }, (_, n) => change(n));
      await database.db.insertInto('changes').values(changes).execute();
      await follower.poll();
      assert.deepEqual([reportedRefs, gapCount], [[], 2]);
      await insertChange('after');
      await follower.poll();
      assert.deepEqual([reportedRefs, gapCount], [['after'], 2]);
    });
  });

describe('the change follower without a responding database', () => {
  const time = createTime(Date.now);

  it('trusts cached values for a limited time, and undoes no commit after a failed poll', async () => {
    const stores = await startStores('sqlite');
    const { db } = await stores.open();
    let now = 0;
    const errors: unknown[] = [];
    const ignoredCallbacks = { onChanges: () => undefined, onGap: () => undefined };
    const follower = followChanges({
      db,
      clock: () => now,
      time,
      staleMs,
      ...ignoredCallbacks,
      onError: (error) => errors.push(error),
      onSuccess: () => undefined,
    });
    assert.equal(follower.isFresh(), false, 'it has not polled yet');
    await follower.poll();
    await stores.stop();
    await follower.pollAfterCommit();
    assert.equal(errors.length, 1);
    await assert.rejects(follower.poll());
    now = staleMs - 1;
    assert.equal(follower.isFresh(), true);
    now = staleMs;
    assert.equal(follower.isFresh(), false);
    await follower.stop();
  });
});
