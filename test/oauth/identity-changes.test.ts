import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startPeopleWorld } from '../support/oauth/people-world.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

type Member = { name: string; role: string; role_group?: string };

describe('change of a person at the identity provider, during a login at a server', () => {
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  let passedMs = 0;
  const world = fixtures.start(() =>
    startPeopleWorld({
      env: { EGRESS_ALLOW: `127.0.0.1:${upstream.port}`, IDENTITY_CHECK_SECONDS: '60' },
      runtimeOptions: { now: () => Date.now() + passedMs },
    }),
  );

  async function createServer(slug: string, login: Json): Promise<void> {
    const { authentication: _, ...config } = buildServerAt(slug, upstream.url) as Json;
    const authentication = { type: 'Bearer', token: 'stored-upstream-key' };
    const reply = await world.createServer({ ...config, authentication, login });
    assert.equal(reply.status, 201, reply.text);
  }

  /** Refreshes a login when its next check is due. */
  function refresh(slug: string, login: { refresh_token: string; clientId: string }) {
    passedMs += 61_000;
    return world.postForm(`/mcp/${slug}/token`, {
      grant_type: 'refresh_token',
      refresh_token: login.refresh_token,
      client_id: login.clientId,
    });
  }
  const getStatus = async (slug: string, token: string) => (await world.post(slug, token, 'tools/list')).status;

  it('ends the login of a person who was removed, and only theirs', async () => {
    await createServer('removals', { allow: { domains: ['people.example'] } });
    const [rolf, anna] = [await world.logIn('removals', 'rolf'), await world.logIn('removals', 'anna')];
    world.provider.removePerson('rolf');
    const reply = await refresh('removals', rolf);
    assert.deepEqual([reply.status, reply.body.error], [400, 'invalid_grant']);
    assert.equal(await getStatus('removals', rolf.access_token), 401);
    assert.equal((await refresh('removals', anna)).status, 200);
  });

  it('ends the login of a person who left the group that lets them in', async () => {
    await createServer('groups', { allow: { groups: ['support'] } });
    world.provider.setClaims('greta', { groups: ['support'] });
    const login = await world.logIn('groups', 'greta');
    const refreshed = await refresh('groups', login);
    assert.equal(refreshed.status, 200, refreshed.text);
    world.provider.setClaims('greta', { groups: ['sales'] });
    const next = { ...login, refresh_token: String(refreshed.body.refresh_token) };
    const reply = await refresh('groups', next);
    assert.deepEqual([reply.status, reply.body.error], [400, 'invalid_grant']);
  });

  it('changes the role of a member whose groups give another one', async () => {
    await createServer('roles', { allow: { members: true } });
    const request = (method: string, path: string, body?: Json) => world.request(world.owner, method, path, body);
    await request('PUT', '/role-groups', { role_groups: [{ group: 'leads', role: 'editor' }] });
    await request('POST', '/invitations', { email: 'mia@people.example', role: 'viewer' });
    const login = await world.logIn('roles', 'mia');
    const getMember = async () => {
      const { members } = (await request('GET', '/members')).body as { members: Member[] };
      return members.find(({ name }) => name === 'mia');
    };
    assert.equal((await getMember())?.role, 'viewer');
    world.provider.setClaims('mia', { groups: ['leads'] });
    const reply = await refresh('roles', login);
    assert.equal(reply.status, 200, reply.text);
    const { role, role_group } = (await getMember()) ?? {};
    assert.deepEqual([role, role_group], ['editor', 'leads']);
  });
});
