import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

describe('pending actions of servers', async () => {
  const toolhost = await startToolhost();
  after(() => toolhost.stop());

  const getPendingActions = async (key?: string) => {
    const { status, body } = await toolhost.rest('GET', '/pending-actions', key ? { key } : {});
    assert.equal(status, 200);
    return body.servers as Json[];
  };

  const setSecret = (slug: string, name: string) =>
    toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value: 'a-secret' } });

  it('list secrets without a value and secrets that were set for another host', async () => {
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    for (const slug of ['needs-key', 'needs-nothing'])
      await toolhost.createServer(buildServerAt(slug, 'https://api.example.com', { authentication }));
    await setSecret('needs-nothing', 'KEY');
    const missing = { slug: 'needs-key', missing_secrets: ['KEY'], moved_secrets: [] };
    assert.deepEqual(await getPendingActions(), [missing]);
    await setSecret('needs-key', 'KEY');
    assert.deepEqual(await getPendingActions(), []);
    const { tools } = buildServerAt('needs-nothing', 'https://other.example.com');
    await toolhost.rest('PATCH', '/servers/needs-nothing', { body: { tools } });
    const moved = { slug: 'needs-nothing', missing_secrets: [], moved_secrets: ['KEY'] };
    assert.deepEqual(await getPendingActions(), [moved]);
    const limited = await toolhost.createKey({ scopes: ['manage:read'], servers: ['needs-key'] });
    assert.deepEqual(await getPendingActions(limited), []);
  });

  it('[find E5] distinguish the secrets of a token request, which are also sent to the token endpoint, from others', async () => {
    const client = { client_id: '{{ID}}', client_secret: '{{SECRET}}' };
    const authentication = (host: string) => ({
      type: 'ClientCredentials',
      token_url: `https://${host}/token`,
      ...client,
    });
    const slug = 'needs-token';
    const headers = { 'X-Key': '{{KEY}}', 'X-Other': '{{OTHER}}' };
    const config = { authentication: authentication('token.example.com'), headers };
    await toolhost.createServer(buildServerAt(slug, 'https://api.example.com', config));
    const getPendingActionsOfServer = async () => (await getPendingActions()).find((one) => one.slug === slug);
    const names = ['ID', 'SECRET', 'KEY', 'OTHER'];
    assert.deepEqual(new Set((await getPendingActionsOfServer())?.missing_secrets as string[]), new Set(names));
    for (const name of names) await setSecret(slug, name);
    assert.equal(await getPendingActionsOfServer(), undefined);
    const changed = { authentication: authentication('other.example.com') };
    const { status, text } = await toolhost.rest('PATCH', `/servers/${slug}`, { body: changed });
    assert.equal(status, 200, text);
    const { missing_secrets, moved_secrets } = (await getPendingActionsOfServer()) ?? {};
    assert.deepEqual([missing_secrets, new Set(moved_secrets as string[])], [[], new Set(['ID', 'SECRET'])]);
  });
});
