import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type PricedToolhost, startPricedToolhost } from '../support/toolhost/priced-toolhost.ts';

const verbs = ['list', 'get', 'create', 'update', 'delete'];

describe('the cost of searching 5,000 tools', () => {
  let priced: PricedToolhost;
  before(async () => {
    priced = await startPricedToolhost({ QUOTAS: 'writes=0,tools=0' });
  });
  after(() => priced.stop());

  const toolAt = (n: number) => ({
    name: `${verbs[n % 5]}_thing_${n}`,
    description: `Thing ${n} of word${n % 977} and part${n % 89} is the one to ${verbs[n % 5]}.`,
    method: 'GET',
    url: `https://api.example.com/t${n}`,
  });
  const text = async (name: string, args: object) => {
    const reply = await priced.call('large', name, JSON.stringify(args));
    assert.equal(reply.status, 200, reply.text.slice(0, 500));
    return (reply.body.result as { content: { text: string }[] }).content[0]?.text ?? '';
  };

  it('holds the event loop no longer than any request, and lists them in 1,500 tokens [agent 1]', async () => {
    const tools = Array.from({ length: 5000 }, (_, n) => toolAt(n));
    const made = await priced.rest('POST', '/servers', { name: 'Large', slug: 'large', tool_mode: 'search', tools });
    assert.equal(made.status, 201, made.text.slice(0, 500));
    const list = await priced.costsLittle('list', () => priced.rpc('large', 'tools/list', {}));
    assert.ok(list.text.length / 4 < 1500, `${list.text.length / 4} tokens`);
    const first = await priced.costsLittle('search', () => text('search_tools', { query: 'delete word900 part3' }));
    assert.match(first, /word900/);
    const worst = Array.from({ length: 60 }, (_, n) => `wo${n}rd`).join(' ');
    for (const query of [worst, 'thing list get create update delete part word', 'wor par thi lis cre upd del ge']) {
      await priced.costsLittle(query.slice(0, 40), () => text('search_tools', { query }));
    }
    const unknown = await priced.costsLittle('an unknown tool', () => text('call_tool', { name: 'list_thing_x' }));
    assert.match(unknown, /There is no tool/);
  });
});
