import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { registerClient } from '../support/oauth/oauth-client.ts';
import { signInAgent, signInLocalUser } from '../support/oauth/signed-in-agent.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';

describe('login at the management server', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());

  const logIn = async (scope?: string) => (await signInAgent(toolhost, scope)).tokens;

  it('[mcp 36] is offered to a client without a token', async () => {
    const { status, headers } = await toolhost.rpc('manage', undefined, 'tools/list');
    assert.equal(status, 401);
    const challenge = headers.get('www-authenticate') ?? '';
    assert.match(challenge, /resource_metadata="[^"]+\/mcp\/manage", scope="manage:read manage:write"/);
    const issuer = `${toolhost.url}/mcp/manage`;
    const client = await registerClient({ issuer, redirectUri: 'http://127.0.0.1:9/cb' });
    assert.equal((await signInLocalUser(client.authorization().url)).searchParams.get('iss'), issuer);
  });

  it("[sec M9] is recorded in the person's workspace, as is its end", async () => {
    const { client, tokens } = await signInAgent(toolhost);
    assert.equal((await client.revoke(tokens.access_token)).status, 200);
    const events = (await toolhost.rest('GET', '/audit')).body.events as Json[];
    const loginEvents = events.filter(({ actor_id }) => actor_id === 'oauth').slice(0, 2);
    const shown = loginEvents.map(({ operation, target }) => `${operation} ${target}`);
    assert.deepEqual(shown, ['loginRevoked manage', 'login manage']);
  });

  it('allows an agent to manage without a copied key, as the person who signed in', async () => {
    const tokens = await logIn();
    assert.equal(tokens.scope, 'manage:read manage:write');
    const config = { name: 'Made after a login', slug: 'made-after-login', tools: [] };
    const created = await toolhost.callTool('manage', tokens.access_token, 'createMcpServer', config);
    assert.notEqual(created.isError, true, JSON.stringify(created.content));
    const { server } = created.structuredContent as { server: { created_by: string } };
    assert.match(server.created_by, /^usr_/);
    const listed = await toolhost.rest('GET', '/servers');
    assert.ok(JSON.stringify(listed.body).includes('made-after-login'), 'it is in the local workspace');
    const { grants } = (await toolhost.rest('GET', '/grants?slug=manage')).body as { grants: Json[] };
    assert.ok(grants[0]?.last_used_at, JSON.stringify(grants));
    const { keys } = (await toolhost.rest('GET', '/keys')).body as { keys: Json[] };
    assert.ok(keys[0]?.last_used_at, 'management calls count as a use of the key');
  });

  it("[find A5] retains the person's 100 most recently used agents", async () => {
    const getStatus = async ({ access_token }: { access_token: string }) =>
      (await toolhost.rpc('manage', access_token, 'tools/list')).status;
    const [first, second] = [await logIn(), await logIn()];
    assert.deepEqual([await getStatus(first), await getStatus(second)], [200, 200]);
    // The listing stores the time of each agent's last use.
    await toolhost.rest('GET', '/grants');
    const { db } = toolhost.running.app.runner;
    const liveGrants = db.selectFrom('grants').where('revoked_at', 'is', null);
    const rows = await liveGrants.selectAll().orderBy('created_at').execute();
    const [oldest, ...others] = rows.slice(-2);
    assert.ok(oldest);
    await db.updateTable('grants').set({ last_used_at: 1 }).where('id', '=', oldest.id).execute();
    const live = () => liveGrants.select('id').execute();
    const missing = 100 - (await live()).length;
    const more = Array.from({ length: missing }, (_, n) => ({ ...oldest, id: `grt_more${n}`, last_used_at: null }));
    await db.insertInto('grants').values(more).execute();

    const last = await logIn();
    const ids = (await live()).map(({ id }) => id);
    assert.deepEqual([ids.length, ids.includes(oldest.id), ids.includes(others[0]?.id ?? '')], [100, false, true]);
    await eventually(async () => assert.equal(await getStatus(first), 401));
    assert.deepEqual([await getStatus(second), await getStatus(last)], [200, 200]);
  });

  it('[mcp 38] returns 403 with the scope to request when the login does not cover an operation', async () => {
    const tokens = await logIn('manage:read');
    assert.equal(tokens.scope, 'manage:read');
    const read = await toolhost.callTool('manage', tokens.access_token, 'listMcpServers');
    assert.notEqual(read.isError, true);
    const call = { name: 'createMcpServer', arguments: { name: 'No', slug: 'not-allowed', tools: [] } };
    const { status, headers } = await toolhost.rpc('manage', tokens.access_token, 'tools/call', call);
    assert.equal(status, 403);
    const challenge = headers.get('www-authenticate') ?? '';
    for (const part of [/error="insufficient_scope"/, /scope="manage:read manage:write"/])
      assert.match(challenge, part);
  });
});
