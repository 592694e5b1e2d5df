import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { createWriteQueue } from '../../src/operations/quotas/write-queue.ts';
import { serverAt } from '../support/configs.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost as runToolhost } from '../support/toolhost/toolhost-command.ts';

const api = 'https://api.example.com';

describe('quotas that two replicas share', () => {
  let postgres: TestPostgres;
  let replicas: TestToolhost[];
  before(async () => {
    postgres = await startPostgres();
    const env = {
      DATABASE_URL: await postgres.createDatabase(),
      MASTER_KEY: randomBytes(32).toString('base64'),
      QUOTAS: 'servers=3,keys=5,secrets=2,writes=0',
    };
    replicas = await Promise.all([startToolhost({ env }), startToolhost({ env })]);
  });
  after(async () => {
    await Promise.all(replicas?.map((replica) => replica.stop()) ?? []);
    await postgres.stop();
  });

  it('[find A5] hold exactly, however many come through both at the same time', async () => {
    const [one, two] = replicas as [TestToolhost, TestToolhost];
    const key = await one.key({ workspace: 'shared' });
    const all = (make: (toolhost: TestToolhost, n: number) => Promise<{ status: number }>) =>
      Promise.all(Array.from({ length: 12 }, (_, n) => make(n % 2 === 0 ? one : two, n)));
    const made = (replies: { status: number }[]) => {
      for (const { status } of replies) assert.ok(status < 300 || status === 403, String(status));
      return replies.filter(({ status }) => status < 300).length;
    };
    const servers = await all((toolhost, n) =>
      toolhost.rest('POST', '/servers', { key, body: serverAt(`shared-${n}`, api) }),
    );
    assert.equal(made(servers), 3);
    const slug = ((await one.rest('GET', '/servers', { key })).body.servers as Json[])[0]?.slug;
    const secrets = await all((toolhost, n) =>
      toolhost.rest('PUT', `/servers/${slug}/secrets/S${n}`, { key, body: { value: 'x' } }),
    );
    assert.equal(made(secrets), 2);
    const keys = await all((toolhost) =>
      toolhost.rest('POST', '/keys', { key, body: { name: 'k', scopes: ['call'] } }),
    );
    assert.equal(made(keys), 4, 'one is there before');
  });
});

describe('changes of a workspace', () => {
  it('[find A5] are made one at a time, so that many of them take no connection from another workspace', async () => {
    const queue = createWriteQueue();
    const held = Promise.withResolvers<void>();
    const order: string[] = [];
    const first = queue.run('greedy', () => held.promise);
    const rest = Array.from({ length: 100 }, (_, n) => queue.run('greedy', async () => order.push(`${n}`)));
    await assert.rejects(() => queue.run('greedy', async () => undefined), /100 changes of the workspace wait already/);
    await queue.run('modest', async () => order.push('modest'));
    const failing = queue.run('other', () => Promise.reject(new Error('refused')));
    await assert.rejects(failing, /refused/);
    await queue.run('other', async () => order.push('after a refusal'));
    assert.deepEqual(order, ['modest', 'after a refusal']);
    held.resolve();
    await Promise.all([first, ...rest]);
    assert.deepEqual(
      order.slice(2),
      Array.from({ length: 100 }, (_, n) => `${n}`),
    );
  });
});

describe('toolhost quotas', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
  });
  after(() => toolhost?.stop());
  const quotas = (...args: string[]) =>
    runToolhost(['quotas', ...args], { env: { DATA_DIR: toolhost.dataDir, QUOTAS: 'keys=30' } });

  it('[find A5] shows, sets and resets the quotas of a workspace, which a running service applies at once', async () => {
    const set = await quotas('set', '--servers', '1', '--keys', '0', '--json');
    assert.equal(set.code, 0, set.stderr);
    const body = JSON.parse(set.stdout) as Record<string, Json>;
    assert.deepEqual(
      [body.servers, body.keys],
      [
        { limit: 1, from: 'set', used: 0 },
        { from: 'set', used: 1 },
      ],
    );
    const create = (slug: string) => toolhost.rest('POST', '/servers', { body: serverAt(slug, api) });
    assert.deepEqual([(await create('first')).status, (await create('second')).status], [201, 403]);
    const shown = await quotas('show');
    assert.match(shown.stdout, /^servers +1 +1 +set +hosted servers$/m);
    assert.match(shown.stdout, /^keys +none +1 +set /m);
    const reset = await quotas('reset');
    assert.match(reset.stdout, /^keys +30 +1 +default of the environment /m);
    assert.equal((await create('second')).status, 201);
  });

  it('[find A5] says what is allowed', async () => {
    const none = await quotas('set');
    assert.deepEqual([none.code, /give one or more of --servers, --slugs/.test(none.stderr)], [2, true], none.stderr);
    for (const wrong of ['-1', '1.5', 'many', '99999999']) {
      const { code, stderr } = await quotas('set', `--servers=${wrong}`);
      assert.equal(code, 2, stderr);
      assert.match(stderr, /allowed: a whole number from 0 \(no limit\) to 10000000/);
    }
  });
});
