import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { makeObject, times } from '../support/long-values.ts';
import { getText, useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const maxPlaceholders = 1000;
const maxSecret = 's'.repeat(8192);
const variables = { X: { value: 'v'.repeat(500) } };
const repeated = (text: string, count: number) => times(count, () => text);
/** Returns headers that contain a placeholder `count` times. */
const makeHeaders = (count: number): Json =>
  makeObject(Math.ceil(count / 500), (n) => [`X-${n}`, '{{X}}'.repeat(Math.min(500, count - 500 * n))]);
/** Tool fields that repeat a placeholder `count` times. */
const placeholderFields: Record<string, (count: number) => Json> = {
  'one text of a body': (count) => ({ body_template: { all: '{{X}}'.repeat(count) } }),
  'a constant': (count) => ({ input_schema: { c: { type: 'array', value: repeated('{{X}}', count) } } }),
  headers: (count) => ({ headers: makeHeaders(count) }),
};

describe('CPU budget of repeated placeholders', () => {
  const toolhost = useCpuBudgetToolhost();
  before(() => toolhost.upstream.on('*', () => ({ body: { ok: true } })));

  let serverCount = 0;
  const tryCreateServer = (tool: Json, server: Json = {}) => {
    const slug = `repeats-${++serverCount}`;
    const run = buildToolAt(`${toolhost.upstream.url}/things`, { name: 'run', method: 'POST', ...tool });
    return toolhost.rest('POST', '/servers', { name: 'Repeats', slug, tools: [run], ...server });
  };
  const createServer = async (tool: Json) => {
    const { status, text } = await tryCreateServer(tool);
    assert.equal(status, 201, text);
    return `repeats-${serverCount}`;
  };
  const storeSecret = async (slug: string, value: string) => {
    const { status, text } = await toolhost.rest('PUT', `/servers/${slug}/secrets/X`, { value });
    assert.equal(status, 200, text);
  };

  for (const [location, tool] of Object.entries(placeholderFields)) {
    it(`[find A1] [find A2] renders the maximum number of placeholders within the CPU budget in ${location}`, async () => {
      const slug = await createServer(tool(maxPlaceholders));
      await storeSecret(slug, maxSecret);
      const refused = await toolhost.measure(location).call(slug, 'run');
      assert.match(getText(refused), /the secrets of this tool would add more than 1048576 characters/);
      await storeSecret(slug, 's');
      const called = await toolhost.measure(`short secrets, ${location}`).call(slug, 'run');
      assert.match(getText(called), /ok/);
      await tryCreateServer(tool(maxPlaceholders), { variables });
      await toolhost.measure(`variables, ${location}`).call(`repeats-${serverCount}`, 'run');
    });

    it(`[find A1] rejects more than 1,000 placeholders in ${location}`, async () => {
      for (const count of [maxPlaceholders + 1, 100_000]) {
        const created = await toolhost.assertWithinBudget(`${count} in ${location}`, () =>
          tryCreateServer(tool(count), { variables }),
        );
        assert.equal(created.status, 400);
        assert.match(created.text, /more than 1000 placeholders|has too many headers/);
      }
    });
  }

  it('[find A1] counts placeholders in server headers and in fixed arguments of a view', async () => {
    const headers = makeHeaders(maxPlaceholders + 1);
    const serverResponse = await toolhost.assertWithinBudget('headers of a server', () =>
      tryCreateServer({}, { headers, variables }),
    );
    assert.match(serverResponse.text, /headers: has more than 1000 placeholders/);
    const fixed = { tools: [{ name: 'run', arguments: { a: repeated('{{X}}', maxPlaceholders + 1) } }] };
    const input_schema = { a: { type: 'array' } };
    const viewResponse = await toolhost.assertWithinBudget('a view', () =>
      tryCreateServer({ input_schema }, { views: { some: fixed }, variables }),
    );
    assert.match(viewResponse.text, /has more than 1000 placeholders/);
  });

  it('[find A2] applies one size limit to all copies of arguments in a body', async () => {
    for (const count of [5, 16, 40, 100]) {
      const names = times(count, (n) => `a${n}_`);
      const text = names.map((name) => `:${name}`).join(' ');
      const copies = Math.floor(maxPlaceholders / count);
      const slug = await createServer({
        input_schema: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
        body_template: repeated(text, copies),
      });
      const call = (characters: number) => {
        const args = Object.fromEntries(names.map((name) => [name, 'x'.repeat(characters / count)]));
        return toolhost.measure(`${characters} in ${count} arguments`).call(slug, 'run', JSON.stringify(args));
      };
      assert.match(getText(await call(1_000_000)), /is sent \d+ times in one body, which is then too long/);
      assert.match(getText(await call(3_500_000 / copies)), /ok/);
    }
  });
});
