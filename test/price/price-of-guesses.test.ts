import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { toolAt } from '../support/configs.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json, ToolReply } from '../support/toolhost/toolhost.ts';

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
/** Returns names of equal length that differ only in their last four digits, so that each is a possible suggestion. */
const alike = (length: number, count: number, sign: string): string[] =>
  times(count, (i) => `${sign.repeat(length - 4)}${String(i).padStart(4, '0')}`);
const record = (names: readonly string[], value: unknown): Json =>
  Object.fromEntries(names.map((name) => [name, value]));

describe('CPU budget of "did you mean" suggestions', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ REFUSALS_PER_MINUTE: '0' });
    priced.upstream.on('*', () => ({ body: { ok: true } }));
  });
  after(() => priced.stop());

  const tool = (more: Json) => toolAt(`${priced.upstream.url}/things`, { name: 'run', method: 'POST', ...more });
  const config = (slug: string, more: Json, server: Json = {}) => ({
    name: 'Guesses',
    slug,
    tools: [tool(more)],
    ...server,
  });
  const check = async (what: string, checked: Json): Promise<string> => {
    const { status, text } = await priced.costsLittle(what, () => priced.rest('POST', '/check', checked));
    assert.equal(status, 200, text.slice(0, 300));
    assert.ok(text.length < 100_000, `${what}: a response of ${text.length} characters`);
    return text;
  };

  it('[find A2] suggests corrections for 100 unknown names among 1,500 properties within the CPU budget', async () => {
    const filter = { type: 'object', properties: record(alike(95, 1500, 'p'), {}), additionalProperties: false };
    const input_schema = { type: 'object', properties: { filter } };
    const made = await priced.rest('POST', '/servers', config('guesses', { input_schema }));
    assert.equal(made.status, 201, made.text);
    const args = JSON.stringify({ filter: record(alike(95, 100, 'q'), 1) });
    const { body } = await priced.costsLittle('unknown names', () => priced.call('guesses', 'run', args));
    const { content } = body.result as ToolReply;
    assert.match(content[0]?.text ?? '', /unknown property; allowed: .*; and 90 more$/);
    const one = await priced.call('guesses', 'run', JSON.stringify({ filter: record([`${'p'.repeat(91)}x001`], 1) }));
    assert.match(one.text, /did you mean `p+0001`/);
  });

  it('[find A1] reports response_fields that are missing from output_schema within the CPU budget', async () => {
    const output_schema = { type: 'object', properties: record(alike(90, 480, 'p'), {}) };
    const text = await check(
      'response_fields',
      config('guessed', { output_schema, response_fields: alike(90, 100, 'q') }),
    );
    assert.match(text, /output_schema has no property/);
  });

  it('[find A1] reports view tools and tags that the server does not have within the CPU budget', async () => {
    const tools = alike(40, 150, 'p').map((name) => tool({ name, tags: [name] }));
    const views = { some: { tools: alike(40, 200, 'q'), tags: alike(40, 50, 'q') } };
    const text = await check('tools', { ...config('guessed', {}, { views }), tools });
    assert.match(text, /the server has no tool/);
  });

  it('[find A1] shortens long names in warnings', async () => {
    const required = times(3, (i) => `${'r'.repeat(200_000)}${i}`);
    const output_schema = { type: 'object', properties: { a: {} }, required };
    const text = await check('long names', config('guessed', { output_schema, response_fields: ['a'] }));
    assert.match(text, /leave out r+…/);
  });

  it('[find A1] reports 1,000 unknown fields and schema keywords within the CPU budget', async () => {
    await check('fields', { ...config('guessed', {}), ...record(alike(30, 1000, 'p'), 1) });
    await check(
      'keywords',
      config('guessed', { input_schema: { type: 'object', properties: { a: record(alike(30, 1000, 'p'), 1) } } }),
    );
  });
});
