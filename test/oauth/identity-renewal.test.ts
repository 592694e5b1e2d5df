import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startHonestProvider } from '../support/oauth/honest-provider.ts';
import { startPeopleWorld } from '../support/oauth/people-world.ts';
import { createProductionFetch, productionUrl } from '../support/oauth/production-world.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const checkSeconds = 5;

describe('refresh token of the identity provider, which rotates', async () => {
  const upstream = await startRecordingUpstream();
  const postgres = await startPostgres();
  const url = await postgres.createDatabase();
  const provider = await startHonestProvider();
  const env = {
    ...(await provider.createSignInClient(productionUrl)),
    MASTER_KEY: randomBytes(32).toString('base64'),
    DATABASE_URL: url,
    EGRESS_ALLOW: `127.0.0.1:${upstream.port}`,
    IDENTITY_CHECK_SECONDS: String(checkSeconds),
  };
  const world = await startPeopleWorld({ env });
  const otherPort = await findFreePort();
  const otherReplica = await startToolhost({
    env: { ...env, BASE_URL: productionUrl, HOST: '127.0.0.1', PORT: String(otherPort) },
  });
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  after(async () => {
    await admin.end();
    await otherReplica.stop();
    await world.stop();
    await provider.close();
    await postgres.stop();
    await upstream.close();
  });

  async function createServer(slug: string): Promise<void> {
    const reply = await world.createServer({
      name: 'Shop',
      slug,
      authentication: { type: 'Bearer', token: 'stored-key' },
      login: {},
      tools: [
        {
          name: 'read_item',
          description: 'Reads one item from the shop.',
          method: 'GET',
          url: `${upstream.url}/items`,
          input_schema: {},
        },
      ],
    });
    assert.equal(reply.status, 201, reply.text);
  }

  async function logInMember(slug: string, name: string) {
    const email = `${name}@people.example`;
    const reply = await world.request(world.owner, 'POST', '/invitations', { email, role: 'viewer' });
    assert.ok(reply.status < 300, reply.text);
    return world.logIn(slug, name);
  }

  const toForm = (refresh_token: string, clientId: string) => ({
    grant_type: 'refresh_token',
    refresh_token,
    client_id: clientId,
  });
  const waitForCheck = () => delay(checkSeconds * 1000 + 100);

  it('stays valid when both replicas renew one login at the same time', async () => {
    await createServer('shared');
    const { refresh_token: first, clientId } = await logInMember('shared', 'rike');
    const sends = [world.send, createProductionFetch(otherPort)];
    let refreshToken = first;
    for (const _ of [1, 2, 3]) {
      await waitForCheck();
      const body = new URLSearchParams(toForm(refreshToken, clientId));
      const responses = await Promise.all(
        [...sends, ...sends, ...sends].map((send) =>
          send(`${productionUrl}/mcp/shared/token`, { method: 'POST', body }).then(async (response) => ({
            status: response.status,
            text: await response.text(),
          })),
        ),
      );
      for (const { status, text } of responses) assert.equal(status, 200, text);
      const tokens = responses.map(({ text }) => JSON.parse(text) as { access_token: string; refresh_token: string });
      for (const { access_token: token } of tokens)
        assert.equal((await world.post('shared', token, 'tools/list')).status, 200);
      refreshToken = tokens.at(-1)?.refresh_token ?? '';
    }
  });

  it('is not lost when the database cannot store the role that a check returned', async () => {
    await createServer('roles');
    const roleGroups = { role_groups: [{ group: 'editors', role: 'editor' }] };
    assert.equal((await world.request(world.owner, 'PUT', '/role-groups', roleGroups)).status, 200);
    const { refresh_token: refreshToken, clientId } = await logInMember('roles', 'rita');
    provider.setClaims('rita', { groups: ['editors'] });
    await waitForCheck();
    await admin.query(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no space' using errcode = '53100'; end $$`,
    );
    await admin.query('create trigger full_disk before update on members for each row execute function refuse()');
    const during = await world.postForm('/mcp/roles/token', toForm(refreshToken, clientId));
    await admin.query('drop trigger full_disk on members');
    const token = during.status === 200 ? String(during.body.refresh_token) : refreshToken;
    await waitForCheck();
    const later = await world.postForm('/mcp/roles/token', toForm(token, clientId));
    assert.equal(later.status, 200, later.text);
    const { members } = (await world.request(world.owner, 'GET', '/members')).body as {
      members: { email: string; role: string }[];
    };
    assert.equal(members.find(({ email }) => email === 'rita@people.example')?.role, 'editor');
  });
});
