import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { times } from '../support/long-values.ts';
import { getText, useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

/** Returns names of equal length that differ only in their last four digits, so that each is a possible suggestion. */
const similarNames = (length: number, count: number, sign: string): string[] =>
  times(count, (i) => `${sign.repeat(length - 4)}${String(i).padStart(4, '0')}`);
const makeRecord = (names: readonly string[], value: unknown): Json =>
  Object.fromEntries(names.map((name) => [name, value]));

describe('CPU budget of "did you mean" suggestions', () => {
  const toolhost = useCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0' });
  before(() => toolhost.upstream.on('*', () => ({ body: { ok: true } })));

  const makeTool = (fields: Json) =>
    buildToolAt(`${toolhost.upstream.url}/things`, { name: 'run', method: 'POST', ...fields });
  const makeConfig = (slug: string, fields: Json, server: Json = {}) => ({
    name: 'Guesses',
    slug,
    tools: [makeTool(fields)],
    ...server,
  });
  const checkConfig = async (label: string, candidate: Json): Promise<string> => {
    const { status, text } = await toolhost.measure(label).rest('POST', '/check', candidate);
    assert.equal(status, 200, text.slice(0, 300));
    assert.ok(text.length < 100_000, `${label}: a response of ${text.length} characters`);
    return text;
  };

  it('[find A2] suggests corrections for 100 unknown names among 1,500 properties within the CPU budget', async () => {
    const properties = makeRecord(similarNames(95, 1500, 'p'), {});
    const filter = { type: 'object', properties, additionalProperties: false };
    const input_schema = { type: 'object', properties: { filter } };
    await toolhost.createServer(makeConfig('guesses', { input_schema }));
    const args = JSON.stringify({ filter: makeRecord(similarNames(95, 100, 'q'), 1) });
    assert.match(
      getText(await toolhost.measure('unknown names').call('guesses', 'run', args)),
      /unknown property; allowed: .*; and 90 more$/,
    );
    const similar = JSON.stringify({ filter: { [`${'p'.repeat(91)}x001`]: 1 } });
    assert.match((await toolhost.call('guesses', 'run', similar)).text, /did you mean `p+0001`/);
  });

  it('[find A1] reports response_fields that are missing from output_schema within the CPU budget', async () => {
    const output_schema = { type: 'object', properties: makeRecord(similarNames(90, 480, 'p'), {}) };
    const config = makeConfig('guessed', { output_schema, response_fields: similarNames(90, 100, 'q') });
    assert.match(await checkConfig('response_fields', config), /output_schema has no property/);
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
    assert.match(text, /omit r+…/);
  });

  it('[find A1] reports 1,000 unknown fields and schema keywords within the CPU budget', async () => {
    await checkConfig('fields', { ...makeConfig('guessed', {}), ...makeRecord(similarNames(30, 1000, 'p'), 1) });
    const properties = { a: makeRecord(similarNames(30, 1000, 'p'), 1) };
    await checkConfig('keywords', makeConfig('guessed', { input_schema: { type: 'object', properties } }));
  });
});
