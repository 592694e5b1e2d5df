import { type Browser, getNextUrl, getRedirectTarget, type Page } from '../browser/browser.ts';
import { password } from './honest-provider.ts';

/** Follows redirects and refreshes until the next one leads to `end`. */
async function followRedirects(browser: Browser, start: Page, end: string): Promise<Page> {
  let page = start;
  for (;;) {
    const to = getRedirectTarget(page);
    if (!to || to.href.startsWith(end)) return page;
    page = await browser.get(to);
  }
}

/**
 * Does a person's steps at a login: allows the client and logs in at the honest provider. Returns the redirect to the
 * client.
 */
export async function logIn(browser: Browser, authorizationUrl: string | URL, name: string): Promise<URL> {
  const end = new URL(authorizationUrl).searchParams.get('redirect_uri') ?? '';
  const consent = await browser.get(authorizationUrl);
  return getNextUrl(await logInAtProvider(browser, await browser.press(consent, 'Allow and log in'), name, end));
}

/**
 * Does a person's steps at the honest provider, whose login page `start` leads to. Returns the first page whose next
 * step leads to `end`.
 */
export async function logInAtProvider(browser: Browser, start: Page, name: string, end: string): Promise<Page> {
  const login = await followRedirects(browser, start, end);
  return followRedirects(browser, await browser.press(login, 'Log in', { fields: { name, password } }), end);
}
