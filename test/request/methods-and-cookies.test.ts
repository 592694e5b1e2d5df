import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callerToken, startOneTool } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';
import { findToolProblems } from '../support/valid-configs.ts';

const optional = { type: 'string', optional: true };

describe('methods, cookies, and whole queries', () => {
  const oneTool = useFixture(startOneTool);

  const getProblems = (tool: Json, more: Json = {}) =>
    findToolProblems(oneTool.toolhost, { method: 'GET', ...tool }, more);

  it('[behaviour request 4] sends arguments where the method expects them, with any method except CONNECT and TRACE', async () => {
    const body = '{"a":"b"}';
    const expected: [method: string, isReadOnly: boolean, isDestructive: boolean, url: string, body: string][] = [
      ...['QUERY', 'PROPFIND', 'REPORT', 'SEARCH'].map((method): (typeof expected)[number] => [
        method,
        true,
        false,
        '/v1/things',
        body,
      ]),
      ...['COPY', 'MOVE'].map((method): (typeof expected)[number] => [method, false, true, '/v1/things?a=b', '']),
      ...['LOCK', 'MKCOL', 'PURGE'].map((method): (typeof expected)[number] => [
        method,
        false,
        false,
        '/v1/things',
        body,
      ]),
    ];
    for (const [method, isReadOnly, isDestructive, url, text] of expected) {
      const slug = await oneTool.createToolServer({ method, input_schema: { a: optional } });
      const sent = await oneTool.captureRequest(slug, { a: 'b' });
      assert.deepEqual([sent.method, sent.url, sent.body.toString()], [method, url, text]);
      const { body: listed } = await oneTool.toolhost.rpc(slug, callerToken, 'tools/list');
      const [tool] = (listed.result as { tools: { annotations: Json }[] }).tools;
      assert.deepEqual(
        [tool?.annotations.readOnlyHint, tool?.annotations.destructiveHint],
        [isReadOnly, isDestructive],
      );
    }
    const overruled = await oneTool.createToolServer({
      method: 'SEARCH',
      input_schema: { a: { ...optional, in: 'query' } },
    });
    assert.equal((await oneTool.captureRequest(overruled, { a: 'b' })).url, '/v1/things?a=b');
    for (const method of ['CONNECT', 'TRACE', 'trace', 'GE T', ''])
      assert.match((await getProblems({ method })).join(), /tools\[0\]\.method: .*except CONNECT and TRACE/, method);
  });

  it('[conf 2] joins arguments in cookies, and rejects cookies of the credential and of static headers', async () => {
    const cookie = (fields: Json = {}) => ({ ...optional, in: 'cookie', ...fields });
    const authentication = { type: 'Cookie', cookie: 'sid', token: 'abc' };
    const input_schema = {
      a: cookie(),
      b: cookie({ wire_name: 'b.c' }),
      o: { ...cookie({ style: 'json' }), type: 'object' },
    };
    const slug = await oneTool.createToolServer({ input_schema }, { authentication });
    oneTool.upstream.take();
    await oneTool.toolhost.callTool(slug, await oneTool.toolhost.createKey(), 'run', { a: 'x; sid=1', o: { n: 1 } });
    assert.equal(oneTool.upstream.take()[0]?.headers.cookie, 'a=x%3B%20sid=1; o={%22n%22:1}; sid=abc');
    const refused: [Json, RegExp][] = [
      [{ input_schema: { SID: cookie() } }, /input_schema\.SID: this cookie is already set/],
      [{ input_schema: { a: cookie({ wire_name: 'a b' }) } }, /a\.wire_name: found "a b"; allowed: letters/],
      [{ input_schema: { a: { ...cookie({ style: 'repeat' }), type: 'object' } } }, /a\.style: .*allowed in a cookie/],
      [{ headers: { Cookie: 'a=b' } }, /headers\.Cookie: cookies are set by .* arguments with "in": "cookie"/],
    ];
    for (const [tool, message] of refused)
      assert.match((await getProblems(tool, { authentication })).join('\n'), message);
  });

  it('[conf 2] sends one argument as the whole query, and rejects other query arguments', async () => {
    const q = { ...optional, style: 'querystring' };
    const slug = await oneTool.createToolServer({ url: '/rows', input_schema: { q } });
    assert.equal((await oneTool.captureRequest(slug, { q: 'a=b&c' })).url, '/rows?a%3Db%26c');
    assert.equal((await oneTool.captureRequest(slug)).url, '/rows');
    const refused: [Json, Json][] = [
      [{ input_schema: { q } }, { authentication: { type: 'QueryParam' } }],
      [{ input_schema: { q, other: optional } }, {}],
      [{ url: 'https://api.example.com/rows?a=b', input_schema: { q } }, {}],
    ];
    for (const [tool, more] of refused)
      assert.match(
        (await getProblems(tool, more)).join(),
        /input_schema\.q\.style: makes this argument the whole query/,
      );
    const post = { method: 'POST', input_schema: { q } };
    assert.match((await getProblems(post)).join(), /q\.style: "querystring" is for a query argument/);
    const misplaced = { method: 'POST', input_schema: { a: { ...optional, allow_reserved: true } } };
    assert.match(
      (await getProblems(misplaced)).join(),
      /a\.allow_reserved: is for a query argument that is not in the url/,
    );
  });
});
