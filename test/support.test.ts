import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, watch } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { buffer } from 'node:stream/consumers';
import { after, before, beforeEach, describe, it } from 'node:test';
import pg from 'pg';
import { startPostgres, type TestPostgres } from './support/store/postgres.ts';
import {
  BINARY,
  type ContentUpstream,
  PNG,
  startContentUpstream,
  TEXT,
  WAV,
} from './support/upstreams/content-upstream.ts';
import { type HostileUpstream, startHostileUpstream } from './support/upstreams/hostile-upstream.ts';
import { type RecordingUpstream, startRecordingUpstream } from './support/upstreams/recording-upstream.ts';

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** Sends requests over one raw connection and gives that with the first bytes of the answer. */
async function sendRaw(port: number, ...paths: string[]): Promise<{ socket: net.Socket; answer: string }> {
  const socket = net.connect(port, '127.0.0.1');
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
  const [answer] = await once(socket, 'data');
  return { socket, answer: String(answer) };
}

describe('startPostgres', () => {
  let postgres: TestPostgres;
  before(async () => {
    postgres = await startPostgres();
  });
  after(() => postgres.stop());

  it('makes empty databases of their own', async () => {
    const [first, second] = await Promise.all([postgres.createDatabase(), postgres.createDatabase()]);
    assert.notEqual(first, second);
    assert.deepEqual(await query(first, 'SHOW fsync'), [{ fsync: 'on' }]);
    await query(first, 'CREATE TABLE thing (id int)');
    assert.deepEqual(await query(first, 'SELECT * FROM thing'), []);
    await assert.rejects(query(second, 'SELECT * FROM thing'), /does not exist/);
  });

  it('loses connections but no committed row in a crash', async () => {
    const url = await postgres.createDatabase();
    await query(url, 'CREATE TABLE thing (id int); INSERT INTO thing VALUES (1)');
    const witness = new pg.Client({ connectionString: url });
    witness.on('error', () => undefined);
    await witness.connect();
    const lost = new Promise<void>((resolve) => witness.once('end', resolve));
    await postgres.crash();
    await lost;
    await assert.rejects(query(url, 'SELECT 1'), { code: 'ECONNREFUSED' });
    await postgres.restart();
    assert.deepEqual(await query(url, 'SELECT id FROM thing'), [{ id: 1 }]);
  });

  it('can be stopped after a crash, and twice', async () => {
    const other = await startPostgres();
    await other.crash();
    await other.stop();
    await other.stop();
  });

  it('leaves neither process nor file when the test process is killed', async () => {
    const module = new URL('./support/store/postgres.ts', import.meta.url).href;
    const script = `const { startPostgres } = await import('${module}');
      process.stdout.write(await (await startPostgres()).createDatabase());
      setInterval(() => undefined, 1000);`;
    const orphan = spawn(process.execPath, ['--input-type=module', '-e', script]);
    const url = String((await once(orphan.stdout, 'data'))[0]);
    const [row] = (await query(url, 'SHOW data_directory')) as { data_directory: string }[];
    const watcher = watch(tmpdir());
    const gone = new Promise<void>((resolve) => {
      watcher.on('change', () => existsSync(row?.data_directory ?? '/') || resolve());
    });
    orphan.kill('SIGKILL');
    await gone;
    watcher.close();
    await assert.rejects(query(url, 'SELECT 1'), { code: 'ECONNREFUSED' });
  });
});

