import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { root } from '../files.ts';
import { createAmazon } from '../support/providers/amazon.ts';
import { createApple } from '../support/providers/apple.ts';
import { createAtlassian } from '../support/providers/atlassian.ts';
import { createBasecamp } from '../support/providers/basecamp.ts';
import { createBigcommerce } from '../support/providers/bigcommerce.ts';
import { createDingtalk } from '../support/providers/dingtalk.ts';
import { createEbay } from '../support/providers/ebay.ts';
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

describe('logins at providers that deviate from OAuth', async () => {
  const stubs = [
    createAmazon(),
    createApple(),
    createAtlassian(),
    createBasecamp(),
    createBigcommerce(),
    createDingtalk(),
    createEbay(),
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
      const logins = [];
      for (const account of stub.accounts) logins.push({ account, ...(await world.logIn(stub, account)) });
      for (const _ of [1, 2])
        for (const { account, token } of logins) assert.equal(await world.call(stub, token), account.name);
      if (!stub.hasRefreshTokens) return;
      for (const _ of [1, 2]) {
        stub.oauth.expire();
        for (const { account, token } of logins) assert.equal(await world.call(stub, token), account.name);
      }
    });
  }

  it('has a server file for each provider', () => {
    const files = readdirSync(join(root, 'examples', 'logins')).filter((file) => file.endsWith('.yaml'));
    assert.deepEqual(files.toSorted(), stubs.map(({ file }) => `${file}.yaml`).toSorted());
  });
});
