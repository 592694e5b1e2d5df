import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { type CommandOptions, runToolhostCommand, runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { PNG } from '../support/upstreams/content-upstream.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const inputSchema = {
  id: { type: 'integer', optional: true },
  ratio: { type: 'number', optional: true },
  done: { type: 'boolean', optional: true },
  title: { type: 'string', optional: true },
  tags: { type: 'array', items: { type: 'string' }, optional: true },
  counts: { type: 'array', items: { type: 'integer' }, optional: true },
  place: { type: 'object', optional: true },
};

describe('toolhost call', () => {
  let upstream: RecordingUpstream;
  let running: TestToolhost;
  let env: Record<string, string>;
  before(async () => {
    upstream = await startRecordingUpstream();
    running = await startToolhost({ egressPorts: [upstream.port] });
    env = { TOOLHOST_URL: running.url, TOOLHOST_API_KEY: await running.createKey() };
    const tool = (name: string, method: string, schema: object) => ({
      name,
      description: 'Does the one thing of this test.',
      method,
      url: `${upstream.url}/${name}`,
      input_schema: schema,
    });
    const tools = [tool('send', 'POST', inputSchema), tool('fetch', 'GET', {}), tool('picture', 'GET', {})];
    await running.createServer({ name: 'Open', slug: 'open-api', tools });
    await running.createServer({ name: 'Forwarding', slug: 'forwarding', authentication: { type: 'Bearer' }, tools });
    upstream.on('GET /fetch', () => ({ body: { ok: true } }));
    upstream.on('GET /picture', () => ({ headers: { 'content-type': 'image/png' }, body: PNG }));
  });
  after(async () => {
    await running.stop();
    await upstream.close();
  });

  const call = (args: readonly string[], options: CommandOptions = {}) =>
    runToolhostCommand(['call', ...args], { env, ...options });
  const takeSentBodies = () => upstream.take().map((request) => JSON.parse(request.body.toString()) as object);

  it('converts arguments to the types that the tool declares', async () => {
    upstream.take();
    const pairs = [
      'id=42',
      'ratio=0.5',
      'done=true',
      'title=007',
      'tags=a',
      'tags=b,c',
      'counts=[1,2]',
      'place={"x": 1}',
    ];
    const { code, stderr } = await call(['open-api', 'send', ...pairs.flatMap((pair) => ['--arg', pair])]);
    assert.deepEqual([code, stderr], [0, '']);
    const typed = { id: 42, ratio: 0.5, done: true, title: '007', tags: ['a', 'b,c'], counts: [1, 2], place: { x: 1 } };
    assert.deepEqual(takeSentBodies(), [typed]);
  });

  it('takes arguments as JSON and lets --arg override them', async () => {
    upstream.take();
    const { code } = await call([
      'open-api',
      'send',
      '--args',
      '{"id": 1, "title": "a=b"}',
      '--arg',
      'id=2',
      '--arg',
      'tags=one',
    ]);
    assert.equal(code, 0);
    assert.deepEqual(takeSentBodies(), [{ id: 2, title: 'a=b', tags: ['one'] }]);
  });

  it('prints the text of the result, or the whole result with --json', async () => {
    assert.deepEqual(await call(['open-api', 'fetch']), { code: 0, stdout: '{"ok":true}\n', stderr: '' });
    type Outcome = { is_error: boolean; content: object[] };
    const wholeResult = await runToolhostJson<Outcome>(['call', 'open-api', 'fetch'], { env });
    assert.deepEqual([wholeResult.is_error, wholeResult.content], [false, [{ type: 'text', text: '{"ok":true}' }]]);
    const picture = await call(['open-api', 'picture']);
    const fileInfo = `image/png, ${PNG.length} bytes`;
    assert.equal(picture.stdout, `The response is a file: ${fileInfo}.\n[image ${fileInfo}; --json prints it]\n`);
  });

  it('exits with 1 and prints the error when the tool reports one', async () => {
    const wrong = await call(['open-api', 'send', '--arg', 'id=many', '--arg', 'titl=x']);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stdout, /id: found "many"; allowed: integer/);
    assert.match(wrong.stdout, /titl: unknown argument; did you mean `title`\?/);
    const { code, stdout } = await call(['open-api', 'send', '--arg', 'id=many', '--json']);
    assert.deepEqual([code, (JSON.parse(stdout) as { is_error: boolean }).is_error], [1, true]);
  });

  it('passes a token to servers that forward one, and asks for it when it is missing', async () => {
    upstream.take();
    const withoutToken = await call(['forwarding', 'fetch']);
    assert.deepEqual([withoutToken.code, withoutToken.stdout], [1, '']);
    assert.match(withoutToken.stderr, /Pass one with --token or TOOLHOST_TOKEN/);
    assert.equal((await call(['forwarding', 'fetch', '--token', 'from-option'])).code, 0);
    assert.equal((await call(['forwarding', 'fetch'], { env: { ...env, TOOLHOST_TOKEN: 'from-env' } })).code, 0);
    const bearers = upstream.take().map((request) => request.headers.authorization);
    assert.deepEqual(bearers, ['Bearer from-option', 'Bearer from-env']);
  });

  it('[ship 7] calls and previews a tool as its view defines it, and lists the calls of the view', async () => {
    const viewedTool = {
      name: 'send',
      description: 'Sends.',
      method: 'POST',
      url: `${upstream.url}/send`,
      input_schema: inputSchema,
    };
    const views = { desk: { tools: [{ name: 'send', arguments: { done: true } }] } };
    await running.createServer({ name: 'Viewed', slug: 'viewed', views, tools: [viewedTool] });
    const inView = ['viewed', 'send', '--view', 'desk', '--arg', 'id=7'];
    upstream.take();
    assert.equal((await call(inView)).code, 0);
    assert.deepEqual(takeSentBodies(), [{ id: 7, done: true }]);
    const previewed = await runToolhostCommand(['preview', ...inView], { env });
    assert.match(previewed.stdout, /"done":true/);
    assert.match((await call([...inView, '--arg', 'done=false'])).stdout, /done/);
    assert.match((await call(['viewed', 'send', '--view', 'dsk'])).stderr, /no view "dsk"; .*desk/);
    const listed = await eventually(async () => {
      const { stdout } = await runToolhostCommand(
        ['calls', '--server', 'viewed', '--view', 'desk', '--outcome', 'ok'],
        { env },
      );
      assert.match(stdout, /viewed\/desk send$/m);
      return stdout;
    });
    assert.equal(listed.trimEnd().split('\n').length, 1);
    assert.match((await runToolhostCommand(['calls', '--view', 'other'], { env })).stdout, /No calls/);
  });

  it('suggests names for unknown tools, servers, and arguments', async () => {
    const [tool, server, pair, args] = await Promise.all([
      call(['open-api', 'fetsh']),
      call(['nowhere', 'fetch']),
      call(['open-api', 'send', '--arg', 'id']),
      call(['open-api', 'send', '--args', '[1]']),
    ]);
    assert.deepEqual([tool.code, server.code, pair.code, args.code], [1, 1, 2, 2]);
    assert.match(tool.stderr, /the server open-api has no tool "fetsh"; did you mean `fetch`\?/);
    assert.match(server.stderr, /there is no such server/);
    assert.match(pair.stderr, /allowed: name=value/);
    assert.match(args.stderr, /allowed: a JSON object/);
  });

  it('works with a key that may call but not read, and sends its arguments as text', async () => {
    upstream.take();
    const caller = { ...env, TOOLHOST_API_KEY: await running.createKey({ scopes: ['call'] }) };
    assert.equal((await call(['open-api', 'send', '--arg', 'title=x'], { env: caller })).code, 0);
    assert.deepEqual(takeSentBodies(), [{ title: 'x' }]);
  });
});

