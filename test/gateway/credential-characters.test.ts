import assert from 'node:assert/strict';
import { before, beforeEach, describe, it } from 'node:test';
import { getNextUrl } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { oauthConfig } from '../support/valid-configs.ts';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } };
const visible = Array.from({ length: 0x7e - 0x21 + 1 }, (_, index) => String.fromCharCode(0x21 + index));
const oauth = { ...oauthConfig, token_mode: 'passthrough' };

/** Authentication schemes of a server, each with a function that reads the credential the upstream received. */
const schemes: [Json, (headers: NodeJS.Dict<string | string[]>, url: string) => unknown][] = [
  [{ type: 'Bearer' }, (headers) => String(headers.authorization).replace(/^Bearer /, '')],
  [{ type: 'Basic' }, (headers) => String(headers.authorization).replace(/^Basic /, '')],
  [{ type: 'ApiKey' }, (headers) => headers.authorization],
  [{ type: 'ApiKey', header: 'apikey' }, (headers) => headers.apikey],
  [{ type: 'QueryParam' }, (_, url) => new URL(url, 'http://x').searchParams.get('api_key')],
];

describe('an upstream credential of any visible characters', () => {
  const { toolhost, upstream } = useToolhostWithUpstream();
  const slugs: string[] = [];
  before(async () => {
    for (const [authentication] of schemes)
      for (const overrides of [{}, { oauth }]) {
        const slug = `any-${slugs.length}`;
        await toolhost.createServer(buildServerAt(slug, upstream.url, { authentication, ...overrides }));
        slugs.push(slug);
      }
  });
  beforeEach(() => void upstream.take());

  const send = (slug: string, headers: Record<string, string>): Promise<Reply> =>
    toolhost.post(slug, call, { headers });
  const assertArrives = async (index: number, credential: string, headers: Record<string, string>) => {
    const { status, text } = await send(slugs[index] as string, headers);
    assert.equal(status, 200, text);
    const [request, ...otherRequests] = upstream.take();
    assert.ok(request);
    assert.deepEqual(otherRequests, []);
    const [, readReceived] = schemes[Math.floor(index / 2)] as (typeof schemes)[number];
    assert.equal(readReceived(request.headers, request.url), credential);
  };

  const examples = ['12|abcdef', '123:ABC-def', 'a,b', 'a&b', 'a@b', '"quoted"', "'", '=', '{x}', 'Bearer', 'a%20b'];
  it('[find E1] reaches the upstream unchanged, from Authorization and from the header that the server configures', async () => {
    for (const credential of [...examples, '\\', visible.join(''), visible.join('').repeat(20)]) {
      for (const index of slugs.keys())
        await assertArrives(index, credential, { authorization: `Bearer ${credential}` });
      for (const index of [6, 7]) await assertArrives(index, credential, { apikey: credential });
    }
  });

  it('[find E1] is rejected with 401 if one field has two credentials or a value that no header can contain', async () => {
    const twoTokens = ['one, Bearer two', 'one,Bearer two', 'one two', 'one,\ttwo'].map((text) => `Bearer ${text}`);
    for (const authorization of [...twoTokens, 'Bearer', 'Bearer é', 'Basic one', 'one'])
      for (const slug of slugs) assert.equal((await send(slug, { authorization })).status, 401, authorization);
    for (const apikey of ['one, two', 'Bearer one, Bearer two', 'one two', 'é']) {
      const { status, text } = await send(slugs[6] as string, { apikey });
      assert.deepEqual([status, /one credential|apikey/.test(text)], [401, true], text);
    }
    assert.deepEqual(upstream.take(), []);
  });
});

describe('an upstream token of any visible characters from a login', () => {
  const world = useFixture(startLoginWorld);
  before(() => world.upstream.on('*', () => ({ body: { things: [] } })));

  it('[find E1] is issued by /token and reaches the upstream unchanged', async () => {
    const slug = await world.createServer({}, { token_mode: 'passthrough' });
    const client = await world.registerClient(slug);
    for (const access_token of ['12|abcdef', '123:ABC-def', 'a,b', 'a&b', 'a@b', visible.join('')]) {
      world.provider.onToken(() => ({ body: { access_token, token_type: 'bearer', expires_in: 60 } }));
      const tokens = await world.getTokens(client);
      assert.equal(tokens.access_token, access_token);
      world.upstream.take();
      assert.notEqual((await world.callTool(slug, tokens.access_token)).isError, true);
      assert.equal(world.upstream.take()[0]?.headers.authorization, `Bearer ${access_token}`);
    }
  });

  it('[find E1] fails the login if the token would be rejected at every call', async () => {
    const slug = await world.createServer({}, { token_mode: 'passthrough' });
    const client = await world.registerClient(slug);
    for (const access_token of ['tha_x', 'thk_x', `"${await world.toolhost.createKey()}"`, 'two words', 'é']) {
      world.provider.onToken(() => ({ body: { access_token, token_type: 'bearer', expires_in: 60 } }));
      const { searchParams } = getNextUrl(await world.returnFromProvider(client.authorization()));
      assert.deepEqual([searchParams.get('error'), searchParams.get('code')], ['server_error', null], access_token);
    }
  });
});
