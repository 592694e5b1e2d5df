import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

describe('bounds of keys created with a key', () => {
  let toolhost: TestToolhost;
  let operator: string;
  before(async () => {
    toolhost = await startToolhost();
    operator = await toolhost.key();
  });
  after(() => toolhost.stop());

  type Made = { id: string; key: string; expires_at?: string; limits?: object };
  const ask = (key: string, body: object) =>
    toolhost.rest('POST', '/keys', { key, body: { name: 'any', scopes: ['manage', 'call'], ...body } });
  const make = async (key: string, body: object = {}): Promise<Made> => {
    const { status, text, body: made } = await ask(key, body);
    assert.equal(status, 201, text);
    return made as unknown as Made;
  };
  const setLimits = async (key: string, id: string, body: object) =>
    (await toolhost.rest('PATCH', `/keys/${id}/limits`, { key, body })).status;
  const works = async (key: string) => (await toolhost.rest('GET', '/servers', { key })).status === 200;

  it('[find F2] limit the expiry of a new key to the expiry of the key that created it', async () => {
    const parent = await make(operator, { expires_in: 3600 });
    const until = parent.expires_at;
    const child = await make(parent.key);
    assert.equal(child.expires_at, until);
    assert.equal((await make(child.key)).expires_at, until);
    assert.ok(Date.parse((await make(child.key, { expires_in: 60 })).expires_at ?? '') < Date.parse(until ?? ''));
    for (const longer of [{ expires_in: 7200 }, { expires_at: '2040-01-01T00:00:00Z' }]) {
      const { status, text } = await ask(child.key, longer);
      assert.equal(status, 400);
      assert.match(text, new RegExp(`after the expiry of the key that you use; allowed: until ${until}`));
    }
  });

  it('[find F2] give a new key at most the limits of the key that created it', async () => {
    const limits = { calls_per_day: 2, calls_per_second: 5 };
    const parent = await make(operator, limits);
    assert.deepEqual((await make(parent.key)).limits, limits);
    const child = await make(parent.key, { calls_per_day: 1, calls_per_minute: 9 });
    assert.deepEqual(child.limits, { calls_per_second: 5, calls_per_minute: 9, calls_per_day: 1 });
    for (const above of [{ calls_per_day: 2 }, { calls_per_second: 6 }, { calls_per_minute: 10 }]) {
      const { status, text } = await ask(child.key, above);
      assert.equal(status, 400, text);
      assert.match(text, /above the limit of the key that you use; allowed: at most \d/);
    }
  });

  it('[find F2] prevent a key from changing its own limits or raising those of others above its own', async () => {
    const parent = await make(operator, { calls_per_day: 10 });
    const child = await make(parent.key, { calls_per_day: 5 });
    for (const value of [1, 100, null])
      assert.equal(await setLimits(child.key, child.id, { calls_per_day: value }), 403);
    for (const { id } of [parent, await make(operator)]) {
      for (const value of [6, null]) assert.equal(await setLimits(child.key, id, { calls_per_day: value }), 400);
      assert.equal(await setLimits(child.key, id, { calls_per_day: 5, calls_per_second: 3 }), 200);
    }
    assert.equal(await setLimits(operator, child.id, { calls_per_day: null }), 200);
  });

  it('[find F2] apply lowered limits to all keys created with the key, directly or indirectly', async () => {
    const parent = await make(operator, { calls_per_day: 10, calls_per_minute: 5 });
    const child = await make(parent.key, { calls_per_day: 3 });
    const grandchild = await make(child.key, { calls_per_second: 9 });
    const other = await make(operator, { calls_per_day: 10 });
    assert.equal(await setLimits(operator, parent.id, { calls_per_day: 4, calls_per_minute: 2 }), 200);
    const { body } = await toolhost.rest('GET', '/keys?limit=100', { key: operator });
    const found = new Map((body.keys as unknown as Made[]).map(({ id, limits }) => [id, limits]));
    assert.deepEqual(
      [parent, child, grandchild, other].map(({ id }) => found.get(id)),
      [
        { calls_per_minute: 2, calls_per_day: 4 },
        { calls_per_minute: 2, calls_per_day: 3 },
        { calls_per_second: 9, calls_per_minute: 2, calls_per_day: 3 },
        { calls_per_day: 10 },
      ],
    );
  });

  it('limit the length of a chain of keys, each created with the previous one [find F2]', async () => {
    let key = operator;
    for (let length = 0; length < 20; length++) key = (await make(key)).key;
    const { status, text } = await ask(key, {});
    assert.deepEqual([status, /chain of 20 keys/.test(text)], [403, true], text);
  });

  it('[find F2] revoke all descendants together with a key', async () => {
    const parent = await make(operator);
    const child = await make(parent.key);
    const grandchild = await make(child.key);
    const other = await make(operator);
    const { status, body } = await toolhost.rest('DELETE', `/keys/${parent.id}`, { key: operator });
    assert.equal(status, 200);
    assert.equal(body.revoked, parent.id);
    assert.deepEqual(new Set(body.revoked_keys as string[]), new Set([child.id, grandchild.id]));
    assert.equal(body.revoked_key_count, 2);
    for (const { key } of [parent, child, grandchild]) assert.equal(await works(key), false);
    assert.equal(await works(other.key), true);
  });
});
