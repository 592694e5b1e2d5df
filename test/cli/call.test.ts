import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { assertFailed, startCommandService } from '../support/toolhost/command-world.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { type CommandOptions, runToolhostCommand, runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { buildToolAt } from '../support/upstream-configs.ts';
import { PNG } from '../support/upstreams/content-upstream.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const inputSchema = {
  id: { type: 'integer', optional: true },
  ratio: { type: 'number', optional: true },
  done: { type: 'boolean', optional: true },
  title: { type: 'string', optional: true },
  tags: { type: 'array', items: { type: 'string' }, optional: true },
  counts: { type: 'array', items: { type: 'integer' }, optional: true },
  place: { type: 'object', optional: true },
};

describe('toolhost call', async () => {
  const upstream = await startRecordingUpstream();
  const { running, env, run } = await startCommandService({ egressPorts: [upstream.port] });
  const tool = (name: string, method: string, input_schema: object) =>
    buildToolAt(`${upstream.url}/${name}`, { name, method, input_schema });
  const tools = [tool('send', 'POST', inputSchema), tool('fetch', 'GET', {}), tool('picture', 'GET', {})];
  await running.createServer({ name: 'Open', slug: 'open-api', tools });
  await running.createServer({ name: 'Forwarding', slug: 'forwarding', authentication: { type: 'Bearer' }, tools });
  upstream.on('GET /fetch', () => ({ body: { ok: true } }));
  upstream.on('GET /picture', () => ({ headers: { 'content-type': 'image/png' }, body: PNG }));
  after(() => upstream.close());

  const call = (args: readonly string[], options: CommandOptions = {}) => run(['call', ...args], options);
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

  it('takes arguments as name=value, next to --arg, and splits them at the first =', async () => {
    upstream.take();
    const args = ['id=42', 'title=a=b', 'tags=one', '--arg', 'tags=two', 'done=false'];
    assert.equal((await call(['open-api', 'send', ...args])).code, 0);
    assert.deepEqual(takeSentBodies(), [{ id: 42, title: 'a=b', tags: ['one', 'two'], done: false }]);
    assert.match((await run(['preview', 'open-api', 'send', 'title='])).stdout, /\{"title":""\}/);
  });

  it('takes arguments as JSON and lets --arg override them', async () => {
    upstream.take();
    const args = ['--args', '{"id": 1, "title": "a=b"}', '--arg', 'id=2', '--arg', 'tags=one'];
    assert.equal((await call(['open-api', 'send', ...args])).code, 0);
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
    assertFailed(withoutToken, /Pass one with --token or TOOLHOST_TOKEN/);
    assert.equal((await call(['forwarding', 'fetch', '--token', 'from-option'])).code, 0);
    assert.equal((await call(['forwarding', 'fetch'], { env: { ...env, TOOLHOST_TOKEN: 'from-env' } })).code, 0);
    const bearers = upstream.take().map((request) => request.headers.authorization);
    assert.deepEqual(bearers, ['Bearer from-option', 'Bearer from-env']);
  });

  it('[ship 7] calls and previews a tool as its view defines it, and lists the calls of the view', async () => {
    const views = { desk: { tools: [{ name: 'send', arguments: { done: true } }] } };
    await running.createServer({ name: 'Viewed', slug: 'viewed', views, tools: tools.slice(0, 1) });
    const inView = ['viewed', 'send', '--view', 'desk', '--arg', 'id=7'];
    upstream.take();
    assert.equal((await call(inView)).code, 0);
    assert.deepEqual(takeSentBodies(), [{ id: 7, done: true }]);
    const previewed = await run(['preview', ...inView]);
    assert.match(previewed.stdout, /"done":true/);
    assert.match((await call([...inView, '--arg', 'done=false'])).stdout, /done/);
    assert.match((await call(['viewed', 'send', '--view', 'dsk'])).stderr, /no view "dsk"; .*desk/);
    const listed = await eventually(async () => {
      const { stdout } = await run(['calls', '--server', 'viewed', '--view', 'desk', '--outcome', 'ok']);
      assert.match(stdout, /viewed\/desk send$/m);
      return stdout;
    });
    assert.equal(listed.trimEnd().split('\n').length, 1);
    assert.match((await run(['calls', '--view', 'other'])).stdout, /No calls/);
  });

  it('suggests names for unknown tools, servers, and arguments', async () => {
    for (const [args, code, message] of [
      [['open-api', 'fetsh'], 1, /the server open-api has no tool "fetsh"; did you mean `fetch`\?/],
      [['nowhere', 'fetch'], 1, /there is no such server/],
      [['open-api', 'send', '--arg', 'id'], 2, /allowed: name=value/],
      [['open-api', 'send', '--args', '[1]'], 2, /allowed: a JSON object/],
    ] as const)
      assertFailed(await call(args), message, code);
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
    const advice = 'Start it with "bin/toolhost serve", or set its URL with --url or TOOLHOST_URL';
    const stderr = `error: no service is listening at ${url}. ${advice}\n`;
    for (const address of [{ TOOLHOST_URL: url }, { PORT: String(unusedPort) }])
      assert.deepEqual(await listServers({ ...address, TOOLHOST_API_KEY: 'k' }), { code: 1, stdout: '', stderr });
    const unknown = await listServers({ TOOLHOST_API_KEY: 'k' }, '--url', 'http://toolhost.invalid');
    const reason = /http:\/\/toolhost\.invalid cannot be reached: its host name (is unknown|could not be resolved)/;
    assertFailed(unknown, reason);
  });

  it('sends no request without a key, and does not print an invalid key', async () => {
    assertFailed(await listServers({}), /no API key\. Set TOOLHOST_API_KEY or pass --key \(create a key with: /);
    const invalidKey = await listServers({ TOOLHOST_API_KEY: 'hünter2' });
    assert.equal(invalidKey.code, 1);
    assert.doesNotMatch(invalidKey.stderr, /nter2/);
    const withPassword = { TOOLHOST_API_KEY: 'k', TOOLHOST_URL: 'https://me:hunter2@tools.example.com' };
    const refusal = /TOOLHOST_URL: found https:\/\/…@tools\.example\.com; allowed: /;
    assert.match((await listServers(withPassword)).stderr, refusal);
  });

  it('explains why the service rejected the request', async () => {
    const running = await startToolhost();
    try {
      const listWithKey = (TOOLHOST_API_KEY: string) => listServers({ TOOLHOST_URL: running.url, TOOLHOST_API_KEY });
      assert.match((await listWithKey('thk_nothing')).stderr, /^error: .*is not valid/);
      const { stderr } = await listWithKey(await running.createKey({ scopes: ['call'] }));
      assert.match(
        stderr,
        /^error: this command needs the scope manage:read; the credential has call\. Create a key with it: /,
      );
    } finally {
      await running.stop();
    }
  });
});
