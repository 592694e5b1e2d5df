import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

/**
 * Timeout for a change to reach the other replica. Two seconds are promised, and a busy database takes longer. An
 * undetected change would be trusted for a minute.
 */
const propagationTimeoutMs = 10_000;

describe('two replicas on one PostgreSQL database', () => {
  const fixtures = useFixtures();
  const { database } = usePostgres(fixtures);
  const upstream = fixtures.start(startRecordingUpstream);
  const startReplica = () => startToolhost({ egressPorts: [upstream.port], env: database.env });
  const first = fixtures.start(startReplica);
  const second = fixtures.start(startReplica);

  const getResultText = async (toolhost: TestToolhost, slug: string, token: string) =>
    (await toolhost.callTool(slug, token, 'get')).content[0]?.text ?? '';
  const stored = { authentication: { type: 'Bearer', token: '{{KEY}}' } };

  it('return the remainder of a result that the other replica has truncated [agent 3]', async () => {
    const rows = Array.from({ length: 300 }, (_, n) => `row ${n}`);
    upstream.on('GET /rows', () => ({ body: rows }));
    const config = { authentication: { type: 'Bearer' }, max_response_tokens: 200 };
    await first.createServer({
      ...buildServerAt('cut', upstream.url, config),
      tools: [buildToolAt(`${upstream.url}/rows`)],
    });
    const callAndGetTexts = async (toolhost: TestToolhost, name: string, args: Json) =>
      (await toolhost.callTool('cut', 'of-the-caller', name, args)).content.map((block) => block.text ?? '');
    let [items = '', note = ''] = await callAndGetTexts(first, 'get', {});
    const read: unknown[] = JSON.parse(items);
    for (let cursor = /cursor "(.+?)"/.exec(note)?.[1]; cursor; cursor = /cursor "(.+?)"/.exec(note)?.[1]) {
      [items = '', note = ''] = await callAndGetTexts(second, 'read_more', { cursor });
      read.push(...JSON.parse(items));
    }
    assert.deepEqual(read, rows);
  });

  it('return a large file stored by the other replica, and send it when it is passed by URL [agent 4]', async () => {
    const bytes = randomBytes(700_000).fill(0, 0, 1);
    upstream.on('GET /file', () => ({ headers: { 'content-type': 'application/pdf' }, body: bytes }));
    upstream.on('POST /file', () => ({ body: { taken: true } }));
    await first.createServer({ ...buildServerAt('filed', upstream.url), tools: [buildToolAt(`${upstream.url}/file`)] });
    const send = { ...buildToolAt(`${upstream.url}/file`), method: 'POST', body: 'file' };
    const tools = [{ ...send, input_schema: { file: { type: 'string', content: 'base64' } } }];
    await first.createServer({ ...buildServerAt('sent', upstream.url), tools });
    const [, path = ''] = /(\/files\/\w+)/.exec(await getResultText(first, 'filed', 'some-token')) ?? [];
    const reply = await fetch(second.url + path);
    assert.ok(bytes.equals(Buffer.from(await reply.arrayBuffer())));
    upstream.take();
    const sent = await second.callTool('sent', 'some-token', 'get', { file: second.url + path });
    assert.notEqual(sent.isError, true, JSON.stringify(sent));
    assert.ok(upstream.take()[0]?.body.equals(bytes));
  });

  const eventuallyAtSecond = (check: () => Promise<void>) => eventually(check, propagationTimeoutMs);

  it('serve each change of a server at the other replica within two seconds, also if it was unknown before', async () => {
    const pingSecond = async () => (await second.rpc('changing', 'some-token', 'ping')).status;
    assert.equal(await pingSecond(), 404);
    await first.createServer(buildServerAt('changing', upstream.url));
    await eventuallyAtSecond(async () => assert.equal(await pingSecond(), 200));
    await first.rest('PATCH', '/servers/changing', { body: stored });
    await second.rest('PUT', '/servers/changing/secrets/KEY', { body: { value: 'first' } });
    const key = await first.createKey();
    for (const toolhost of [first, second])
      await eventually(async () => assert.match(await getResultText(toolhost, 'changing', key), /"Bearer first"/));
    await first.rest('PUT', '/servers/changing/secrets/KEY', { body: { value: 'second' } });
    assert.match(await getResultText(first, 'changing', key), /"Bearer second"/);
    await eventuallyAtSecond(async () => assert.match(await getResultText(second, 'changing', key), /"Bearer second"/));
    await first.rest('PATCH', '/servers/changing', { body: { tools: [buildToolAt(`${upstream.url}/moved`)] } });
    await eventuallyAtSecond(async () => assert.match(await getResultText(second, 'changing', key), /"\/moved"/));
    await first.rest('DELETE', '/servers/changing');
    assert.equal((await first.rpc('changing', key, 'ping')).status, 404);
    await eventuallyAtSecond(async () => assert.equal(await pingSecond(), 404));
  });

  it('[sec E2] assign a slug once if both receive requests for it concurrently', async () => {
    for (let round = 0; round < 3; round += 1) {
      const requests = [first, second, first, second].map((toolhost) =>
        toolhost.rest('POST', '/servers', { body: buildServerAt(`raced-${round}`, upstream.url) }),
      );
      const replies = await Promise.all(requests);
      assert.deepEqual(replies.map((reply) => reply.status).toSorted(), [201, 409, 409, 409]);
      const refused = replies.find((reply) => reply.status === 409);
      assert.match(refused?.text ?? '', /is taken|is used by/);
    }
  });

  it('keep or refuse each of several concurrent changes', async () => {
    await first.createServer(buildServerAt('edited', upstream.url));
    const requests = [first, second, first, second].map((toolhost, n) =>
      toolhost.rest('PATCH', '/servers/edited', { body: { description: `Change ${n}` } }),
    );
    const replies = await Promise.all(requests);
    const storedCount = replies.filter((reply) => reply.status === 200).length;
    assert.ok(storedCount >= 1);
    assert.equal(replies.filter((reply) => reply.status === 409).length, replies.length - storedCount);
    const { body } = await second.rest('GET', '/servers/edited');
    assert.equal((body.server as Json).version, 1 + storedCount);
    const { versions } = (await first.rest('GET', '/servers/edited/versions')).body as { versions: Json[] };
    assert.equal(versions.length, 1 + storedCount);
  });

  it('refuse text that PostgreSQL cannot store as invalid input', async () => {
    const nul = '\u0000';
    const requests: [string, string, Json?][] = [
      ['GET', `/servers/${encodeURIComponent(nul)}`],
      ['GET', `/calls?slug=a${encodeURIComponent(nul)}`],
      ['GET', `/calls?key_id=${encodeURIComponent(nul)}`],
      ['GET', `/calls?cursor=${Buffer.from(`1.${nul}`).toString('base64url')}`],
      ['DELETE', `/keys/key_${encodeURIComponent(nul)}`],
      ['PATCH', `/servers/${encodeURIComponent(`x${nul}`)}`, { name: 'x' }],
      ['POST', '/keys', { name: `a${nul}b`, scopes: ['call'] }],
      ['POST', '/servers', buildServerAt('with-nul', upstream.url, { description: `a${nul}b` })],
      ['POST', '/servers', buildServerAt(`with${nul}nul`, upstream.url)],
      ['POST', `/servers/edited/tools/${encodeURIComponent(nul)}/call`, {}],
    ];
    for (const [method, path, body] of requests) {
      const reply = await first.rest(method, path, body && { body });
      assert.ok([400, 404].includes(reply.status), `${method} ${path}: ${reply.status} ${reply.text}`);
    }
    const managed = await first.callTool('manage', await first.createKey(), 'getMcpServer', { slug: nul });
    assert.equal(managed.isError, true);
    assert.equal((await first.rpc('%00', 'some-token', 'ping')).status, 404);
  });
});
