import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createSignInLink } from '../../apps/server/src/local/sign-in-link.ts';
import { createBrowser, visibleText } from '../support/browser/browser.ts';
import { startLocalPeopleWorld } from '../support/oauth/local-people-world.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { assertFailed } from '../support/toolhost/command-world.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const linkPattern = /http:\/\/127\.0\.0\.1:\d+\/login\/link\/[0-9A-Za-z]{43}/g;

/** Returns the link that a start prints after the ready line. */
function getPrintedLink(child: ChildToolhost): string {
  const [, text = ''] = child.output('stdout').split(child.readyLine);
  const links = text.match(linkPattern) ?? [];
  assert.equal(links.length, 1, child.output());
  return links[0] ?? '';
}

describe('a sign-in link', () => {
  let aheadMs = 0;
  const fixtures = useFixtures();
  const toolhost = fixtures.start(() => startToolhost({ runtimeOptions: { now: () => Date.now() + aheadMs } }));
  const createLink = () => {
    const { db, deps } = toolhost.running.app.runner;
    return createSignInLink({ db, now: deps.now }, toolhost.url);
  };
  const getSession = (browser = createBrowser()) => browser.get(`${toolhost.url}/api/v1/session`);

  it('signs one browser in, opens the dashboard, and works again only in that browser', async () => {
    const link = await createLink();
    const [browser, other] = [createBrowser(), createBrowser()];
    for (const page of [await browser.get(link), await browser.get(link)])
      assert.deepEqual([page.status, page.headers.get('location')], [302, '/']);
    const session = await getSession(browser);
    assert.equal(session.status, 200);
    assert.match(session.html, /"role":"owner"/);
    const used = await other.get(link);
    assert.equal(used.status, 410);
    assert.match(visibleText(used), /was used or has expired.*bin\/toolhost open/);
    assert.equal((await getSession(other)).status, 401);
    const signedIn = await other.press(used, 'Sign in');
    assert.deepEqual([signedIn.status, (await getSession(other)).status], [303, 200]);
  });

  it('is not used up by HEAD or by a browser that loads it in advance', async () => {
    const link = await createLink();
    const browser = createBrowser();
    assert.equal((await fetch(link, { method: 'HEAD' })).status, 204);
    assert.equal((await browser.get(link, { 'sec-purpose': 'prefetch;prerender' })).status, 204);
    assert.equal((await getSession(browser)).status, 401);
    assert.equal((await browser.get(link)).status, 302);
    assert.equal((await fetch(link, { method: 'HEAD' })).status, 410);
  });

  it('signs in one of two browsers that open it at the same time', async () => {
    const link = await createLink();
    const pages = await Promise.all(Array.from({ length: 8 }, () => createBrowser().get(link)));
    assert.deepEqual(pages.map(({ status }) => status).toSorted(), [302, ...Array<number>(7).fill(410)]);
  });

  it('expires after 15 minutes, and cannot be guessed', async () => {
    const link = await createLink();
    const almost = await createLink();
    for (const forged of [`${link.slice(0, -1)}?`, `${link}0`, link.toLowerCase(), `${toolhost.url}/login/link/x`])
      assert.equal((await createBrowser().get(forged)).status, 410, forged);
    aheadMs += 14 * 60_000;
    assert.equal((await createBrowser().get(almost)).status, 302);
    aheadMs += 2 * 60_000;
    const expired = await createBrowser().get(link);
    assert.equal(expired.status, 410);
    assert.match(visibleText(expired), /has expired/);
  });

  it('is stored as a hash only', async () => {
    const link = await createLink();
    const rows = await toolhost.running.app.runner.db.selectFrom('sign_in_links').selectAll().execute();
    assert.ok(rows.length > 0 && rows.every(({ hash }) => /^[0-9a-f]{64}$/.test(hash) && !link.includes(hash)));
  });
});

describe('the sign-in link of a start', () => {
  const fixtures = useFixtures();
  const folder = fixtures.folder();

  it('follows the ready line, works with several workers and after a restart, and is never logged', async () => {
    const env = { DATA_DIR: folder, WORKERS: '2', LOG_LEVEL: 'trace' };
    const first = await startChildToolhost(env);
    const [earlier, { port }] = [getPrintedLink(first), new URL(first.url)];
    await first.end();
    const child = await startChildToolhost({ ...env, PORT: port });
    try {
      const link = getPrintedLink(child);
      for (const url of [earlier, link]) {
        const pages = await Promise.all(Array.from({ length: 4 }, () => createBrowser().get(url)));
        assert.deepEqual(pages.map(({ status }) => status).toSorted(), [302, 410, 410, 410]);
      }
      const opened = await runToolhostCommand(['open'], { env: { DATA_DIR: folder, PORT: port } });
      const [openedLink = ''] = opened.stdout.match(linkPattern) ?? [];
      assert.deepEqual([opened.code, opened.stdout, opened.stderr], [0, `${openedLink}\n`, '']);
      assert.equal((await createBrowser().get(openedLink)).status, 302);
      await child.end();
      const secrets = [earlier, link, openedLink].map((url) => url.slice(-43));
      const logged = child.output().replace(link, '');
      assert.ok(!secrets.some((secret) => logged.includes(secret)), logged);
    } finally {
      await child.end('SIGKILL');
    }
  });

  it('is not printed by a service with an identity provider, where toolhost open is refused', async () => {
    const world = await startLocalPeopleWorld();
    try {
      const { url, dataDir } = world.toolhost;
      const opened = await runToolhostCommand(['open', '--url', url], { env: { DATA_DIR: dataDir } });
      assertFailed(opened, /^error: http:\S+ has no sign-in links: it has an identity provider.* Sign in at http:/);
      const { db, deps } = world.toolhost.running.app.runner;
      const link = await createSignInLink({ db, now: deps.now }, url);
      const browser = createBrowser();
      assert.equal((await browser.get(link)).status, 404);
      assert.equal((await browser.get(`${url}/api/v1/session`)).status, 401);
    } finally {
      await world.stop();
    }
  });

  it('is refused by toolhost open without a service, without a database, and for a service with another one', async () => {
    const toolhost = await startToolhost();
    const url = ['--url', toolhost.url];
    try {
      const env = { DATA_DIR: folder };
      const otherDatabase = await runToolhostCommand(['open', ...url], { env });
      assertFailed(otherDatabase, /^error: the service at \S+ does not use the database in .*\. Set DATA_DIR or/);
      const noDatabase = await runToolhostCommand(['open', ...url], { env: { DATA_DIR: `${folder}/none` } });
      assertFailed(noDatabase, /^error: there is no database in /);
    } finally {
      await toolhost.stop();
    }
    const noService = await runToolhostCommand(['open', ...url], { env: { DATA_DIR: folder } });
    assertFailed(noService, /^error: no service is listening at \S+\. Start it with "bin\/toolhost serve"/);
  });
});
