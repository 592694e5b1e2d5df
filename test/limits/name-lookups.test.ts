import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate as immediate } from 'node:timers/promises';
import fc from 'fast-check';
import { afterRunning } from '../../src/domain/work/running-time.ts';
import { createLookups, lookupLimits } from '../../src/outbound/lookups.ts';
import { toolAt as configuredTool } from '../support/configs.ts';
import { eventually } from '../support/eventually.ts';
import { stopFor } from '../support/stop-for.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type NameServers, nameServers } from '../support/upstreams/name-servers.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const lookups = lookupLimits('32');
const threads = 16;
const oauth = {
  authorization_url: 'https://id.example/authorize',
  token_url: 'https://id.example/token',
  client_id: 'c',
  client_secret: 's',
};

describe('lookups of names', () => {
  let upstream: RecordingUpstream;
  let names: NameServers;
  let stop: () => Promise<void>;
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
    names = nameServers(threads);
  });
  afterEach(async () => {
    names.release();
    await Promise.all([stop(), upstream.close()]);
  });

  const options = () => ({
    env: { EGRESS_ALLOW: `good.example:${upstream.port}` },
    surroundings: { resolve: names.resolve, lookups },
  });
  /** A server of a workspace whose tools call these hosts. Returns its key. */
  const serve = async (toolhost: TestToolhost, slug: string, urls: readonly string[], more: Json = {}) => {
    const key = await toolhost.key({ workspace: slug, scopes: ['manage', 'call'] });
    const tools = urls.map((url, n) => configuredTool(url, { name: `get_${n}`, timeout_ms: 5000 }));
    const body = { name: slug, slug, tools, ...more };
    const { status, text } = await toolhost.rest('POST', '/servers', { key, body });
    assert.equal(status, 201, text);
    return key;
  };
  const isServed = async (toolhost: TestToolhost) => {
    const { isError, content } = await toolhost.callTool('neighbour', 'some-token', 'get_0');
    assert.equal(isError ?? false, false, String(content[0]?.text));
  };

  it('[sec F5] of a workspace whose name servers are silent leave threads to others', async () => {
    const toolhost = await startToolhost(options());
    stop = toolhost.stop;
    await serve(toolhost, 'neighbour', [`http://good.example:${upstream.port}/thing`]);
    const hostile = ['one', 'two', 'three'];
    const tools = Array.from({ length: 20 }, (_, n) => n);
    for (const slug of hostile) {
      await serve(
        toolhost,
        slug,
        tools.map((n) => `https://h${n}.${slug}.silent.example/thing`),
      );
    }
    const calls = hostile.flatMap((slug) => tools.map((n) => toolhost.callTool(slug, 'some-token', `get_${n}`)));
    await eventually(() => assert.ok(names.asked.length >= hostile.length));
    await isServed(toolhost);
    assert.ok(names.asked.length < threads, String(names.asked));
    const results = await Promise.all(calls);
    assert.ok(results.every(({ isError }) => isError));
    await isServed(toolhost);
  });

  it('[sec F5] that strangers cause by the addresses of client documents leave threads to others', async () => {
    const toolhost = await startToolhost(options());
    stop = toolhost.stop;
    const url = `http://good.example:${upstream.port}/thing`;
    await serve(toolhost, 'neighbour', [url]);
    await serve(toolhost, 'logs-in', [url], { authentication: { type: 'Bearer' }, oauth });
    const visits = Array.from({ length: 40 }, (_, n) => {
      const query = new URLSearchParams({
        client_id: `https://c${n}.silent.example/client.json`,
        response_type: 'code',
      });
      return fetch(`${toolhost.url}/mcp/logs-in/authorize?${query}`, { redirect: 'manual' });
    });
    for (const page of await Promise.all(visits)) assert.equal(page.status, 400);
    assert.equal(names.queued, 0);
    await isServed(toolhost);
  });

  it('[find A3] that a stranger causes by the addresses of client documents delay no other stranger', async () => {
    const toolhost = await startToolhost({ ...options(), env: { ...options().env, TRUSTED_PROXIES: '1' } });
    stop = toolhost.stop;
    await serve(toolhost, 'neighbour', [`http://good.example:${upstream.port}/thing`]);
    await serve(toolhost, 'logs-in', [`http://good.example:${upstream.port}/thing`], {
      authentication: { type: 'Bearer' },
      oauth,
    });
    const visit = (host: string, from: string) => {
      const query = new URLSearchParams({ client_id: `https://${host}/client.json`, response_type: 'code' });
      return fetch(`${toolhost.url}/mcp/logs-in/authorize?${query}`, { headers: { 'x-forwarded-for': from } });
    };
    const hostile = ['203.0.113.1', '2001:db8::1', '2001:db8::2'].flatMap((from) =>
      Array.from({ length: 10 }, (_, n) => visit(`c${n}.${from.replaceAll(/\W+/g, '-')}.silent.example`, from)),
    );
    await eventually(() => assert.ok(names.asked.length >= 4));
    const asked = names.asked.length;
    assert.equal((await visit('absent.example', '203.0.113.2')).status, 400);
    assert.ok(names.asked.includes('absent.example'), String(names.asked));
    assert.ok(asked <= lookups.ofStrangers, String(names.asked));
    await isServed(toolhost);
    for (const page of await Promise.all(hostile)) assert.equal(page.status, 400);
  });

  it('[find C5] that wait are not given up because the process was stopped', async () => {
    stop = async () => undefined;
    const started: (() => void)[] = [];
    const resolve = (_hostname: string, callback: (error: Error | null, found: []) => void) =>
      void started.push(() => callback(null, []));
    const lookup = createLookups(resolve, { ...lookups, ofWorkspace: 1 }, afterRunning).ofWorkspace('one');
    const outcomes: unknown[] = [];
    for (const host of ['first.example', 'second.example']) lookup(host, (error) => outcomes.push(error));
    stopFor(4000);
    // The timers that are due run now.
    for (let turn = 0; turn < 3; turn++) await immediate();
    for (let each = started.shift(); each; each = started.shift()) each();
    assert.deepEqual(outcomes, [null, null]);
  });

  it('[sec F5] run within their limits, share a name, and are all answered (property)', async () => {
    stop = async () => undefined;
    const expirations = new Set<() => void>();
    const after = (_ms: number, expire: () => void) => {
      expirations.add(expire);
      return () => expirations.delete(expire);
    };
    const steps = fc.array(fc.record({ of: fc.nat(7), isStranger: fc.boolean(), host: fc.nat(30), ends: fc.nat(3) }), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(steps, fc.constantFrom('4', '16', '32', undefined), (all, size) => {
        const most = lookupLimits(size);
        const running = new Map<string, () => void>();
        const { ofWorkspace, ofStranger } = createLookups(
          (hostname, callback) => {
            assert.ok(!running.has(hostname));
            running.set(hostname, () => {
              running.delete(hostname);
              callback(null, []);
            });
          },
          most,
          after,
        );
        let [asked, answered] = [0, 0];
        const endOne = () => running.values().next().value?.();
        for (const { of, isStranger, host, ends } of all) {
          asked++;
          const before = running.size;
          (isStranger ? ofStranger : ofWorkspace)(`w${of}`)(`h${host}`, () => answered++);
          assert.ok(running.size <= most.ofAll);
          if (before === 0) assert.equal(running.size, 1);
          for (let n = 0; n < ends; n++) endOne();
        }
        while (running.size > 0) endOne();
        for (const expire of expirations) expire();
        assert.equal(answered, asked);
      }),
    );
  });
});
