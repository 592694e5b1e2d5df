import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { knownClients } from '../../src/domain/clients/clients.ts';
import { createBrowser, next } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { type Examined, examine, examineWithLogin } from '../support/toolhost/doctor-command.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { toolhost } from '../support/toolhost/toolhost-command.ts';
import { startForeignMcpServer } from '../support/upstreams/foreign-mcp-server.ts';
import { startListener } from '../support/upstreams/listener.ts';
import { result } from '../support/upstreams/mcp-faults.ts';
import { startSdkMcpServer } from '../support/upstreams/sdk-mcp-server.ts';

const rightToken = 'the-right-token';

const tool = (more: object) => ({ name: 'only', description: 'Does it.', inputSchema: { type: 'object' }, ...more });

describe('toolhost doctor', () => {
  it('[ship 6] finds no problem in a working third-party server', async () => {
    const server = await startForeignMcpServer();
    const { code, healthy, checks } = await examine(server.address, rightToken);
    await server.close();
    assert.deepEqual([code, healthy], [0, true]);
    const remarks = checks.filter(({ status }) => status !== 'ok').map(({ id }) => id);
    assert.deepEqual(remarks, ['address']);
    assert.ok(checks.some(({ id }) => id === 'tool_list') && checks.some(({ id }) => id === 'token_endpoint'));
  });

  it('[ship 6] finds no problem in a server built with the official SDK, and ends its session', async () => {
    const server = await startSdkMcpServer();
    const { code, checks } = await examine(server.address, undefined, '--call', 'greet');
    const left = server.sessions();
    await server.close();
    const remarks = checks.filter(({ status }) => status !== 'ok').map(({ id }) => id);
    assert.deepEqual(remarks, ['address'], JSON.stringify(checks, undefined, 1));
    assert.match(checks.find(({ id }) => id === 'get')?.detail ?? '', /opens an event stream/);
    assert.ok(checks.some(({ id }) => id === 'call'));
    assert.deepEqual([code, left], [0, 0]);
  });

  it('[ship 6] explains why there is no response', async () => {
    const listener = await startListener();
    const silent = await examine(`http://127.0.0.1:${listener.port}/mcp`, undefined, '--timeout', '1');
    await listener.close();
    const refused = await examine(`http://127.0.0.1:${listener.port}/mcp`);
    const details = [silent, refused].map(({ checks }) => checks.at(-1)?.detail);
    assert.match(details[0] ?? '', /did not respond within 1 s/);
    assert.match(details[1] ?? '', /nothing listens/);
    assert.equal((await examine('mcp.example.com')).checks[0]?.status, 'problem');
  });

  it('[ship 6] reports for each client whether it works, and why not', async () => {
    const long = 'a'.repeat(65);
    const fault = result('tools/list', { tools: [tool({ name: long }), tool({ name: 'a.b' })] });
    const server = await startForeignMcpServer(fault);
    const { clients } = await examine(server.address, rightToken);
    const { stdout } = await toolhost(['doctor', server.address], { env: { TOOLHOST_TOKEN: rightToken } });
    await server.close();
    assert.deepEqual(
      clients.map(({ client }) => client),
      knownClients.map(({ name }) => name),
    );
    const of = (name: string) => clients.find(({ client }) => client === name) ?? assert.fail(name);
    assert.equal(of('ChatGPT').works, 'no');
    assert.match(of('ChatGPT').because.join(' '), /letters, digits, _ and -\. Other names: a\.b/);
    assert.equal(of('Zed').works, 'partly');
    assert.match(of('Zed').because.join(' '), /Zed allows 64 characters/);
    assert.doesNotMatch(of('Zed').because.join(' '), /Cursor/);
    assert.match(stdout, /^Works with:\n(.*\n)* {2}Zed +partly: Zed allows 64/m);
  });

  it('[ship 6] reports clients as working with tools that they support', async () => {
    const worksWith = async (more: object) => {
      const server = await startForeignMcpServer(result('tools/list', { tools: [tool(more)] }));
      const { clients } = await examine(server.address, rightToken);
      await server.close();
      const shown = ['Anthropic API', 'Claude Code', 'Codex', 'Gemini CLI', 'OpenAI API', 'VS Code'];
      return shown.map((name) => {
        const { because, works } = clients.find(({ client }) => client === name) ?? assert.fail(name);
        // Clients that connect from the internet also reject the test server's address.
        return because.some((text) => !/from the internet/.test(text)) ? works : 'yes';
      });
    };
    const object = { type: 'object', properties: { a: { type: 'string' } } };
    const [no, partly, yes] = ['no', 'partly', 'yes'];
    assert.deepEqual(await worksWith({ name: 'a.b' }), [no, yes, yes, yes, no, yes]);
    const referring = { ...object, properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { type: 'string' } } };
    assert.deepEqual(await worksWith({ inputSchema: referring }), [yes, yes, yes, partly, yes, partly]);
    const alternatives = { ...object, oneOf: [{ required: ['a'] }] };
    assert.deepEqual(await worksWith({ inputSchema: alternatives }), [no, partly, partly, yes, no, yes]);
    const { type: _, ...untyped } = object;
    assert.deepEqual(await worksWith({ inputSchema: untyped }), [no, no, yes, no, no, no]);
  });

  it('[ship 6] names clients that are known to accept only another path', async () => {
    const { checks, clients } = await examine('https://doctor.invalid/mcp/server');
    const { status, detail } = checks[0] ?? assert.fail();
    assert.equal(status, 'warning');
    assert.match(
      detail,
      /^Claude reportedly calls only servers with the path \/mcp\. The path of this server is \/mcp\/server/,
    );
    assert.deepEqual(checks[0]?.clients, ['Claude']);
    assert.ok(clients.every(({ works }) => works === 'no'));
    assert.equal((await examine('https://doctor.invalid/mcp')).checks[0]?.status, 'ok');
  });

  it('[ship 6] never prints the token', async () => {
    const server = await startForeignMcpServer();
    const { stdout, stderr } = await toolhost(['doctor', server.address, '--token', 'a-secret-token']);
    await server.close();
    assert.match(stdout, /PROBLEM {2}The token is accepted: The server responds to the token with 401/);
    assert.doesNotMatch(stdout + stderr, /a-secret-token/);
  });

  describe('with servers of this service', () => {
    let world: Awaited<ReturnType<typeof startLoginWorld>>;
    before(async () => {
      world = await startLoginWorld();
    });
    after(() => world.stop());

    const remarksOf = ({ checks }: Examined) =>
      checks.filter(({ status }) => status !== 'ok').map(({ id, detail }) => `${id}: ${detail}`);

    it('[ship 6] finds no problem before and after a login', async () => {
      const slug = await world.serve();
      const { access_token: token } = await world.tokens(await world.client(slug));
      const examined = await examine(`${world.toolhost.url}/mcp/${slug}`, token);
      assert.deepEqual(remarksOf(examined).length, 1, remarksOf(examined).join('\n'));
      assert.equal(examined.code, 0);
      assert.ok(examined.checks.length > 18);
    });

    it('[ship 6] logs in at a server of this service, calls a tool, and ends the login', async () => {
      const slug = await world.serve();
      const person = async (address: string) => {
        const browser = createBrowser();
        const departure = await browser.press(await browser.get(address), 'Allow and log in');
        return next(await browser.get(next(await browser.get(next(departure)))));
      };
      const examined = await examineWithLogin(`${world.toolhost.url}/mcp/${slug}`, person, '--call', 'run');
      assert.deepEqual(remarksOf(examined).length, 1, remarksOf(examined).join('\n'));
      assert.equal(examined.code, 0);
      for (const id of ['login', 'refresh', 'call', 'logout'])
        assert.equal(examined.checks.find((check) => check.id === id)?.status, 'ok', id);
    });

    it('[ship 6] finds no problem in a server in search mode with truncated results', async () => {
      const slug = await world.serve({ tool_mode: 'search', max_answer_tokens: 500 });
      const { access_token: token } = await world.tokens(await world.client(slug));
      const examined = await examine(`${world.toolhost.url}/mcp/${slug}`, token);
      assert.deepEqual(remarksOf(examined).length, 1, remarksOf(examined).join('\n'));
    });

    it('[ship 6] finds that a server with keys works with every client except those that can only log in', async () => {
      const running = await startToolhost({ env: { DEMO: '1' } });
      const address = `${running.url}/mcp/projects`;
      const [without, withKey] = [await examine(address), await examine(address, 'local-example-key')];
      await running.stop();
      assert.equal(without.code, 0, remarksOf(without).join('\n'));
      assert.deepEqual(
        remarksOf(withKey).map((remark) => remark.split(':')[0]),
        ['address', 'sign_in'],
      );
      const refused = withKey.clients.filter(({ works }) => works !== 'yes').map(({ client }) => client);
      assert.deepEqual(refused, ['Claude', 'ChatGPT', 'OpenAI API', 'Anthropic API']);
    });

    it('[ship 6] finds no problem in the management server', async () => {
      const running = await startToolhost();
      const key = await running.key();
      const examined = await examine(`${running.url}/mcp/manage`, key);
      await running.stop();
      assert.equal(examined.code, 0);
      assert.deepEqual(
        remarksOf(examined).map((remark) => remark.split(':')[0]),
        ['address'],
      );
    });
  });
});
