import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

/** Makes any body so long that it is not parsed on the event loop. */
const padding = ' '.repeat(61_000);

const origin = 'https://api.example.com';
const tool = (name: string, more = '') =>
  `{"name":"${name}","description":"Gets it.","method":"get","url":"${origin}/${name}"${more}}`;

/** Members of inputs: names, and values as JSON text, some of which are valid. */
const memberValues: { [name: string]: readonly string[] } = {
  slug: ['"known"', '"other"', '"none"', '7', '[]', '"a\\u0000"', `[${'1,'.repeat(700)}1]`, 'null'],
  expected_version: ['1', '2', '1.0', '1e0', '-0', '"1"', 'null', '{}', `{"a":"${'x'.repeat(1100)}"}`],
  tool: ['"first"', '"made"', '"none"', '5'],
  name: ['"Some"', '"made"', '""', '"\\ud800"', '12345678901234567890', '"first"', '"\\u00e9\\n"'],
  title: ['"A title"', 'null', '1.10'],
  description: ['"It says."', 'null', '"\\"\\\\{}[],:"', '1.10', '"\\u0000"'],
  method: ['"GET"', '"put"', '"NONE"', 'null'],
  url: [`"${origin}/x"`, `"${origin}/{id}"`, '"ftp://a"', 'null'],
  input_schema: ['{"type":"object","properties":{"id":{"type":"string"}}}', '{"type":7}', '{"a\\u0000":1}', '1e400'],
  base_url: [`"${origin}"`, 'null', '"x"'],
  headers: ['{}', '{"X-A":"b","X-A":"c"}', '{"__proto__":"b"}', 'null', '[1.50]'],
  tools: [
    `[${tool('first')}]`,
    `[${tool('first')}, ${tool('made', ',"__proto__":1')}]`,
    `[${tool('first', ',"timeout_ms":2000.0,"name":"made"')}]`,
    `[${tool('first')},${tool('first')}]`,
    '[]',
    '"text"',
    '[[[]]]',
    '[{"name":"t","inputSchema":{}}]',
  ],
  views: ['{"all":{"tools":["first"]}}', '{"all":{"tools":["none"]}}', 'null', '{"__proto__":{}}'],
  config: [`{"name":"Some","slug":"known","tools":[${tool('first')}]}`, '{}', '[]', '{"slug":1,"slug":"known"}'],
  label: ['"set"', '7'],
  secrets: ['{"A":"b"}', '{}', '[]'],
  openapi: ['"3.1.0"', '3.10'],
  swagger: ['"2.0"'],
  unknown: ['1', '"x"', '{"a":[1.10,-0,{"b":null}]}'],
  __proto__: ['{"slug":"known"}', '1'],
  constructor: ['{}'],
  7: ['"a name that is sorted first"'],
  'na"me\\': ['1'],
};

const whitespace = fc.constantFrom('', '', ' ', '\n\t', '\r\n  ');
/** Returns a member name as JSON text, with any of its letters escaped. */
const arbitraryNameText = (name: string) =>
  fc.array(fc.boolean(), { minLength: name.length, maxLength: name.length }).map((escaped) => {
    const letters = [...name].map((letter, index) =>
      escaped[index] && escaped[0]
        ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
        : JSON.stringify(letter).slice(1, -1),
    );
    return `"${letters.join('')}"`;
  });
const arbitraryMember = (name: string) => {
  const value = fc.constantFrom(...(memberValues[name] as string[]));
  const tokens = fc.tuple(whitespace, arbitraryNameText(name), whitespace, whitespace, value, whitespace);
  return tokens.map(([a, nameText, b, c, valueText, d]) => `${a}${nameText}${b}:${c}${valueText}${d}`);
};
const anyMember = fc.constantFrom(...Object.keys(memberValues)).chain(arbitraryMember);
/** Returns members of a valid input, at most one of them omitted, and a few additional members. */
const arbitraryMembers = (valid: readonly string[]) =>
  fc
    .tuple(fc.subarray([...valid], { minLength: Math.max(0, valid.length - 1) }), fc.array(anyMember, { maxLength: 3 }))
    .chain(([some, others]) => fc.shuffledSubarray([...some, ...others], { minLength: some.length + others.length }));

const validConfig = ['"name":"Some"', '"slug":"known"', `"tools":[${tool('first')}]`];
const validTool = ['"name":"made"', '"description":"Gets it."', '"method":"GET"', `"url":"${origin}/made"`];
const request = (members: fc.Arbitrary<string[]>, ...targets: string[]) =>
  fc.tuple(fc.constantFrom(...targets), members);
const requests = fc.oneof(
  request(arbitraryMembers(validConfig), 'POST /check', 'POST /check?slug=known', 'POST /check?x=%00'),
  request(arbitraryMembers(validConfig), 'POST /servers', 'PUT /servers/known', 'PUT /servers/none'),
  request(arbitraryMembers([]), 'PATCH /servers/known'),
  request(arbitraryMembers(validTool), 'POST /servers/known/tools', 'POST /servers/other/tools'),
  request(arbitraryMembers([]), 'PATCH /servers/known/tools/first', 'PATCH /servers/known/tools/made'),
  request(
    arbitraryMembers([`"config":${(memberValues.config as string[])[0]}`]),
    ...['POST /servers/known/plan', 'POST /servers/known/apply'],
  ),
);

