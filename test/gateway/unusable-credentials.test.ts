import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get', arguments: {} } };

/** Formats a variable reference such as `${NAME}`. */
const toVariable = (name: string) => `$\{${name}}`;

describe('the rejection of an unusable credential', () => {
  let clockOffsetMs = 0;
  const { toolhost, upstream } = useToolhostWithUpstream({ runtimeOptions: { now: () => Date.now() + clockOffsetMs } });

  before(async () => {
    const serve = (slug: string, authentication?: Json) =>
      toolhost.createServer(buildServerAt(slug, upstream.url, authentication && { authentication }));
    await serve('tokens', { type: 'Bearer', header: 'X-Token' });
    await serve('open');
    for (const slug of ['stored', 'other']) await serve(slug, { type: 'Bearer', token: 'stored' });
  });

  const callWithToken = (slug: string, token: string) =>
    toolhost.post(slug, call, { headers: { authorization: `Bearer ${token}` } });
  /** Returns the reason in the body, and asserts that the challenge contains one too. */
  const getReason = (reply: Reply): string => {
    assert.equal(reply.status, 401, reply.text);
    assert.match(reply.headers.get('www-authenticate') ?? '', /error="invalid_token", error_description="/);
    return String((reply.body.error as { message: string }).message);
  };

  const variables = ['SHOP_TOKEN', 'env:SHOP_TOKEN', 'input:token', 'TOKEN:-'].map(toVariable);
  const otherVariables = ['$SHOP_TOKEN', '$env:SHOP_TOKEN', '%SHOP_TOKEN%', '{env:SHOP_TOKEN}'];
  const examples = ['<your-key>', '<your API key>', 'YOUR_API_KEY', 'your-api-key', 'your_token_here', 'API_KEY'];
  const placeholders: [reason: RegExp, credentials: string[]][] = [
    [
      /is a variable that the client did not expand/,
      [...variables, ...otherVariables, '{{SHOP_TOKEN}}', '{{ $json.token }}'],
    ],
    [/is an example placeholder/, [...examples, 'SHOP_TOKEN']],
    [/^the client sent the word "undefined"/, ['undefined']],
    [/^the client sent the word "null"/, ['null']],
    [/^the client sent the word "\[object Object\]"/, ['[object Object]']],
    [/has no token after "Bearer"/, ['']],
  ];

  it('[find D5] names the kind of placeholder, and nothing is sent to the upstream', async () => {
    for (const [reason, credentials] of placeholders) {
      for (const credential of credentials) {
        for (const slug of ['tokens', 'stored', 'open', 'manage'])
          assert.match(getReason(await callWithToken(slug, credential)), reason, `${slug} ${credential}`);
        if (credential === '') continue;
        const inHeader = await toolhost.post('tokens', call, { headers: { 'x-token': credential } });
        assert.match(getReason(inHeader), reason, credential);
        const rest = await toolhost.rest('GET', '/servers', { key: credential });
        assert.deepEqual([rest.status, reason.test(String(rest.body.detail))], [401, true], rest.text);
      }
    }
    assert.deepEqual(upstream.take(), []);
  });

  it('[find E1] does not affect tokens that only resemble a placeholder', async () => {
    const withSymbols = ['$2y$10$abc', 'a{b}', '{"a":1}', 'a%b%', '$x', '{x}'];
    for (const token of [...withSymbols, 'yours', 'undefined1', 'nullable', 'xTOKEN', 'key']) {
      assert.equal((await callWithToken('tokens', token)).status, 200, token);
      assert.equal(upstream.take()[0]?.headers['x-token'], `Bearer ${token}`);
    }
  });

  it('[find D5] tells only the holder of an API key that it expired or was revoked, and when', async () => {
    const expiresAt = new Date(Date.now() + 60_000).toISOString();
    const expiring = await toolhost.createKey({ expiresAt });
    const { body } = await toolhost.rest('POST', '/keys', { body: { name: 'short', scopes: ['call'] } });
    const { id, key: revoked } = body as { id: string; key: string };
    for (const key of [expiring, revoked]) assert.equal((await callWithToken('stored', key)).status, 200);
    upstream.take();
    assert.equal((await toolhost.rest('DELETE', `/keys/${id}`)).status, 200);
    clockOffsetMs += 61_000;
    const [day] = expiresAt.split('.');
    for (const slug of ['stored', 'other', 'open', 'manage']) {
      assert.equal(getReason(await callWithToken(slug, expiring)), `this API key expired at ${day}Z; use another key`);
      const reason = getReason(await callWithToken(slug, revoked));
      assert.match(reason, /^this API key was revoked at \d{4}-[\d-]+T[\d:]+Z; use/);
    }
    assert.match(String((await toolhost.rest('GET', '/servers', { key: expiring })).body.detail), /expired at /);
    // Another secret with the same key id.
    const forged = expiring.replace(/.{12}$/, 'x'.repeat(12));
    assert.doesNotMatch(getReason(await callWithToken('stored', forged)), /expired|revoked/);
    assert.deepEqual(upstream.take(), []);
  });
});
