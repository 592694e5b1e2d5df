import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createIdentityProvider, type IdentityOptions } from '../../apps/server/src/manage/identity.ts';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { startForgedTokenProvider } from '../support/oauth/forged-token-provider.ts';
import { namespacedGroupsClaim, startHonestProvider } from '../support/oauth/honest-provider.ts';
import { logInAtProvider } from '../support/oauth/log-in.ts';
import { useFixture } from '../support/use-fixtures.ts';

const baseUrl = 'https://tools.example.com';
const redirectUri = `${baseUrl}/login/callback`;
const signIn = { state: 'state-of-this-sign-in', nonce: 'nonce', verifier: 'v'.repeat(43) };

const toOptions = (env: { [variable: string]: string }): IdentityOptions => ({
  issuer: env.OIDC_ISSUER ?? '',
  clientId: env.OIDC_CLIENT_ID ?? '',
  clientSecret: env.OIDC_CLIENT_SECRET ?? '',
});

describe('check of a person at a real OpenID provider', () => {
  const provider = useFixture(startHonestProvider);

  async function createIdentity(groupsClaim = 'groups') {
    const options = toOptions(await provider.createSignInClient(baseUrl));
    return createIdentityProvider({ find: async () => options, host: 'people.example' }, groupsClaim);
  }

  async function identify(name: string, { identity, offline }: { identity?: Identity; offline: boolean }) {
    const used = identity ?? (await createIdentity());
    const browser = createBrowser();
    const start = await browser.get(await used.authorizationUrl(signIn, redirectUri, { offline }));
    const returned = getNextUrl(await logInAtProvider(browser, start, name, redirectUri));
    return { identity: used, person: await used.identify(returned, signIn) };
  }
  type Identity = Awaited<ReturnType<typeof createIdentity>>;

  it('gets a refresh token only if it asks for offline access', async () => {
    assert.equal((await identify('olaf', { offline: false })).person.refreshToken, undefined);
    assert.equal(typeof (await identify('olaf', { offline: true })).person.refreshToken, 'string');
  });

  it('returns the current groups, email address, and name, and the rotated refresh token', async () => {
    provider.setClaims('anna', { groups: ['support', 'support', 'finance'] });
    const { identity, person } = await identify('anna', { offline: true });
    assert.deepEqual(person.groups, ['support', 'finance']);
    provider.setClaims('anna', { groups: ['sales'], name: 'Anna Lind', email_verified: false });
    const { person: checked } = await identity.check(person.refreshToken ?? '', person);
    assert.ok(checked);
    assert.deepEqual([checked.groups, checked.name, checked.email], [['sales'], 'Anna Lind', undefined]);
    assert.deepEqual([checked.issuer, checked.subject], [provider.url, 'anna']);
    assert.notEqual(checked.refreshToken, person.refreshToken);
    assert.equal((await identity.check(checked.refreshToken ?? '', person)).person?.subject, 'anna');
    await assert.rejects(identity.check(person.refreshToken ?? '', person), { kind: 'unauthenticated' });
  });

  it('refuses a person whom the provider removed, and a refresh token that it does not know', async () => {
    const { identity, person } = await identify('rolf', { offline: true });
    provider.removePerson('rolf');
    await assert.rejects(identity.check(person.refreshToken ?? '', person), { kind: 'unauthenticated' });
    await assert.rejects(identity.check('unknown', person), { kind: 'unauthenticated' });
  });

  it('refuses a refresh token of another person, and sends none to a provider that did not issue it', async () => {
    const { identity, person } = await identify('eve', { offline: true });
    await assert.rejects(identity.check(person.refreshToken ?? '', { ...person, subject: 'victim' }), {
      kind: 'unauthenticated',
    });
    const other = await startForgedTokenProvider();
    const options = { issuer: other.url, clientId: other.clientId, clientSecret: 'of-the-client' };
    const moved = createIdentityProvider({ find: async () => options, host: 'other.example' }, 'groups');
    await assert.rejects(moved.check(person.refreshToken ?? '', person), { kind: 'unauthenticated' });
    assert.equal(other.requestCount('/token'), 0);
    await other.close();
  });

  it('reads the claim that the operator named as it is, even if its name has dots and slashes', async () => {
    const groups = { [namespacedGroupsClaim]: ['namespaced'], groups: ['plain'], example: { com: ['nested'] } };
    provider.setClaims('nora', groups);
    for (const [claim, expected] of [
      [namespacedGroupsClaim, ['namespaced']],
      ['groups', ['plain']],
      ['example.com', []],
      ['constructor', []],
    ] as const) {
      const { person } = await identify('nora', { identity: await createIdentity(claim), offline: false });
      assert.deepEqual(person.groups, expected, claim);
    }
  });

  it('counts a claim of any other shape as no groups', async () => {
    const shapes = [
      'support',
      { support: true },
      ['support', 7],
      ['support', ''],
      ['support', 'x'.repeat(257)],
      Array.from({ length: 1001 }, (_, index) => `g${index}`),
      null,
    ];
    const identity = await createIdentity();
    for (const groups of shapes) {
      provider.setClaims('sven', { groups });
      const { person } = await identify('sven', { identity, offline: false });
      assert.deepEqual(person.groups, [], JSON.stringify(groups).slice(0, 80));
    }
    const many = Array.from({ length: 1000 }, (_, index) => `g${index}`);
    provider.setClaims('sven', { groups: many });
    assert.deepEqual((await identify('sven', { identity, offline: false })).person.groups, many);
  });
});

