import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { onTime } from '../support/on-time.ts';
import { errorOf, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import { streamedRows } from '../support/upstreams/broken-answers.ts';
import { type HostileUpstream, startHostileUpstream } from '../support/upstreams/hostile-upstream.ts';

const closed = /^the upstream closed the connection before it responded$/;
const broken = /^the upstream closed the connection before the end of its response$/;
const oversize = /^the response is larger than 1048576 bytes\. /;
const late = /^upstream did not answer within 300 ms$/;
const noHttp = /^the upstream response is not valid HTTP$/;

/** Error of a call during which a busy machine paused this process. It says nothing about the upstream. */
const stopped = /^this service was paused during the call/;

/** Each behavior of the adversarial upstream, the tool timeout, and the expected error. */
const endings: [path: string, timeoutMs: number, expected: RegExp][] = [
  ['/silence', 300, late],
  ['/drip', 300, oversize],
  ['/reset', 2000, closed],
  ['/reset-mid-body', 2000, broken],
  ['/half-close', 2000, broken],
  ['/bomb', 10_000, oversize],
  ['/endless', 10_000, oversize],
  ['/garbage', 2000, noHttp],
  ['/huge-headers', 2000, /^the upstream responded with too many (header bytes|bytes around its body)$/],
  ['/bad-gzip', 2000, /^the upstream responded with a body that cannot be decompressed$/],
  ['/status/418', 2000, /^HTTP 418 Chosen\n\{"status":418\}$/],
  ['/status/599', 2000, /^HTTP 599 Chosen\n/],
  [
    '/redirect/302?to=https://target.example/?secret',
    2000,
    /^HTTP 302 Elsewhere: the upstream redirects to https:\/\/target\.example\/; redirects are not followed$/,
  ],
];

describe('a call to an adversarial upstream', () => {
  let one: OneTool;
  let hostile: HostileUpstream;
  let dripping: Server;
  let dripPort: number;
  before(async () => {
    hostile = await startHostileUpstream();
    dripping = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const timer = setInterval(() => response.write(' '), 20);
      response.once('close', () => clearInterval(timer));
    });
    await once(dripping.listen(0, '127.0.0.1'), 'listening');
    dripPort = (dripping.address() as AddressInfo).port;
    one = await startOneTool({ egress: [hostile.port, dripPort] });
  });
  after(async () => {
    await one.stop();
    await hostile.close();
    dripping.close();
  });

  const serve = (path: string, timeout_ms: number, method = 'GET') =>
    one.serve({ method, url: `${hostile.url}${path}`, timeout_ms, response_limit_bytes: 1024 * 1024 });

  for (const [path, timeoutMs, expected] of endings) {
    it(`[sec G1] returns a tool error for ${path} within timeout_ms + 0.5 s and closes the connection`, async () => {
      const slug = await serve(path, timeoutMs, 'POST');
      let seen: number;
      let said: string;
      do {
        seen = hostile.requests.length;
        said = errorOf(await onTime(timeoutMs, () => one.call(slug)));
      } while (stopped.test(said));
      assert.match(said, expected);
      assert.equal(hostile.requests.length, seen + 1);
      if (expected === late || expected === oversize) await hostile.requests[seen]?.closed;
    });
  }

  it('[sec G1] ends at timeout_ms even if the upstream keeps sending bytes', async () => {
    const left = once(dripping, 'request').then(([, response]) => once(response, 'close'));
    const slug = await one.serve({ url: `http://127.0.0.1:${dripPort}/`, timeout_ms: 300 });
    assert.match(errorOf(await onTime(300, () => one.call(slug))), late);
    await left;
  });

  it('[sec G1] never returns an unsolicited response of an earlier call', async () => {
    const slug = await serve('/extra-response', 2000);
    for (let i = 0; i < 3; i++) assert.equal(textOf(await one.call(slug)), '{"first":true}');
  });

  it('[sec G1] does not fail because a keep-alive connection closed after the previous call', async () => {
    const slug = await serve('/keep-alive-close', 2000);
    for (let i = 0; i < 3; i++) assert.equal(textOf(await one.call(slug)), '{"last":true}');
  });

  it('[sec G1] reads a long list that arrives row by row, and rejects a flood of single bytes', async () => {
    const rows = await one.serve({ url: `${hostile.url}/rows`, timeout_ms: 10_000 });
    assert.equal(JSON.parse(textOf(await one.call(rows))).length, streamedRows);
    const flood = await one.serve({ url: `${hostile.url}/tiny-chunks`, timeout_ms: 10_000 });
    assert.match(errorOf(await one.call(flood)), /^the upstream responded with too many body chunks$/);
  });

  it('[sec G1] does not stop the service, even with all behaviors simultaneously', async () => {
    const slugs = await Promise.all(endings.filter(([path]) => path !== '/bomb').map(([path]) => serve(path, 500)));
    const results = await Promise.all(slugs.map((slug) => one.call(slug)));
    for (const result of results) errorOf(result);
    const { method } = JSON.parse(textOf(await one.call(await one.serve({}))));
    assert.equal(method, 'GET');
    assert.equal((await fetch(`${one.toolhost.url}/readyz`)).status, 200);
  });
});
