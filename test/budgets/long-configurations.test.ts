import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  type CpuBudgetToolhost,
  type HttpReply,
  startCpuBudgetToolhost,
} from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const times = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));

describe('CPU budget of long configurations', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost({ QUOTAS: 'writes=0', REFUSALS_PER_MINUTE: '0' });
  });
  after(() => toolhost.stop());

  describe('comparison', () => {
    const makeLeaves = (count: number, value: unknown): Json =>
      Object.fromEntries(times(count, (i) => [`n${i.toString(36)}`, value]));
    type Plan = { changes: { path: string }[]; undone: string[] };
    type Audit = { events: { detail: { fields: string[] } }[] };
    /** Returns nested objects under long names. */
    const makeNested = (levels: number, name: string, inner: Json): Json =>
      levels === 0 ? inner : { [`${name}${levels}`]: makeNested(levels - 1, name, inner) };

    const makeConfig = (slug: string, value: unknown, description = 'first'): Json => ({
      name: 'Compared',
      slug,
      description,
      tools: [
        buildToolAt('https://api.example.com/things', {
          method: 'POST',
          input_schema: { type: 'object', properties: { a: { default: value } } },
        }),
      ],
    });
    const requestWithinBudget = async (
      label: string,
      method: string,
      path: string,
      body?: Json,
    ): Promise<HttpReply> => {
      const text = body && JSON.stringify(body);
      const reply = await toolhost.assertWithinBudget(label, () => toolhost.rest(method, path, text));
      assert.equal(reply.status, 200, `${label}: ${reply.text.slice(0, 300)}`);
      assert.ok(reply.text.length < 5_000_000, `${label}: a response of ${reply.text.length} characters`);
      return reply;
    };
    /** Applies a configuration with the first value and returns the plan for the second value. */
    const applyAndPlan = async (slug: string, [before, after]: [unknown, unknown]): Promise<Plan> => {
      await requestWithinBudget('apply', 'POST', `/servers/${slug}/apply`, { config: makeConfig(slug, before) });
      const { body } = await requestWithinBudget('plan', 'POST', `/servers/${slug}/plan`, {
        config: makeConfig(slug, after),
      });
      assert.deepEqual(body.problems, []);
      return body as Plan;
    };

    it('[find A1] shortens paths with long names in plans and in the audit log within the CPU budget', async () => {
      const name = 'k'.repeat(20_000);
      const makeDeepValue = (value: number) => makeNested(20, name, makeLeaves(600, value));
      const { changes } = await applyAndPlan('long-names', [makeDeepValue(1), makeDeepValue(2)]);
      assert.equal(changes.length, 500);
      assert.ok(JSON.stringify(changes).length < 200_000);
      const makeLongValue = (value: number) => ({ ['k'.repeat(900_000)]: makeLeaves(30, value) });
      for (const value of times(4, (i) => i))
        await requestWithinBudget('apply', 'POST', '/servers/one-long-name/apply', {
          config: makeConfig('one-long-name', makeLongValue(value)),
        });
      const { body } = await requestWithinBudget('audit', 'GET', '/audit?limit=4');
      assert.ok(JSON.stringify(body).length < 50_000);
      const fields = (body as Audit).events[0]?.detail.fields ?? [];
      assert.equal(fields.length, 20);
      assert.match(fields[0] ?? '', /^tools\[get\]\.input_schema\.properties\.a\.default\.k+…$/);
    });

    it('[find A1] plans 28,000 changed values within the CPU budget and lists at most 500 changes', async () => {
      const slug = 'many-values';
      const body = await applyAndPlan(slug, [makeLeaves(28_000, 1), makeLeaves(28_000, 2)]);
      assert.equal(body.changes.length, 500);
      assert.deepEqual(body.undone, []);
      await requestWithinBudget('elsewhere', 'PUT', `/servers/${slug}`, makeConfig(slug, makeLeaves(28_000, 3)));
      const config = makeConfig(slug, makeLeaves(28_000, 2));
      const { body: laterPlan } = await requestWithinBudget('plan after a change', 'POST', `/servers/${slug}/plan`, {
        config,
      });
      assert.equal((laterPlan as Plan).undone.length, 500);
    });

    it('[find A1] compares lists of 55,000 values within the CPU budget', async () => {
      const makeList = (last: unknown) => [...times(55_000, (i) => i), last];
      const { changes } = await applyAndPlan('long-list', [makeList(1), makeList(2)]);
      assert.deepEqual(
        changes.map(({ path }) => path),
        ['tools[get].input_schema.properties.a.default'],
      );
    });
  });

  describe('variable interpolation', () => {
    /** CPU budget, in units, of a large configuration with many placeholders. */
    const maxUnits = 1;

    const makeConfig = (slug: string, placeholders: number, value: string, more: Json = {}) => ({
      name: 'Filled',
      slug,
      variables: { V: { value }, W: { value } },
      tools: Array.from({ length: 800 }, (_, n) => ({
        ...buildToolAt(`${toolhost.upstream.url}/thing`, {
          method: 'POST',
          input_schema: { a: { type: 'string', value: '{{V}}{{W}}'.repeat(placeholders / 2) } },
        }),
        name: `tool_${n}`,
        description: `Takes it. ${'It is long. '.repeat(placeholders > 100 ? 1 : 300)}`,
      })),
      ...more,
    });

    it('[find A1] interpolates the maximum number of placeholders without secrets within the CPU budget', async () => {
      const requestWithinBudget = async (label: string, method: string, path: string, body?: Json) => {
        const { status, text } = await toolhost.assertWithinBudget(
          label,
          () => toolhost.rest(method, path, body),
          maxUnits,
        );
        assert.ok(status < 300, `${label}: ${status} ${text.slice(0, 300)}`);
      };
      let serverCount = 0;
      const create = () => toolhost.rest('POST', '/servers', makeConfig(`filled-${++serverCount}`, 62, 'vvvvv'));
      const { status, text } = await toolhost.assertWithinBudget('create', create, maxUnits);
      assert.equal(status, 201, text.slice(0, 300));
      const path = `/servers/filled-${serverCount}`;
      await requestWithinBudget('get', 'GET', path);
      await requestWithinBudget('change', 'PATCH', path, { name: 'Other' });
      await requestWithinBudget('connection', 'POST', `${path}/connection-check`, {});
      await requestWithinBudget('change a tool', 'PATCH', `${path}/tools/tool_7`, { title: 'Seven' });
      const { text: callText } = await toolhost.assertWithinBudget(
        'call',
        () => toolhost.call(`filled-${serverCount}`, 'tool_3', '{}'),
        maxUnits,
      );
      assert.ok(callText.includes('"result"') && !callText.includes('"isError":true'), callText.slice(0, 300));
    });

    it('[find A1] rejects too many placeholders and too long values within the CPU budget', async () => {
      const headers = { 'x-0': '{{V}}'.repeat(490), 'x-1': '{{V}}'.repeat(490) };
      const configs: [Json, RegExp][] = [
        [makeConfig('refused', 990, 'v'), /has 792000 placeholders \{\{NAME\}\} in total; allowed: 50000/],
        [makeConfig('refused', 990, 'v'.repeat(500)), /variables insert 495000 characters; allowed: 65536/],
        [makeConfig('refused', 2, '', { headers, variables: { V: { value: 'v'.repeat(500) } } }), /headers\.x-0/],
      ];
      for (const [config, expected] of configs) {
        const body = JSON.stringify(config);
        const { status, text } = await toolhost.assertWithinBudget(
          String(expected),
          () => toolhost.rest('POST', '/servers', body),
          maxUnits,
        );
        assert.deepEqual([status, expected.test(text)], [400, true], text.slice(0, 500));
      }
    });
  });

  /** V8 parses names with an escape incorrectly. The service's own parser reads them, which takes ten times as long. */
  describe('names with escapes', () => {
    const makeNames = (count: number): Json => Object.fromEntries(times(count, (k) => [`"${k}`, '\n'.repeat(15)]));
    const makeConfig = (slug: string, objects: number, description: string): Json => ({
      name: 'Escaped',
      slug,
      description,
      tools: [
        buildToolAt('https://api.example.com/things', {
          method: 'POST',
          input_schema: {
            type: 'object',
            properties: { a: { enum: times(objects, (n) => ({ ...makeNames(490), n })) } },
          },
        }),
      ],
    });

    for (const [sizeLabel, objects] of [
      ['345 KB', 18],
      ['3.7 MB', 190],
    ] as const) {
      it(`[find A1] reads and changes a configuration of ${sizeLabel} with escaped names within the CPU budget`, async () => {
        const slug = `escaped-${objects}`;
        assert.equal((await toolhost.rest('POST', '/servers', makeConfig(slug, objects, 'first'))).status, 201);
        let count = 0;
        const requestWithinBudget = async (method: string, path: string, body?: () => Json) => {
          const label = `${method} ${path}`;
          const reply = await toolhost.assertWithinBudget(label, () => toolhost.rest(method, path, body?.()));
          assert.ok(reply.status < 300, `${label}: ${reply.status} ${reply.text.slice(0, 300)}`);
        };
        const at = `/servers/${slug}`;
        for (const path of [at, `${at}/limits`, `${at}/versions`, `/activity?slug=${slug}`, '/servers'])
          await requestWithinBudget('GET', path);
        await requestWithinBudget('PATCH', at, () => ({ description: `change ${count++}` }));
        await requestWithinBudget('PUT', `${at}/secrets/S`, () => ({ value: `secret value ${count++}` }));
        await requestWithinBudget('POST', `${at}/versions/1/restore`);
        await requestWithinBudget('POST', `${at}/connection-check`, () => ({}));
        const first = await toolhost.assertWithinBudget('first call', async () => {
          await toolhost.rest('PATCH', at, { description: `change ${count++}` });
          return toolhost.call(slug, 'get', '{}');
        });
        assert.equal(first.status, 200, first.text);
      });
    }
  });
});
