import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { button, chooseRowAction } from '../support/browser/dashboard.ts';
import { openPage, useDashboard } from '../support/browser/use-dashboard.ts';
import { eventually } from '../support/eventually.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const markup = '<img src=x onerror=alert(1)></p><script>document.title="owned"</script><b>x</b>';
/** Characters that change the reading direction or are invisible. */
const hiddenCharacters = '\u202e\u2066\u200b\u200d\u00ad\ufeff';

describe('text with markup and hidden characters', { concurrency: 2 }, () => {
  const dashboard = useDashboard();
  let callId: string;
  before(async () => {
    const { toolhost, upstream } = dashboard;
    const description = markup + hiddenCharacters;
    const q = { type: 'string', description, enum: [description, 'b'], optional: true };
    const tools = [buildToolAt(`${upstream.url}/items`, { name: 'read', description, input_schema: { q } })];
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    await toolhost.createServer({ name: '<b>bold</b>', slug: 'hostile', description, authentication, tools });
    await toolhost.rest('PUT', '/servers/hostile/secrets/KEY', { body: { value: 'of-the-test' } });
    await toolhost.rest('PATCH', '/servers/hostile', { body: { description: `${hiddenCharacters}${markup}, again` } });
    await toolhost.rest('POST', '/keys', { body: { name: '<b>key</b>', scopes: ['call'] } });
    await toolhost.rest('POST', '/servers/hostile/capture', { body: { hours: 1 } });
    upstream.on('GET /items', () => ({
      body: { [`<b>${hiddenCharacters}`]: markup, text: `${markup}${hiddenCharacters}` },
    }));
    await toolhost.callTool('hostile', await toolhost.createKey(), 'read', { q: markup + hiddenCharacters });
    const { calls } = (await toolhost.rest('GET', '/calls')).body as { calls: Json[] };
    callId = String(calls[0]?.id);
  });

  /** Asserts that the page shows the markup as text and no hidden characters. */
  async function assertInertText(page: Page, pageName: string): Promise<void> {
    await page.waitForLoadState('networkidle');
    await eventually(async () => assert.equal(await page.getByRole('status', { name: 'Loading' }).count(), 0));
    const injectedElements =
      'main b, main script, main img:not([src^="data:image/svg"]), [role=dialog] b, [role=dialog] img';
    assert.equal(await page.locator(injectedElements).count(), 0, pageName);
    const visibleText = String(await page.evaluate('document.body.innerText'));
    assert.doesNotMatch(visibleText, /\p{Cf}/u, pageName);
    assert.doesNotMatch(await page.title(), /owned|\p{Cf}/u, pageName);
    assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth')) <= 0, pageName);
  }

  it('[sec M10] appears as plain text on every page, with hidden characters made visible', async (t) => {
    const person = { name: `<b>Eve</b>${hiddenCharacters}` };
    const page = await openPage(t, dashboard, '/servers', { person });
    const serverPaths = ['', '/connect', '/settings/secrets', '/settings/limits', '/settings/delete'].map(
      (path) => `/servers/hostile${path}`,
    );
    for (const path of [
      '/servers',
      ...serverPaths,
      '/keys',
      '/audit',
      '/calls',
      `/calls?call=${callId}`,
      '/settings',
    ]) {
      await page.goto(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await assertInertText(page, path);
    }
    await page
      .getByRole('table', { name: 'Members' })
      .getByText(`<b>Eve</b>${'\ufffd'.repeat(hiddenCharacters.length)}`)
      .waitFor();
    await page.goto('/servers/hostile/settings/versions');
    await chooseRowAction(page, 'Version 1', 'Compare version 1');
    await assertInertText(page, 'the version comparison');
    await chooseRowAction(page, 'Version 1', 'Restore version 1');
    await assertInertText(page, 'the restore dialog');
    await page.goto('/keys');
    await chooseRowAction(page, '<b>key', /^Revoke <b>key/);
    await assertInertText(page, 'the revoke dialog');
    await page.goto('/servers/hostile/try');
    await button(page, 'Call tool').click();
    await page.getByRole('region', { name: 'Result' }).getByText('OK', { exact: true }).waitFor();
    await button(page, 'Pick part of the response').click();
    await assertInertText(page, 'the Try it page');
  });

  it('appears as plain text on the page that a browser gets at the URL of a server', async (t) => {
    const page = await openPage(t, dashboard, '/mcp/hostile');
    await page.getByRole('heading', { level: 1 }).waitFor();
    await assertInertText(page, 'the server page');
    assert.match((await page.getByRole('main').textContent()) ?? '', /<b>bold<\/b>.*<img src=x/s);
  });

  it('keeps emoji sequences intact and replaces blank characters', async (t) => {
    const { toolhost, config } = dashboard;
    const person = '\u{1f469}\u{1f3fd}\u200d\u{1f4bb}';
    const description = `For ${person}, a\u3164b\u200dc`;
    await toolhost.createServer(config('pictured', { description }));
    const shown = `For ${person}, a\ufffdb\ufffdc`;
    for (const path of ['/servers/pictured', '/mcp/pictured'])
      await (await openPage(t, dashboard, path)).getByText(shown, { exact: true }).first().waitFor();
  });
});