describe('startRecordingUpstream', () => {
  let upstream: RecordingUpstream;
  before(async () => {
    upstream = await startRecordingUpstream();
  });
  beforeEach(() => {
    upstream.take();
  });
  after(() => upstream.close());

  it('echoes by default and records what came', async () => {
    const url = '/a%2Fb?c=d&c=%20';
    const response = await fetch(upstream.url + url, { method: 'POST', headers: { 'X-One': '1' }, body: 'hello' });
    const expected = { method: 'POST', url, body: 'hello' };
    assert.partialDeepStrictEqual(await response.json(), expected);
    const [request, ...others] = upstream.take();
    assert.deepEqual([others, upstream.requests], [[], []]);
    assert.ok(request);
    assert.ok(request.rawHeaders.includes('X-One'));
    assert.partialDeepStrictEqual({ ...request, body: request.body.toString() }, expected);
    assert.deepEqual([await request.closed, request.aborted], ['answered', false]);
  });

  it('answers as the handlers say', async () => {
    upstream.on('GET /chosen', ({ url }) => ({ status: 418, headers: { 'x-url': url }, body: 'tea', delayMs: 5 }));
    upstream.on('GET /bytes', async () => ({ body: Buffer.from([1, 2]) }));
    upstream.on('GET /broken', () => {
      throw new Error('no');
    });
    const chosen = await fetch(`${upstream.url}/chosen?x`);
    assert.deepEqual([chosen.status, chosen.headers.get('x-url'), await chosen.text()], [418, '/chosen?x', 'tea']);
    assert.deepEqual(await (await fetch(`${upstream.url}/bytes`)).bytes(), new Uint8Array([1, 2]));
    assert.equal((await fetch(`${upstream.url}/broken`)).status, 500);
  });

  it('holds an answer until it is released', async () => {
    upstream.on('GET /held', () => 'hold');
    const response = fetch(`${upstream.url}/held`);
    const request = await upstream.waitForRequest();
    request.release({ status: 202, body: { late: true } });
    assert.equal((await response).status, 202);
    assert.deepEqual(await (await response).json(), { late: true });
  });

  it('tells when the client leaves before the answer', async () => {
    upstream.on('GET /left', () => 'hold');
    const leaving = new AbortController();
    const response = fetch(`${upstream.url}/left`, { signal: leaving.signal });
    const request = await upstream.waitForRequest();
    leaving.abort();
    await assert.rejects(response, { name: 'AbortError' });
    assert.equal(await request.closed, 'aborted');
    assert.equal(request.aborted, true);
    request.release();
  });

  it('records a request whose client leaves in mid-body', async () => {
    const client = http.request(`${upstream.url}/half`, { method: 'POST', headers: { 'content-length': 100 } });
    client.on('error', () => undefined);
    client.write('half', () => client.destroy());
    const request = await upstream.waitForRequest();
    assert.equal(request.body.toString(), 'half');
    assert.equal(await request.closed, 'aborted');
  });

  it('counts connections that say nothing', async () => {
    const accepted = upstream.connections;
    const socket = net.connect(upstream.port, '127.0.0.1');
    await once(socket, 'connect');
    socket.end();
    socket.resume();
    await once(socket, 'close');
    assert.equal(upstream.connections, accepted + 1);
  });
});

