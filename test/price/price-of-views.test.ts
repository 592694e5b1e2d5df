import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';

const mostTools = 1000;
const mostViews = 20;
const authentication = { type: 'Bearer', token: 'of-the-upstream' };

describe('the cost of views', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ QUOTAS: 'writes=0,tools=0', REFUSALS_PER_MINUTE: '0' });
  });
  after(() => priced.stop());

  const toolAt = (n: number) => ({
    name: `get_thing_${n}`,
    description: `Thing ${n} is the one to get, with all of its parts and what belongs to them.`,
    method: 'GET',
    url: `https://api.example.com/t${n}`,
    tags: ['all'],
    input_schema: { account: { type: 'string', pattern: '^(a|b)*c?$', optional: true }, id: { type: 'integer' } },
  });
  const tools = Array.from({ length: mostTools }, (_, n) => toolAt(n));
  const viewsOf = (view: object) =>
    Object.fromEntries(Array.from({ length: mostViews }, (_, n) => [`view-${n}`, view]));

  it('is little for 20 views of 1,000 tools, however they name them [agent 2]', async () => {
    const fixed = { tools: tools.map(({ name }) => ({ name, arguments: { account: 'abababababababc' } })) };
    for (const [name, view] of Object.entries({ tagged: { tags: ['all'] }, reading: { read_only: true }, fixed })) {
      const config = { name, slug: `server-${name}`, authentication, tools, views: viewsOf(view) };
      const checked = await priced.costsLittle(`check ${name}`, () => priced.rest('POST', '/check', config));
      assert.deepEqual(checked.body.problems, [], name);
      const made = await priced.costsLittle(`create ${name}`, () => priced.rest('POST', '/servers', config), 0.7);
      assert.equal(made.status, 201, made.text.slice(0, 300));
      const path = `/servers/server-${name}/tools/get_thing_7`;
      const changed = await priced.costsLittle(
        `change a tool ${name}`,
        () => priced.rest('PATCH', path, { title: 'Seven' }),
        0.7,
      );
      assert.equal(changed.status, 200, changed.text.slice(0, 300));
      for (const at of [0, 19]) {
        const list = await priced.costsLittle(`list ${name}`, () =>
          priced.rpc(`server-${name}/view-${at}`, 'tools/list', {}),
        );
        assert.equal((list.body.result as { tools: unknown[] }).tools.length, mostTools);
      }
    }
  });

  it('is bounded where views list too much, fix long values, or name what is not there [agent 2]', async () => {
    const many = [...tools, ...tools.map((tool) => ({ ...tool, name: `${tool.name}_again` }))];
    const long = { tools: tools.map(({ name }) => ({ name, arguments: { account: 'ab'.repeat(60) } })) };
    const absent = { tools: tools.map(({ name }) => `${name}_x`), tags: ['al'] };
    const problemsOf = async (what: string, more: object) => {
      const config = { name: 'x', slug: 'bounded', authentication, tools, ...more };
      const { body, status, text } = await priced.costsLittle(what, () => priced.rest('POST', '/check', config));
      assert.equal(status, 200, text.slice(0, 300));
      return (body.problems as { path: string; message: string }[]).map(({ path, message }) => `${path}: ${message}`);
    };
    assert.deepEqual(await problemsOf('too many', { tools: many, views: viewsOf({ tags: ['all'] }) }), [
      'views: list 40000 tools together; allowed: 20000. Name fewer, or set tool_mode to search in the larger ones',
    ]);
    assert.deepEqual(
      await problemsOf('search', { tools: many, views: viewsOf({ tags: ['all'], tool_mode: 'search' }) }),
      [],
    );
    const steps = await problemsOf('long values', { views: viewsOf(long) });
    assert.ok(
      steps.every((problem) => /more steps to check than a configuration has|^: and/.test(problem)),
      steps[0] ?? '',
    );
    const unknown = await problemsOf('absent', { views: viewsOf(absent) });
    assert.equal(unknown.length, 21);
    assert.match(unknown[20] ?? '', /and 200\d\d more/);
  });
});
