import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { check, configWith, toolWith } from '../support/configurations.ts';
import { callerToken, type OneTool, startOneTool } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';

const optional = { type: 'string', optional: true };
/** Names that some receiver reads as `account`. */
const alike = ['Account', 'ACCOUNT', 'account[]', 'account[0]', 'account.x', 'account[x]'];
/** Names that none does. */
const others = ['account_id', 'accounts', 'my[account]', 'acc'];
const fields = (names: readonly string[], more: Json = optional): Json =>
  Object.fromEntries(names.map((name) => [name, more]));
const given = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 'mine']));
const form = { method: 'POST', body: 'form' };
const bearer = { authentication: { type: 'Bearer' } };

describe('names beside constants, fixed arguments and the pairs of a URL', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool();
  });
  beforeEach(() => void one.upstream.take());
  after(() => one.stop());

  const of = (tool: Json, more: Json = {}) => check(one.toolhost, configWith({ tools: [toolWith(tool)], ...more }));
  const pairsOf = ({ method, url, body }: RecordedRequest) =>
    new URLSearchParams(method === 'GET' ? (url.split('?')[1] ?? '') : body.toString());
  const call = (address: string, args: Json) =>
    one.toolhost.post(
      address,
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run', arguments: args } },
      { token: callerToken },
    );

  it('[find B5] no argument is taken beside a constant that a receiver could read it as', async () => {
    for (const tool of [{}, form, { method: 'POST', body: 'multipart' }])
      for (const name of alike) {
        const input_schema = { account: { type: 'string', value: 'a1' }, ...fields([name, ...others]) };
        const { problems } = await of({ ...tool, input_schema });
        assert.equal(problems.length, 1, `${name}: ${problems.join('; ')}`);
        const [problem = ''] = problems;
        assert.ok(problem.startsWith(`tools[0].input_schema.${name}: `), problem);
        assert.match(problem, /could be read as "account", which is a constant/);
      }
    const json = (name: string) => ({
      method: 'POST',
      input_schema: { account: { type: 'string', value: 'a1' }, ...fields([name]) },
    });
    assert.match((await of(json('Account'))).problems.join(), /could be read as "account"/);
    assert.deepEqual((await of(json('account[]'))).problems, []);
  });

  it('[find B5] parts of one parameter are no constant of one another', async () => {
    const input_schema = { 'page[size]': { type: 'integer', value: 100 }, ...fields(['page[number]', 'page[after]']) };
    assert.deepEqual((await of({ input_schema })).problems, []);
    const slug = await one.serve({ input_schema }, bearer);
    const { url } = await one.sent(slug, { 'page[number]': '2' });
    assert.equal(decodeURIComponent(url), '/v1/things?page[size]=100&page[number]=2');
    const replaced = { ...input_schema, ...fields(['page']) };
    assert.match((await of({ input_schema: replaced })).problems.join(), /input_schema\.page: .*"page\[size\]"/);
  });

  it('[find B5] an argument that could replace one that a view fixes is not sent in that view', async () => {
    const input_schema = { account: { type: 'string' }, ...fields([...alike, ...others]) };
    const views = { support: { tools: [{ name: 'run', arguments: { account: 'a1' } }] } };
    for (const tool of [{}, form]) {
      const slug = await one.serve({ ...tool, input_schema }, { ...bearer, views });
      const names = [...alike, ...others];
      const { text } = await call(`${slug}/support`, given(names));
      const [sent] = one.upstream.take();
      assert.ok(sent, text);
      const pairs = pairsOf(sent);
      assert.deepEqual([...pairs], [['account', 'a1'], ...others.map((name) => [name, 'mine'])]);
      // The whole server has no fixed argument, so there each of them is one of the caller.
      const all = pairsOf(await one.sent(slug, { account: 'a2', ...given(names) }));
      assert.equal([...all].length, 1 + names.length);
    }
    const tools = [toolWith({ input_schema, name: 'run' })];
    const { problems, warnings } = await check(one.toolhost, configWith({ tools, views }));
    assert.deepEqual(problems, []);
    const about = warnings.filter((warning) => warning.startsWith('views.support.tools[0].arguments.account: '));
    assert.equal(about.length, 1, warnings.join('\n'));
    assert.match(about[0] ?? '', /"Account".* is not sent in this view/);
  });

  it('[find B5] a configuration stored with such an argument sends the constant alone', async () => {
    const input_schema = { role: { type: 'string', value: 'viewer' }, ...fields(['zole', 'other']) };
    const slug = await one.serve({ ...form, input_schema }, bearer);
    const { db } = one.toolhost.running.app.runner;
    const { config } = await db
      .selectFrom('servers')
      .select('config')
      .where('slug', '=', slug)
      .executeTakeFirstOrThrow();
    await db
      .updateTable('servers')
      .set({ config: config.replace('zole', 'Role') })
      .where('slug', '=', slug)
      .execute();
    assert.equal((await one.sent(slug, { Role: 'admin', other: 'x' })).body.toString(), 'role=viewer&other=x');
  });

  it('[find B5] an argument beside a pair of the URL that could be the same one is sent, and a warning says so', async () => {
    const input_schema = fields(['limit', 'Limit[]', 'offset']);
    const url = 'https://api.example.com/v1/things?limit=5&kind=a&id=:offset';
    const { problems, warnings } = await of({ url, input_schema });
    assert.deepEqual(problems, []);
    const about = warnings.filter((warning) => warning.includes('the URL has'));
    assert.deepEqual(
      about.map((warning) => warning.split(': ')[0]),
      ['tools[0].input_schema.limit', 'tools[0].input_schema.Limit[]'],
    );
    assert.match(about[0] ?? '', /the URL has "limit" too, .*"default"/);
    const slug = await one.serve({ url: '/a?limit=5', input_schema: fields(['limit']) }, bearer);
    assert.equal((await one.sent(slug, { limit: '9' })).url, '/a?limit=5&limit=9');
    assert.deepEqual((await of({ ...form, url, input_schema: fields(['limit', 'offset']) })).warnings, []);
  });

  it('[find B5] a part of multipart has no name that is the credential’s without its backslashes', async () => {
    const meta = { type: 'object', style: 'repeat' };
    const names = { quoted: { ...optional, wire_name: 'api\\_key' }, fine: { ...optional, wire_name: 'a\\pi' } };
    const tool = { method: 'POST', body: 'multipart', input_schema: { meta, ...names } };
    const slug = await one.serve(tool, { authentication: { type: 'QueryParam', query_key: 'api_key' } });
    for (const name of ['api\\_key', '\\api_key', 'api_ke\\y', 'api\\\\_key', 'Api\\.Key'])
      assert.match(await one.refused(slug, { meta: { [name]: 'mine' } }), /name of another parameter/, name);
    const { body } = await one.sent(slug, { meta: { 'x\\y': 'mine' }, quoted: 'mine', fine: 'mine' });
    const parts = [...body.toString().matchAll(/name="([^"]*)"/g)].map(([, name]) => name);
    assert.deepEqual(parts, ['x\\y', 'a\\pi']);
  });

  it('[find B5] a name in more bytes of UTF-8 than it needs is the same name', async () => {
    const authentication = { type: 'QueryParam', query_key: 'api_key' };
    for (const sign of ['%c1%9f', '%e0%81%9f', '%F0%80%81%9F', '%f8%80%80%81%9f', '%25e0%2581%259f']) {
      const url = `https://api.example.com/v1/things?api${sign}key=x`;
      assert.match((await of({ url }, { authentication })).problems.join(), /carries the credential/, sign);
    }
  });
});
