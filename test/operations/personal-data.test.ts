import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { hasScope } from '@toolhost/credentials/credential';
import { operationList } from '@toolhost/server/operations';
import type { Operation } from '../../apps/server/src/operations/operation.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { startProductionWorld } from '../support/oauth/production-world.ts';
import { signInAgent } from '../support/oauth/signed-in-agent.ts';
import { buildMinimalInput, toRestRequest } from '../support/operation-inputs.ts';
import { buildGrant } from '../support/store/rows.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const owner = 'Ottilie Owner';
const formerMember = 'Lena Left';
const loginName = 'Pia Person';
const invitedEmail = 'guest@mail.example';

describe('[find B9] names and addresses of people', async () => {
  const send = async (headers: Record<string, string>, method: string, path: string, body?: Json) => {
    const response = await fetch(`${toolhost.url}/api/v1${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, text: await response.text() };
  };
  const browserHeaders = (cookie: string) => ({
    cookie: `toolhost-session=${cookie}`,
    'sec-fetch-site': 'same-origin',
  });
  const asOwner = async (method: string, path: string, body?: Json) => {
    const { status, text } = await send(browserHeaders(session), method, path, body);
    assert.ok(status < 300, `${method} ${path}: ${status} ${text}`);
    return JSON.parse(text) as Json;
  };

  const upstream = await startRecordingUpstream();
  upstream.on('*', () => ({ body: {} }));
  upstream.on('GET /openapi.json', () => ({ body: { openapi: '3.1.0', info: {}, paths: {} } }));
  const toolhost = await startToolhost({ egressPorts: [upstream.port] });
  const session = await createPersonSession(toolhost, { name: owner });
  const formerSession = await createPersonSession(toolhost, { name: formerMember, role: 'owner' });
  await send(browserHeaders(formerSession), 'POST', '/invitations', { email: invitedEmail, role: 'viewer' });
  await asOwner('POST', '/servers', buildServerAt('made', upstream.url));
  await asOwner('PATCH', '/servers/made', { description: 'Changed by a person.' });
  await asOwner('PUT', '/servers/made/secrets/KEY', { value: 'a-secret' });
  await asOwner('POST', '/keys', { name: 'of a person', scopes: ['call'] });
  await asOwner('PUT', '/models/mine', { kind: 'openai', url: `${upstream.url}/v1`, model: 'm' });
  const webhook = await asOwner('POST', '/webhooks', { url: `${upstream.url}/told`, events: ['quota.near'] });
  await asOwner('PUT', '/notification-settings', { events: ['quota.near'] });
  await asOwner('POST', '/invitations', { email: 'other@mail.example', role: 'viewer' });
  await asOwner('DELETE', '/invitations/other%40mail.example');
  await asOwner('DELETE', `/members/usr_${formerSession}`);
  await asOwner('POST', '/servers/made/tools/get/call', {});
  const { calls } = (await toolhost.rest('GET', '/calls')).body as { calls: Json[] };
  const ids = { call: String(calls[0]?.id), webhook: String(webhook.id) };
  const key = await toolhost.createKey({ scopes: ['manage:read'] });
  const { db } = toolhost.running.app.runner;
  const { id: server_id } = await db.selectFrom('servers').select('id').executeTakeFirstOrThrow();
  const grant = buildGrant({ workspace_id: 'local', server_id, slug: 'made', person: loginName });
  await db.insertInto('grants').values(grant).execute();
  const deliveries = JSON.stringify([{ to: 'mail', id: `usr_${session}`, state: 'delivered' }]);
  const notice = { event: 'quota.near', subject: 'keys', text: 'Of 10 keys, 9 are used.', dedupe: 'x', attempts: 1 };
  const notification = { id: 'ntc_1', workspace_id: 'local', at: Date.now(), ...notice, deliveries, next_at: null };
  await db.insertInto('notifications').values(notification).execute();
  const people = await db.selectFrom('users').select(['email', 'name']).execute();
  const storedTexts = people.flatMap(({ email, name }) => [email, name]).filter((text) => text !== null);
  /** Texts that no program may receive. */
  const personalTexts = [...storedTexts, loginName, invitedEmail, 'other@mail.example'];
  after(() => Promise.all([toolhost.stop(), upstream.close()]));

  /** Returns an input for which the operation has results. */
  function getInput(op: Operation): Json {
    const id = op.name.includes('Webhook') ? ids.webhook : op.name.includes('Call') ? ids.call : 'unknown';
    const named = { slug: 'made', id, tool: 'get', name: 'KEY' };
    const knownFields: Json = { ...named, before: 1, version: 2, part: 'tools', query: 'made' };
    const relevantFields = Object.entries(knownFields).filter(([name]) => name in op.input.shape);
    return { ...buildMinimalInput(op), ...Object.fromEntries(relevantFields) };
  }

  const assertNoPersonalTexts = (text: string, source: string) => {
    for (const secret of personalTexts)
      assert.ok(!text.includes(secret), `${source} shows ${secret}: ${text.slice(0, 2000)}`);
  };

  for (const op of operationList) {
    it(`are absent from the response of ${op.name} to a read-only key`, async () => {
      const { method, path, body } = toRestRequest(op, getInput(op));
      const query = op.name === 'search' ? '?query=made' : '';
      const { status, text } = await send({ authorization: `Bearer ${key}` }, method, path + query, body);
      const isAllowed = hasScope(['manage:read'], op.scope) && !op.dashboardRole;
      assert.equal(status, isAllowed ? 200 : 403, text);
      assertNoPersonalTexts(text, op.name);
      if (isAllowed && op.isTool) {
        const result = await toolhost.callTool('manage', key, op.name, getInput(op));
        assert.ok(!result.isError, JSON.stringify(result));
        assertNoPersonalTexts(JSON.stringify(result), op.name);
      }
    });
  }

  it('are absent from responses to an agent of a person, and present in responses to the person', async () => {
    const { tokens } = await signInAgent(toolhost);
    const expectedTexts: Record<string, string[]> = {
      '/members': [owner],
      '/workspace.json': [owner, `usr_${session}@mail.example`],
      '/audit?limit=200': [owner, formerMember, invitedEmail, 'other@mail.example'],
      '/servers/made/versions': [owner],
      '/keys': [owner],
      [`/calls/${ids.call}`]: [owner],
      '/grants': [loginName],
      '/notifications': [owner],
    };
    for (const [path, names] of Object.entries(expectedTexts)) {
      const { text } = await send(browserHeaders(session), 'GET', path);
      for (const name of names) assert.ok(text.includes(name), `${path} does not show ${name}: ${text}`);
      const reply = await send({ authorization: `Bearer ${tokens.access_token}` }, 'GET', path);
      assert.equal(reply.status, path === '/members' ? 403 : 200, reply.text);
      assertNoPersonalTexts(reply.text, path);
    }
  });

  it('cannot be guessed with the audit log filter', async () => {
    const { body } = await toolhost.rest('GET', `/audit?target=${encodeURIComponent(invitedEmail)}`);
    assert.deepEqual(body.events, []);
  });
});

const oauth = {
  ...{ authorization_url: 'https://login.example.com/authorize', token_url: 'https://login.example.com/token' },
  ...{ client_id: 'client-1', client_secret: 'secret-of-the-client', scopes: ['read'] },
};

describe('[find B9] name and address of a signed-in person', async () => {
  const people = await startProductionWorld();
  after(() => people.stop());

  it('are absent from generated names, responses to a key, and consent pages', async () => {
    const email = 'lovelace@corp.example';
    const session = await people.signIn({ sub: 'ada', name: 'Ada Lovelace', email, email_verified: true });
    const config = buildServerAt('engine', 'https://api.example.com', { authentication: { type: 'Bearer' }, oauth });
    assert.equal((await people.requestAsUser(session, 'POST', '/servers', config)).status, 201);
    const reader = { name: 'reads', scopes: ['manage:read'] };
    const { body: created } = await people.requestAsUser(session, 'POST', '/keys', reader);
    const texts = [(await people.openConsentPage('engine')).html];
    for (const op of operationList) {
      const { method, path } = toRestRequest(op, { ...buildMinimalInput(op), slug: 'engine' });
      if (method === 'GET' && op.scope === 'manage:read' && !op.dashboardRole)
        texts.push((await people.requestAsAgent(String(created.key), method, path)).text);
    }
    assert.match(texts[0] ?? '', /Operated by[\s\S]*Workspace \w{4}/);
    assert.ok(texts.some((text) => text.includes('exported_at')));
    for (const text of texts) assert.doesNotMatch(text, /lovelace/i);
  });
});
