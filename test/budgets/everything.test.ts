import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { adversarialJson, adversarialText } from '../support/adversarial-inputs.ts';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import { statelessMeta } from '../support/toolhost/toolhost.ts';

/** Number of inputs per endpoint. The seed is fixed to reproduce failures. `PRICE_RUNS` and `PRICE_SEED` change both. */
const runs = Number(process.env.PRICE_RUNS ?? 3);
const seed = Number(process.env.PRICE_SEED ?? 7);
const maxBytes = 1024 * 1024 - 1000;

/** Returns schemas with long patterns, as many as a configuration may have or as the event loop may parse. */
function makeExpensivePatterns(length: number): string {
  const kinds = ['(a|[^b-d]{1,9}\\\\d)', '(?:(?:(?:a?)+)*)', '[\\\\w\\\\p{L}-]', '\\\\u0041\\\\.+'];
  const piece = kinds[length % kinds.length] as string;
  const [count, repeats] = length % 2 === 0 ? [1900, 3] : [55, Math.floor(990 / piece.length)];
  return Array.from({ length: count }, () => `{"pattern":"${piece.repeat(repeats)}"}`).join(',');
}

/** Numbers whose digits are preserved, under the maximum number of names in a body. */
const exactNumbers = `{${Array.from({ length: 28_000 }, (_, n) => `"n${n.toString(36)}":1E-400`).join(',')}}`;

/** Maximum number of names and texts with escapes in a body. */
const escapedNames = `{${Array.from({ length: 28_000 }, (_, n) => `"\\n${n.toString(36)}":"\\\\"`).join(',')}}`;

type Entry = { method: string; path: string; headers?: Record<string, string>; body?: string };

