import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { newWorkspaceId } from '@toolhost/credentials/ids';
import { getLookupLimits } from '@toolhost/safe-http/lookups';
import { eventually } from '../support/eventually.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { createNameServers, type NameServers } from '../support/upstreams/name-servers.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const dnsLimits = getLookupLimits('32');
const threads = 16;
const oauth = {
  authorization_url: 'https://id.example/authorize',
  token_url: 'https://id.example/token',
  client_id: 'c',
  client_secret: 's',
};

describe('DNS lookups', () => {
  let upstream: RecordingUpstream;
  let names: NameServers;
  let stop: () => Promise<void>;
  beforeEach(async () => {
    upstream = await startRecordingUpstream();
    names = createNameServers(threads);
  });
  afterEach(async () => {
    names.release();
    await Promise.all([stop(), upstream.close()]);
  });

  const options = () => ({
    env: { EGRESS_ALLOW: `good.example:${upstream.port}` },
    runtimeOptions: { resolve: names.resolve, dnsLimits },
  });
  /** Creates a server whose tools call these URLs, and returns the key of its workspace. */
  const createCallingServer = async (
    toolhost: TestToolhost,
    slug: string,
    urls: readonly string[],
    { workspace = slug, ...more }: Json = {},
  ) => {
    const key = await toolhost.createKey({ workspace: String(workspace), scopes: ['manage', 'call'] });
    const tools = urls.map((url, n) => buildToolAt(url, { name: `get_${n}`, timeout_ms: 5000 }));
    const body = { name: slug, slug, tools, ...more };
    const { status, text } = await toolhost.rest('POST', '/servers', { key, body });
    assert.equal(status, 201, text);
    return key;
  };
  const assertServed = async (toolhost: TestToolhost) => {
    const { isError, content } = await toolhost.callTool('neighbour', 'some-token', 'get_0');
    assert.equal(isError ?? false, false, String(content[0]?.text));
  };

  it("[sec F5] leave threads for other workspaces when one workspace's name servers do not respond", async () => {
    const toolhost = await startToolhost(options());
    stop = toolhost.stop;
    await createCallingServer(toolhost, 'neighbour', [`http://good.example:${upstream.port}/thing`]);
    const attackers = ['one', 'two', 'three'];
    const tools = Array.from({ length: 20 }, (_, n) => n);
    for (const slug of attackers) {
      await createCallingServer(
        toolhost,
        slug,
        tools.map((n) => `https://h${n}.${slug}.silent.example/thing`),
      );
    }
    const calls = attackers.flatMap((slug) => tools.map((n) => toolhost.callTool(slug, 'some-token', `get_${n}`)));
    await eventually(() => assert.ok(names.requestedNames.length >= attackers.length));
    await assertServed(toolhost);
    assert.ok(names.requestedNames.length < threads, String(names.requestedNames));
    const results = await Promise.all(calls);
    assert.ok(results.every(({ isError }) => isError));
    await assertServed(toolhost);
  });

  it('[find A8] of several workspaces of one creator share the limit of one workspace', async () => {
    const toolhost = await startToolhost(options());
    stop = toolhost.stop;
    const slugs = ['one', 'two', 'three'];
    for (const slug of slugs) {
      const workspace = newWorkspaceId(randomBytes, `usr_${'a'.repeat(22)}`);
      const urls = Array.from({ length: 10 }, (_, n) => `https://h${n}.${slug}.silent.example/thing`);
      await createCallingServer(toolhost, slug, urls, { workspace });
    }
    const calls = slugs.flatMap((slug) =>
      Array.from({ length: 10 }, (_, n) => toolhost.callTool(slug, 'some-token', `get_${n}`)),
    );
    assert.ok((await Promise.all(calls)).every(({ isError }) => isError));
    assert.equal(names.requestedNames.length, dnsLimits.perTenant);
  });

  it('[find A3] for client metadata documents of two networks do not delay an unverified caller from a third network', async () => {
    const toolhost = await startToolhost({ ...options(), env: { ...options().env, TRUSTED_PROXIES: '1' } });
    stop = toolhost.stop;
    await createCallingServer(toolhost, 'neighbour', [`http://good.example:${upstream.port}/thing`]);
    await createCallingServer(toolhost, 'logs-in', [`http://good.example:${upstream.port}/thing`], {
      authentication: { type: 'Bearer' },
      oauth,
    });
    const authorize = (host: string, from: string) => {
      const query = new URLSearchParams({ client_id: `https://${host}/client.json`, response_type: 'code' });
      return fetch(`${toolhost.url}/mcp/logs-in/authorize?${query}`, { headers: { 'x-forwarded-for': from } });
    };
    // The two IPv6 addresses are in one network.
    const attackerPages = ['203.0.113.1', '2001:db8::1', '2001:db8::2'].flatMap((from) =>
      Array.from({ length: 10 }, (_, n) => authorize(`c${n}.${from.replaceAll(/\W+/g, '-')}.silent.example`, from)),
    );
    await eventually(() => assert.ok(names.requestedNames.length >= 4));
    const queriesBefore = names.requestedNames.length;
    assert.equal((await authorize('absent.example', '203.0.113.2')).status, 400);
    assert.ok(names.requestedNames.includes('absent.example'), String(names.requestedNames));
    assert.ok(queriesBefore <= dnsLimits.unverified, String(names.requestedNames));
    await assertServed(toolhost);
    for (const page of await Promise.all(attackerPages)) assert.equal(page.status, 400);
  });
});
