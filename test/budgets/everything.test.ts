import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import { adversarialJson, adversarialText, runs, seed } from '../support/adversarial-inputs.ts';
import { times } from '../support/long-values.ts';
import { useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import { statelessMeta } from '../support/toolhost/toolhost.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

const maxBytes = 1024 * 1024 - 1000;

/** Returns schemas with long patterns, as many as a configuration may have or as the event loop may parse. */
function makeExpensivePatterns(length: number): string {
  const kinds = ['(a|[^b-d]{1,9}\\\\d)', '(?:(?:(?:a?)+)*)', '[\\\\w\\\\p{L}-]', '\\\\u0041\\\\.+'];
  const piece = kinds[length % kinds.length] as string;
  const [count, repeats] = length % 2 === 0 ? [1900, 3] : [55, Math.floor(990 / piece.length)];
  return times(count, () => `{"pattern":"${piece.repeat(repeats)}"}`).join(',');
}

/** Numbers whose digits are preserved, under the maximum number of names in a body. */
const exactNumbers = `{${times(28_000, (n) => `"n${n.toString(36)}":1E-400`)}}`;

/** Maximum number of names and texts with escapes in a body. */
const escapedNames = `{${times(28_000, (n) => `"\\n${n.toString(36)}":"\\\\"`)}}`;

type Entry = { method: string; path: string; headers?: Record<string, string>; body?: string };

describe('CPU budget of any input within the limits', () => {
  const toolhost = useCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
  before(async () => {
    const url = `${toolhost.upstream.url}/run`;
    const run = { name: 'run', description: 'Takes anything.', method: 'POST', url };
    const input_schema = { type: 'object', properties: { a: {} } };
    // Each pattern causes as much work as a pattern may for one of the texts in the requests.
    const patterns = ['(a+)+$', '(a?){500}a{500}', '([ab]|\\p{L}|.){1,400}é', '(\\s*)*[^1-9]{1,2000}$'];
    const anyOf = patterns.map((pattern) => ({ pattern }));
    const a = { anyOf, items: { anyOf }, additionalProperties: { anyOf }, propertyNames: { anyOf } };
    const patterned = { type: 'object', properties: { a } };
    const tools = [
      { ...run, input_schema },
      { ...run, name: 'query', method: 'GET', input_schema },
      { ...run, name: 'form', body: 'form', input_schema },
      { ...run, name: 'cut', response_fields: ['a.b', 'c'] },
      { ...run, name: 'patterns', input_schema: patterned },
      { ...run, name: 'answer_patterns', output_schema: patterned },
      { ...run, name: 'checked', output_schema: { type: 'object', additionalProperties: { maxLength: 3 } } },
    ];
    const urls = {
      authorization_url: `${toolhost.upstream.url}/authorize`,
      token_url: `${toolhost.upstream.url}/token`,
    };
    const oauth = { ...urls, client_id: 'id', client_secret: 'secret', scopes: ['a'] };
    await toolhost.createServer({ slug: 'anything', tools });
    await toolhost.createServer({ slug: 'with-login', tools, oauth, authentication: { type: 'Bearer' } });
    await toolhost.rest('POST', '/servers/anything/capture', { hours: 1 });
  });

  /** Asserts that no other request has to wait, and that no request fails with status 500. */
  const assertAllWithinBudget = async <Input>(
    inputs: fc.Arbitrary<Input>,
    fixedInputs: Input[],
    entries: (input: Input) => Record<string, Entry>,
  ) => {
    const sample = fc.sample(inputs, { numRuns: fixedInputs.length + runs, seed, examples: fixedInputs });
    for (const [index, input] of sample.entries()) {
      for (const [name, entry] of Object.entries(entries(input))) {
        const label = `${name}, input ${index} of seed ${seed}: ${(entry.body ?? entry.path).slice(0, 120)}`;
        const { path, method, headers, body } = entry;
        const options = { method, headers: { connection: 'close', ...headers } };
        const send = () => sendRawRequest(toolhost.url + path, options, body);
        assert.notEqual((await toolhost.assertWithinBudget(label, send)).status, 500, label);
      }
    }
  };

  const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const makePost = (path: string, headers: Record<string, string>, body: string): Entry => ({
    method: 'POST',
    path,
    headers,
    body,
  });
  const bearer = () => ({ authorization: `Bearer ${toolhost.key}` });

  it('[find A2] handles any MCP message, stateless or stateful, within the CPU budget', () =>
    assertAllWithinBudget(adversarialJson(maxBytes), [exactNumbers, escapedNames], (value) => {
      const post = (slug: string, body: string, more = {}) =>
        makePost(`/mcp/${slug}`, { ...json, ...bearer(), ...more }, body);
      const call = (name: string, args = `{"a":${value}}`, meta = '') =>
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{${meta}"name":"${name}","arguments":${args}}}`;
      const statelessHeaders = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'run' };
      const meta = `"_meta":${JSON.stringify(statelessMeta)},`;
      const preview = `{"slug":"anything","tool":"run","arguments":{"a":${value}}}`;
      return {
        legacy: post('anything', call('run'), { 'mcp-protocol-version': '2025-11-25' }),
        modern: post('anything', call('run', `{"a":${value}}`, meta), statelessHeaders),
        'a query': post('anything', call('query')),
        'a form': post('anything', call('form')),
        'with patterns': post('anything', call('patterns')),
        'as it is': post('anything', value),
        'as an id': post('anything', `{"jsonrpc":"2.0","id":${value},"method":"ping"}`),
        'as params': post('anything', `{"jsonrpc":"2.0","id":1,"method":"initialize","params":${value}}`),
        managing: post('manage', call('createMcpServer', value)),
        previewing: post('manage', call('previewToolCall', preview)),
      };
    }));

  it('[find A1] handles any REST request within the CPU budget', () =>
    assertAllWithinBudget(adversarialJson(maxBytes), [exactNumbers, escapedNames], (value) => {
      const rest = (method: string, path: string, body: string): Entry => ({
        ...makePost(`/api/v1${path}`, { ...json, ...bearer() }, body),
        method,
      });
      const makeConfig = (schema: string) =>
        `{"name":"x","slug":"made-here","tools":[{"name":"t","description":"Takes it.","method":"POST","url":"https://api.example.com/x","input_schema":${schema}}]}`;
      const schema = makeConfig(value);
      const anyOf = `{"anyOf":[${makeExpensivePatterns(value.length)}]}`;
      const patterns = makeConfig(`{"type":"object","properties":{"a":${anyOf}}}`);
      const servers = value.length < maxBytes / 2 ? value : '1';
      return {
        check: rest('POST', '/check', value),
        'check of a schema': rest('POST', '/check', schema),
        'check of patterns': rest('POST', '/check', patterns),
        create: rest('POST', '/servers', schema),
        change: rest('PATCH', '/servers/anything', `{"tools":${value}}`),
        key: rest('POST', '/keys', `{"name":"x","scopes":${value},"servers":${servers}}`),
        secret: rest('PUT', '/servers/anything/secrets/A', `{"value":${value}}`),
        preview: rest('POST', '/servers/anything/tools/run/preview', `{"arguments":{"a":${value}}}`),
        'try out': rest('POST', '/servers/anything/tools/form/call', `{"arguments":{"a":${value}}}`),
      };
    }));

  it('[find A3] handles any 64 KB body at the login endpoints within the CPU budget', () =>
    assertAllWithinBudget(fc.tuple(adversarialText(60_000), adversarialJson(60_000)), [], ([text, value]) => ({
      token: makePost('/mcp/with-login/token', form, text),
      'a code': makePost('/mcp/with-login/token', form, `client_id=x&code=${text}`),
      'a client': makePost('/mcp/with-login/token', form, `client_id=${text}`),
      revoke: makePost('/mcp/with-login/revoke', form, text),
      consent: makePost('/mcp/with-login/consent', form, text),
      register: makePost('/mcp/with-login/register', json, value),
      'redirect URIs': makePost('/mcp/with-login/register', json, `{"redirect_uris":${value}}`),
    })));

  it('[find A3] handles any 15 KB of URLs, queries, cookies, and other headers within the CPU budget', () =>
    assertAllWithinBudget(adversarialText(14_000), [], (text) => {
      const plain = text.replaceAll(/[^!-~]|[#?]/g, '+').slice(0, 14_000);
      const line = text.replaceAll(/[^\x20-\x7e]/g, '~');
      const token = { authorization: `Bearer ${line.replaceAll(' ', '~')}` };
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
        bearer: get('/api/v1/servers', token),
        caller: makePost('/mcp/anything', { ...json, ...token }, '{}'),
        etag: get('/api/v1/openapi.json', { 'if-none-match': line }),
      };
    }));

  it('[find A2] handles any upstream response within the CPU budget', async () => {
    const textTypes = ['application/json', 'text/plain', 'text/html; charset=utf-16le'];
    const types = fc.constantFrom(...textTypes, 'multipart/mixed; boundary=b', 'image/png');
    const bodies = fc.oneof(adversarialJson(9_000_000), adversarialText(9_000_000));
    const responses = fc.sample(fc.tuple(bodies, types), { numRuns: 2 * runs, seed });
    for (const [index, [body, type]] of responses.entries()) {
      toolhost.upstream.on('*', () => ({ headers: { 'content-type': type }, body }));
      for (const tool of ['run', 'cut', 'checked', 'answer_patterns']) {
        const callLabel = `${tool} ${type}, response ${index} of seed ${seed}: ${body.slice(0, 100)}`;
        const { status } = await toolhost.measure(callLabel).call('anything', tool);
        assert.equal(status, 200, callLabel);
      }
      const label = `trying ${type}, response ${index} of seed ${seed}: ${body.slice(0, 100)}`;
      await toolhost.measure(label).rest('POST', '/servers/anything/tools/run/call', {});
    }
  });
});
