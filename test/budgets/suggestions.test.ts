import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
/** Returns names of equal length that differ only in their last four digits, so that each is a possible suggestion. */
const similarNames = (length: number, count: number, sign: string): string[] =>
  times(count, (i) => `${sign.repeat(length - 4)}${String(i).padStart(4, '0')}`);
const makeRecord = (names: readonly string[], value: unknown): Json =>
  Object.fromEntries(names.map((name) => [name, value]));

describe('CPU budget of "did you mean" suggestions', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
    toolhost.upstream.on('*', () => ({ body: { ok: true } }));
  });
  after(() => toolhost.stop());

  const makeTool = (fields: Json) =>
    buildToolAt(`${toolhost.upstream.url}/things`, { name: 'run', method: 'POST', ...fields });
  const makeConfig = (slug: string, fields: Json, server: Json = {}) => ({
    name: 'Guesses',
    slug,
    tools: [makeTool(fields)],
    ...server,
  });
  const checkConfig = async (label: string, candidate: Json): Promise<string> => {
    const { status, text } = await toolhost.assertWithinBudget(label, () => toolhost.rest('POST', '/check', candidate));
    assert.equal(status, 200, text.slice(0, 300));
    assert.ok(text.length < 100_000, `${label}: a response of ${text.length} characters`);
    return text;
  };

  it('[find A2] suggests corrections for 100 unknown names among 1,500 properties within the CPU budget', async () => {
    const filter = {
      type: 'object',
      properties: makeRecord(similarNames(95, 1500, 'p'), {}),
      additionalProperties: false,
    };
    const input_schema = { type: 'object', properties: { filter } };
    const created = await toolhost.rest('POST', '/servers', makeConfig('guesses', { input_schema }));
    assert.equal(created.status, 201, created.text);
    const args = JSON.stringify({ filter: makeRecord(similarNames(95, 100, 'q'), 1) });
    const { body } = await toolhost.assertWithinBudget('unknown names', () => toolhost.call('guesses', 'run', args));
    const { content } = body.result as ToolCallResult;
    assert.match(content[0]?.text ?? '', /unknown property; allowed: .*; and 90 more$/);
    const suggested = await toolhost.call(
      'guesses',
      'run',
      JSON.stringify({ filter: makeRecord([`${'p'.repeat(91)}x001`], 1) }),
    );
    assert.match(suggested.text, /did you mean `p+0001`/);
  });

  it('[find A1] reports response_fields that are missing from output_schema within the CPU budget', async () => {
    const output_schema = { type: 'object', properties: makeRecord(similarNames(90, 480, 'p'), {}) };
    const text = await checkConfig(
      'response_fields',
      makeConfig('guessed', { output_schema, response_fields: similarNames(90, 100, 'q') }),
    );
    assert.match(text, /output_schema has no property/);
  });

  it('[find A1] reports view tools and tags that the server does not have within the CPU budget', async () => {
    const tools = similarNames(40, 150, 'p').map((name) => makeTool({ name, tags: [name] }));
    const views = { some: { tools: similarNames(40, 200, 'q'), tags: similarNames(40, 50, 'q') } };
    const text = await checkConfig('tools', { ...makeConfig('guessed', {}, { views }), tools });
    assert.match(text, /the server has no tool/);
  });

  it('[find A1] shortens long names in warnings', async () => {
    const required = times(3, (i) => `${'r'.repeat(200_000)}${i}`);
    const output_schema = { type: 'object', properties: { a: {} }, required };
    const text = await checkConfig('long names', makeConfig('guessed', { output_schema, response_fields: ['a'] }));
    assert.match(text, /leave out r+…/);
  });

  it('[find A1] reports 1,000 unknown fields and schema keywords within the CPU budget', async () => {
    await checkConfig('fields', { ...makeConfig('guessed', {}), ...makeRecord(similarNames(30, 1000, 'p'), 1) });
    await checkConfig(
      'keywords',
      makeConfig('guessed', {
        input_schema: { type: 'object', properties: { a: makeRecord(similarNames(30, 1000, 'p'), 1) } },
      }),
    );
  });
});