describe('CPU budget of any input within the limits', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
    const url = `${toolhost.upstream.url}/run`;
    const run = { name: 'run', description: 'Takes anything.', method: 'POST', url };
    const input_schema = { type: 'object', properties: { a: {} } };
    // Each pattern causes as much work as a pattern may for one of the texts in the requests.
    const anyOf = ['(a+)+$', '(a?){500}a{500}', '([ab]|\\p{L}|.){1,400}é', '(\\s*)*[^1-9]{1,2000}$'].map((pattern) => ({
      pattern,
    }));
    const patterned = {
      type: 'object',
      properties: { a: { anyOf, items: { anyOf }, additionalProperties: { anyOf }, propertyNames: { anyOf } } },
    };
    const tools = [
      { ...run, input_schema },
      { ...run, name: 'query', method: 'GET', input_schema },
      { ...run, name: 'form', body: 'form', input_schema },
      { ...run, name: 'cut', response_fields: ['a.b', 'c'] },
      { ...run, name: 'patterns', input_schema: patterned },
      { ...run, name: 'answer_patterns', output_schema: patterned },
      { ...run, name: 'checked', output_schema: { type: 'object', additionalProperties: { maxLength: 3 } } },
    ];
    const oauth = {
      authorization_url: `${toolhost.upstream.url}/authorize`,
      token_url: `${toolhost.upstream.url}/token`,
      client_id: 'id',
      client_secret: 'secret',
      scopes: ['a'],
    };
    for (const server of [
      { slug: 'anything', tools },
      { slug: 'with-login', tools, oauth, authentication: { type: 'Bearer' } },
    ]) {
      const { status, text } = await toolhost.rest('POST', '/servers', { name: 'Any', ...server });
      assert.equal(status, 201, text);
    }
    await toolhost.rest('POST', '/servers/anything/capture', { hours: 1 });
  });
  after(() => toolhost.stop());

  const send = async ({ method, path, headers, body }: Entry): Promise<number> => {
    const clientRequest = request(toolhost.url + path, { method, headers: { connection: 'close', ...headers } });
    clientRequest.end(body);
    const [response] = await once(clientRequest, 'response');
    response.resume();
    await once(response, 'end');
    return response.statusCode;
  };
  /** Asserts that no other request has to wait, and that no request fails with status 500. */
  const assertAllWithinBudget = async <Input>(
    inputs: fc.Arbitrary<Input>,
    entries: (input: Input) => Record<string, Entry>,
    fixedInputs: Input[] = [],
  ) => {
    const sample = fc.sample(inputs, { numRuns: fixedInputs.length + runs, seed, examples: fixedInputs });
    for (const [index, input] of sample.entries()) {
      for (const [name, entry] of Object.entries(entries(input))) {
        const label = `${name}, input ${index} of seed ${seed}: ${(entry.body ?? entry.path).slice(0, 120)}`;
        const status = await toolhost.assertWithinBudget(label, () => send(entry));
        assert.notEqual(status, 500, label);
      }
    }
  };

  const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const bearer = () => ({ authorization: `Bearer ${toolhost.key}` });

  it('[find A2] handles any MCP message, stateless or stateful, within the CPU budget', () =>
    assertAllWithinBudget(
      adversarialJson(maxBytes),
      (value) => {
        const post = (slug: string, body: string, more = {}): Entry => ({
          method: 'POST',
          path: `/mcp/${slug}`,
          headers: { ...json, ...bearer(), ...more },
          body,
        });
        const call = (name: string, args: string, meta = '') =>
          `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${meta}"name":"${name}","arguments":${args}}}`;
        const statelessHeaders = {
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': 'run',
        };
        return {
          legacy: post('anything', call('run', `{"a":${value}}`), { 'mcp-protocol-version': '2025-11-25' }),
          modern: post(
            'anything',
            call('run', `{"a":${value}}`, `"_meta":${JSON.stringify(statelessMeta)},`),
            statelessHeaders,
          ),
          'a query': post('anything', call('query', `{"a":${value}}`)),
          'a form': post('anything', call('form', `{"a":${value}}`)),
          'with patterns': post('anything', call('patterns', `{"a":${value}}`)),
          'as it is': post('anything', value),
          'as an id': post('anything', `{"jsonrpc":"2.0","id":${value},"method":"ping"}`),
          'as params': post('anything', `{"jsonrpc":"2.0","id":1,"method":"initialize","params":${value}}`),
          managing: post('manage', call('createMcpServer', value)),
          previewing: post(
            'manage',
            call('previewToolCall', `{"slug":"anything","tool":"run","arguments":{"a":${value}}}`),
          ),
        };
      },
      [exactNumbers, escapedNames],
    ));

  it('[find A1] handles any REST request within the CPU budget', () =>
    assertAllWithinBudget(
      adversarialJson(maxBytes),
      (value) => {
        const rest = (method: string, path: string, body: string): Entry => ({
          method,
          path: `/api/v1${path}`,
          headers: { ...json, ...bearer() },
          body,
        });
        const schema = `{"name":"x","slug":"made-here","tools":[{"name":"t","description":"Takes it.","method":"POST","url":"https://api.example.com/x","input_schema":${value}}]}`;
        const patterns = `{"name":"x","slug":"made-here","tools":[{"name":"t","description":"Takes it.","method":"POST","url":"https://api.example.com/x","input_schema":{"type":"object","properties":{"a":{"anyOf":[${makeExpensivePatterns(value.length)}]}}}}]}`;
        return {
          check: rest('POST', '/check', value),
          'check of a schema': rest('POST', '/check', schema),
          'check of patterns': rest('POST', '/check', patterns),
          create: rest('POST', '/servers', schema),
          change: rest('PATCH', '/servers/anything', `{"tools":${value}}`),
          key: rest(
            'POST',
            '/keys',
            `{"name":"x","scopes":${value},"servers":${value.length < maxBytes / 2 ? value : '1'}}`,
          ),
          secret: rest('PUT', '/servers/anything/secrets/A', `{"value":${value}}`),
          preview: rest('POST', '/servers/anything/tools/run/preview', `{"arguments":{"a":${value}}}`),
          'try out': rest('POST', '/servers/anything/tools/form/call', `{"arguments":{"a":${value}}}`),
        };
      },
      [exactNumbers, escapedNames],
    ));

  it('[find A3] handles any 64 KB body at the login endpoints within the CPU budget', () =>
    assertAllWithinBudget(fc.tuple(adversarialText(60_000), adversarialJson(60_000)), ([text, value]) => ({
      token: { method: 'POST', path: '/mcp/with-login/token', headers: form, body: text },
      'a code': { method: 'POST', path: '/mcp/with-login/token', headers: form, body: `client_id=x&code=${text}` },
      'a client': { method: 'POST', path: '/mcp/with-login/token', headers: form, body: `client_id=${text}` },
      revoke: { method: 'POST', path: '/mcp/with-login/revoke', headers: form, body: text },
      consent: { method: 'POST', path: '/mcp/with-login/consent', headers: form, body: text },
      register: { method: 'POST', path: '/mcp/with-login/register', headers: json, body: value },
      'redirect URIs': {
        method: 'POST',
        path: '/mcp/with-login/register',
        headers: json,
        body: `{"redirect_uris":${value}}`,
      },
    })));

  it('[find A3] handles any 15 KB of URLs, queries, cookies, and other headers within the CPU budget', () =>
    assertAllWithinBudget(adversarialText(14_000), (text) => {
      const plain = text.replaceAll(/[^!-~]|[#?]/g, '+').slice(0, 14_000);
      const line = text.replaceAll(/[^\x20-\x7e]/g, '~');
      const get = (path: string, headers = {}): Entry => ({ method: 'GET', path, headers });
      return {
        path: get(`/${plain}`),
        slug: get(`/mcp/${plain}`),
        page: get(`/?${plain}`),
        authorize: get(`/mcp/with-login/authorize?${plain}`),
        callback: get(`/mcp/with-login/callback?state=${plain}`),
        list: get(`/api/v1/calls?${plain}`, bearer()),
        filter: get(`/api/v1/calls?tool=${plain.slice(0, 90)}&key_id=${plain.slice(0, 90)}`, bearer()),
        cursor: get(`/api/v1/servers?cursor=${plain.slice(0, 480)}`, bearer()),
        cookie: get('/', { cookie: line }),
        'cookie of a session': get('/api/v1/servers', { cookie: `toolhost-session=${line}` }),
        accept: get('/', { accept: line, 'accept-language': line.slice(0, 100) }),
        bearer: get('/api/v1/servers', { authorization: `Bearer ${line.replaceAll(' ', '~')}` }),
        caller: {
          method: 'POST',
          path: '/mcp/anything',
          headers: { ...json, authorization: `Bearer ${line.replaceAll(' ', '~')}` },
          body: '{}',
        },
        etag: get('/api/v1/openapi.json', { 'if-none-match': line }),
      };
    }));

  it('[find A2] handles any upstream response within the CPU budget', async () => {
    const types = [
      'application/json',
      'text/plain',
      'multipart/mixed; boundary=b',
      'image/png',
      'text/html; charset=utf-16le',
    ];
    const responses = fc.sample(
      fc.tuple(fc.oneof(adversarialJson(9_000_000), adversarialText(9_000_000)), fc.constantFrom(...types)),
      {
        numRuns: 2 * runs,
        seed,
      },
    );
    for (const [index, [body, type]] of responses.entries()) {
      toolhost.upstream.on('*', () => ({ headers: { 'content-type': type }, body }));
      for (const tool of ['run', 'cut', 'checked', 'answer_patterns']) {
        const callLabel = `${tool} ${type}, response ${index} of seed ${seed}: ${body.slice(0, 100)}`;
        const { status } = await toolhost.assertWithinBudget(callLabel, () => toolhost.call('anything', tool, '{}'));
        assert.equal(status, 200, callLabel);
      }
      const label = `trying ${type}, response ${index} of seed ${seed}: ${body.slice(0, 100)}`;
      await toolhost.assertWithinBudget(label, () => toolhost.rest('POST', '/servers/anything/tools/run/call', {}));
    }
  });
});
