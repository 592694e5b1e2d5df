import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { serverAt, toolAt } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/store/postgres.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

/**
 * Timeout for a change to reach the other replica. Two seconds are promised, and a busy database takes longer. An
 * undetected change would be trusted for a minute.
 */
const soonMs = 10_000;

describe('two replicas on one PostgreSQL database', () => {
  let postgres: TestPostgres;
  let upstream: RecordingUpstream;
  let one: TestToolhost;
  let two: TestToolhost;
  before(async () => {
    [postgres, upstream] = await Promise.all([startPostgres(), startRecordingUpstream()]);
    const env = { DATABASE_URL: await postgres.createDatabase(), MASTER_KEY: randomBytes(32).toString('base64') };
    [one, two] = await Promise.all([
      startToolhost({ egress: [upstream.port], env }),
      startToolhost({ egress: [upstream.port], env }),
    ]);
  });
  after(async () => {
    await Promise.all([one?.stop(), two?.stop(), upstream.close()]);
    await postgres.stop();
  });

  const text = async (toolhost: TestToolhost, slug: string, token: string) =>
    (await toolhost.callTool(slug, token, 'get')).content[0]?.text ?? '';
  const stored = { authentication: { type: 'Bearer', token: '{{KEY}}' } };

  it('serve changes made at the other replica', async () => {
    await one.createServer(serverAt('shared', upstream.url, stored));
    await two.rest('PUT', '/servers/shared/secrets/KEY', { body: { value: 'from-two' } });
    const key = await one.key();
    for (const toolhost of [one, two]) assert.match(await text(toolhost, 'shared', key), /"Bearer from-two"/);
  });

  it('return the remainder of a result that the other replica has truncated [agent 3]', async () => {
    const rows = Array.from({ length: 300 }, (_, n) => `row ${n}`);
    upstream.on('GET /rows', () => ({ body: rows }));
    const config = { authentication: { type: 'Bearer' }, max_answer_tokens: 200 };
    await one.createServer({ ...serverAt('cut', upstream.url, config), tools: [toolAt(`${upstream.url}/rows`)] });
    const textsOf = async (toolhost: TestToolhost, name: string, args: Json) =>
      (await toolhost.callTool('cut', 'of-the-caller', name, args)).content.map((block) => block.text ?? '');
    let [items = '', note = ''] = await textsOf(one, 'get', {});
    const read: unknown[] = JSON.parse(items);
    for (let cursor = /cursor "(.+?)"/.exec(note)?.[1]; cursor; cursor = /cursor "(.+?)"/.exec(note)?.[1]) {
      [items = '', note = ''] = await textsOf(two, 'read_more', { cursor });
      read.push(...JSON.parse(items));
    }
    assert.deepEqual(read, rows);
  });

  it('return a large file stored by the other replica, and send it when it is passed by URL [agent 4]', async () => {
    const bytes = randomBytes(700_000).fill(0, 0, 1);
    upstream.on('GET /file', () => ({ headers: { 'content-type': 'application/pdf' }, body: bytes }));
    upstream.on('POST /file', () => ({ body: { taken: true } }));
    await one.createServer({ ...serverAt('filed', upstream.url), tools: [toolAt(`${upstream.url}/file`)] });
    const send = { ...toolAt(`${upstream.url}/file`), method: 'POST', body: 'file' };
    const tools = [{ ...send, input_schema: { file: { type: 'string', content: 'base64' } } }];
    await one.createServer({ ...serverAt('sent', upstream.url), tools });
    const [, path = ''] = /(\/files\/\w+)/.exec(await text(one, 'filed', 'some-token')) ?? [];
    const reply = await fetch(two.url + path);
    assert.ok(bytes.equals(Buffer.from(await reply.arrayBuffer())));
    upstream.take();
    const sent = await two.callTool('sent', 'some-token', 'get', { file: two.url + path });
    assert.notEqual(sent.isError, true, JSON.stringify(sent));
    assert.ok(upstream.take()[0]?.body.equals(bytes));
  });

  it('serve a changed server, a changed secret, and a deleted server within two seconds', async () => {
    await one.createServer(serverAt('changing', upstream.url, stored));
    await one.rest('PUT', '/servers/changing/secrets/KEY', { body: { value: 'first' } });
    const key = await one.key();
    assert.match(await text(two, 'changing', key), /"Bearer first"/);
    await one.rest('PUT', '/servers/changing/secrets/KEY', { body: { value: 'second' } });
    assert.match(await text(one, 'changing', key), /"Bearer second"/);
    await eventually(async () => assert.match(await text(two, 'changing', key), /"Bearer second"/), soonMs);
    await one.rest('PATCH', '/servers/changing', { body: { tools: [toolAt(`${upstream.url}/moved`)] } });
    await eventually(async () => assert.match(await text(two, 'changing', key), /"\/moved"/), soonMs);
    await one.rest('DELETE', '/servers/changing');
    assert.equal((await one.rpc('changing', key, 'ping')).status, 404);
    await eventually(async () => assert.equal((await two.rpc('changing', key, 'ping')).status, 404), soonMs);
  });

  it('serve a new server within two seconds, even if it was requested before', async () => {
    assert.equal((await two.rpc('newcomer', 'some-token', 'ping')).status, 404);
    await one.createServer(serverAt('newcomer', upstream.url));
    await eventually(async () => assert.equal((await two.rpc('newcomer', 'some-token', 'ping')).status, 200), soonMs);
  });

  it('[sec E2] assign a slug once if both receive requests for it concurrently', async () => {
    for (let round = 0; round < 3; round += 1) {
      const asked = [one, two, one, two].map((toolhost) =>
        toolhost.rest('POST', '/servers', { body: serverAt(`raced-${round}`, upstream.url) }),
      );
      const replies = await Promise.all(asked);
      assert.deepEqual(replies.map((reply) => reply.status).toSorted(), [201, 409, 409, 409]);
      const refused = replies.find((reply) => reply.status === 409);
      assert.match(refused?.text ?? '', /is taken/);
    }
  });

  it('keep or refuse each of several concurrent changes', async () => {
    await one.createServer(serverAt('edited', upstream.url));
    const asked = [one, two, one, two].map((toolhost, n) =>
      toolhost.rest('PATCH', '/servers/edited', { body: { description: `Change ${n}` } }),
    );
    const replies = await Promise.all(asked);
    const kept = replies.filter((reply) => reply.status === 200).length;
    assert.ok(kept >= 1);
    assert.equal(replies.filter((reply) => reply.status === 409).length, replies.length - kept);
    const { body } = await two.rest('GET', '/servers/edited');
    assert.equal((body.server as Json).version, 1 + kept);
    assert.equal(((await one.rest('GET', '/servers/edited/versions')).body.versions as Json[]).length, 1 + kept);
  });

  it('refuse text that PostgreSQL cannot store as invalid input', async () => {
    const nul = '\u0000';
    const asked: [string, string, Json?][] = [
      ['GET', `/servers/${encodeURIComponent(nul)}`],
      ['GET', `/calls?slug=a${encodeURIComponent(nul)}`],
      ['GET', `/calls?key_id=${encodeURIComponent(nul)}`],
      ['GET', `/calls?cursor=${Buffer.from(`1.${nul}`).toString('base64url')}`],
      ['DELETE', `/keys/key_${encodeURIComponent(nul)}`],
      ['PATCH', `/servers/${encodeURIComponent(`x${nul}`)}`, { name: 'x' }],
      ['POST', '/keys', { name: `a${nul}b`, scopes: ['call'] }],
      ['POST', '/servers', serverAt('with-nul', upstream.url, { description: `a${nul}b` })],
      ['POST', '/servers', serverAt(`with${nul}nul`, upstream.url)],
      ['POST', `/servers/shared/tools/${encodeURIComponent(nul)}/call`, {}],
    ];
    for (const [method, path, body] of asked) {
      const reply = await one.rest(method, path, body && { body });
      assert.ok([400, 404].includes(reply.status), `${method} ${path}: ${reply.status} ${reply.text}`);
    }
    const managed = await one.callTool('manage', await one.key(), 'getMcpServer', { slug: nul });
    assert.equal(managed.isError, true);
    assert.equal((await one.rpc('%00', 'some-token', 'ping')).status, 404);
  });
});
