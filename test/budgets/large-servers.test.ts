import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { configurationLimits } from '@toolhost/json/body-limits';
import fc from 'fast-check';
import { adversarialJson } from '../support/adversarial-inputs.ts';
import { buildLargeServer, buildLargeTool } from '../support/large-server.ts';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('CPU budget of large servers', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0', QUOTAS: 'writes=0,megabytes=0,tools=0' });
  });
  after(() => toolhost.stop());

  describe('with a thousand tools', () => {
    /** Number and seed of the random inputs, as in `everything.test.ts`. */
    const runs = Number(process.env.PRICE_RUNS ?? 3);
    const seed = Number(process.env.PRICE_SEED ?? 7);

    /** Steps that store the whole server. Their budget is lower because a thread writes the data. */
    const storingSteps = /^(create|update|add|restore)/;
    const maxStoringUnits = 0.7;

    it('[conf 7] reads and stores a server with a thousand tools within the CPU budget in every operation', async () => {
      const size = JSON.stringify(buildLargeServer('large')).length;
      assert.ok(size > 0.85 * configurationLimits.bytes && size < configurationLimits.bytes, String(size));
      const requestWithinBudget = async (label: string, method: string, path: string, body?: Json | (() => Json)) => {
        const send = () => toolhost.rest(method, path, typeof body === 'function' ? body() : body);
        const {
          status,
          text,
          body: responseBody,
        } = await toolhost.assertWithinBudget(label, send, storingSteps.test(label) ? maxStoringUnits : 1);
        assert.ok(status < 300, `${label}: ${status} ${text.slice(0, 300)}`);
        return responseBody;
      };
      const checked = await requestWithinBudget('check', 'POST', '/check', buildLargeServer('large'));
      assert.deepEqual([checked.valid, checked.problems], [true, []]);
      let revision = 0;
      await requestWithinBudget('create', 'POST', '/servers', () => buildLargeServer(`large-${++revision}`));
      const path = `/servers/large-${revision}`;
      await requestWithinBudget('get', 'GET', path);
      await requestWithinBudget('update the name', 'PATCH', path, () => ({ name: `Other ${++revision}` }));
      await requestWithinBudget('update the tools', 'PATCH', path, () => ({
        tools: buildLargeServer('x', 990 + (++revision % 10)).tools,
      }));
      await requestWithinBudget('change a tool', 'PATCH', `${path}/tools/post_customers_customer_sources_500`, () => ({
        title: `T ${++revision}`,
      }));
      const nextTool = () => ({ ...buildLargeTool(0), name: `another_${++revision}` });
      await requestWithinBudget('add a tool', 'POST', `${path}/tools`, nextTool);
      await requestWithinBudget('versions', 'GET', `${path}/versions`);
      const { version } = (await toolhost.rest('GET', path)).body.server as { version: number };
      await requestWithinBudget('restore', 'POST', `${path}/versions/${version - 1}/restore`, {});
      await requestWithinBudget('connection', 'POST', `${path}/connection-check`, {});
      const slug = path.slice(9);
      const rpc = async (label: string, endpoint: string, method: string, params: Json) => {
        const { status, text } = await toolhost.assertWithinBudget(label, () => toolhost.rpc(endpoint, method, params));
        assert.ok(status === 200 && !text.includes('"isError":true'), text.slice(0, 300));
      };
      await rpc('tools/list', slug, 'tools/list', {});
      await rpc('manage get', 'manage', 'tools/call', { name: 'getMcpServer', arguments: { slug } });
      await rpc('manage update', 'manage', 'tools/call', {
        name: 'updateMcpServer',
        arguments: { slug, tools: buildLargeServer('x').tools },
      });
    });

    it('[conf 7] checks any input of the maximum configuration size within the CPU budget', async () => {
      const bytes = configurationLimits.bytes - 1000;
      const inputs = fc.sample(adversarialJson(bytes, { elements: 118_000, names: 98_000 }), { numRuns: runs, seed });
      for (const [index, value] of inputs.entries()) {
        const head = '{"name":"x","slug":"made-here","tools":[{"name":"t","description":"Takes it.","method":"POST",';
        const schema = `${head}"url":"https://api.example.com/x","input_schema":${value}}]}`;
        const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"checkMcpServer","arguments":${value}}}`;
        const entries = {
          check: ['/api/v1/check', value],
          schema: ['/api/v1/check', schema],
          manage: ['/mcp/manage', message],
        };
        for (const [name, [path = '', body = '']] of Object.entries(entries)) {
          const label = `${name}, input ${index} of seed ${seed}: ${value.slice(0, 100)}`;
          const { status } = await toolhost.assertWithinBudget(label, () => toolhost.post(path, body));
          assert.ok([200, 400, 413].includes(status), `${label}: ${status}`);
        }
      }
    });

    it('[conf 7] rejects a configuration with more than 30,000 different names', async () => {
      const names = Array.from({ length: 31_000 }, (_, i) => `"n${i}":{}`);
      const body = `{"name":"x","tools":[{${names.join(',')}}]}`;
      const { status, text } = await toolhost.assertWithinBudget('names', () => toolhost.post('/api/v1/check', body));
      assert.deepEqual([status, /more than 30000 different names/.test(text)], [413, true], text);
    });
  });

  describe('with views', () => {
    const maxTools = 1000;
    const maxViews = 20;
    const authentication = { type: 'Bearer', token: 'of-the-upstream' };

    const toolAt = (n: number) => ({
      name: `get_thing_${n}`,
      description: `Thing ${n} is the one to get, with all of its parts and what belongs to them.`,
      method: 'GET',
      url: `https://api.example.com/t${n}`,
      tags: ['all'],
      input_schema: { account: { type: 'string', pattern: '^(a|b)*c?$', optional: true }, id: { type: 'integer' } },
    });
    const tools = Array.from({ length: maxTools }, (_, n) => toolAt(n));
    const makeViews = (view: object) =>
      Object.fromEntries(Array.from({ length: maxViews }, (_, n) => [`view-${n}`, view]));

    it('checks, stores, and lists 20 views of 1,000 tools within the CPU budget, however views select tools [agent 2]', async () => {
      const fixed = { tools: tools.map(({ name }) => ({ name, arguments: { account: 'abababababababc' } })) };
      for (const [name, view] of Object.entries({ tagged: { tags: ['all'] }, reading: { read_only: true }, fixed })) {
        const config = { name, slug: `server-${name}`, authentication, tools, views: makeViews(view) };
        const checked = await toolhost.assertWithinBudget(`check ${name}`, () =>
          toolhost.rest('POST', '/check', config),
        );
        assert.deepEqual(checked.body.problems, [], name);
        const created = await toolhost.assertWithinBudget(
          `create ${name}`,
          () => toolhost.rest('POST', '/servers', config),
          0.7,
        );
        assert.equal(created.status, 201, created.text.slice(0, 300));
        const path = `/servers/server-${name}/tools/get_thing_7`;
        const changed = await toolhost.assertWithinBudget(
          `change a tool ${name}`,
          () => toolhost.rest('PATCH', path, { title: 'Seven' }),
          0.7,
        );
        assert.equal(changed.status, 200, changed.text.slice(0, 300));
        for (const at of [0, 19]) {
          const list = await toolhost.assertWithinBudget(`list ${name}`, () =>
            toolhost.rpc(`server-${name}/view-${at}`, 'tools/list', {}),
          );
          assert.equal((list.body.result as { tools: unknown[] }).tools.length, maxTools);
        }
      }
    });

    it('rejects views that list too many tools, set long values, or name missing tools within the CPU budget [agent 2]', async () => {
      const doubledTools = [...tools, ...tools.map((tool) => ({ ...tool, name: `${tool.name}_again` }))];
      const longValues = { tools: tools.map(({ name }) => ({ name, arguments: { account: 'ab'.repeat(60) } })) };
      const absent = { tools: tools.map(({ name }) => `${name}_x`), tags: ['al'] };
      const getProblems = async (label: string, extra: object) => {
        const config = { name: 'x', slug: 'bounded', authentication, tools, ...extra };
        const { body, status, text } = await toolhost.assertWithinBudget(label, () =>
          toolhost.rest('POST', '/check', config),
        );
        assert.equal(status, 200, text.slice(0, 300));
        return (body.problems as { path: string; message: string }[]).map(({ path, message }) => `${path}: ${message}`);
      };
      assert.deepEqual(await getProblems('too many', { tools: doubledTools, views: makeViews({ tags: ['all'] }) }), [
        'views: list 40000 tools in total; allowed: 20000; list fewer tools, or set tool_mode to search in larger views',
      ]);
      assert.deepEqual(
        await getProblems('search', { tools: doubledTools, views: makeViews({ tags: ['all'], tool_mode: 'search' }) }),
        [],
      );
      const steps = await getProblems('long values', { views: makeViews(longValues) });
      assert.ok(
        steps.every((problem) => /more steps to check than a configuration may use|^: and/.test(problem)),
        steps[0] ?? '',
      );
      const unknown = await getProblems('absent', { views: makeViews(absent) });
      assert.equal(unknown.length, 21);
      assert.match(unknown[20] ?? '', /and 200\d\d more/);
    });
  });

  describe('with 5,000 searchable tools', () => {
    const verbs = ['list', 'get', 'create', 'update', 'delete'];

    const toolAt = (n: number) => ({
      name: `${verbs[n % 5]}_thing_${n}`,
      description: `Thing ${n} of word${n % 977} and part${n % 89} is the one to ${verbs[n % 5]}.`,
      method: 'GET',
      url: `https://api.example.com/t${n}`,
    });
    const text = async (name: string, args: object) => {
      const reply = await toolhost.call('large', name, JSON.stringify(args));
      assert.equal(reply.status, 200, reply.text.slice(0, 500));
      return (reply.body.result as { content: { text: string }[] }).content[0]?.text ?? '';
    };

    it('searches 5,000 tools within the CPU budget and keeps tools/list below 1,500 tokens [agent 1]', async () => {
      const tools = Array.from({ length: 5000 }, (_, n) => toolAt(n));
      const created = await toolhost.rest('POST', '/servers', {
        name: 'Large',
        slug: 'large',
        tool_mode: 'search',
        tools,
      });
      assert.equal(created.status, 201, created.text.slice(0, 500));
      const list = await toolhost.assertWithinBudget('list', () => toolhost.rpc('large', 'tools/list', {}));
      assert.ok(list.text.length / 4 < 1500, `${list.text.length / 4} tokens`);
      const first = await toolhost.assertWithinBudget('search', () =>
        text('search_tools', { query: 'delete word900 part3' }),
      );
      assert.match(first, /word900/);
      const worst = Array.from({ length: 60 }, (_, n) => `wo${n}rd`).join(' ');
      for (const query of [worst, 'thing list get create update delete part word', 'wor par thi lis cre upd del ge']) {
        await toolhost.assertWithinBudget(query.slice(0, 40), () => text('search_tools', { query }));
      }
      const unknown = await toolhost.assertWithinBudget('an unknown tool', () =>
        text('call_tool', { name: 'list_thing_x' }),
      );
      assert.match(unknown, /There is no tool/);
    });
  });

  describe('not in the cache', () => {
    /** Number of servers, chosen so that the cache cannot hold all of them. */
    const serverCount = 12;

    const slugs = Array.from({ length: serverCount }, (_, n) => `absent-${n}`);
    before(async () => {
      const description = 'Words about it, which agents read. '.repeat(20);
      const toolAt = (n: number) => ({
        name: `get_thing_${n}`,
        description,
        method: 'GET',
        url: `${toolhost.upstream.url}/t${n}`,
        input_schema: Object.fromEntries(
          Array.from({ length: 10 }, (_, i) => [`argument_${i}`, { type: 'integer', optional: true, description }]),
        ),
      });
      const tools = Array.from({ length: 480 }, (_, n) => toolAt(n));
      for (const slug of slugs) {
        const { status, text } = await toolhost.rest('POST', '/servers', { name: slug, slug, tools });
        assert.equal(status, 201, text.slice(0, 300));
      }
    });

    /** Sends one unverified request to each server in parallel. Returns the statuses and the texts. */
    const pingAllServers = () =>
      Promise.all(
        slugs.map(async (slug) => {
          const response = await fetch(`${toolhost.url}/mcp/${slug}`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
          });
          return { status: response.status, text: await response.text() };
        }),
      );

    /** Accepts 401, and 429 because some requests do not start within five seconds on a busy machine. */
    function assertRejected({ status, text }: { status: number; text: string }): void {
      if (status === 429)
        assert.match(text, /did not start within 5 s \(large servers of one account are loaded one at a time/);
      else assert.equal(status, 401, text);
    }

    it('loads all uncached servers in parallel within the CPU budget [find A2]', async () => {
      for (const refused of await toolhost.assertWithinBudget('all in parallel', pingAllServers))
        assertRejected(refused);
    });

    it('serves other requests while a workspace keeps loading uncached servers [find A2]', async () => {
      const tools = [
        { name: 'get', description: 'Gets a thing.', method: 'GET', url: `${toolhost.upstream.url}/thing` },
      ];
      assert.equal((await toolhost.rest('POST', '/servers', { name: 'Small', slug: 'small', tools })).status, 201);
      await toolhost.assertWithinBudget('repeated loading', async () => {
        for (let round = 0; round < 4; round++) {
          const all = pingAllServers();
          assert.equal((await toolhost.rpc('small', 'ping', {})).status, 200);
          for (const refused of await all) assertRejected(refused);
        }
      });
    });
  });
});
