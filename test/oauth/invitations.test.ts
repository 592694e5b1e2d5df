import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { createBrowser, getNextUrl } from '../support/browser/browser.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { getCallbackUrl, startForgedSignIn } from '../support/oauth/forged-sign-in.ts';
import type { Claims } from '../support/oauth/forged-token-provider.ts';
import { startStores } from '../support/store/stores.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

for (const engine of engines) {
  describe(`identified people and their invitations on ${engine}`, async () => {
    const stores = await startStores(engine);
    const DATABASE_URL = await stores.postgres?.createDatabase();
    const { provider, toolhost, stop } = await startForgedSignIn(
      DATABASE_URL === undefined ? {} : { env: { DATABASE_URL } },
    );
    /** Session of an owner whose address the provider has not verified. */
    const owner = await signIn({ sub: 'solo' });
    after(async () => {
      await stop();
      await stores.stop();
    });

    /** Returns from the provider as a person with these claims. */
    async function returnFromProvider(claims: Claims) {
      const browser = createBrowser();
      const departure = getNextUrl(await browser.get(`${toolhost.url}/login`));
      return { browser, page: await browser.get(getCallbackUrl(provider, departure, { forgery: { claims } })) };
    }
    /** Signs a person in. Returns their session. */
    async function signIn(claims: Claims): Promise<string> {
      const { browser, page } = await returnFromProvider(claims);
      assert.equal(page.status, 302, page.html);
      return browser.cookies('127.0.0.1').get('toolhost-session') ?? assert.fail('no session');
    }

    const signInVerified = (sub: string, email: string) => signIn({ sub, email, email_verified: true });
    const requestAs = (session: string, method: string, path: string, body?: Json) =>
      personRequest(toolhost, session, method, path, body);
    const invite = async (email: string, role: string) =>
      (await requestAs(owner, 'POST', '/invitations', { email, role })).status;
    const getInvitedEmails = async () => {
      const { invitations } = (await requestAs(owner, 'GET', '/members')).body as { invitations: Json[] };
      return invitations.map(({ email }) => email);
    };
    const getUser = async (session: string) =>
      ((await requestAs(session, 'GET', '/session')).body as { user: { id: string; name: string; email?: string } })
        .user;
    const getRole = async (session: string) => {
      const { workspace } = (await requestAs(session, 'GET', '/session')).body as { workspace: Json };
      return workspace.role;
    };

    it("never lowers the role of a member, and so never removes the workspace's owner", async () => {
      assert.equal(await invite('solo@example.com', 'viewer'), 200);
      const newSession = await signInVerified('solo', 'solo@example.com');
      assert.deepEqual([await getRole(newSession), await getInvitedEmails()], ['owner', []]);
    });

    it('[sec E6] matches the address exactly, ignoring the case of ASCII letters only', async () => {
      assert.equal(await invite('Kate@Example.com', 'editor'), 200);
      // U+212A is the Kelvin sign, whose lowercase form is "k".
      await signInVerified('other', '\u212Aate@example.com');
      await signInVerified('another', 'kate@example.com\u200B');
      assert.deepEqual(await getInvitedEmails(), ['kate@example.com']);
      await signInVerified('kate', 'KATE@example.COM');
      assert.deepEqual(await getInvitedEmails(), []);
    });

    it('[sec E6] ignores an address that the provider has not verified', async () => {
      assert.equal(await invite('vera@example.com', 'editor'), 200);
      for (const email_verified of [false, undefined, 'true', 1])
        await signIn({ sub: `as-vera-${email_verified}`, email: 'vera@example.com', email_verified });
      assert.deepEqual(await getInvitedEmails(), ['vera@example.com']);
      await signInVerified('vera', 'vera@example.com');
      assert.deepEqual(await getInvitedEmails(), []);
    });

    it('rejects a text that is not exactly one address, even if the identity provider vouches for it [sec E6]', async () => {
      const [victim, other] = ['lena@example.com', 'mallory@evil.example'];
      const texts = [`${victim},${other}`, `${victim};${other}`, `Lena <${victim}>`, `"${victim}" ${other}`];
      const unusual = [` ${victim}`, `${victim}\u00a0`, `team:${victim};`, `lena@[127.0.0.1]`, `(lena)${victim}`];
      for (const [index, text] of [...texts, ...unusual, 'lena', '@'].entries()) {
        assert.equal(await invite(text, 'viewer'), 400, text);
        const session = await signInVerified(`list-${index}`, text);
        assert.equal((await getUser(session)).email, undefined, text);
        assert.equal((await requestAs(session, 'GET', '/notification-settings')).body.email, undefined, text);
      }
      const usual = `o'neil+tag_1@sub.example.com`;
      assert.equal((await getUser(await signInVerified('usual', usual))).email, usual);
    });

    it('[sec E6] replaces control characters in a name, and ignores an email address that contains one', async () => {
      const claims = { name: 'O\u0000lga\u0007 ', email: 'olga\u0000@corp.example', email_verified: true };
      const user = await getUser(await signIn({ sub: 'olga', ...claims }));
      assert.deepEqual([user.name, user.email ?? null], ['O\ufffdlga\ufffd', null]);
      await signIn({ sub: 'absent', name: '\u0000' });
    });

    it('[sec E6] rejects a subject with a control character, which could pass for another subject', async () => {
      assert.equal((await returnFromProvider({ sub: 'ol\u0000ga' })).page.status, 401);
    });

    it('[sec E6] accepts an invitation although a member has a similar address', async () => {
      await signInVerified('similar', '\u212Aarl@example.com');
      assert.equal(await invite('karl@example.com', 'viewer'), 200);
      await signInVerified('karl', 'Karl@Example.com');
      assert.equal(await invite('kaRl@example.com', 'viewer'), 409);
    });

    it('[sec E6] does not match a longer address with the same beginning', async () => {
      const address = `${'a'.repeat(64)}@${'b.'.repeat(61)}example.com`.slice(0, 196).padEnd(197, 'x').concat('.de');
      assert.equal(await invite(address, 'viewer'), 200, address);
      await signInVerified('long', `${address}.evil.example`);
      assert.deepEqual(await getInvitedEmails(), [address]);
    });

    it("raises a member's role to one with more rights", async () => {
      const { db } = toolhost.running.app.runner;
      const guest = await signInVerified('guest', 'guest@mail.example');
      const { id } = await getUser(guest);
      await db.updateTable('members').set({ role: 'viewer' }).where('user_id', '=', id).execute();
      assert.equal(await invite('guest@example.com', 'editor'), 200);
      assert.equal(await getRole(await signInVerified('guest', 'guest@example.com')), 'editor');
    });
  });
}
