import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { configWith, toolWith } from './support/configurations.ts';
import { type PricedToolhost, startPricedToolhost } from './support/priced-toolhost.ts';
import type { Json } from './support/toolhost.ts';

describe('what a configuration costs to judge', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost();
  });
  after(() => priced.stop());

  const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
    Array.from({ length: count }, (_, i) => make(i));
  const object = (more: Json): Json => ({ type: 'object', properties: {}, ...more });
  const withSchema = (schema: Json, field = 'input_schema') =>
    configWith({ tools: [toolWith({ method: 'POST', [field]: schema })] });

  /** The problems that `checkMcpServer` tells, within the price of a request. */
  const problemsOf = async (what: string, config: Json): Promise<string[]> => {
    const { status, text, body } = await priced.costsLittle(what, () => priced.rest('POST', '/check', config));
    assert.ok(status === 200 || status === 413, text.slice(0, 500));
    if (status === 413) return [String(body.detail)];
    const problems = body.problems as { path: string; message: string }[];
    assert.ok(problems.length <= 21, `${problems.length} problems at once`);
    assert.ok(text.length < 60_000, 'and none of them is long');
    return problems.map(({ path, message }) => `${path}: ${message}`);
  };

  for (const count of [450, 1400, 9000]) {
    it(`[find A1] ${count} references to one anchor`, async () => {
      const schema = object({ $defs: { a: { $anchor: 'a' } }, allOf: times(count, () => ({ $ref: '#a' })) });
      for (const field of ['input_schema', 'output_schema']) {
        const problems = await problemsOf(`${count} references in ${field}`, withSchema(schema, field));
        assert.match(problems.join(), count > 1000 ? /unfolds to more than 2000 schemas/ : /^$/);
      }
    });
  }
});
