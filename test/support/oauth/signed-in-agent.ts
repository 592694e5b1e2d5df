import assert from 'node:assert/strict';
import { createBrowser, leadsTo, next, type Page } from '../browser/browser.ts';
import type { TestToolhost } from '../toolhost/toolhost.ts';
import { type OAuthClient, registerClient, type Tokens, tokensOf } from './oauth-client.ts';

/** An agent that the person of local mode has signed in at the management server. */
export type SignedInAgent = { client: OAuthClient; tokens: Tokens };

export async function signInAgent(toolhost: TestToolhost, scope?: string): Promise<SignedInAgent> {
  const redirectUri = 'http://127.0.0.1:9/cb';
  const client = await registerClient({ issuer: `${toolhost.url}/mcp/manage`, redirectUri });
  const browser = createBrowser();
  const { url, verifier } = client.authorization({ scope });
  const departure = await browser.press(await browser.get(url), 'Allow and log in');
  let page: Page = await browser.get(next(departure));
  for (let hops = 0; hops < 10; hops++) {
    const to = leadsTo(page);
    if (to?.href.startsWith(redirectUri)) {
      const tokens = tokensOf(await client.redeem(to.searchParams.get('code') ?? '', verifier));
      return { client, tokens };
    }
    page = to ? await browser.get(to) : await browser.press(page, 'Continue');
  }
  return assert.fail(`the login ended at ${page.url}: ${page.html}`);
}
