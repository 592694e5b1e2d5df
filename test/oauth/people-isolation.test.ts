import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { visibleText } from '../support/browser/browser.ts';
import { startPeopleWorld, toInputs } from '../support/oauth/people-world.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('people of one server', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  const world = fixtures.start(() => startPeopleWorld({ env: { EGRESS_ALLOW: `127.0.0.1:${upstream.port}` } }));

  const createTool = (name: string, more: Json = {}): Json => ({
    name,
    description: `Does ${name} for the person who calls.`,
    method: 'GET',
    url: `${upstream.url}/${name}`,
    input_schema: {},
    ...more,
  });
  const ownKey = {
    authentication: { type: 'Bearer', token: '{{API_TOKEN}}' },
    login: { allow: { domains: ['people.example'] }, fields: [{ name: 'API_TOKEN', label: 'Personal token' }] },
  };

  async function create(slug: string, more: Json): Promise<void> {
    const reply = await world.createServer({ name: `Server ${slug}`, slug, ...ownKey, ...more });
    assert.equal(reply.status, 201, reply.text);
  }

  const logIn = async (slug: string, name: string) =>
    (await world.logIn(slug, name, { fields: { API_TOKEN: `key-of-${name}` } })).access_token;
  const call = (slug: string, token: string, name: string, args: Json = {}): Promise<Reply> =>
    world.post(slug, token, 'tools/call', { name, arguments: args });
  const lastAuthorization = () => upstream.requests.at(-1)?.headers.authorization;
  const inviteAndSignIn = async (name: string) => {
    const { workspace } = (await world.request(world.owner, 'GET', '/session')).body as { workspace: { id: string } };
    const email = `${name}@people.example`;
    const invitation = await world.request(world.owner, 'POST', '/invitations', { email, role: 'editor' });
    assert.ok(invitation.status < 300, invitation.text);
    const session = await world.signIn(name);
    await world.request(session, 'POST', '/session/workspace', { workspace_id: workspace.id });
    return session;
  };

  it('never read the remainder of a long result of another', async () => {
    await create('long', { max_response_tokens: 200, tools: [createTool('read_list')] });
    upstream.on('GET /read_list', ({ headers }) => ({
      body: Array.from({ length: 400 }, (_, index) => `${headers.authorization} ${index}`),
    }));
    const [anna, bert] = [await logIn('long', 'anna'), await logIn('long', 'bert')];
    const { text } = await call('long', anna, 'read_list');
    const cursor = /cursor \\?"([^"\\]+)\\?"/.exec(text)?.[1] ?? assert.fail(text);
    const key = await world.request(world.owner, 'POST', '/keys', { name: 'script', scopes: ['call'] });
    for (const token of [bert, String(key.body.key)]) {
      const refused = await call('long', token, 'read_more', { cursor });
      assert.match(refused.text, /cursor: not valid/);
      assert.doesNotMatch(refused.text, /key-of-anna/);
    }
    assert.match((await call('long', anna, 'read_more', { cursor })).text, /key-of-anna/);
  });

  it('never send the file of another', async () => {
    const file = { type: 'string', content: 'base64' };
    const upload = createTool('send_file', { method: 'POST', body: 'file', input_schema: { file } });
    await create('files', { tools: [createTool('read_file'), upload] });
    upstream.on('GET /read_file', () => ({
      headers: { 'content-type': 'application/zip' },
      body: Buffer.concat([Buffer.alloc(1), randomBytes(300 * 1024)]),
    }));
    const [anna, bert] = [await logIn('files', 'anna'), await logIn('files', 'bert')];
    const { text } = await call('files', anna, 'read_file');
    const url = /https:\/\/tools\.example\.com\/files\/\w+/.exec(text)?.[0] ?? assert.fail(text.slice(0, 500));
    upstream.take();
    assert.match((await call('files', bert, 'send_file', { file: url })).text, /there is no file for you at this URL/);
    assert.deepEqual(upstream.take(), []);
    const sent = await call('files', anna, 'send_file', { file: url });
    assert.doesNotMatch(sent.text, /"isError":true/);
    assert.equal(upstream.take()[0]?.method, 'POST');
  });

  it('try tools out with their own values only, which no other member can list, and with none without them', async () => {
    await create('tried', { tools: [createTool('read_item')] });
    const bea = await inviteAndSignIn('bea');
    const put = (session: string, value: string) =>
      world.request(session, 'PUT', '/servers/tried/own-values', { values: { API_TOKEN: value } });
    const tryOut = (session: string) =>
      world.request(session, 'POST', '/servers/tried/tools/read_item/call', { arguments: {} });
    assert.equal((await put(world.owner, 'key-of-owner')).status, 200);
    const count = upstream.requests.length;
    const missing = await tryOut(bea);
    assert.match(missing.text, /log in to .* or enter it in the dashboard under Settings → Logins of the server/);
    assert.equal(upstream.requests.length, count);
    assert.equal((await put(bea, 'key-of-bea')).status, 200);
    for (const [session, name] of [
      [world.owner, 'owner'],
      [bea, 'bea'],
      [world.owner, 'owner'],
    ] as const) {
      assert.equal((await tryOut(session)).body.is_error, false);
      assert.equal(lastAuthorization(), `Bearer key-of-${name}`);
    }
    assert.equal((await world.request(bea, 'DELETE', '/servers/tried/own-values')).status, 200);
    assert.match((await tryOut(bea)).text, /log in to/);
    assert.deepEqual((await world.request(bea, 'GET', '/own-values')).body.servers, []);
    assert.equal((await tryOut(world.owner)).body.is_error, false);
    assert.equal(lastAuthorization(), 'Bearer key-of-owner');
  });

  it('see the server and its hosts before a label that imitates another service, and its real host next to a link', async () => {
    const host = `127.0.0.1:${upstream.port}`;
    const label = 'Password for <b>accounts.google.com</b>';
    const help = 'https://accounts.google.com.evil.example/help';
    const login = { ...ownKey.login, fields: [{ name: 'API_TOKEN', label, help }] };
    await create('imitation', { login, tools: [createTool('read_item')] });
    const { browser, page } = await world.startLogin('imitation', 'anna');
    const form = await browser.press(page, 'Allow');
    assert.match(form.html, /<title>Your details for Server imitation/);
    assert.equal(form.html.match(/<h1>/g)?.length, 1);
    assert.match(form.html, /<h1>Your details for <bdi>Server imitation<\/bdi><\/h1>/);
    const text = visibleText(form);
    const positions = [
      'Your details for Server imitation',
      `This server calls ${host}`,
      'Password for',
      `Sent to ${host}`,
    ];
    const found = positions.map((part) => text.indexOf(part));
    assert.deepEqual(
      found,
      found.toSorted((a, b) => a - b),
      text,
    );
    assert.ok(!found.includes(-1), text);
    assert.ok(text.includes('(accounts.google.com.evil.example)'), text);
    assert.ok(!form.html.includes('<b>'), form.html);
  });

  it('lose their values when the client revokes their last login, and no one else does', async () => {
    await create('logged-out', { tools: [createTool('read_item')] });
    const [first, second] = [
      await world.logIn('logged-out', 'anna', { fields: { API_TOKEN: 'key-of-anna' } }),
      await world.logIn('logged-out', 'anna'),
    ];
    const bert = await logIn('logged-out', 'bert');
    const revoke = async ({ access_token: token, clientId }: typeof first) =>
      assert.equal((await world.postForm('/mcp/logged-out/revoke', { token, client_id: clientId })).status, 200);
    const hasStored = async () => /Stored/.test(visibleText((await world.startLogin('logged-out', 'anna')).page));
    await revoke(first);
    assert.equal(await hasStored(), true);
    await revoke(second);
    assert.equal(await hasStored(), false);
    assert.equal((await call('logged-out', bert, 'read_item')).status, 200);
    assert.equal(lastAuthorization(), 'Bearer key-of-bert');
    const { page, browser } = await world.startLogin('logged-out', 'anna');
    const form = await browser.press(page, 'Allow');
    assert.equal(
      (await browser.press(form, 'Save and continue', { fields: toInputs({ API_TOKEN: 'new' }) })).status,
      200,
    );
  });
});
