import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { toolAt } from '../support/configs.ts';
import { type Answered, type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
const leaves = (count: number, value: unknown): Json =>
  Object.fromEntries(times(count, (i) => [`n${i.toString(36)}`, value]));
type Plan = { changes: { path: string }[]; undone: string[] };
type Audit = { events: { detail: { fields: string[] } }[] };
/** Objects in one another under long names. */
const nested = (levels: number, name: string, inner: Json): Json =>
  levels === 0 ? inner : { [`${name}${levels}`]: nested(levels - 1, name, inner) };

describe('the cost of comparing configurations', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ REFUSALS_PER_MINUTE: '0' });
  });
  after(() => priced.stop());

  const configOf = (slug: string, value: unknown, description = 'first'): Json => ({
    name: 'Compared',
    slug,
    description,
    tools: [
      toolAt('https://api.example.com/things', {
        method: 'POST',
        input_schema: { type: 'object', properties: { a: { default: value } } },
      }),
    ],
  });
  const ask = async (what: string, method: string, path: string, body?: Json): Promise<Answered> => {
    const text = body && JSON.stringify(body);
    const reply = await priced.costsLittle(what, () => priced.rest(method, path, text));
    assert.equal(reply.status, 200, `${what}: ${reply.text.slice(0, 300)}`);
    assert.ok(reply.text.length < 5_000_000, `${what}: an answer of ${reply.text.length}`);
    return reply;
  };
  /** A server with a value as it was applied, and what an apply of the other value would change. */
  const planned = async (slug: string, [before, after]: [unknown, unknown]): Promise<Plan> => {
    await ask('apply', 'POST', `/servers/${slug}/apply`, { config: configOf(slug, before) });
    const { body } = await ask('plan', 'POST', `/servers/${slug}/plan`, { config: configOf(slug, after) });
    assert.deepEqual(body.problems, []);
    return body as Plan;
  };

  it('[find A1] names of any length make short paths, in plans and in the audit', async () => {
    const name = 'k'.repeat(20_000);
    const deep = (value: number) => nested(20, name, leaves(600, value));
    const { changes } = await planned('long-names', [deep(1), deep(2)]);
    assert.equal(changes.length, 500);
    assert.ok(JSON.stringify(changes).length < 200_000);
    const long = (value: number) => ({ ['k'.repeat(900_000)]: leaves(30, value) });
    for (const value of times(4, (i) => i))
      await ask('apply', 'POST', '/servers/one-long-name/apply', { config: configOf('one-long-name', long(value)) });
    const { body } = await ask('audit', 'GET', '/audit?limit=4');
    assert.ok(JSON.stringify(body).length < 50_000);
    const fields = (body as Audit).events[0]?.detail.fields ?? [];
    assert.equal(fields.length, 20);
    assert.match(fields[0] ?? '', /^tools\[get\]\.input_schema\.properties\.a\.default\.k+…$/);
  });

  it('[find A1] a tool with 28,000 values that all changed, here and elsewhere', async () => {
    const slug = 'many-values';
    const body = await planned(slug, [leaves(28_000, 1), leaves(28_000, 2)]);
    assert.equal(body.changes.length, 500);
    assert.deepEqual(body.undone, []);
    await ask('elsewhere', 'PUT', `/servers/${slug}`, configOf(slug, leaves(28_000, 3)));
    const config = configOf(slug, leaves(28_000, 2));
    const { body: again } = await ask('plan after a change', 'POST', `/servers/${slug}/plan`, { config });
    assert.equal((again as Plan).undone.length, 500);
  });

  it('[find A1] long lists, of which the last value changed', async () => {
    const list = (last: unknown) => [...times(55_000, (i) => i), last];
    const { changes } = await planned('long-list', [list(1), list(2)]);
    assert.deepEqual(
      changes.map(({ path }) => path),
      ['tools[get].input_schema.properties.a.default'],
    );
  });
});
