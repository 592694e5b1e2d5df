import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, startOneTool } from '../support/one-tool.ts';
import { buildJsonResponse, buildResponse } from '../support/response-caller.ts';
import { listCalls } from '../support/server-requests.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { resolveExampleNames } from '../support/upstreams/example-names.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

const startFixture = async () => {
  const closedPort = await findFreePort();
  const fixture = await startOneTool({ egressPorts: [closedPort], runtimeOptions: { resolve: resolveExampleNames } });
  return { ...fixture, closedPort };
};

describe('the reason in a call record', () => {
  const fixture = useFixture(startFixture);
  const lastCall = async (slug: string): Promise<Json> =>
    (await listCalls(fixture.toolhost, slug, '?limit=1'))[0] ?? assert.fail('no call');
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
      [{ id: 5, 'caller-name': 1 }, 'unknown argument; allowed: id, status, filter'],
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
    for (const [id, reason] of [
      ['..', 'id: must not be empty, "." or ".."'],
      ['caller\nvalue', 'id: must not contain control characters'],
      ['v'.repeat(70_000), 'id: has too many characters; allowed in a URL: 65536'],
    ] as const)
      assert.equal(await callForReason(path, { id }), reason);
  });

  it('[conf 8] names the status and media type of the response, if they are registered ones', async () => {
    const typed = (status: number, type: string) => ({ ...buildResponse(type, 'upstream-text'), status });
    const redirectTo = (location: string): CannedResponse => ({ status: 302, headers: { location } });
    const target = 'https://upstream-text.example/upstream-text';
    const notAllowed = 'its URL is not allowed; allowed: https, web ports, and public hosts';
    const follow = { redirects: 'follow' };
    const cases: [response: CannedResponse, reason: string, tool?: Json][] = [
      [typed(404, 'application/problem+json; x=1'), 'HTTP 404 Not Found, application/problem+json'],
      [typed(500, 'text/html'), 'HTTP 500 Internal Server Error, text/html'],
      [typed(599, 'application/upstream-text'), 'HTTP 599, another media type'],
      [{ status: 403 }, 'HTTP 403 Forbidden, no media type'],
      [redirectTo(target), 'HTTP 302 Found, no media type: the redirect was not followed'],
      [redirectTo(target.replace('https', 'http')), `HTTP 302: the redirect was not followed: ${notAllowed}`, follow],
      [redirectTo(target), `${host()}: after a redirect: the host (its target) was not found`, follow],
    ];
    for (const [response, reason, tool] of cases) assert.equal(await callForReasonOf(response, tool), reason);
  });

  it('[conf 8] names the unreachable host, or the limit that a response exceeded', async () => {
    fixture.upstream.on('GET /held', () => 'hold');
    const closedHost = `127.0.0.1:${fixture.closedPort}`;
    const blockedError = 'the upstream host does not resolve to an address that may be called';
    for (const [url, reason] of [
      [`http://${closedHost}/x?q=1`, `${closedHost}: the upstream refused the connection`],
      ['https://missing.example.com/x', 'the host missing.example.com was not found'],
      ['https://private.example.com/x', `private.example.com: ${blockedError}`],
    ])
      assert.equal(await callForReason({ url }), reason);
    const tlsReason = String(await callForReason({ url: `https://${host()}/` }));
    assert.match(tlsReason, /: no TLS connection to the upstream could be established/);
    const timeoutReason = await callForReason({ url: '/held', timeout_ms: 50 });
    assert.equal(timeoutReason, `${host()}: the upstream did not respond within 0.05 s`);
    const sizeReason = await callForReasonOf({ body: 'x'.repeat(2000) }, { response_limit_bytes: 1000 });
    assert.equal(sizeReason, `${host()}: the response is larger than 1000 bytes`);
  });

  it('[conf 8] names the part of a response that does not match, or the secret that has no value', async () => {
    const body = { items: [{ id: 1 }, { id: 'upstream-text', 'upstream-name': { deep: 'upstream-text' } }] };
    const item = { type: 'object', properties: { id: { type: 'integer' } } };
    const schemaOf = (items: Json) => ({
      output_schema: { type: 'object', properties: { items: { type: 'array', items } } },
    });
    const mismatch = 'the response does not match output_schema: items.*.';
    const noJson = 'requires a JSON response, but the upstream returned';
    // Locating the violation takes more steps than the event loop allows in one go; the verdict takes fewer.
    const many = { items: [...Array.from({ length: 400 }, (_, id) => ({ id })), { id: 'upstream-text' }] };
    const closed = { ...item, properties: {}, additionalProperties: { type: 'integer' } };
    const cases: [response: CannedResponse, tool: Json, reason: string][] = [
      [{ body }, schemaOf(item), `${mismatch}id: found string; allowed: integer`],
      [{ body: many }, schemaOf(item), `${mismatch}id: found string; allowed: integer`],
      [{ body }, schemaOf(closed), `${mismatch}*: found string; allowed: integer`],
      [
        { body },
        { response_transform: 'items.0.name' },
        'response_transform "items.0.name" does not exist in the response; the path exists up to "items.0"',
      ],
      [
        buildResponse('text/upstream-text', 'x'),
        { response_transform: 'a' },
        `response_transform ${noJson} another media type`,
      ],
      [
        buildJsonResponse('{'),
        { response_fields: ['a'] },
        `response_fields ${noJson} application/json, and it is not strict JSON`,
      ],
    ];
    for (const [response, tool, reason] of cases) assert.equal(await callForReasonOf(response, tool), reason);
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
    const name = (n: number) => `name_${'x'.repeat(40)}_${n}`;
    const field = { type: 'string', optional: true };
    const input_schema = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [name(n), field]));
    const reason = String(await callForReason({ method: 'POST', input_schema }, { other: 1 }));
    assert.equal(reason.length, 300);
    assert.match(reason, /^unknown argument; allowed: name_x+_0, .*…$/);
  });
});