describe('toolhost and an unreachable or unexpected service', () => {
  const listServers = (env: Record<string, string>, ...more: string[]) =>
    runToolhostCommand(['servers', 'list', ...more], { env });

  it('names the service that cannot be reached and says what to do', async () => {
    const unusedPort = await findFreePort();
    const url = `http://127.0.0.1:${unusedPort}`;
    const [refused, withPort, unknown] = await Promise.all([
      listServers({ TOOLHOST_URL: url, TOOLHOST_API_KEY: 'k' }),
      listServers({ PORT: String(unusedPort), TOOLHOST_API_KEY: 'k' }),
      listServers({ TOOLHOST_API_KEY: 'k' }, '--url', 'http://toolhost.invalid'),
    ]);
    for (const { code, stdout } of [refused, withPort, unknown]) assert.deepEqual([code, stdout], [1, '']);
    for (const { stderr } of [refused, withPort]) {
      assert.equal(
        stderr,
        `error: no service is listening at ${url}. Start it with "bin/toolhost serve", or set its URL with --url or TOOLHOST_URL\n`,
      );
    }
    assert.match(
      unknown.stderr,
      /http:\/\/toolhost\.invalid cannot be reached: its host name (is unknown|could not be resolved)/,
    );
  });

  it('sends no request without a key, and does not print an invalid key', async () => {
    const [none, invalidKey, url] = await Promise.all([
      listServers({}),
      listServers({ TOOLHOST_API_KEY: 'hünter2' }),
      listServers({ TOOLHOST_API_KEY: 'k', TOOLHOST_URL: 'https://me:hunter2@tools.example.com' }),
    ]);
    assert.match(url.stderr, /TOOLHOST_URL: found https:\/\/…@tools\.example\.com; allowed: /);
    assert.match(none.stderr, /no API key\. Set TOOLHOST_API_KEY or pass --key \(create a key with: /);
    assert.doesNotMatch(invalidKey.stderr, /nter2/);
    assert.deepEqual([none.code, invalidKey.code], [1, 1]);
  });

  it('explains why the service rejected the request', async () => {
    const running = await startToolhost();
    try {
      const [unknown, callOnly] = await Promise.all([
        listServers({ TOOLHOST_URL: running.url, TOOLHOST_API_KEY: 'thk_nothing' }),
        listServers({ TOOLHOST_URL: running.url, TOOLHOST_API_KEY: await running.createKey({ scopes: ['call'] }) }),
      ]);
      assert.match(unknown.stderr, /^error: .*is not valid/);
      assert.match(callOnly.stderr, /^error: this operation needs the scope manage:read; the credential has call\n$/);
    } finally {
      await running.stop();
    }
  });
});
