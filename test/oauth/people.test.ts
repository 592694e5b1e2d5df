import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { createBrowser } from '../support/browser/browser.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { startHonestProvider } from '../support/oauth/honest-provider.ts';
import { logIn } from '../support/oauth/log-in.ts';
import { startLoginWorld } from '../support/oauth/login-world.ts';

type GrantRecord = { id: string; person?: string };

describe('person of a login', async () => {
  const provider = await startHonestProvider();
  const world = await startLoginWorld({ egressPorts: [provider.port] });
  const session = await createPersonSession(world.toolhost, { name: 'Olga' });
  after(() => Promise.all([world?.stop(), provider?.close()]));

  async function getNewestGrant(slug: string): Promise<GrantRecord> {
    const { body } = await personRequest(world.toolhost, session, 'GET', `/grants?slug=${slug}`);
    return (body.grants as GrantRecord[])[0] ?? assert.fail('there is no login');
  }

  it('has the name that an OpenID provider gave, until the login ends', async () => {
    const slug = await world.createServer();
    await world.updateServer(slug, { oauth: await provider.createOAuthConfig(`${world.issuer(slug)}/callback`) });
    const client = await world.registerClient(slug);
    await logIn(createBrowser(), client.authorization().url, 'anna');
    const { id, person } = await getNewestGrant(slug);
    assert.equal(person, 'anna@people.example');
    assert.equal((await world.toolhost.rest('DELETE', `/grants/${id}`)).status, 200);
    assert.equal((await getNewestGrant(slug)).person, undefined);
  });

  it('has the first name in the ID token that is valid and contains no secret, and otherwise no name', async (t) => {
    t.after(() => world.provider.onToken());
    const { slug, client } = await world.createClient();
    const jwt = (claims: unknown) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.e30`;
    const long = 'x'.repeat(101);
    for (const [id_token, person] of [
      [jwt({ email: 'a\u202eb@c.example', preferred_username: 'anna', name: 'Anna' }), 'anna'],
      [jwt({ email: long, preferred_username: 7, name: ' Anna\n Lind ' }), 'Anna Lind'],
      [jwt({ email: `${world.provider.clientSecret}@c.example`, name: 'my-access-token' }), undefined],
      [jwt(null), undefined],
      ['no jwt', undefined],
      [{ email: 'anna@c.example' }, undefined],
    ] as const) {
      const tokens = { access_token: 'my-access-token', token_type: 'bearer', expires_in: 600 };
      world.provider.onToken(() => ({ body: { ...tokens, id_token } }));
      await world.logIn(client);
      assert.equal((await getNewestGrant(slug)).person, person, JSON.stringify(id_token));
    }
  });
});
