import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

const apiUrl = 'https://api.example.com';

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

  it('[find A5] are exact, however many concurrent requests both replicas receive', async () => {
    const [one, two] = replicas as [TestToolhost, TestToolhost];
    const key = await one.createKey({ workspace: 'shared' });
    const sendToBoth = (send: (toolhost: TestToolhost, n: number) => Promise<{ status: number }>) =>
      Promise.all(Array.from({ length: 12 }, (_, n) => send(n % 2 === 0 ? one : two, n)));
    const countCreated = (replies: { status: number }[]) => {
      for (const { status } of replies) assert.ok(status < 300 || status === 403, String(status));
      return replies.filter(({ status }) => status < 300).length;
    };
    const servers = await sendToBoth((toolhost, n) =>
      toolhost.rest('POST', '/servers', { key, body: buildServerAt(`shared-${n}`, apiUrl) }),
    );
    assert.equal(countCreated(servers), 3);
    const slug = ((await one.rest('GET', '/servers', { key })).body.servers as Json[])[0]?.slug;
    const secrets = await sendToBoth((toolhost, n) =>
      toolhost.rest('PUT', `/servers/${slug}/secrets/S${n}`, { key, body: { value: 'x' } }),
    );
    assert.equal(countCreated(secrets), 2);
    const keys = await sendToBoth((toolhost) =>
      toolhost.rest('POST', '/keys', { key, body: { name: 'k', scopes: ['call'] } }),
    );
    assert.equal(countCreated(keys), 4, 'one key exists before');
  });
});