describe('startHostileUpstream', () => {
  let upstream: HostileUpstream;
  before(async () => {
    upstream = await startHostileUpstream();
  });
  after(() => upstream.close());

  const get = (path: string) => fetch(`${upstream.url}${path}`, { redirect: 'manual' });

  it('gives no answer, or breaks off in the body', async () => {
    for (const path of ['/reset', '/garbage', '/huge-headers']) {
      await assert.rejects(get(path), { message: 'fetch failed' }, path);
    }
    for (const path of ['/reset-mid-body', '/half-close', '/bad-gzip']) {
      await assert.rejects((await get(path)).text(), { name: 'TypeError' }, path);
    }
  });

  it('is silent until the client leaves', async () => {
    const nth = upstream.requests.length + 1;
    const { socket, answer } = await sendRaw(upstream.port, '/silence', '/status/200');
    assert.match(answer, /^HTTP\/1.1 200 /);
    const request = await upstream.waitForRequest(nth);
    assert.equal(request.line, 'GET /silence');
    socket.destroy();
    await request.closed;
  });

  for (const path of ['/drip', '/endless']) {
    it(`goes on and on at ${path}, and stops when the client leaves`, async () => {
      const response = await get(path);
      const request = upstream.requests.at(-1);
      assert.equal(request?.line, `GET ${path}`);
      const reader = response.body?.getReader();
      for (const _ of [1, 2, 3]) assert.equal((await reader?.read())?.done, false);
      await reader?.cancel();
      await request.closed;
    });
  }

  it('inflates a small body to 200 MB', async () => {
    const [response] = await once(http.get(`${upstream.url}/bomb`), 'response');
    assert.equal(response.headers['content-encoding'], 'gzip');
    const body = await buffer(response);
    assert.ok(body.length < 1024 * 1024);
    // A gzip stream ends with the length of what it inflates to.
    assert.equal(body.readUInt32LE(body.length - 4), 200 * 1024 * 1024 + 2);
  });

  it('sends bodies that are not what they claim', async () => {
    await assert.rejects((await get('/bad-json')).json(), SyntaxError);
    assert.equal((await (await get('/deep-json')).text()).length, 40_000);
    const wrong = await get('/wrong-type');
    assert.equal(wrong.headers.get('content-type'), 'image/png');
    assert.match(await wrong.text(), /^<html>/);
    const bytes = await (await get('/bad-utf8')).bytes();
    assert.throws(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes), TypeError);
  });

  it('gives the status and the redirect it is asked for', async () => {
    assert.equal((await get('/status/204')).status, 204);
    assert.deepEqual(await (await get('/status/503')).json(), { status: 503 });
    const { status, headers } = await get(`/redirect/307?to=${encodeURIComponent('http://elsewhere/?a=b')}`);
    assert.deepEqual([status, headers.get('location')], [307, 'http://elsewhere/?a=b']);
    assert.equal((await get('/nothing')).status, 404);
  });

  it('breaks the promises of keep-alive', async () => {
    const first = await sendRaw(upstream.port, '/extra-response');
    assert.match(first.answer, /"first":true.*HTTP\/1.1 200.*"extra":true/s);
    first.socket.destroy();
    const second = await sendRaw(upstream.port, '/keep-alive-close');
    assert.match(second.answer, /connection: keep-alive/);
    await once(second.socket, 'close');
  });

  it('reads bodies of both framings and counts each request once', async () => {
    const known = upstream.requests.length;
    await get('/status/200').then((response) => response.text());
    await fetch(`${upstream.url}/status/200`, { method: 'POST', body: 'a\r\n\r\nb' }).then((r) => r.text());
    const body = new Blob(['a\r\n\r\nb']).stream();
    await fetch(`${upstream.url}/status/200`, { method: 'PUT', body, duplex: 'half' }).then((r) => r.text());
    const lines = upstream.requests.slice(known).map(({ line }) => line);
    assert.deepEqual(lines, ['GET /status/200', 'POST /status/200', 'PUT /status/200']);
  });

  it('counts open connections and closes them all', async () => {
    const own = await startHostileUpstream();
    assert.equal(own.openSockets, 0);
    const answer = fetch(`${own.url}/silence`);
    const request = await own.waitForRequest();
    assert.equal(own.openSockets, 1);
    await Promise.all([own.close(), request.closed, assert.rejects(answer)]);
    assert.equal(own.openSockets, 0);
  });
});

describe('startContentUpstream', () => {
  let upstream: ContentUpstream;
  before(async () => {
    upstream = await startContentUpstream();
  });
  after(() => upstream.close());

  const expected: [path: string, status: number, type: string, body: Buffer][] = [
    ['/image', 200, 'image/png', PNG],
    ['/audio', 200, 'audio/wav', WAV],
    ['/resource', 200, 'application/octet-stream', BINARY],
    ['/text', 200, 'text/plain; charset=utf-8', Buffer.from(TEXT)],
    ['/error', 500, 'application/json', Buffer.from('{"error":"This answer always fails."}')],
  ];
  it('serves each kind of content', async () => {
    for (const [path, status, type, body] of expected) {
      const response = await fetch(`${upstream.url}${path}`);
      assert.deepEqual([response.status, response.headers.get('content-type')], [status, type]);
      assert.deepEqual(Buffer.from(await response.arrayBuffer()), body);
    }
  });

  it('serves a text, an image and a resource in one', async () => {
    const response = await fetch(`${upstream.url}/mixed`);
    const boundary = /^multipart\/mixed; boundary="(.+)"$/.exec(response.headers.get('content-type') ?? '')?.[1];
    const body = Buffer.from(await response.arrayBuffer()).toString('latin1');
    const [preamble, ...parts] = body.split(`--${boundary}`);
    assert.equal(preamble, '');
    assert.equal(parts.pop(), '--\r\n');
    assert.deepEqual(parts, [
      '\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nMultiple content types test:\r\n',
      `\r\nContent-Type: image/png\r\n\r\n${PNG.toString('latin1')}\r\n`,
      '\r\nContent-Type: application/json\r\n\r\n{"test":"data","value":123}\r\n',
    ]);
  });
});