describe('check of a person at a provider that behaves in unusual ways', () => {
  const provider = useFixture(startForgedTokenProvider);
  const previous = () => ({ issuer: provider.url, subject: 'person' });

  function createIdentity() {
    const options = { issuer: provider.url, clientId: provider.clientId, clientSecret: 'of-the-client' };
    return createIdentityProvider({ find: async () => options, host: 'people.example' }, 'groups');
  }
  const respond = (body: object, status = 200) => provider.setResponse('/token', JSON.stringify(body), status);
  const check = () => createIdentity().check('refresh', previous());

  it('reads userinfo if a refresh returns no ID token, and continues to use the refresh token', async () => {
    respond({ access_token: 'a', token_type: 'bearer' });
    provider.setResponse('/userinfo', JSON.stringify({ sub: 'person', groups: ['support'] }));
    const { person, refreshToken } = await check();
    assert.deepEqual([person?.groups, refreshToken], [['support'], 'refresh']);
  });

  it('returns the rotated refresh token without a person if userinfo is down', async () => {
    respond({ access_token: 'a', token_type: 'bearer', refresh_token: 'rotated' });
    provider.setResponse('/userinfo', '{}', 503);
    assert.deepEqual(await check(), { person: undefined, refreshToken: 'rotated' });
    respond({ access_token: 'a', token_type: 'bearer' });
    await assert.rejects(check(), { kind: 'unavailable' });
  });

  it('returns the rotated refresh token without a person if the keys for the ID token are down', async () => {
    provider.setIdToken('');
    provider.setRefreshToken('rotated');
    provider.setResponse('/token');
    provider.setResponse('/keys', '{}', 503);
    assert.deepEqual(await check(), { person: undefined, refreshToken: 'rotated' });
    provider.setRefreshToken('refresh');
    await assert.rejects(check(), { kind: 'unavailable' });
    provider.setResponse('/keys');
    const claims = { groups: ['support'], email: 'ada@people.example' };
    provider.setIdToken('', { claims });
    assert.deepEqual((await check()).person?.groups, ['support']);
  });

  it('refuses the person if userinfo is about someone else or rejects the token', async () => {
    respond({ access_token: 'a', token_type: 'bearer' });
    provider.setResponse('/userinfo', JSON.stringify({ sub: 'other', groups: ['support'] }));
    await assert.rejects(check(), { kind: 'unauthenticated' });
  });

  it('refuses the person for every OAuth error that concerns them', async () => {
    for (const error of ['invalid_grant', 'interaction_required', 'consent_required', 'access_denied']) {
      respond({ error }, 400);
      await assert.rejects(check(), { kind: 'unauthenticated' }, error);
    }
  });

  it('reports an outage, not a refusal, if the provider is down or refuses this service', async () => {
    for (const [body, status] of [
      [{ error: 'invalid_client' }, 401],
      [{ error: 'unauthorized_client' }, 400],
      [{ error: 'temporarily_unavailable' }, 400],
      [{ error: 'invalid_grant' }, 503],
      [{ error: 'slow_down' }, 429],
      [{ unexpected: true }, 200],
    ] as const) {
      respond(body, status);
      await assert.rejects(check(), { kind: 'unavailable' }, JSON.stringify(body));
    }
    await provider.close();
    await assert.rejects(check(), { kind: 'unavailable' });
  });
});
