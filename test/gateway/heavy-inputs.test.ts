import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { ToolCallResult } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { useFixture } from '../support/use-fixtures.ts';

/** Patterns that take exponential or very long time in a backtracking matcher. */
const slowPatterns = ['(a+)+$', '(a?){500}a{500}', '(\\s*)*[^1-9]{1,2000}$'].map((pattern) => ({ pattern }));

/** The heaviest input of each kind. `test/budgets/`, in the full test set, has the others. */
describe('the event loop stays responsive with the heaviest allowed input', () => {
  const budgetedToolhost = useFixture(startCpuBudgetToolhost);
  before(async () => {
    const input_schema = { type: 'object', properties: { a: { anyOf: slowPatterns, items: { anyOf: slowPatterns } } } };
    const fields = Array.from({ length: 100 }, (_, i) => `field${i}.inner.value`);
    const tools = [
      buildToolAt(`${budgetedToolhost.upstream.url}/thing`, { name: 'patterns', method: 'POST', input_schema }),
      buildToolAt(`${budgetedToolhost.upstream.url}/long`, { name: 'fields', response_fields: fields }),
    ];
    const { status, text } = await budgetedToolhost.rest('POST', '/servers', { name: 'Heavy', slug: 'heavy', tools });
    assert.equal(status, 201, text);
  });
  it('[find A2] validates 1 MB of arguments against nested repetitions within the CPU budget', async () => {
    const many = Array(50_000).fill('"aaaaaaaaaaaa"');
    const texts = { one: `"${'a'.repeat(1024 * 1024 - 400)}"`, many: `[${many.join(',')}]` };
    for (const [name, a] of Object.entries(texts)) {
      const { status, text } = await budgetedToolhost.assertWithinBudget(name, () =>
        budgetedToolhost.call('heavy', 'patterns', `{"a":${a}}`),
      );
      assert.equal(status, 200, text.slice(0, 300));
    }
  });

  it('[find A2] selects 100 fields of a 10 MB response within the CPU budget', async () => {
    const body = `[${Array(3_000_000).fill('{}').join(',')}]`;
    budgetedToolhost.upstream.on('GET /long', () => ({ headers: { 'content-type': 'application/json' }, body }));
    const { body: reply } = await budgetedToolhost.assertWithinBudget('fields', () =>
      budgetedToolhost.call('heavy', 'fields', '{}'),
    );
    assert.equal((reply.result as ToolCallResult).content[0]?.text, body);
  });

  it('[play 1] reads a compressed 4 MB model response in small events within the CPU budget', async () => {
    const event = 'data: {"choices":[{"delta":{"content":"ab"}}]}\n\n';
    const body = gzipSync(event.repeat(4_000_000 / event.length));
    const headers = { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' };
    budgetedToolhost.upstream.on('*', () => ({ headers, body }));
    const model = { kind: 'openai', url: `${budgetedToolhost.upstream.url}/v1`, model: 'stub' };
    const question = { model, messages: [{ role: 'user', text: 'Hello' }] };
    const chatResponse = await budgetedToolhost.assertWithinBudget('model', () =>
      budgetedToolhost.rest('POST', '/servers/heavy/playground', question),
    );
    assert.equal(chatResponse.status, 200, chatResponse.text.slice(0, 300));
  });
});
