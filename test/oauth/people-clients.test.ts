import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getRedirectTarget } from '../support/browser/browser.ts';
import { clientWithId } from '../support/oauth/oauth-client.ts';
import { startPeopleWorld } from '../support/oauth/people-world.ts';
import { productionUrl } from '../support/oauth/production-world.ts';
import { readReply } from '../support/toolhost/read-reply.ts';
import { startClientDocuments } from '../support/upstreams/client-documents.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const listedUri = 'https://agent.example/callback';
const loopbackUri = 'http://127.0.0.1:4000/callback';

describe('clients that a login lists', () => {
  const fixtures = useFixtures();
  const site = fixtures.start(startClientDocuments);
  const world = fixtures.start(() => startPeopleWorld({ runtimeOptions: site.runtimeOptions }));

  async function createServer(slug: string, clients: string[]): Promise<void> {
    const reply = await world.createServer({
      name: slug,
      slug,
      authentication: { type: 'Bearer', token: 'stored-key' },
      login: { clients },
      tools: [{ name: 'read', description: 'Reads.', method: 'GET', url: 'https://api.example.com/items' }],
    });
    assert.equal(reply.status, 201, reply.text);
  }

  /** Returns how a login starts: at the identity provider, with an error for the client, or with a page. */
  async function start(slug: string, clientId: string, redirectUri: string): Promise<string> {
    const client = clientWithId(clientId, { issuer: `${productionUrl}/mcp/${slug}`, redirectUri });
    const page = await world.createBrowser().get(client.authorization().url);
    const target = getRedirectTarget(page);
    if (target?.origin === world.provider.url) return 'sign-in';
    return target?.searchParams.get('error') ?? String(page.status);
  }

  async function register(slug: string, redirectUris: string[]): Promise<string> {
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: redirectUris }),
    };
    return String((await readReply(await world.send(`${productionUrl}/mcp/${slug}/register`, init))).body.client_id);
  }

  it('let in a client with a metadata document at listed redirect URIs only, or if its document is listed', async () => {
    const otherUri = 'https://agent.example/other';
    const redirect_uris = [listedUri, otherUri];
    const [listed, unlisted] = ['/listed.json', '/unlisted.json'].map((path) => site.publish(path, { redirect_uris }));
    await createServer('by-redirect', [listedUri]);
    await createServer('by-document', [String(listed)]);
    for (const id of [String(listed), String(unlisted)]) {
      assert.equal(await start('by-redirect', id, listedUri), 'sign-in');
      assert.equal(await start('by-redirect', id, otherUri), '403');
    }
    for (const uri of redirect_uris) {
      assert.equal(await start('by-document', String(listed), uri), 'sign-in');
      assert.equal(await start('by-document', String(unlisted), uri), '403');
    }
    assert.equal(await start('by-document', String(listed), 'https://evil.example/callback'), '400');
  });

  it('let in a loopback redirect URI with any port, which programs choose at each login, but with nothing else changed', async () => {
    await createServer('by-loopback', [loopbackUri]);
    const uris = [
      [loopbackUri, 'sign-in'],
      ['http://127.0.0.1:5000/callback', 'sign-in'],
      ['http://127.0.0.1/callback', 'sign-in'],
      ['http://localhost:4000/callback', 'access_denied'],
      ['http://127.0.0.1:4000/other', 'access_denied'],
      ['http://127.0.0.1:4000/callback?x=1', 'access_denied'],
      ['https://127.0.0.1:4000/callback', '403'],
    ] as const;
    const documented = site.publish('/loopback.json', { redirect_uris: uris.map(([uri]) => uri) });
    for (const [uri, expected] of uris) {
      assert.equal(await start('by-loopback', await register('by-loopback', [uri]), uri), expected, uri);
      assert.equal(await start('by-loopback', documented, uri), expected, uri);
    }
  });
});
