import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { makeObject, times } from '../support/long-values.ts';
import { useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

describe('CPU budget of long configurations', () => {
  const toolhost = useCpuBudgetToolhost({ QUOTAS: 'writes=0', REFUSALS_PER_MINUTE: '0' });

  const makeConfigWithSchema = (slug: string, input_schema: Json): Json => ({
    name: 'Long',
    slug,
    description: 'first',
    tools: [buildToolAt('https://api.example.com/things', { method: 'POST', input_schema })],
  });

  describe('comparison', () => {
    const makeLeaves = (count: number, value: unknown): Json => makeObject(count, (i) => [`n${i.toString(36)}`, value]);
    type Plan = { changes: { path: string }[]; undone: string[]; problems: unknown };
    type Audit = { events: { detail: { fields: string[] } }[] };
    /** Returns nested objects under long names. */
    const makeNested = (levels: number, name: string, inner: Json): Json =>
      levels === 0 ? inner : { [`${name}${levels}`]: makeNested(levels - 1, name, inner) };

    const makeConfig = (slug: string, value: unknown): Json =>
      makeConfigWithSchema(slug, { type: 'object', properties: { a: { default: value } } });
    const request = async (method: string, path: string, body?: Json): Promise<Json> => {
      const label = `${method} ${path}`;
      const reply = await toolhost.measure(label).rest(method, path, body);
      assert.equal(reply.status, 200, `${label}: ${reply.text.slice(0, 300)}`);
      assert.ok(reply.text.length < 5_000_000, `${label}: a response of ${reply.text.length} characters`);
      return reply.body;
    };
    const apply = (slug: string, value: unknown) =>
      request('POST', `/servers/${slug}/apply`, { config: makeConfig(slug, value) });
    const plan = async (slug: string, value: unknown) =>
      (await request('POST', `/servers/${slug}/plan`, { config: makeConfig(slug, value) })) as Plan;
    /** Applies a configuration with the first value and returns the plan for the second value. */
    const applyAndPlan = async (slug: string, first: unknown, second: unknown): Promise<Plan> => {
      await apply(slug, first);
      const body = await plan(slug, second);
      assert.deepEqual(body.problems, []);
      return body;
    };

    it('[find A1] shortens paths with long names in plans and in the audit log within the CPU budget', async () => {
      const name = 'k'.repeat(20_000);
      const makeDeepValue = (value: number) => makeNested(20, name, makeLeaves(600, value));
      const { changes } = await applyAndPlan('long-names', makeDeepValue(1), makeDeepValue(2));
      assert.equal(changes.length, 500);
      assert.ok(JSON.stringify(changes).length < 200_000);
      const makeLongValue = (value: number) => ({ ['k'.repeat(900_000)]: makeLeaves(30, value) });
      for (const value of [0, 1, 2, 3]) await apply('one-long-name', makeLongValue(value));
      const body = await request('GET', '/audit?limit=4');
      assert.ok(JSON.stringify(body).length < 50_000);
      const fields = (body as Audit).events[0]?.detail.fields ?? [];
      assert.equal(fields.length, 20);
      assert.match(fields[0] ?? '', /^tools\[get\]\.input_schema\.properties\.a\.default\.k+…$/);
    });

    it('[find A1] plans 28,000 changed values within the CPU budget and lists at most 500 changes', async () => {
      const slug = 'many-values';
      const body = await applyAndPlan(slug, makeLeaves(28_000, 1), makeLeaves(28_000, 2));
      assert.equal(body.changes.length, 500);
      assert.deepEqual(body.undone, []);
      await request('PUT', `/servers/${slug}`, makeConfig(slug, makeLeaves(28_000, 3)));
      assert.equal((await plan(slug, makeLeaves(28_000, 2))).undone.length, 500);
    });

    it('[find A1] compares lists of 55,000 values within the CPU budget', async () => {
      const makeList = (last: unknown) => [...times(55_000, (i) => i), last];
      const { changes } = await applyAndPlan('long-list', makeList(1), makeList(2));
      assert.deepEqual(
        changes.map(({ path }) => path),
        ['tools[get].input_schema.properties.a.default'],
      );
    });
  });

  describe('variable interpolation', () => {
    const makeConfig = (slug: string, placeholdersPerTool: number, value: string, more: Json = {}) => ({
      name: 'Interpolated',
      slug,
      variables: { V: { value }, W: { value } },
      tools: times(800, (n) => ({
        ...buildToolAt(`${toolhost.upstream.url}/thing`, {
          method: 'POST',
          input_schema: { a: { type: 'string', value: '{{V}}{{W}}'.repeat(placeholdersPerTool / 2) } },
        }),
        name: `tool_${n}`,
        description: `Takes it. ${'It is long. '.repeat(placeholdersPerTool > 100 ? 1 : 300)}`,
      })),
      ...more,
    });

    it('[find A1] interpolates the maximum number of placeholders without secrets within the CPU budget', async () => {
      let serverCount = 0;
      // The 800 tools have 49,600 placeholders; a configuration may have 50,000.
      const create = () => makeConfig(`interpolated-${++serverCount}`, 62, 'vvvvv');
      const created = await toolhost.measure('create').rest('POST', '/servers', create);
      assert.equal(created.status, 201, created.text.slice(0, 300));
      const slug = `interpolated-${serverCount}`;
      for (const [method, path, body] of [
        ['GET', ''],
        ['PATCH', '', { name: 'Other' }],
        ['POST', '/connection-check', {}],
        ['PATCH', '/tools/tool_7', { title: 'Seven' }],
      ] as const) {
        const { status, text } = await toolhost
          .measure(`${method} ${path}`)
          .rest(method, `/servers/${slug}${path}`, body);
        assert.ok(status < 300, `${method} ${path}: ${status} ${text.slice(0, 300)}`);
      }
      const { text: callText } = await toolhost.measure('call').call(slug, 'tool_3');
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
        const { status, text } = await toolhost.measure(String(expected)).rest('POST', '/servers', config);
        assert.deepEqual([status, expected.test(text)], [400, true], text.slice(0, 500));
      }
    });
  });

  /** V8 parses names with an escape incorrectly. The service's own parser reads them, which takes ten times as long. */
  describe('names with escapes', () => {
    const names = makeObject(490, (k) => [`"${k}`, '\n'.repeat(15)]);

    for (const [sizeLabel, objects] of [
      ['345 KB', 18],
      ['3.7 MB', 190],
    ] as const) {
      it(`[find A1] reads and changes a configuration of ${sizeLabel} with escaped names within the CPU budget`, async () => {
        const slug = `escaped-${objects}`;
        const a = { enum: times(objects, (n) => ({ ...names, n })) };
        await toolhost.createServer(makeConfigWithSchema(slug, { type: 'object', properties: { a } }));
        let count = 0;
        const change = () => ({ description: `change ${count++}` });
        const at = `/servers/${slug}`;
        for (const [method, path, body] of [
          ...[at, `${at}/limits`, `${at}/versions`, `/activity?slug=${slug}`, '/servers'].map((path) => ['GET', path]),
          ['PATCH', at, change],
          ['PUT', `${at}/secrets/S`, () => ({ value: `secret value ${count++}` })],
          ['POST', `${at}/versions/1/restore`],
          ['POST', `${at}/connection-check`, {}],
        ] as [string, string, unknown][]) {
          const reply = await toolhost.measure(`${method} ${path}`).rest(method, path, body);
          assert.ok(reply.status < 300, `${method} ${path}: ${reply.status} ${reply.text.slice(0, 300)}`);
        }
        const first = await toolhost.assertWithinBudget('first call', async () => {
          await toolhost.rest('PATCH', at, change);
          return toolhost.call(slug, 'get');
        });
        assert.equal(first.status, 200, first.text);
      });
    }
  });
});
