import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { launchChromium } from '../support/browser/chromium.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { wire } from '../support/upstreams/wire.ts';

/** What a browser sends for a page, and what programs send. */
const browsers = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';
const programs = [undefined, '*/*', 'application/json', 'text/event-stream, application/json'];

const nowhere = ['/nope', '/nope/deeper', '/mcp', '/mcp/nope/deeper/still', '/<script>alert(1)</script>', '/keyss?a=1'];

describe('an address where nothing is', () => {
  let toolhost: TestToolhost;
  let browser: Browser;
  before(async () => {
    toolhost = await startToolhost();
    browser = await launchChromium();
  });
  after(async () => {
    await browser?.close();
    await toolhost?.stop();
  });
  const get = (path: string, accept: string | undefined, headers = {}) =>
    wire(encodeURI(toolhost.url + path), { headers: { ...(accept !== undefined && { accept }), ...headers } });

  for (const path of nowhere) {
    it(`[find D4] is a page with a link home for a browser, and JSON for a program: ${path}`, async () => {
      const page = await get(path, browsers);
      assert.equal(page.status, 404);
      assert.match(String(page.headers['content-type']), /^text\/html/);
      assert.match(page.text, /There is nothing at this address/);
      assert.match(page.text, /<a [^>]*href="\/"/);
      assert.doesNotMatch(page.text, /<script/);
      assert.match(String(page.headers['content-security-policy']), /default-src 'none'; style-src 'sha256-/);
      assert.ok(page.headers['x-request-id']);
      for (const accept of programs) {
        const answer = await get(path, accept);
        assert.equal(answer.status, 404, String(accept));
        assert.match(String(answer.headers['content-type']), /json/);
        assert.ok(JSON.parse(answer.text));
      }
    });
  }

  it('[find D4] is JSON for everybody below /api', async () => {
    const answer = await get('/api/v1/nope', browsers);
    assert.deepEqual([answer.status, answer.headers['content-type']], [404, 'application/problem+json']);
  });

  it('[find D4] under a name that is not the service’s is reported to a person too, with advice', async () => {
    const page = await get('/', browsers, { host: 'elsewhere.example' });
    assert.equal(page.status, 421);
    assert.match(String(page.headers['content-type']), /^text\/html/);
    assert.match(page.text, /does not answer for that host name/);
    assert.match(page.text, /BASE_URL/);
    const answer = await get('/', '*/*', { host: 'elsewhere.example' });
    assert.match(String(answer.headers['content-type']), /json/);
  });

  it('[find D4] looks like the other pages of the service, and so does a sign-in that failed', async () => {
    const context = await browser.newContext({ baseURL: toolhost.url });
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text())) complaints.push(message.text());
    });
    for (const path of ['/nope', '/login/callback?code=x&state=y']) {
      const answer = await page.goto(path);
      assert.ok((answer?.status() ?? 0) >= 400, path);
      assert.equal(await page.evaluate('getComputedStyle(document.querySelector("main")).maxWidth'), '640px', path);
      assert.deepEqual(complaints, [], path);
    }
    await page.goto('/nope');
    await page.getByRole('link', { name: 'To the start page' }).click();
    await page.waitForURL('/');
    await context.close();
  });
});