/** Name of an operation as a tool, and arguments for it. */
const firstTool = ['"slug":"known"', '"tool":"first"'];
const toolCalls = fc.oneof(
  request(arbitraryMembers(validConfig), 'checkMcpServer', 'createMcpServer'),
  request(arbitraryMembers(['"slug":"known"']), 'updateMcpServer'),
  request(arbitraryMembers([...validTool, '"slug":"known"']), 'addTool'),
  request(arbitraryMembers(firstTool), 'updateTool'),
  request(arbitraryMembers([...firstTool, '"arguments":{"id":1.10}']), 'previewToolCall'),
);
/** Messages with ARGS in place of the arguments. If members have the same name, the last one counts. */
const messages = fc
  .tuple(whitespace, arbitraryNameText('params'), arbitraryNameText('arguments'), fc.nat(5))
  .map(([gap, params, args, kind]) => {
    const head = `{${gap}"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call"`;
    const fullMessage = `${head},${params}:{"name":"TOOL",${args}${gap}:${gap}ARGS}}`;
    const other = `{"name":"other","tools":[${tool('other')}],"description":"${'x'.repeat(1500)}"}`;
    return [
      fullMessage,
      `${head},"params":{"arguments":${other},${args}:ARGS,"name":"TOOL"},"arguments":${other}}`,
      `${head},"params":{"arguments":${other},"name":"ping"},${params}:{"name":"TOOL",${args}:ARGS}}`,
      `${head},"params":{"name":"TOOL","arguments":ARGS,${args}:7}}`,
      `${head},"params":{"name":"TOOL","arguments":ARGS},"params":{"name":"TOOL"}}`,
      `[{"jsonrpc":"2.0","id":1,"method":"ping"},${gap}${fullMessage},{"jsonrpc":"2.0","id":2,"result":{}},${fullMessage}]`,
    ][kind] as string;
  });

const sample = { numRuns: 150, seed: 7 };

describe('an input that is parsed on a worker thread', async () => {
  /** Two services with the same servers. One gets each input unchanged, the other one gets it padded. */
  const services = await Promise.all(
    [0, 1].map(async () => {
      const toolhost = await startToolhost();
      const key = await toolhost.createKey();
      return { toolhost, key, limited: await toolhost.createKey({ servers: ['known'] }) };
    }),
  );
  for (const { toolhost } of services)
    for (const slug of ['known', 'other'])
      await toolhost.createServer({ name: slug, slug, tools: [JSON.parse(tool('first')) as Json] });
  after(() => Promise.all(services.map(({ toolhost }) => toolhost.stop())));

  /** Returns the response without the parts that differ between services. */
  const getResponse = async ({ toolhost }: { toolhost: TestToolhost }, path: string, init: RequestInit) => {
    const response = await fetch(toolhost.url + path, init);
    const text = (await response.text())
      .replaceAll(toolhost.url, 'URL')
      .replaceAll(/"\d{4}-\d\d-\d\dT[^"]*"|(?:srv|key)_\w+|"request_id":"[^"]*"|"api_key[^"]*"/g, '…');
    return { status: response.status, etag: response.headers.get('etag'), text };
  };
  const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  /** Sends a body to one service, and the same body with padding to the other one. */
  const compare = async (path: string, short: string, init: (of: { key: string; limited: string }) => RequestInit) => {
    const [expected, actual] = await Promise.all(
      services.map((one, index) => {
        const body = index === 0 ? short.replaceAll('@', '') : short.replaceAll('@', padding);
        return getResponse(one, path, { ...init(one), body });
      }),
    );
    // The target of the input is resolved first, so an unknown server may be reported instead.
    const hasNul = expected?.text.includes('contains the character U+0000');
    if (hasNul) assert.ok(/U\+0000|no such/.test(actual?.text ?? ''), `${path} ${short} ${actual?.text}`);
    else assert.deepEqual(actual, expected, `${path} ${short}`);
    return actual?.status ?? 0;
  };

  it('[find A1] gets the same response over REST as a short input', async () => {
    const outcomes = new Set<number>();
    for (const [target, members] of fc.sample(requests, sample)) {
      const [method = '', path = ''] = target.split(' ');
      const isLimited = members.length % 4 === 0;
      const status = await compare(`/api/v1${path}`, `{@${members.join(',')}}`, ({ key, limited }) => ({
        method,
        headers: { ...json, authorization: `Bearer ${isLimited ? limited : key}` },
      }));
      outcomes.add(status);
    }
    assert.ok(outcomes.has(200));
  });

  it('[find A1] gets the same response over MCP as a short input', async () => {
    const outcomes = new Set<string>();
    for (const [[name, members], message] of fc.sample(fc.tuple(toolCalls, messages), sample)) {
      const body = message.replaceAll('TOOL', name).replaceAll('ARGS', () => `{@${members.join(',')}}`);
      const protocolVersion = body.startsWith('[') ? '2025-03-26' : '2025-11-25';
      const status = await compare('/mcp/manage', body, ({ key }) => ({
        method: 'POST',
        headers: { ...json, authorization: `Bearer ${key}`, 'mcp-protocol-version': protocolVersion },
      }));
      outcomes.add(`${name} ${status}`);
    }
    assert.ok(outcomes.has('checkMcpServer 200'));
  });

  it('[find A1] is refused like a short input if it is not an object or not JSON', async () => {
    for (const body of ['[@1]', '"@"', '@7', 'null@', '{"a":1@', '@]', '{@}'])
      await compare('/api/v1/check', body, ({ key }) => ({
        method: 'POST',
        headers: { ...json, authorization: `Bearer ${key}` },
      }));
  });
});
