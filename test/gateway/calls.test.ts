import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import type { Outcome } from '@toolhost/errors/errors';
import { listCalls, setSecret } from '../support/server-requests.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startAdversarialUpstream } from '../support/upstreams/adversarial-upstream.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

const text = { type: 'string', optional: true };

describe('the record of a call', () => {
  const upstream = useFixture(startRecordingUpstream);
  const adversarialUpstream = useFixture(startAdversarialUpstream);
  const toolhost = useFixture(async () => {
    closedPort = await findFreePort();
    return startToolhost({
      egressPorts: [upstream.port, adversarialUpstream.port, closedPort],
      runtimeOptions: { resolve: (_, callback) => callback(null, [{ address: '10.0.0.1', family: 4 }]) },
    });
  });
  let [closedPort, key, keyId] = [0, '', ''];
  before(async () => {
    key = await toolhost.createKey();
    keyId = `key_${key.split('_')[1]}`;
    const fine = `${upstream.url}/fine`;
    const adversarial = adversarialUpstream.url;
    const targets: [name: string, url: string, overrides?: Json][] = [
      ['ok', fine],
      ['post', fine, { method: 'POST', headers: { 'X-Api-Key': '{{KEY}}' } }],
      ['secret_missing', fine, { headers: { 'X-Other': '{{MISSING}}' } }],
      ['transform', fine, { response_transform: 'no.such.path' }],
      ['upstream_status', `${adversarial}/status/404`],
      ['redirect', `${adversarial}/redirect/302?to=x`],
      ['timeout', `${adversarial}/silence`, { timeout_ms: 50 }],
      ['oversize', `${adversarial}/endless`, { response_limit_bytes: 1000 }],
      ['malformed', `${adversarial}/bad-gzip`],
      ['unreachable', `http://127.0.0.1:${closedPort}/`],
      ['blocked', 'https://name.example/'],
    ];
    const tools = targets.map(([name, url, overrides]) =>
      buildToolAt(url, { name, input_schema: { q: text }, ...overrides }),
    );
    await toolhost.createServer(buildServerAt('recorded', upstream.url, { tools }));
    await setSecret(toolhost, 'recorded', 'KEY', 'canary-secret');
  });

  const records = (query = '') => listCalls(toolhost, 'recorded', query && `?${query.slice(1)}`);

  it('contains the time, target, caller, outcome, duration, and size', async () => {
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'post', arguments: { q: 'ö' } } };
    const startedAt = Date.now();
    const reply = await toolhost.post('recorded', message, { token: key });
    const [record = {}] = await records();
    const { id, at, duration_ms, upstream_ms, bytes_out, estimated_tokens, ...rest } = record;
    assert.deepEqual(rest, {
      server: 'recorded',
      tool: 'post',
      outcome: 'ok',
      caller_kind: 'api_key',
      key_id: keyId,
      upstream_host: `127.0.0.1:${upstream.port}`,
      upstream_status: 200,
      bytes_in: Buffer.byteLength(JSON.stringify(message)),
      request_id: reply.headers.get('x-request-id'),
    });
    assert.match(String(id), /^call_/);
    assert.ok(Date.parse(String(at)) >= startedAt && Date.parse(String(at)) <= Date.now());
    assert.ok(Number(upstream_ms) >= 0 && Number(duration_ms) + 1 >= Number(upstream_ms));
    assert.ok(Number(bytes_out) > 0 && Number(estimated_tokens) > 0);
  });

  const outcomes: Outcome[] = [
    ...(['ok', 'secret_missing', 'transform', 'upstream_status', 'redirect'] as const),
    ...(['timeout', 'oversize', 'malformed', 'unreachable', 'blocked'] as const),
  ];
  for (const outcome of outcomes) {
    it(`has the outcome ${outcome}`, async () => {
      const result = await toolhost.callTool('recorded', key, outcome);
      assert.equal(result.isError === true, outcome !== 'ok', JSON.stringify(result.content));
      const [record] = await records();
      assert.deepEqual([record?.tool, record?.outcome], [outcome, outcome]);
    });
  }

  it('has the outcome invalid_arguments if nothing was sent because arguments are invalid', async () => {
    const { requests } = upstream;
    const sent = requests.length;
    await toolhost.callTool('recorded', key, 'ok', { q: [1] });
    const [record] = await records();
    const { outcome, upstream_host, upstream_ms } = record ?? {};
    assert.deepEqual([outcome, upstream_host, upstream_ms], ['invalid_arguments', undefined, undefined]);
    assert.equal(requests.length, sent);
  });

  it('is written for trial calls, and not for calls of tools that do not exist', async () => {
    const before = (await records()).length;
    await toolhost.rest('POST', '/servers/recorded/tools/ok/call', { body: {} });
    await toolhost.rpc('recorded', key, 'tools/call', { name: 'none' });
    assert.equal((await records()).length, before + 1);
  });

  it('can be listed by outcome, tool, key, and time, newest first and paginated', async () => {
    const [newest = {}] = await records();
    for (const outcome of outcomes)
      assert.ok((await records(`&outcome=${outcome}`)).every((record) => record.outcome === outcome));
    const failed = await records('&outcome=failed&limit=200');
    const all = await records('&limit=200');
    const allFailed = all.filter(({ outcome }) => outcome !== 'ok');
    assert.deepEqual(failed, allFailed);
    assert.deepEqual(new Set((await records('&tool=timeout')).map((record) => record.tool)), new Set(['timeout']));
    assert.ok((await records(`&key_id=${keyId}`)).length > 5);
    assert.deepEqual(await records('&key_id=key_other'), []);
    const later = new Date(Date.parse(String(newest.at)) + 1).toISOString();
    assert.deepEqual(await records(`&since=${encodeURIComponent(later)}`), []);
    const everything = all.map((record) => record.id);
    const paged: unknown[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await toolhost.rest('GET', `/servers/recorded/calls?limit=4${cursor && `&cursor=${cursor}`}`);
      paged.push(...(body.calls as Json[]).map((record) => record.id));
      if (body.next_cursor === undefined) break;
      cursor = String(body.next_cursor);
    }
    assert.deepEqual(paged, everything);
    assert.equal(new Set(paged).size, paged.length);
  });

  it('gets 400 with the invalid filter if a listing has an invalid filter', async () => {
    const forgedCursors = ['1', '1.', '.x', 'x.y', `1.${'x'.repeat(350)}`, '1.\0', '1.a b'].map((cursor) =>
      Buffer.from(cursor).toString('base64url'),
    );
    const queries = [
      ...['limit=0', 'limit=201', 'limit=x', 'outcome=fine', 'since=yesterday', 'tenant_id=x', 'cursor='],
      ...forgedCursors.map((cursor) => `cursor=${cursor}`),
    ];
    for (const query of queries) {
      const { status, body } = await toolhost.rest('GET', `/calls?${query}`);
      assert.equal(status, 400, query);
      assert.equal((body.problems as Json[])[0]?.path, query.split('=')[0], query);
    }
  });

  it('contains nothing of arguments, credentials, paths, or responses', async () => {
    upstream.on('GET /fine', () => ({ body: { answer: 'canary-answer' } }));
    await toolhost.callTool('recorded', key, 'ok', { q: 'canary-argument' });
    await toolhost.callTool('recorded', key, 'ok', { q: 1, canary_name: 1 });
    await toolhost.callTool('recorded', key, 'post', { q: 'canary-argument' });
    const listed = JSON.stringify(await records('&limit=200'));
    assert.doesNotMatch(listed, /canary|\/fine/);
    const files = readdirSync(toolhost.dataDir).filter((name) => name.startsWith('toolhost.sqlite'));
    const stored = Buffer.concat(files.map((name) => readFileSync(join(toolhost.dataDir, name))));
    for (const canary of ['canary-argument', 'canary-answer', 'canary-secret', 'canary_name', key])
      assert.equal(stored.includes(canary), false, canary);
    assert.ok(stored.includes('recorded'));
  });
});

describe('the first call after a start', () => {
  it('needs nothing but the database, even if many calls arrive simultaneously', async () => {
    const upstream = await startRecordingUpstream();
    const toolhost = await startToolhost({ egressPorts: [upstream.port] });
    await toolhost.createServer(buildServerAt('cold', upstream.url));
    await toolhost.running.stop();
    const restarted = await startToolhost({ egressPorts: [upstream.port], dataDir: toolhost.dataDir });
    const calls = Array.from({ length: 20 }, () => restarted.callTool('cold', 'some-token', 'get'));
    const results = await Promise.all(calls);
    assert.ok(results.every((result) => result.isError !== true));
    assert.equal(upstream.requests.length, 20);
    await Promise.all([restarted.stop(), upstream.close()]);
  });
});
