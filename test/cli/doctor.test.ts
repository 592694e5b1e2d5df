import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { knownClients } from '@toolhost/mcp-clients/clients';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';
import { pluck } from '../support/pluck.ts';
import { type DoctorResult, runDoctor, runDoctorWithLogin } from '../support/toolhost/doctor-command.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { startForeignMcpServer } from '../support/upstreams/foreign-mcp-server.ts';
import { startListener } from '../support/upstreams/listener.ts';
import { replaceMethodResult } from '../support/upstreams/mcp-faults.ts';
import { startSdkMcpServer } from '../support/upstreams/sdk-mcp-server.ts';

const validToken = 'the-right-token';

const createTool = (more: object) => ({
  name: 'only',
  description: 'Does it.',
  inputSchema: { type: 'object' },
  ...more,
});
const getRemarks = ({ checks }: Pick<DoctorResult, 'checks'>) => checks.filter(({ status }) => status !== 'ok');

describe('toolhost doctor', () => {
  it('[ship 6] finds no problem in a working third-party server', async () => {
    const server = await startForeignMcpServer();
    const { code, healthy, checks } = await runDoctor(server.address, validToken);
    await server.close();
    assert.deepEqual([code, healthy], [0, true]);
    assert.deepEqual(pluck(getRemarks({ checks }), 'id'), ['address']);
    assert.ok(checks.some(({ id }) => id === 'tool_list') && checks.some(({ id }) => id === 'token_endpoint'));
  });

  it('[ship 6] finds no problem in a server built with the official SDK, and ends its session', async () => {
    const server = await startSdkMcpServer();
    const { code, checks } = await runDoctor(server.address, undefined, '--call', 'greet');
    const remainingSessions = server.sessions();
    await server.close();
    assert.deepEqual(pluck(getRemarks({ checks }), 'id'), ['address'], JSON.stringify(checks, undefined, 1));
    assert.match(checks.find(({ id }) => id === 'get')?.detail ?? '', /opens an event stream/);
    assert.ok(checks.some(({ id }) => id === 'call'));
    assert.deepEqual([code, remainingSessions], [0, 0]);
  });

  it('[ship 6] explains why there is no response', async () => {
    const listener = await startListener();
    const silent = await runDoctor(`http://127.0.0.1:${listener.port}/mcp`, undefined, '--timeout', '1');
    await listener.close();
    const refused = await runDoctor(`http://127.0.0.1:${listener.port}/mcp`);
    const details = [silent, refused].map(({ checks }) => checks.at(-1)?.detail);
    assert.match(details[0] ?? '', /did not respond within 1 s/);
    assert.match(details[1] ?? '', /nothing listens/);
    const withoutScheme = await runDoctor(`127.0.0.1:${listener.port}/mcp`);
    assert.equal(withoutScheme.checks.at(-1)?.detail, details[1]);
  });

  it('[ship 6] reports for each client whether it works, and why not', async () => {
    const long = 'a'.repeat(65);
    const tools = [createTool({ name: long }), createTool({ name: 'a.b' })];
    const server = await startForeignMcpServer(replaceMethodResult('tools/list', { tools }));
    const { clients } = await runDoctor(server.address, validToken);
    const { stdout } = await runToolhostCommand(['doctor', server.address], { env: { TOOLHOST_TOKEN: validToken } });
    await server.close();
    assert.deepEqual(pluck(clients, 'client'), pluck(knownClients, 'name'));
    const getClient = (name: string) => clients.find(({ client }) => client === name) ?? assert.fail(name);
    assert.equal(getClient('ChatGPT').works, 'no');
    assert.match(getClient('ChatGPT').because.join(' '), /letters, digits, _ and -\. Other names: a\.b/);
    assert.equal(getClient('Zed').works, 'partly');
    assert.match(getClient('Zed').because.join(' '), /Zed allows 64 characters/);
    assert.doesNotMatch(getClient('Zed').because.join(' '), /Cursor/);
    assert.match(stdout, /^Works with:\n(.*\n)* {2}Zed +partly: Zed allows 64/m);
  });

  it('[ship 6] reports clients as working with tools that they support', async () => {
    const getClientSupport = async (more: object) => {
      const server = await startForeignMcpServer(replaceMethodResult('tools/list', { tools: [createTool(more)] }));
      const { clients } = await runDoctor(server.address, validToken);
      await server.close();
      const shownClients = ['Anthropic API', 'Claude Code', 'Codex', 'Gemini CLI', 'OpenAI API', 'VS Code'];
      return shownClients.map((name) => {
        const { because, works } = clients.find(({ client }) => client === name) ?? assert.fail(name);
        // Clients that connect from the internet also reject the test server's address.
        return because.some((text) => !/from the internet/.test(text)) ? works : 'yes';
      });
    };
    const object = { type: 'object', properties: { a: { type: 'string' } } };
    const [no, partly, yes] = ['no', 'partly', 'yes'];
    assert.deepEqual(await getClientSupport({ name: 'a.b' }), [no, yes, yes, yes, no, yes]);
    const schemaWithRef = { ...object, properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { type: 'string' } } };
    assert.deepEqual(await getClientSupport({ inputSchema: schemaWithRef }), [yes, yes, yes, partly, yes, partly]);
    const alternatives = { ...object, oneOf: [{ required: ['a'] }] };
    assert.deepEqual(await getClientSupport({ inputSchema: alternatives }), [no, partly, partly, yes, no, yes]);
    const { type: _, ...untyped } = object;
    assert.deepEqual(await getClientSupport({ inputSchema: untyped }), [no, no, yes, no, no, no]);
  });

  it('[ship 6] names clients that are known to accept only another path', async () => {
    const { checks, clients } = await runDoctor('https://doctor.invalid/mcp/server');
    const { status, detail } = checks[0] ?? assert.fail();
    assert.equal(status, 'warning');
    const path = /^Claude reportedly calls only servers with the path \/mcp\. The path of this server is \/mcp\/server/;
    assert.match(detail, path);
    assert.deepEqual(checks[0]?.clients, ['Claude']);
    assert.ok(clients.every(({ works }) => works === 'no'));
    assert.equal((await runDoctor('https://doctor.invalid/mcp')).checks[0]?.status, 'ok');
  });

  it('[ship 6] never prints the token', async () => {
    const server = await startForeignMcpServer();
    const { stdout, stderr } = await runToolhostCommand(['doctor', server.address, '--token', 'a-secret-token']);
    await server.close();
    assert.match(stdout, /PROBLEM {2}The token is accepted: The server responds to the token with 401/);
    assert.doesNotMatch(stdout + stderr, /a-secret-token/);
  });

  describe('with servers of this service', async () => {
    const world = await startLoginWorld();
    after(() => world.stop());

    const assertOneRemark = (examined: DoctorResult) =>
      assert.equal(getRemarks(examined).length, 1, JSON.stringify(getRemarks(examined)));

    it('[ship 6] finds no problem before and after a login', async () => {
      const slug = await world.createServer();
      const { access_token: token } = await world.getTokens(await world.registerClient(slug));
      const examined = await runDoctor(`${world.toolhost.url}/mcp/${slug}`, token);
      assertOneRemark(examined);
      assert.equal(examined.code, 0);
      assert.ok(examined.checks.length > 18);
    });

    it('[ship 6] logs in at a server of this service, calls a tool, and ends the login', async () => {
      const slug = await world.createServer();
      const logInAsPerson = async (address: string) => {
        const browser = createBrowser();
        const redirect = await browser.press(await browser.get(address), 'Allow and log in');
        return getNextUrl(await browser.get(getNextUrl(await browser.get(getNextUrl(redirect)))));
      };
      const examined = await runDoctorWithLogin(`${world.toolhost.url}/mcp/${slug}`, logInAsPerson, '--call', 'run');
      assertOneRemark(examined);
      assert.equal(examined.code, 0);
      for (const id of ['login', 'refresh', 'call', 'logout'])
        assert.equal(examined.checks.find((check) => check.id === id)?.status, 'ok', id);
    });

    it('[ship 6] finds no problem in a server in search mode with truncated results', async () => {
      const slug = await world.createServer({ tool_mode: 'search', max_response_tokens: 500 });
      const { access_token: token } = await world.getTokens(await world.registerClient(slug));
      const examined = await runDoctor(`${world.toolhost.url}/mcp/${slug}`, token);
      assertOneRemark(examined);
    });

    it('[ship 6] finds that a server with keys works with every client except those that can only log in', async () => {
      const running = await startToolhost({ env: { DEMO: '1' } });
      const address = `${running.url}/mcp/projects`;
      const [withoutKey, withKey] = [await runDoctor(address), await runDoctor(address, 'local-example-key')];
      await running.stop();
      assert.equal(withoutKey.code, 0, JSON.stringify(getRemarks(withoutKey)));
      assert.deepEqual(pluck(getRemarks(withKey), 'id'), ['address', 'sign_in']);
      const refused = withKey.clients.filter(({ works }) => works !== 'yes');
      assert.deepEqual(pluck(refused, 'client'), ['Claude', 'ChatGPT', 'OpenAI API', 'Anthropic API']);
    });

    it('[ship 6] finds no problem in the management server', async () => {
      const running = await startToolhost();
      const key = await running.createKey();
      const examined = await runDoctor(`${running.url}/mcp/manage`, key);
      await running.stop();
      assert.equal(examined.code, 0);
      assert.deepEqual(pluck(getRemarks(examined), 'id'), ['address']);
    });
  });
});
