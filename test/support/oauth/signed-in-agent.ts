import assert from 'node:assert/strict';
import { createBrowser, leadsTo, next, type Page } from '../browser/browser.ts';
import type { TestToolhost } from '../toolhost/toolhost.ts';
import { type OAuthClient, registerClient, type Tokens, tokensOf } from './oauth-client.ts';

/** An agent that the local-mode user has signed in at the management server. */
export type SignedInAgent = { client: OAuthClient; tokens: Tokens };

/** Does the local-mode user's steps at a login, up to the redirect to the client, which is not followed. */
export async function signInPerson(url: string | URL): Promise<URL> {
  const end = new URL(url).searchParams.get('redirect_uri') ?? '';
  const browser = createBrowser();
  const departure = await browser.press(await browser.get(url), 'Allow and log in');
  let page: Page = await browser.get(next(departure));
  for (let hops = 0; hops < 10; hops++) {
    const to = leadsTo(page);
    if (to?.href.startsWith(end)) return to;
    page = to ? await browser.get(to) : await browser.press(page, 'Continue');
  }
  return assert.fail(`the login ended at ${page.url}: ${page.html}`);
}

export async function signInAgent(toolhost: TestToolhost, scope?: string): Promise<SignedInAgent> {
  const redirectUri = 'http://127.0.0.1:9/cb';
  const client = await registerClient({ issuer: `${toolhost.url}/mcp/manage`, redirectUri });
  const { url, verifier } = client.authorization({ scope });
  const answer = await signInPerson(url);
  return { client, tokens: tokensOf(await client.redeem(answer.searchParams.get('code') ?? '', verifier)) };
}
