import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { ReadBackup } from '../../src/app/backups/backups.ts';
import { root } from '../files.ts';
import { serverAt, toolAt } from '../support/configs.ts';
import { backupRows } from '../support/store/backup-text.ts';
import { startPgBouncer } from '../support/store/pgbouncer.ts';
import { type BackupWorld, startBackupWorld } from '../support/toolhost/backup-world.ts';
import { runScript } from '../support/toolhost/run-script.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';

describe('backups that move a service', () => {
  let world: BackupWorld;
  before(async () => {
    world = await startBackupWorld(['sqlite', 'postgres']);
  });
  after(() => world?.end());

  it('[ship 3] holds every row, also after a move from SQLite to PostgreSQL and back', async () => {
    const env = await world.newDatabase('sqlite');
    const seed = await runScript(join(root, 'examples', 'seed', 'main.ts'), [], world.folder, { env });
    assert.equal(seed.code, 0, seed.stderr);
    const first = await world.backupOf(env);
    const second = await world.backupOf(await world.restored('postgres', first));
    const third = await world.backupOf(await world.restored('sqlite', second));
    const rows = backupRows(first);
    for (const table of ['servers', 'secrets', 'calls', 'grants', 'audit_events', 'captures']) {
      assert.ok((rows.get(table)?.length ?? 0) > 0, table);
    }
    assert.deepEqual(backupRows(second), rows);
    assert.deepEqual(backupRows(third), rows);
    const without = backupRows(await world.backupOf(env, '--without-records'));
    assert.deepEqual([...rows.keys()].filter((table) => !without.has(table)).toSorted(), [
      'call_counts',
      'calls',
      'captures',
    ]);
  });

  it('[ship 3] with a part of a millisecond, which SQLite stores, is restored whole', async () => {
    const env = await world.newDatabase('sqlite');
    const running = await world.serve(env);
    const row = { server_id: 's', hash: 'h', agreement: 'a', expires_at: Date.now() + 3_599_123.4 };
    await running.running.app.runner.db.insertInto('handed_out_tokens').values(row).execute();
    await world.stop(running);
    const again = await world.backupOf(await world.restored('postgres', await world.backupOf(env)));
    const kept = [row.server_id, row.hash, row.agreement, Math.floor(row.expires_at)];
    assert.deepEqual(backupRows(again).get('handed_out_tokens'), [JSON.stringify(kept)]);
  });

  it('[ship 3] is made and restored through PgBouncer in transaction mode', async () => {
    const [source, target] = [await world.newDatabase('postgres'), await world.newDatabase('postgres')];
    await world.stop(await world.serve(source));
    const poolers = [];
    try {
      for (const env of [source, target]) {
        const pooler = await startPgBouncer(env.DATABASE_URL ?? '', 2);
        poolers.push(pooler);
        env.DATABASE_URL = pooler.url;
      }
      const file = await world.backupOf(source);
      await world.restore(file, target);
      assert.deepEqual(backupRows(await world.backupOf(target)), backupRows(file));
    } finally {
      await Promise.all(poolers.map((pooler) => pooler.stop()));
    }
  });

  it('[ship 3] goes through a pipe, with its report beside it', async () => {
    const env = await world.newDatabase('sqlite');
    const running = await world.serve(env);
    await running.createServer(serverAt('piped', world.upstream.url, { tools: [toolAt(`${world.upstream.url}/x`)] }));
    await world.stop(running);
    const target = await world.newDatabase('sqlite');
    const command = `"$TOOLHOST" backup - | DATA_DIR="${target.DATA_DIR}" "$TOOLHOST" restore - --json`;
    const { code, stdout, stderr } = await toolhost(['-c', command], {
      program: '/bin/sh',
      env: { ...env, TOOLHOST: join(root, 'bin', 'toolhost') },
    });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^Wrote \d+ rows of \d+ tables/);
    assert.equal((JSON.parse(stdout) as ReadBackup).rows.servers, 1);
    assert.equal((await toolhost(['keys', 'list'], { env: target })).code, 0);
  });
});
