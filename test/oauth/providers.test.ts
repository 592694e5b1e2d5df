import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { root } from '../files.ts';
import { getNextUrl, visibleText } from '../support/browser/browser.ts';
import { createAmazon } from '../support/providers/amazon.ts';
import { createApple } from '../support/providers/apple.ts';
import { createAtlassian } from '../support/providers/atlassian.ts';
import { createBasecamp } from '../support/providers/basecamp.ts';
import { createBigcommerce } from '../support/providers/bigcommerce.ts';
import { createDingtalk } from '../support/providers/dingtalk.ts';
import { createEbay } from '../support/providers/ebay.ts';
import { createEntra } from '../support/providers/entra.ts';
import { createFeishu } from '../support/providers/feishu.ts';
import { createFigma } from '../support/providers/figma.ts';
import { createNotion } from '../support/providers/notion.ts';
import { startProviderWorld } from '../support/providers/provider-world.ts';
import { createQuickbooks } from '../support/providers/quickbooks.ts';
import { createSalesforce } from '../support/providers/salesforce.ts';
import { createShopify } from '../support/providers/shopify.ts';
import { createVk } from '../support/providers/vk.ts';
import { createXero } from '../support/providers/xero.ts';
import { createYandex } from '../support/providers/yandex.ts';
import { createZendesk } from '../support/providers/zendesk.ts';
import { createZoho } from '../support/providers/zoho.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

describe('logins at providers that deviate from OAuth', async () => {
  const stubs = [
    createAmazon(),
    createApple(),
    createAtlassian(),
    createBasecamp(),
    createBigcommerce(),
    createDingtalk(),
    createEbay(),
    createEntra(),
    createFeishu(),
    createFigma(),
    createNotion(),
    createQuickbooks(),
    createSalesforce(),
    createShopify(),
    createVk(),
    createXero(),
    createYandex(),
    createZendesk(),
    createZoho(),
  ];
  const world = await startProviderWorld(stubs);
  after(() => world.stop());

  for (const stub of stubs) {
    it(`lets two people use ${stub.file} with its configuration alone, each with their own token and values`, async () => {
      await world.createServer(stub);
      const logins: { token: string }[] = [];
      for (const account of stub.accounts) logins.push(await world.logIn(stub, account));
      const callAtOnce = async () => {
        const calls = [...logins, ...logins].map(({ token }) => world.call(stub, token));
        const names = stub.accounts.map(({ name }) => name);
        assert.deepEqual(await Promise.all(calls), [...names, ...names]);
      };
      await callAtOnce();
      if (!stub.hasRefreshTokens) return;
      for (const _ of [1, 2]) {
        stub.oauth.expire();
        await callAtOnce();
      }
    });
  }

  it('sends a cookie with forms from other sites only if the provider returns with a form', async () => {
    for (const [file, sameSite] of [
      ['apple', 'None'],
      ['ebay', 'Lax'],
    ] as const) {
      const stub = stubs.find((candidate) => candidate.file === file) ?? assert.fail(file);
      const { departure } = await world.logIn(stub, stub.accounts[0]);
      const cookies = departure.headers.getSetCookie().filter((cookie) => cookie.includes('toolhost-login-'));
      assert.equal(cookies.length, 1);
      assert.match(cookies[0] ?? '', new RegExp(`^__Host-.*HttpOnly; SameSite=${sameSite}; Secure`));
    }
  });

  it('shows people the host that they are sent to, with the value that they entered', async () => {
    const stub = stubs.find(({ file }) => file === 'shopify') ?? assert.fail();
    const { departure } = await world.logIn(stub, stub.accounts[0]);
    assert.match(visibleText(departure), /Log in at acme-store\.myshopify\.com/);
  });

  it('accepts a form only at a server that expects one, and each login once', async () => {
    const [apple, ebay] = ['apple', 'ebay'].map((file) => stubs.find((stub) => stub.file === file));
    assert.ok(apple && ebay);
    const { departure } = await world.logIn(apple, apple.accounts[0]);
    const state = getNextUrl(departure).searchParams.get('state') ?? '';
    const form = new URLSearchParams({ code: 'x', state });
    const replayed = await world.openCallback(apple, '', form);
    assert.equal(replayed.status, 400);
    assert.match(replayed.text, /was already used/);
    const asQuery = await world.openCallback(apple, `?${form}`);
    assert.equal(asQuery.status, 400);
    assert.match(asQuery.text, /must return with a form/);
    assert.equal((await world.openCallback(ebay, '', form)).status, 405);
  });

  it('keeps the values of a login out of call records and the audit log', async () => {
    const values = stubs.flatMap(({ accounts }) => accounts.flatMap(({ data }) => Object.values(data)));
    const secret = values.filter(
      (value) => /^[\w-]*\d{6,}|^https:|device-of/.test(value) && !value.startsWith('https://accounts'),
    );
    assert.ok(secret.length > 10);
    for (const path of ['/calls?limit=100', '/audit?limit=100']) {
      const list = await world.readList(path);
      assert.ok(list.length > 1000, list);
      for (const value of secret) assert.ok(!list.includes(value), `${path} contains ${value}`);
    }
  });

  it('has a documented server file that passes the check for each provider', async () => {
    const folder = join(root, 'examples', 'logins');
    const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
    assert.deepEqual(files.toSorted(), stubs.map(({ file }) => `${file}.yaml`).toSorted());
    const { code, stdout } = await runToolhostCommand(['check', folder], {
      env: { BASE_URL: 'https://tools.example.com' },
    });
    assert.equal(code, 0, stdout);
    const readme = readFileSync(join(folder, 'README.md'), 'utf8');
    for (const file of files) assert.ok(readme.includes(`(${file})`), file);
  });
});
