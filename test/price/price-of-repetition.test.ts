import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { toolAt } from '../support/configs.ts';
import { type Answered, type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const mostPlaceholders = 1000;
const longestSecret = 's'.repeat(8192);
const longestVariable = { value: 'v'.repeat(500) };
const repeated = (text: string, count: number) => Array.from({ length: count }, () => text);
/** Returns headers that contain a placeholder `count` times. */
const headers = (count: number): Json =>
  Object.fromEntries(
    repeated('{{X}}', Math.ceil(count / 500)).map((text, n) => [`X-${n}`, text.repeat(Math.min(500, count - 500 * n))]),
  );
/** Tool fields that repeat a placeholder `count` times. */
const places: Record<string, (count: number) => Json> = {
  'one text of a body': (count) => ({ body_template: { all: '{{X}}'.repeat(count) } }),
  'a constant': (count) => ({ input_schema: { c: { type: 'array', value: repeated('{{X}}', count) } } }),
  headers: (count) => ({ headers: headers(count) }),
};

describe('CPU budget of repeated placeholders', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost();
    priced.upstream.on('*', () => ({ body: { ok: true } }));
  });
  after(() => priced.stop());

  let served = 0;
  const create = (tool: Json, server: Json = {}) => {
    const slug = `repeats-${++served}`;
    const run = toolAt(`${priced.upstream.url}/things`, { name: 'run', method: 'POST', ...tool });
    return priced.rest('POST', '/servers', { name: 'Repeats', slug, tools: [run], ...server });
  };
  const serve = async (tool: Json, server: Json = {}) => {
    const { status, text } = await create(tool, server);
    assert.equal(status, 201, text);
    return `repeats-${served}`;
  };
  const storeSecret = async (slug: string, value: string) => {
    const { status, text } = await priced.rest('PUT', `/servers/${slug}/secrets/X`, { value });
    assert.equal(status, 200, text);
  };
  const textOf = ({ body }: Answered) => String((body.result as { content: { text: string }[] }).content[0]?.text);

  for (const [place, tool] of Object.entries(places)) {
    it(`[find A1] [find A2] renders the maximum number of placeholders within the CPU budget in ${place}`, async () => {
      const slug = await serve(tool(mostPlaceholders));
      await storeSecret(slug, longestSecret);
      const refused = await priced.costsLittle(place, () => priced.call(slug, 'run', '{}'));
      assert.match(textOf(refused), /the secrets of this tool would add more than 1048576 characters/);
      await storeSecret(slug, 's');
      const sent = await priced.costsLittle(`short secrets, ${place}`, () => priced.call(slug, 'run', '{}'));
      assert.match(textOf(sent), /ok/);
      await create(tool(mostPlaceholders), { variables: { X: longestVariable } });
      const filled = `repeats-${served}`;
      await priced.costsLittle(`variables, ${place}`, () => priced.call(filled, 'run', '{}'));
    });

    it(`[find A1] rejects more than 1,000 placeholders in ${place}`, async () => {
      for (const count of [mostPlaceholders + 1, 100_000]) {
        const made = await priced.costsLittle(`${count} in ${place}`, () =>
          create(tool(count), { variables: { X: longestVariable } }),
        );
        assert.equal(made.status, 400);
        assert.match(made.text, /more than 1000 placeholders|has too many headers/);
      }
    });
  }

  it('[find A1] counts placeholders in server headers and in fixed arguments of a view', async () => {
    const many = headers(mostPlaceholders + 1);
    const variables = { X: longestVariable };
    const ofServer = await priced.costsLittle('headers of a server', () => create({}, { headers: many, variables }));
    assert.match(ofServer.text, /headers: has more than 1000 placeholders/);
    const fixed = { tools: [{ name: 'run', arguments: { a: repeated('{{X}}', mostPlaceholders + 1) } }] };
    const input_schema = { a: { type: 'array' } };
    const ofView = await priced.costsLittle('a view', () =>
      create({ input_schema }, { views: { some: fixed }, variables }),
    );
    assert.match(ofView.text, /has more than 1000 placeholders/);
  });

  it('[find A2] applies one size limit to all copies of arguments in a body', async () => {
    for (const count of [5, 16, 40, 100]) {
      const names = Array.from({ length: count }, (_, n) => `a${n}_`);
      const text = names.map((name) => `:${name}`).join(' ');
      const copies = Math.floor(mostPlaceholders / count);
      const slug = await serve({
        input_schema: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
        body_template: repeated(text, copies),
      });
      const call = (characters: number) => {
        const args = Object.fromEntries(names.map((name) => [name, 'x'.repeat(characters / count)]));
        return priced.costsLittle(`${characters} in ${count} arguments`, () =>
          priced.call(slug, 'run', JSON.stringify(args)),
        );
      };
      assert.match(textOf(await call(1_000_000)), /is sent \d+ times in one body, which is then too long/);
      assert.match(textOf(await call(3_500_000 / copies)), /ok/);
    }
  });
});
