import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { usePostgres } from '../support/store/use-postgres.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const apiUrl = 'https://api.example.com';

describe('quotas that two replicas share', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const startReplica = () => startToolhost({ env: { ...database.env, QUOTAS: 'servers=3,keys=5,secrets=2,writes=0' } });
  const [one, two] = [fixtures.start(startReplica), fixtures.start(startReplica)];

  it('[find A5] are exact, however many concurrent requests both replicas receive', async () => {
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
