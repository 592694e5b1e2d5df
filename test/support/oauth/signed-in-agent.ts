import assert from 'node:assert/strict';
import { createBrowser, getNextUrl, type Page } from '../browser/browser.ts';
import type { TestToolhost } from '../toolhost/toolhost.ts';
import { expectTokens, type OAuthClient, registerClient, type Tokens } from './oauth-client.ts';

/** An agent that the local-mode user has signed in at the management server. */
export type SignedInAgent = { client: OAuthClient; tokens: Tokens };

/** Does the local-mode user's steps at a login, up to the redirect to the client, which is not followed. */
export async function signInLocalUser(url: string | URL): Promise<URL> {
  const redirectUri = new URL(url).searchParams.get('redirect_uri') ?? '';
  const browser = createBrowser();
  const departure = await browser.press(await browser.get(url), 'Allow and log in');
  let page: Page = await browser.get(getNextUrl(departure));
  for (let hops = 0; hops < 10; hops++) {
    const to = getNextUrl(page);
    if (to.href.startsWith(redirectUri)) return to;
    page = await browser.get(to);
  }
  return assert.fail(`the login ended at ${page.url}: ${page.html}`);
}

export async function signInAgent(toolhost: Pick<TestToolhost, 'url'>, scope?: string): Promise<SignedInAgent> {
  const redirectUri = 'http://127.0.0.1:9/cb';
  const client = await registerClient({ issuer: `${toolhost.url}/mcp/manage`, redirectUri });
  const { url, verifier } = client.authorization({ scope });
  const redirect = await signInLocalUser(url);
  return { client, tokens: expectTokens(await client.redeem(redirect.searchParams.get('code') ?? '', verifier)) };
}
