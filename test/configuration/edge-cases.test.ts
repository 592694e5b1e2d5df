import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startOneTool } from '../support/one-tool.ts';
import { pluck } from '../support/pluck.ts';
import { listOf, number } from '../support/schemas.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { findToolProblems } from '../support/valid-configs.ts';

describe('[conf 6] configuration edge cases', () => {
  const oneTool = useFixture(startOneTool);

  const getProblems = (tool: Json, server?: Json) => findToolProblems(oneTool.toolhost, tool, server);
  const text = { type: 'string' };

  it('reports the position of __proto__, and sends it where it is the upstream name', async () => {
    const named = JSON.parse('{"__proto__": {"type": "string"}}') as Json;
    assert.match(
      (await getProblems({ input_schema: named })).join(),
      /^tools\[0\]\.input_schema\.__proto__: is a name/,
    );
    assert.match((await getProblems({ headers: named })).join(), /tools\[0\]\.headers\.__proto__: is a name/);
    const input_schema = { proto: { ...text, wire_name: '__proto__' } };
    const { body } = await oneTool.captureRequest(await oneTool.createToolServer({ method: 'POST', input_schema }), {
      proto: 'x',
    });
    assert.equal(body.toString(), '{"__proto__":"x"}');
  });

  it('reports one problem for a query_key that contains a query delimiter', async () => {
    const authentication = { type: 'QueryParam', query_key: 'a=b' };
    assert.deepEqual(await getProblems({ url: 'https://api.example.com/a?a=1' }, { authentication }), [
      'authentication.query_key: found "a=b"; allowed: letters, digits, _ . ~ -',
    ]);
    const list = [authentication, { type: 'QueryParam', query_key: 'a', token: '{{KEY}}' }];
    assert.deepEqual(
      await getProblems({}, { authentication: list.with(0, { ...authentication, token: 'x' } as never) }),
      ['authentication[0].query_key: found "a=b"; allowed: letters, digits, _ . ~ -'],
    );
  });

  it('reports the invalid character of a URL and its position', async () => {
    assert.deepEqual(await getProblems({ url: 'https://api.example.com/a b' }), [
      'tools[0].url: has a space after "https://api.example.com/a"; write %20, or remove it',
    ]);
    assert.match((await getProblems({ url: 'https://api.example.com/a\\b' })).join(), /has a backslash after .*%5C/);
    assert.match((await getProblems({ url: ' https://api.example.com/a' })).join(), /has a space at its beginning/);
    assert.match(
      (await getProblems({ url: '/a\tb' }, { base_url: 'https://api.example.com' })).join(),
      /has white space/,
    );
    assert.match(
      (await getProblems({ url: '/a' }, { base_url: 'https://api.example.com/x y' })).join(),
      /^base_url: has a space after/,
    );
  });

  it('accepts joiners where letters and emoji need them, and no others', async () => {
    for (const name of ['می\u200cخواهم', 'क्\u200dष', 'Family 👩\u200d👩\u200d👧', '❤\ufe0f\u200d🔥']) {
      const views = { part: { tools: ['get_thing'], title: name } };
      assert.deepEqual(await getProblems({ title: name, tags: [name] }, { name, views }), [], name);
    }
    for (const name of ['pay\u200cpal', 'pay\u200dpal', '\u200cمی', 'а\u200dб', 'می\u200c', 'a\u200bb']) {
      const found = await getProblems({ tags: [name] }, { name });
      assert.equal(found.filter((problem) => problem.includes('invisible')).length, 2, JSON.stringify([name, found]));
    }
  });

  it('rejects another location for an argument that is a token of the URL', async () => {
    const input_schema = (location: string) => ({ id: { ...text, in: location } });
    for (const location of ['body', 'header', 'query']) {
      const [problem, ...more] = await getProblems({
        method: 'POST',
        url: 'https://api.example.com/a/:id',
        input_schema: input_schema(location),
      });
      assert.match(problem ?? '', /^tools\[0\]\.input_schema\.id\.in: the value already goes to the token :id/);
      assert.deepEqual(more, []);
    }
    assert.deepEqual(
      await getProblems({ url: 'https://api.example.com/a?x=:id', input_schema: input_schema('query') }),
      [],
    );
  });

  it('writes a list in a query pair of the URL by array_format', async () => {
    const input_schema = { ids: { type: 'array', optional: true } };
    const url = async (pair: string, array_format: string, ids: unknown = ['a,b', 2]) =>
      (
        await oneTool.captureRequest(
          await oneTool.createToolServer({ url: `/a?${pair}`, input_schema, array_format }),
          { ids },
        )
      ).url;
    assert.equal(await url('x=1&ids=:ids', 'repeat'), '/a?x=1&ids=a%2Cb&ids=2');
    assert.equal(await url('ids=:ids', 'brackets'), '/a?ids%5B%5D=a%2Cb&ids%5B%5D=2');
    assert.equal(await url('ids[]=:ids', 'brackets', ['a']), '/a?ids%5B%5D=a');
    assert.equal(await url('ids=:ids', 'comma'), '/a?ids=a%2Cb,2');
    assert.equal(await url('ids=in.(:ids)', 'repeat'), '/a?ids=in.(a%2Cb,2)');
  });

  it('sends integers as digits, in whatever form they were written', async () => {
    const integer = { type: 'integer' };
    const input_schema = { n: integer, list: listOf(integer), price: number };
    const slug = await oneTool.createToolServer({ url: '/a/:n', input_schema });
    oneTool.upstream.take();
    await oneTool.callText(slug, '{"n":2.0,"list":[1e2,12345678901234567890.0,-0.0,120e-1],"price":1.10}');
    assert.deepEqual(pluck(oneTool.upstream.take(), 'url'), [
      '/a/2?list=100&list=12345678901234567890&list=0&list=12&price=1.10',
    ]);
  });
});
