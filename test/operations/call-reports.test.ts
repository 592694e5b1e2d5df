import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import type { CallRecord } from '../../apps/server/src/store/calls/call-writer.ts';
import { engines } from '../sets.ts';
import { pluck } from '../support/pluck.ts';
import { buildCall } from '../support/store/rows.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

for (const engine of engines) {
  describe(`call lists and call exports on ${engine}`, async () => {
    let seeded = 0;
    const world = await startToolhostOnEngine(engine);
    after(() => world.stop());

    /** Creates a server with call records of any time. */
    const createServerWithCalls = async (slug: string, calls: Partial<CallRecord>[]) => {
      await world.toolhost.createServer(buildServerAt(slug, 'https://api.example.com'));
      const rows = calls.map((call) =>
        buildCall({ workspace_id: 'local', slug, started_at: world.now(), id: `call_${++seeded}`, ...call }),
      );
      await (await world.database()).calls.write(rows);
    };
    const get = async (path: string) => {
      const reply = await world.toolhost.rest('GET', path);
      assert.equal(reply.status, 200, reply.text);
      return reply;
    };
    const lines = (reply: Reply) => reply.text.split('\r\n');
    const header =
      'id,at,server,tool,outcome,caller_kind,key_id,upstream_host,upstream_status,duration_ms,upstream_ms,bytes_in,bytes_out,request_id,reason,estimated_tokens,view,model,input_tokens,output_tokens,upstream_requests';

    it('contain only calls before `until`', async () => {
      const calls = [30, 20, 10].map((ms) => ({ started_at: world.now() - ms, id: `call_u${ms}` }));
      await createServerWithCalls('until', calls);
      const until = new Date(world.now() - 10).toISOString();
      const since = new Date(world.now() - 29).toISOString();
      for (const path of ['/calls?slug=until&', '/servers/until/calls?']) {
        const { body } = await get(`${path}until=${until}`);
        assert.deepEqual(pluck(body.calls, 'id'), ['call_u20', 'call_u30']);
      }
      const file = await get(`/calls.csv?slug=until&since=${since}&until=${until}`);
      assert.deepEqual(lines(file).length, 3);
      assert.match(lines(file)[1] ?? '', /^call_u20,/);
    });

    it('format calls as text/csv with every field in its column', async () => {
      await createServerWithCalls('file', [{ id: 'call_f1' }]);
      const reply = await get('/calls.csv?slug=file');
      assert.equal(reply.headers.get('content-type'), 'text/csv; charset=utf-8');
      assert.equal(reply.headers.get('content-disposition'), 'attachment; filename="calls.csv"');
      const at = new Date(world.now()).toISOString();
      const fields = ['call_f1', at, 'file', 'get', 'ok', 'api_key', 'key_1', 'api.example', 200, 12, 10, 100, 200];
      assert.deepEqual(lines(reply), [header, `${fields.join(',')},f1,,50,,,,,`, '']);
    });

    it('leave absent values empty, quote line breaks, and disarm formulas', async () => {
      const bare = { key_id: null, upstream_host: null, upstream_status: null, upstream_ms: null };
      const tools = ['a,"b"\r\nc', '=1+1', '+1', '-1', '@x', '\tx', '\uff1d1', 'a=b'];
      const calls = tools.map((tool, n) => ({ id: `call_h${n}`, tool, ...bare, started_at: world.now() - n }));
      await createServerWithCalls('hostile-file', calls);
      const text = (await get('/calls.csv?slug=hostile-file')).text.slice(header.length + 2);
      const at = (n: number) => new Date(world.now() - n).toISOString();
      const escaped = ['"a,""b""\r\nc"', "'=1+1", "'+1", "'-1", "'@x", "'\tx", "'\uff1d1", 'a=b'];
      const expected = escaped.map(
        (tool, n) => `call_h${n},${at(n)},hostile-file,${tool},ok,api_key,,,,12,,100,200,h${n},,50,,,,,\r\n`,
      );
      assert.equal(text, expected.join(''));
    });

    it('[conf 8] contain the reason why a call failed', async () => {
      const reason = 'status: allowed: "open", "closed"';
      await createServerWithCalls('reasons', [{ id: 'call_r1', outcome: 'invalid_arguments', reason }]);
      const { body } = await get('/calls?slug=reasons');
      assert.deepEqual(pluck(body.calls, 'reason'), [reason]);
      const { body: one } = await get('/calls/call_r1');
      assert.equal((one.call as Json).reason, reason);
      const line = lines(await get('/calls.csv?slug=reasons'))[1] ?? '';
      assert.ok(line.endsWith(',r1,"status: allowed: ""open"", ""closed""",50,,,,,'), line);
    });

    it('contain at most 10,000 calls', async () => {
      await createServerWithCalls('many', Array(10_001).fill({}));
      assert.equal(lines(await get('/calls.csv?slug=many')).length, 10_002);
    });

    it('report invalid parameters as JSON problems', async () => {
      const { status, headers } = await world.toolhost.rest('GET', '/calls.csv?outcome=fine');
      assert.deepEqual([status, headers.get('content-type')], [400, 'application/problem+json']);
      const { body } = await get('/openapi.json');
      const paths = body.paths as { '/calls.csv': { get: { responses: { 200: { content: Json } } } } };
      assert.deepEqual(Object.keys(paths['/calls.csv'].get.responses[200].content), ['text/csv; charset=utf-8']);
    });
  });

  describe(`usage on ${engine}`, async () => {
    const upstream = await startRecordingUpstream();
    const world = await startToolhostOnEngine(engine, { egressPorts: [upstream.port] });
    after(() => Promise.all([world.stop(), upstream.close()]));

    it('is counted by key, server, and day, as JSON and as CSV', async () => {
      const { toolhost } = world;
      const tools = [buildToolAt(`${upstream.url}/items`)];
      await toolhost.createServer({ name: 'Shop', slug: 'shop', tools });
      await toolhost.createServer({ name: 'Other', slug: 'other', tools });
      type Key = { id: string; key: string };
      const createKey = async (name: string) =>
        (await toolhost.rest('POST', '/keys', { body: { name, scopes: ['call'] } })).body as Key;
      const [agent, robot] = [await createKey('=Agent'), await createKey('Robot')];
      const call = (slug: string, token: string, times: number) =>
        Promise.all(Array.from({ length: times }, () => toolhost.callTool(slug, token, 'get')));
      await call('shop', agent.key, 3);
      await call('other', 'token-of-a-caller', 2);
      upstream.on('GET /items', () => ({ status: 500 }));
      await world.advanceTime(24 * 3_600_000);
      await call('shop', agent.key, 1);
      await call('shop', robot.key, 2);
      const { status, body, text } = await toolhost.rest('GET', '/usage?days=2');
      assert.equal(status, 200, text);
      assert.deepEqual(body.by_day, [
        { day: '2026-11-20', calls: 5, errors: 0 },
        { day: '2026-11-21', calls: 3, errors: 3 },
      ]);
      const callerRows = (body.by_caller as Json[]).map((row) => ({ ...row, caller: row.caller_name ?? row.caller }));
      assert.deepEqual(pluck(callerRows, 'server', 'caller', 'calls', 'errors'), [
        ...['shop', '=Agent', 4, 1],
        ...['other', 'caller_token', 2, 0],
        ...['shop', 'Robot', 2, 2],
      ]);
      const csv = await toolhost.rest('GET', '/usage.csv?slug=shop&days=1');
      assert.match(csv.headers.get('content-disposition') ?? '', /usage\.csv/);
      const lines = [`2026-11-21,shop,${agent.id},'=Agent,1,1`, `2026-11-21,shop,${robot.id},Robot,2,2`];
      assert.deepEqual(csv.text.trim().split('\r\n'), ['day,server,caller,caller_name,calls,errors', ...lines.sort()]);
      const limited = await toolhost.createKey({ servers: ['other'] });
      const limitedUsage = await toolhost.rest('GET', '/usage?slug=other', { key: limited });
      assert.deepEqual(pluck(limitedUsage.body.by_caller, 'server'), ['other']);
      assert.equal((await toolhost.rest('GET', '/usage?slug=shop', { key: limited })).status, 404);
    });
  });
}
