import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { startToolhost } from '../support/toolhost/toolhost.ts';

describe('bounds of keys created with a key', async () => {
  const toolhost = await startToolhost();
  const operator = await toolhost.createKey();
  after(() => toolhost.stop());

  type CreatedKey = { id: string; key: string; expires_at?: string; limits?: object };
  const requestKey = (key: string, body: object) =>
    toolhost.rest('POST', '/keys', { key, body: { name: 'any', scopes: ['manage', 'call'], ...body } });
  const createKey = async (key: string, body: object = {}): Promise<CreatedKey> => {
    const { status, text, body: created } = await requestKey(key, body);
    assert.equal(status, 201, text);
    return created as unknown as CreatedKey;
  };
  const setLimits = async (key: string, id: string, body: object) =>
    (await toolhost.rest('PATCH', `/keys/${id}/limits`, { key, body })).status;
  const isAccepted = async (key: string) => (await toolhost.rest('GET', '/servers', { key })).status === 200;

  it('[find F2] limit the expiry of a new key to the expiry of the key that created it', async () => {
    const parent = await createKey(operator, { expires_in: 3600 });
    const until = parent.expires_at;
    const child = await createKey(parent.key);
    assert.equal(child.expires_at, until);
    assert.equal((await createKey(child.key)).expires_at, until);
    assert.ok(Date.parse((await createKey(child.key, { expires_in: 60 })).expires_at ?? '') < Date.parse(until ?? ''));
    for (const longer of [{ expires_in: 7200 }, { expires_at: '2040-01-01T00:00:00Z' }]) {
      const { status, text } = await requestKey(child.key, longer);
      assert.match(
        `${status} ${text}`,
        new RegExp(`^400 .*after the expiry of the key that you use; allowed: until ${until}`),
      );
    }
  });

  it('[find F2] give a new key at most the limits of the key that created it', async () => {
    const limits = { calls_per_day: 2, calls_per_second: 5 };
    const parent = await createKey(operator, limits);
    assert.deepEqual((await createKey(parent.key)).limits, limits);
    const child = await createKey(parent.key, { calls_per_day: 1, calls_per_minute: 9 });
    assert.deepEqual(child.limits, { calls_per_second: 5, calls_per_minute: 9, calls_per_day: 1 });
    for (const above of [{ calls_per_day: 2 }, { calls_per_second: 6 }, { calls_per_minute: 10 }]) {
      const { status, text } = await requestKey(child.key, above);
      assert.match(`${status} ${text}`, /^400 .*above the limit of the key that you use; allowed: at most \d/);
    }
  });

  it('[find F2] prevent a key from changing its own limits or raising those of others above its own', async () => {
    const parent = await createKey(operator, { calls_per_day: 10 });
    const child = await createKey(parent.key, { calls_per_day: 5 });
    for (const value of [1, 100, null])
      assert.equal(await setLimits(child.key, child.id, { calls_per_day: value }), 403);
    for (const { id } of [parent, await createKey(operator)]) {
      for (const value of [6, null]) assert.equal(await setLimits(child.key, id, { calls_per_day: value }), 400);
      assert.equal(await setLimits(child.key, id, { calls_per_day: 5, calls_per_second: 3 }), 200);
    }
    assert.equal(await setLimits(operator, child.id, { calls_per_day: null }), 200);
  });

  it('[find F2] apply lowered limits to all keys created with the key, directly or indirectly', async () => {
    const parent = await createKey(operator, { calls_per_day: 10, calls_per_minute: 5 });
    const child = await createKey(parent.key, { calls_per_day: 3 });
    const grandchild = await createKey(child.key, { calls_per_second: 9 });
    const other = await createKey(operator, { calls_per_day: 10 });
    assert.equal(await setLimits(operator, parent.id, { calls_per_day: 4, calls_per_minute: 2 }), 200);
    const { body } = await toolhost.rest('GET', '/keys?limit=100', { key: operator });
    const getLimits = ({ id }: CreatedKey) =>
      (body.keys as unknown as CreatedKey[]).find((listed) => listed.id === id)?.limits;
    assert.deepEqual(getLimits(parent), { calls_per_minute: 2, calls_per_day: 4 });
    assert.deepEqual(getLimits(child), { calls_per_minute: 2, calls_per_day: 3 });
    assert.deepEqual(getLimits(grandchild), { calls_per_second: 9, calls_per_minute: 2, calls_per_day: 3 });
    assert.deepEqual(getLimits(other), { calls_per_day: 10 });
  });

  it('limit the length of a chain of keys, each created with the previous one [find F2]', async () => {
    let key = operator;
    for (let length = 0; length < 20; length++) key = (await createKey(key)).key;
    const { status, text } = await requestKey(key, {});
    assert.deepEqual([status, /chain of 20 keys/.test(text)], [403, true], text);
  });

  it('[find F2] revoke all descendants together with a key', async () => {
    const parent = await createKey(operator);
    const child = await createKey(parent.key);
    const grandchild = await createKey(child.key);
    const other = await createKey(operator);
    const { status, body } = await toolhost.rest('DELETE', `/keys/${parent.id}`, { key: operator });
    assert.deepEqual([status, body.revoked, body.revoked_key_count], [200, parent.id, 2]);
    assert.deepEqual(new Set(body.revoked_keys as string[]), new Set([child.id, grandchild.id]));
    for (const { key } of [parent, child, grandchild]) assert.equal(await isAccepted(key), false);
    assert.equal(await isAccepted(other.key), true);
  });
});
