import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { toolAt } from '../support/configs.ts';
import { type Answered, type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));

describe('CPU budget of long configurations', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ QUOTAS: 'writes=0', REFUSALS_PER_MINUTE: '0' });
  });
  after(() => priced.stop());

  describe('comparison', () => {
    const leaves = (count: number, value: unknown): Json =>
      Object.fromEntries(times(count, (i) => [`n${i.toString(36)}`, value]));
    type Plan = { changes: { path: string }[]; undone: string[] };
    type Audit = { events: { detail: { fields: string[] } }[] };
    /** Returns nested objects under long names. */
    const nested = (levels: number, name: string, inner: Json): Json =>
      levels === 0 ? inner : { [`${name}${levels}`]: nested(levels - 1, name, inner) };

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
      assert.ok(reply.text.length < 5_000_000, `${what}: a response of ${reply.text.length} characters`);
      return reply;
    };
    /** Applies a configuration with the first value and returns the plan for the second value. */
    const planned = async (slug: string, [before, after]: [unknown, unknown]): Promise<Plan> => {
      await ask('apply', 'POST', `/servers/${slug}/apply`, { config: configOf(slug, before) });
      const { body } = await ask('plan', 'POST', `/servers/${slug}/plan`, { config: configOf(slug, after) });
      assert.deepEqual(body.problems, []);
      return body as Plan;
    };

    it('[find A1] shortens paths with long names in plans and in the audit log within the CPU budget', async () => {
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

    it('[find A1] plans 28,000 changed values within the CPU budget and lists at most 500 changes', async () => {
      const slug = 'many-values';
      const body = await planned(slug, [leaves(28_000, 1), leaves(28_000, 2)]);
      assert.equal(body.changes.length, 500);
      assert.deepEqual(body.undone, []);
      await ask('elsewhere', 'PUT', `/servers/${slug}`, configOf(slug, leaves(28_000, 3)));
      const config = configOf(slug, leaves(28_000, 2));
      const { body: again } = await ask('plan after a change', 'POST', `/servers/${slug}/plan`, { config });
      assert.equal((again as Plan).undone.length, 500);
    });

    it('[find A1] compares lists of 55,000 values within the CPU budget', async () => {
      const list = (last: unknown) => [...times(55_000, (i) => i), last];
      const { changes } = await planned('long-list', [list(1), list(2)]);
      assert.deepEqual(
        changes.map(({ path }) => path),
        ['tools[get].input_schema.properties.a.default'],
      );
    });
  });

  describe('variable interpolation', () => {
    /** CPU budget, in units, of a large configuration with many placeholders. */
    const most = 1;

    const configOf = (slug: string, placeholders: number, value: string, more: Json = {}) => ({
      name: 'Filled',
      slug,
      variables: { V: { value }, W: { value } },
      tools: Array.from({ length: 800 }, (_, n) => ({
        ...toolAt(`${priced.upstream.url}/thing`, {
          method: 'POST',
          input_schema: { a: { type: 'string', value: '{{V}}{{W}}'.repeat(placeholders / 2) } },
        }),
        name: `tool_${n}`,
        description: `Takes it. ${'It is long. '.repeat(placeholders > 100 ? 1 : 300)}`,
      })),
      ...more,
    });

    it('[find A1] interpolates the maximum number of placeholders without secrets within the CPU budget', async () => {
      const costs = async (what: string, method: string, path: string, body?: Json) => {
        const { status, text } = await priced.costsLittle(what, () => priced.rest(method, path, body), most);
        assert.ok(status < 300, `${what}: ${status} ${text.slice(0, 300)}`);
      };
      let made = 0;
      const create = () => priced.rest('POST', '/servers', configOf(`filled-${++made}`, 62, 'vvvvv'));
      const { status, text } = await priced.costsLittle('create', create, most);
      assert.equal(status, 201, text.slice(0, 300));
      const path = `/servers/filled-${made}`;
      await costs('get', 'GET', path);
      await costs('change', 'PATCH', path, { name: 'Other' });
      await costs('connection', 'POST', `${path}/connection-check`, {});
      await costs('change a tool', 'PATCH', `${path}/tools/tool_7`, { title: 'Seven' });
      const { text: said } = await priced.costsLittle(
        'call',
        () => priced.call(`filled-${made}`, 'tool_3', '{}'),
        most,
      );
      assert.ok(said.includes('"result"') && !said.includes('"isError":true'), said.slice(0, 300));
    });

    it('[find A1] rejects too many placeholders and too long values within the CPU budget', async () => {
      const headers = { 'x-0': '{{V}}'.repeat(490), 'x-1': '{{V}}'.repeat(490) };
      const configs: [Json, RegExp][] = [
        [configOf('refused', 990, 'v'), /has 792000 placeholders \{\{NAME\}\} in total; allowed: 50000/],
        [configOf('refused', 990, 'v'.repeat(500)), /variables insert 495000 characters; allowed: 65536/],
        [configOf('refused', 2, '', { headers, variables: { V: { value: 'v'.repeat(500) } } }), /headers\.x-0/],
      ];
      for (const [config, expected] of configs) {
        const body = JSON.stringify(config);
        const { status, text } = await priced.costsLittle(
          String(expected),
          () => priced.rest('POST', '/servers', body),
          most,
        );
        assert.deepEqual([status, expected.test(text)], [400, true], text.slice(0, 500));
      }
    });
  });

  /** V8 parses names with an escape incorrectly. The service's own parser reads them, which takes ten times as long. */
  describe('names with escapes', () => {
    const names = (count: number): Json => Object.fromEntries(times(count, (k) => [`"${k}`, '\n'.repeat(15)]));
    const configOf = (slug: string, objects: number, description: string): Json => ({
      name: 'Escaped',
      slug,
      description,
      tools: [
        toolAt('https://api.example.com/things', {
          method: 'POST',
          input_schema: { type: 'object', properties: { a: { enum: times(objects, (n) => ({ ...names(490), n })) } } },
        }),
      ],
    });

    for (const [what, objects] of [
      ['345 KB', 18],
      ['3.7 MB', 190],
    ] as const) {
      it(`[find A1] reads and changes a configuration of ${what} with escaped names within the CPU budget`, async () => {
        const slug = `escaped-${objects}`;
        assert.equal((await priced.rest('POST', '/servers', configOf(slug, objects, 'first'))).status, 201);
        let count = 0;
        const ask = async (method: string, path: string, body?: () => Json) => {
          const what = `${method} ${path}`;
          const reply = await priced.costsLittle(what, () => priced.rest(method, path, body?.()));
          assert.ok(reply.status < 300, `${what}: ${reply.status} ${reply.text.slice(0, 300)}`);
        };
        const at = `/servers/${slug}`;
        for (const path of [at, `${at}/limits`, `${at}/versions`, `/activity?slug=${slug}`, '/servers'])
          await ask('GET', path);
        await ask('PATCH', at, () => ({ description: `change ${count++}` }));
        await ask('PUT', `${at}/secrets/S`, () => ({ value: `secret value ${count++}` }));
        await ask('POST', `${at}/versions/1/restore`);
        await ask('POST', `${at}/connection-check`, () => ({}));
        const first = await priced.costsLittle('first call', async () => {
          await priced.rest('PATCH', at, { description: `change ${count++}` });
          return priced.call(slug, 'get', '{}');
        });
        assert.equal(first.status, 200, first.text);
      });
    }
  });
});
