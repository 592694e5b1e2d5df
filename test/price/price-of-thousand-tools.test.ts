import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { configurationLimits } from '../../src/domain/json/body-limits.ts';
import { largeServer, largeTool } from '../support/large-server.ts';
import { nastyJson } from '../support/nasty-inputs.ts';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

/** As in price-of-everything.test.ts. */
const runs = Number(process.env.PRICE_RUNS ?? 3);
const seed = Number(process.env.PRICE_SEED ?? 7);

/** Steps that store all of the server, and their cost in units: a thread writes the megabytes. */
const ofChange = /^(create|update|add|restore)/;
const littleOfChange = 0.7;

describe('the cost of a server of a thousand tools', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ REFUSALS_PER_MINUTE: '0' });
  });
  after(() => priced.stop());

  it('[conf 7] is little for every operation that reads or stores it', async () => {
    const size = JSON.stringify(largeServer('large')).length;
    assert.ok(size > 0.85 * configurationLimits.bytes && size < configurationLimits.bytes, String(size));
    const ask = async (what: string, method: string, path: string, body?: Json | (() => Json)) => {
      const send = () => priced.rest(method, path, typeof body === 'function' ? body() : body);
      const {
        status,
        text,
        body: answer,
      } = await priced.costsLittle(what, send, ofChange.test(what) ? littleOfChange : 1);
      assert.ok(status < 300, `${what}: ${status} ${text.slice(0, 300)}`);
      return answer;
    };
    const checked = await ask('check', 'POST', '/check', largeServer('large'));
    assert.deepEqual([checked.valid, checked.problems], [true, []]);
    let made = 0;
    await ask('create', 'POST', '/servers', () => largeServer(`large-${++made}`));
    const path = `/servers/large-${made}`;
    await ask('get', 'GET', path);
    await ask('update the name', 'PATCH', path, () => ({ name: `Other ${++made}` }));
    await ask('update the tools', 'PATCH', path, () => ({ tools: largeServer('x', 990 + (++made % 10)).tools }));
    await ask('change a tool', 'PATCH', `${path}/tools/post_customers_customer_sources_500`, () => ({
      title: `T ${++made}`,
    }));
    const next = () => ({ ...largeTool(0), name: `another_${++made}` });
    await ask('add a tool', 'POST', `${path}/tools`, next);
    await ask('versions', 'GET', `${path}/versions`);
    const { version } = (await priced.rest('GET', path)).body.server as { version: number };
    await ask('restore', 'POST', `${path}/versions/${version - 1}/restore`, {});
    await ask('connection', 'POST', `${path}/connection-check`, {});
    const slug = path.slice(9);
    const rpc = async (what: string, at: string, method: string, params: Json) => {
      const { status, text } = await priced.costsLittle(what, () => priced.rpc(at, method, params));
      assert.ok(status === 200 && !text.includes('"isError":true'), text.slice(0, 300));
    };
    await rpc('tools/list', slug, 'tools/list', {});
    await rpc('manage get', 'manage', 'tools/call', { name: 'getMcpServer', arguments: { slug } });
    await rpc('manage update', 'manage', 'tools/call', {
      name: 'updateMcpServer',
      arguments: { slug, tools: largeServer('x').tools },
    });
  });

  it('[conf 7] is little for anything else that is as large', async () => {
    const bytes = configurationLimits.bytes - 1000;
    const inputs = fc.sample(nastyJson(bytes, { elements: 118_000, names: 98_000 }), { numRuns: runs, seed });
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
        const what = `${name}, input ${index} of seed ${seed}: ${value.slice(0, 100)}`;
        const { status } = await priced.costsLittle(what, () => priced.post(path, body));
        assert.ok([200, 400, 413].includes(status), `${what}: ${status}`);
      }
    }
  });

  it('[conf 7] holds only as many different names as any other body', async () => {
    const names = Array.from({ length: 31_000 }, (_, i) => `"n${i}":{}`);
    const body = `{"name":"x","tools":[{${names.join(',')}}]}`;
    const { status, text } = await priced.costsLittle('names', () => priced.post('/api/v1/check', body));
    assert.deepEqual([status, /more than 30000 different names/.test(text)], [413, true], text);
  });
});
