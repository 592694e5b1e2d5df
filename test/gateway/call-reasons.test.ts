import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Resolve } from '@toolhost/safe-http/connector';
import fc from 'fast-check';
import { getRunCount } from '../sets.ts';
import { callerToken, type OneToolFixture, startOneTool } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';

const resolve: Resolve = (hostname, callback) => {
  if (hostname === 'private.example.com') callback(null, [{ address: '10.0.0.1', family: 4 }]);
  else callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
};

describe('the reason in a call record', () => {
  let fixture: OneToolFixture;
  let closedPort: number;
  before(async () => {
    closedPort = await findFreePort();
    fixture = await startOneTool({ egressPorts: [closedPort], runtimeOptions: { resolve } });
  });
  after(() => fixture.stop());

  const lastCall = async (slug: string): Promise<Json> => {
    const { body } = await fixture.toolhost.rest('GET', `/calls?slug=${slug}&limit=1`);
    return (body.calls as Json[])[0] ?? {};
  };
  const callForReason = async (tool: Json, args: Json = {}, server: Json = {}) => {
    const slug = await fixture.createToolServer(tool, server);
    await fixture.call(slug, args);
    return (await lastCall(slug)).reason;
  };
  const callForReasonOf = (response: CannedResponse, tool: Json = {}) => {
    fixture.upstream.on('GET /answer', () => response);
    return callForReason({ url: '/answer', ...tool });
  };
  const host = () => new URL(fixture.upstream.url).host;

  it('[conf 8] is absent if the call succeeded', async () => {
    const slug = await fixture.createToolServer({});
    await fixture.call(slug);
    assert.equal('reason' in (await lastCall(slug)), false);
  });

  it('[conf 8] names the invalid argument and the allowed values, and nothing that the caller sent', async () => {
    const input_schema = {
      id: { type: 'integer', minimum: 5 },
      status: { type: 'string', enum: ['open', 'closed'], optional: true },
      filter: {
        type: 'object',
        properties: { tags: { type: 'array', items: { type: 'string', maxLength: 3 } } },
        required: ['tags'],
        optional: true,
      },
    };
    const cases: [Json, string][] = [
      [{}, 'id: is missing'],
      [{ id: 'caller-value' }, 'id: found string; allowed: integer'],
      [{ id: 4 }, 'id: minimum 5 is not met'],
      [{ id: 5, status: 'caller-value' }, 'status: allowed: "open", "closed"'],
      [{ id: 5, 'caller-name': 1 }, 'an argument that is not declared; allowed: id, status, filter'],
      [{ id: 5, filter: {} }, 'filter.tags: is missing'],
      [{ id: 5, filter: { tags: ['a', 'caller-value'] } }, 'filter.tags.*: maxLength 3 is not met'],
      [{ id: 5, filter: { tags: 7 } }, 'filter.tags: found number; allowed: array'],
      [
        { id: 'x', status: 1, filter: 1 },
        'id: found string; allowed: integer; status: allowed: "open", "closed"; filter: found number; allowed: object',
      ],
    ];
    for (const [args, reason] of cases) {
      const actualReason = await callForReason({ method: 'POST', input_schema }, args);
      assert.deepEqual(String(actualReason).split('; ').sort(), reason.split('; ').sort());
      assert.doesNotMatch(String(actualReason), /caller-/);
    }
    const path = { url: '/v1/:id', input_schema: { id: { type: 'string' } } };
    assert.equal(await callForReason(path, { id: '..' }), 'id: must not be empty, "." or ".."');
    assert.equal(await callForReason(path, { id: 'caller\nvalue' }), 'id: must not contain control characters');
    assert.equal(
      await callForReason(path, { id: 'v'.repeat(70_000) }),
      'id: has too many characters; allowed in a URL: 65536',
    );
  });

  it('[conf 8] names the status and media type of the response, if they are registered ones', async () => {
    const typed = (status: number, type: string): CannedResponse => ({
      status,
      headers: { 'content-type': type },
      body: 'upstream-text',
    });
    assert.equal(
      await callForReasonOf(typed(404, 'application/problem+json; x=1')),
      'HTTP 404 Not Found, application/problem+json',
    );
    assert.equal(await callForReasonOf(typed(500, 'text/html')), 'HTTP 500 Internal Server Error, text/html');
    assert.equal(await callForReasonOf(typed(599, 'application/upstream-text')), 'HTTP 599, another media type');
    assert.equal(await callForReasonOf({ status: 403 }), 'HTTP 403 Forbidden, no media type');
    const redirect = { status: 302, headers: { location: 'https://upstream-text.example/upstream-text' } };
    assert.equal(await callForReasonOf(redirect), 'HTTP 302 Found, no media type: the redirect was not followed');
    const disallowedRedirect = { status: 302, headers: { location: 'http://upstream-text.example/upstream-text' } };
    assert.equal(
      await callForReasonOf(disallowedRedirect, { redirects: 'follow' }),
      'HTTP 302: the redirect was not followed: its URL is not allowed; allowed: https, web ports, and public hosts',
    );
    const unresolvableRedirect = { status: 302, headers: { location: 'https://upstream-text.example/upstream-text' } };
    assert.equal(
      await callForReasonOf(unresolvableRedirect, { redirects: 'follow' }),
      `${host()}: after a redirect: the host (its target) was not found`,
    );
  });

  it('[conf 8] names the unreachable host, or the limit that a response exceeded', async () => {
    const callUrl = (url: string, overrides: Json = {}) => callForReason({ url, ...overrides });
    assert.equal(
      await callUrl(`http://127.0.0.1:${closedPort}/x?q=1`),
      `127.0.0.1:${closedPort}: the upstream refused the connection`,
    );
    assert.equal(await callUrl('https://missing.example.com/x'), 'the host missing.example.com was not found');
    assert.equal(
      await callUrl('https://private.example.com/x'),
      'private.example.com: the upstream host does not resolve to an address that may be called',
    );
    assert.match(
      String(await callUrl(`https://127.0.0.1:${fixture.upstream.port}/`)),
      /: no TLS connection to the upstream could be established/,
    );
    fixture.upstream.on('GET /held', () => 'hold');
    assert.equal(await callUrl('/held', { timeout_ms: 50 }), `${host()}: upstream did not answer within 50 ms`);
    assert.equal(
      await callForReasonOf({ body: 'x'.repeat(2000) }, { response_limit_bytes: 1000 }),
      `${host()}: the response is larger than 1000 bytes`,
    );
  });

  it('[conf 8] names the part of a response that does not match, or the secret that has no value', async () => {
    const body = { items: [{ id: 1 }, { id: 'upstream-text', 'upstream-name': { deep: 'upstream-text' } }] };
    const item = { type: 'object', properties: { id: { type: 'integer' } } };
    const output_schema = { type: 'object', properties: { items: { type: 'array', items: item } } };
    assert.equal(
      await callForReasonOf({ body }, { output_schema }),
      'the response does not match output_schema: items.*.id: found string; allowed: integer',
    );
    // Locating the violation takes more steps than the event loop allows in one go; the verdict takes fewer.
    const many = { items: [...Array.from({ length: 400 }, (_, id) => ({ id })), { id: 'upstream-text' }] };
    assert.equal(
      await callForReasonOf({ body: many }, { output_schema }),
      'the response does not match output_schema: items.*.id: found string; allowed: integer',
    );
    const closed = { ...item, properties: {}, additionalProperties: { type: 'integer' } };
    assert.equal(
      await callForReasonOf(
        { body },
        { output_schema: { type: 'object', properties: { items: { type: 'array', items: closed } } } },
      ),
      'the response does not match output_schema: items.*.*: found string; allowed: integer',
    );
    assert.equal(
      await callForReasonOf({ body }, { response_transform: 'items.0.name' }),
      'response_transform "items.0.name" does not exist in the response; the path exists up to "items.0"',
    );
    assert.equal(
      await callForReasonOf(
        { body: 'x', headers: { 'content-type': 'text/upstream-text' } },
        { response_transform: 'a' },
      ),
      'response_transform requires a JSON response, but the upstream returned another media type',
    );
    assert.equal(
      await callForReasonOf({ body: '{', headers: { 'content-type': 'application/json' } }, { response_fields: ['a'] }),
      'response_fields requires a JSON response, but the upstream returned application/json, and it is not strict JSON',
    );
    const slug = await fixture.createToolServer({ headers: { 'X-Key': '{{KEY}}' } });
    await fixture.toolhost.callTool(slug, await fixture.toolhost.createKey(), 'run');
    assert.equal((await lastCall(slug)).reason, 'the secret KEY has no value; set it on the server first');
  });

  it('[conf 8] names the limit that rejected the call', async () => {
    const startedAt = Date.now();
    const limitedFixture = await startOneTool({ runtimeOptions: { now: () => startedAt } });
    const slug = await limitedFixture.createToolServer({});
    await limitedFixture.toolhost.rest('PATCH', `/servers/${slug}/limits`, { body: { calls_per_minute: 1 } });
    for (let calls = 0; calls < 3; calls++)
      await limitedFixture.toolhost.rpc(slug, callerToken, 'tools/call', { name: 'run', arguments: {} });
    const { body } = await limitedFixture.toolhost.rest('GET', '/calls?outcome=limited&limit=1');
    await limitedFixture.stop();
    assert.match(String((body.calls as Json[])[0]?.reason), /^Too many calls: this server gets at most 1 per minute/);
  });

  it('[conf 8] has at most 300 characters', async () => {
    const names = Object.fromEntries(
      Array.from({ length: 40 }, (_, n) => [`name_${'x'.repeat(40)}_${n}`, { type: 'string', optional: true }]),
    );
    const reason = String(await callForReason({ method: 'POST', input_schema: names }, { other: 1 }));
    assert.equal(reason.length, 300);
    assert.match(reason, /^an argument that is not declared; allowed: name_x+_0, .*…$/);
  });

  it('[conf 8] contains nothing of any call or response', async () => {
    const marker = 'zq7x';
    const marked = fc.string({ maxLength: 6 }).map((text) => `${text.toWellFormed()}${marker}`);
    const json = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        marked,
        fc.constant(774_411),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(marked, tie('value'), { maxKeys: 3 }),
      ),
    })).value;
    const outputSchema = {
      type: 'object',
      additionalProperties: { type: 'array', items: { type: 'string', maxLength: 2 } },
    };
    const slug = await fixture.createToolServer({
      method: 'POST',
      url: '/any',
      redirects: undefined,
      response_transform: 'data',
      input_schema: {
        id: { type: 'string', maxLength: 8, optional: true },
        list: { type: 'array', items: { type: 'object', required: ['name'] }, optional: true },
        map: { type: 'object', properties: { inner: { type: 'string', enum: ['a'] } }, optional: true },
      },
      output_schema: outputSchema,
    });
    const argumentsArbitrary = fc.record({ id: json, list: json, map: json, other: json }, { requiredKeys: [] });
    const responsesArbitrary = fc.record({
      status: fc.constantFrom(200, 201, 204, 302, 400, 404, 418, 500, 503),
      type: fc.constantFrom(
        'application/json',
        `application/${marker}`,
        `text/${marker}`,
        `image/${marker}`,
        'multipart/mixed',
      ),
      body: fc.oneof(
        json.map((value) => JSON.stringify({ data: value })),
        marked,
      ),
      location: fc.constantFrom(`https://${marker}.example/${marker}`, `/${marker}`),
    });
    await fc.assert(
      fc.asyncProperty(argumentsArbitrary, responsesArbitrary, async (args, { status, type, body, location }) => {
        fixture.upstream.on('*', () => ({
          status,
          headers: { 'content-type': type, location, 'x-note': marker },
          body,
        }));
        await fixture.call(slug, args as Json);
        const reason = String((await lastCall(slug)).reason);
        assert.ok(!reason.includes(marker) && !reason.includes('774411'), reason);
        assert.ok(reason.length <= 300);
      }),
      { numRuns: getRunCount(300) },
    );
  });
});
