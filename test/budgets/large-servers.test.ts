import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { configurationLimits } from '@toolhost/json/body-limits';
import fc from 'fast-check';
import { adversarialJson, runs, seed } from '../support/adversarial-inputs.ts';
import { buildLargeServer, buildLargeTool } from '../support/large-server.ts';
import { makeObject, times } from '../support/long-values.ts';
import { getText, useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { sendRawRequest } from '../support/upstreams/raw-request.ts';

/** CPU budget of operations that store a whole server, in units. It is lower because a thread writes the data. */
const storeUnits = 0.7;

describe('CPU budget of large servers', () => {
  const toolhost = useCpuBudgetToolhost({ REFUSALS_PER_MINUTE: '0', QUOTAS: 'writes=0,megabytes=0,tools=0' });

  describe('with a thousand tools', () => {
    it('[conf 7] reads and stores a server with a thousand tools within the CPU budget in every operation', async () => {
      const size = JSON.stringify(buildLargeServer('large')).length;
      assert.ok(size > 0.85 * configurationLimits.bytes && size < configurationLimits.bytes, String(size));
      const request = async (method: string, path: string, body?: Json | (() => Json), maxUnits?: number) => {
        const label = `${method} ${path}`;
        const { status, text, body: response } = await toolhost.measure(label, maxUnits).rest(method, path, body);
        assert.ok(status < 300, `${label}: ${status} ${text.slice(0, 300)}`);
        return response;
      };
      const store = (method: string, path: string, body: () => Json) => request(method, path, body, storeUnits);
      const checked = await request('POST', '/check', buildLargeServer('large'));
      assert.deepEqual([checked.valid, checked.problems], [true, []]);
      let revision = 0;
      await store('POST', '/servers', () => buildLargeServer(`large-${++revision}`));
      const slug = `large-${revision}`;
      const path = `/servers/${slug}`;
      const toolPath = `${path}/tools/post_customers_customer_sources_500`;
      await request('GET', path);
      await store('PATCH', path, () => ({ name: `Other ${++revision}` }));
      await store('PATCH', path, () => ({ tools: buildLargeServer('x', 990 + (++revision % 10)).tools }));
      await request('PATCH', toolPath, () => ({ title: `T ${++revision}` }));
      await store('POST', `${path}/tools`, () => ({ ...buildLargeTool(0), name: `another_${++revision}` }));
      await request('GET', `${path}/versions`);
      const { version } = (await toolhost.rest('GET', path)).body.server as { version: number };
      await store('POST', `${path}/versions/${version - 1}/restore`, () => ({}));
      await request('POST', `${path}/connection-check`, {});
      const updateArguments = { slug, tools: buildLargeServer('x').tools };
      for (const [endpoint, method, params] of [
        [slug, 'tools/list', {}],
        ['manage', 'tools/call', { name: 'getMcpServer', arguments: { slug } }],
        ['manage', 'tools/call', { name: 'updateMcpServer', arguments: updateArguments }],
      ] as const) {
        const { status, text } = await toolhost.measure(`${endpoint} ${method}`).rpc(endpoint, method, params);
        assert.ok(status === 200 && !text.includes('"isError":true'), text.slice(0, 300));
      }
    });

    it('[conf 7] checks any input of the maximum configuration size within the CPU budget', async () => {
      const bytes = configurationLimits.bytes - 1000;
      const inputs = fc.sample(adversarialJson(bytes, { elements: 118_000, names: 98_000 }), { numRuns: runs, seed });
      for (const [index, value] of inputs.entries()) {
        const head = '{"name":"x","slug":"made-here","tools":[{"name":"t","description":"Takes it.","method":"POST",';
        const schema = `${head}"url":"https://api.example.com/x","input_schema":${value}}]}`;
        const message = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"checkMcpServer","arguments":${value}}}`;
        for (const [name, path, body] of [
          ['check', '/api/v1/check', value],
          ['schema', '/api/v1/check', schema],
          ['manage', '/mcp/manage', message],
        ] as const) {
          const label = `${name}, input ${index} of seed ${seed}: ${value.slice(0, 100)}`;
          const { status } = await toolhost.measure(label).post(path, body);
          assert.ok([200, 400, 413].includes(status), `${label}: ${status}`);
        }
      }
    });

    it('[conf 7] rejects a configuration with more than 30,000 different names', async () => {
      const body = `{"name":"x","tools":[{${times(31_000, (i) => `"n${i}":{}`)}}]}`;
      const { status, text } = await toolhost.measure('names').post('/api/v1/check', body);
      assert.deepEqual([status, /more than 30000 different names/.test(text)], [413, true], text);
    });
  });

  describe('with views', () => {
    const maxTools = 1000;
    const authentication = { type: 'Bearer', token: 'of-the-upstream' };

    const input_schema = {
      account: { type: 'string', pattern: '^(a|b)*c?$', optional: true },
      id: { type: 'integer' },
    };
    const names = times(maxTools, (n) => `get_thing_${n}`);
    const tools = names.map((name, n) =>
      buildToolAt(`https://api.example.com/t${n}`, {
        name,
        description: `Thing ${n} is the one to get, with all of its parts and what belongs to them.`,
        tags: ['all'],
        input_schema,
      }),
    );
    const makeViews = (view: object) => makeObject(20, (n) => [`view-${n}`, view]);

    it('checks, stores, and lists 20 views of 1,000 tools within the CPU budget, however views select tools [agent 2]', async () => {
      const fixed = { tools: names.map((name) => ({ name, arguments: { account: 'abababababababc' } })) };
      for (const [name, view] of Object.entries({ tagged: { tags: ['all'] }, reading: { read_only: true }, fixed })) {
        const config = { name, slug: `server-${name}`, authentication, tools, views: makeViews(view) };
        const checked = await toolhost.measure(`check ${name}`).rest('POST', '/check', config);
        assert.deepEqual(checked.body.problems, [], name);
        const created = await toolhost.measure(`create ${name}`, storeUnits).rest('POST', '/servers', config);
        assert.equal(created.status, 201, created.text.slice(0, 300));
        const path = `/servers/server-${name}/tools/get_thing_7`;
        const changed = await toolhost
          .measure(`change a tool ${name}`, storeUnits)
          .rest('PATCH', path, { title: 'Seven' });
        assert.equal(changed.status, 200, changed.text.slice(0, 300));
        for (const at of [0, 19]) {
          const list = await toolhost.measure(`list ${name}`).rpc(`server-${name}/view-${at}`, 'tools/list', {});
          assert.equal((list.body.result as { tools: unknown[] }).tools.length, maxTools);
        }
      }
    });

    it('rejects views that list too many tools, set long values, or name missing tools within the CPU budget [agent 2]', async () => {
      const doubledTools = [...tools, ...tools.map((tool) => ({ ...tool, name: `${tool.name}_again` }))];
      const longValues = { tools: names.map((name) => ({ name, arguments: { account: 'ab'.repeat(60) } })) };
      const absent = { tools: names.map((name) => `${name}_x`), tags: ['al'] };
      const getProblems = async (label: string, extra: object) => {
        const config = { name: 'x', slug: 'bounded', authentication, tools, ...extra };
        const { body, status, text } = await toolhost.measure(label).rest('POST', '/check', config);
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
      // The last entry counts the problems that are not listed.
      assert.equal(unknown.length, 21);
      assert.match(unknown[20] ?? '', /and 200\d\d more/);
    });
  });

  it('searches 5,000 tools within the CPU budget and keeps tools/list below 1,500 tokens [agent 1]', async () => {
    const tools = times(5000, (n) => {
      const verb = ['list', 'get', 'create', 'update', 'delete'][n % 5];
      const description = `Thing ${n} of word${n % 977} and part${n % 89} is the one to ${verb}.`;
      return buildToolAt(`https://api.example.com/t${n}`, { name: `${verb}_thing_${n}`, description });
    });
    await toolhost.createServer({ slug: 'large', tool_mode: 'search', tools });
    const list = await toolhost.measure('list').rpc('large', 'tools/list', {});
    assert.ok(list.text.length / 4 < 1500, `${list.text.length / 4} tokens`);
    const call = async (tool: string, args: object) => {
      const reply = await toolhost.measure(`${tool} ${JSON.stringify(args)}`).call('large', tool, JSON.stringify(args));
      assert.equal(reply.status, 200, reply.text.slice(0, 500));
      return getText(reply);
    };
    assert.match(await call('search_tools', { query: 'delete word900 part3' }), /word900/);
    const worst = times(60, (n) => `wo${n}rd`).join(' ');
    for (const query of [worst, 'thing list get create update delete part word', 'wor par thi lis cre upd del ge'])
      await call('search_tools', { query });
    assert.match(await call('call_tool', { name: 'list_thing_x' }), /There is no tool/);
  });

  describe('not in the cache', () => {
    /** More servers than the cache can hold. */
    const slugs = times(12, (n) => `absent-${n}`);
    before(async () => {
      const description = 'Words about it, which agents read. '.repeat(20);
      const input_schema = makeObject(10, (i) => [`argument_${i}`, { type: 'integer', optional: true, description }]);
      const tools = times(480, (n) =>
        buildToolAt(`${toolhost.upstream.url}/t${n}`, { name: `get_thing_${n}`, description, input_schema }),
      );
      for (const slug of slugs) await toolhost.createServer({ slug, tools });
    });

    const ping = { method: 'POST', headers: { 'content-type': 'application/json' } };
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
    /** Sends one unverified request to each server in parallel. */
    const pingAllServers = () =>
      Promise.all(slugs.map((slug) => sendRawRequest(`${toolhost.url}/mcp/${slug}`, ping, body)));

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
      await toolhost.createServer({ slug: 'small', tools: [buildToolAt(`${toolhost.upstream.url}/thing`)] });
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
