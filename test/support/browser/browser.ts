import assert from 'node:assert/strict';
import { createCookieJar } from './cookie-jar.ts';

/** Response to a browser. Redirects are not followed: the test decides on every step. */
export type Page = { url: URL; status: number; headers: Headers; html: string };

/** Form fields or headers that replace those of the browser; undefined omits one. */
export type Changes = Record<string, string | undefined>;

/** Browser without scripts that stores cookies. Each instance belongs to a different person. */
export type Browser = {
  get(url: string | URL, headers?: Changes): Promise<Page>;
  /** Submits the page's only form with a button. */
  press(page: Page, button: string, changes?: { fields?: Changes; headers?: Changes }): Promise<Page>;
  /** Returns the cookies for a host by name. */
  cookies(hostname: string): ReadonlyMap<string, string>;
};

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

function decodeEntities(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, entity: string) => entities[entity] ?? '');
}

function getAttribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];
  return value === undefined ? undefined : decodeEntities(value);
}

/** Returns the visible text of a page. */
export function visibleText({ html }: Page): string {
  const body = /<body>(.*)<\/body>/s.exec(html)?.[1] ?? '';
  return decodeEntities(body.replaceAll(/<(?!\/?(bdi|code|b|a)\b)[^>]*>/g, ' ').replaceAll(/<[^>]*>/g, '')).replaceAll(
    /\s+/g,
    ' ',
  );
}

/** Returns the target of a page's redirect or refresh. */
export function getRedirectTarget({ status, headers, html, url }: Page): URL | undefined {
  const location = headers.get('location');
  if (status >= 300 && status < 400 && location !== null) return new URL(location, url);
  const refresh = /<meta http-equiv="refresh"[^>]*>/.exec(html)?.[0];
  const target = refresh && /^\d+; *url=(.*)$/.exec(getAttribute(refresh, 'content') ?? '')?.[1];
  return target === undefined ? undefined : new URL(target, url);
}

/** Returns the target of a page; fails if it has none. */
export function getNextUrl(page: Page): URL {
  return getRedirectTarget(page) ?? assert.fail(`${page.url} does not redirect: ${page.status} ${page.html}`);
}

function getForm(page: Page, button: string): { action: URL; fields: Record<string, string> } {
  const form = /<form[^>]*method="post"[^>]*>.*?<\/form>/s.exec(page.html)?.[0];
  assert.ok(form, `no form on ${page.url}: ${page.status} ${page.html}`);
  const pressed = [...form.matchAll(/<button[^>]*>([^<]*)<\/button>/g)].find(([, label]) => label === button)?.[0];
  assert.ok(pressed, `no button "${button}" in ${form}`);
  const inputs = [...form.matchAll(/<input[^>]*>/g)].map(([tag]) => tag).concat(pressed);
  return {
    action: new URL(getAttribute(form, 'action') ?? page.url, page.url),
    fields: Object.fromEntries(
      inputs.map((tag) => [getAttribute(tag, 'name') ?? '', getAttribute(tag, 'value') ?? '']),
    ),
  };
}

/** Applies changes to an object and drops undefined members. */
export function applyChanges(original: Record<string, string>, changes: Changes = {}): Record<string, string> {
  const all = Object.entries({ ...original, ...changes });
  return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/**
 * @param address client address that a service that trusts one proxy sees
 * @param send sends the requests
 */
export function createBrowser(address = '203.0.113.1', send: typeof fetch = fetch): Browser {
  // Cookies are scoped to hosts, not ports (RFC 6265, 8.5).
  const jar = createCookieJar();

  async function request(
    url: URL,
    requestHeaders: Record<string, string>,
    changes: Changes = {},
    body?: URLSearchParams,
  ) {
    const cookie = jar.header(url.hostname);
    const defaultHeaders = {
      accept: 'text/html',
      'x-forwarded-for': address,
      ...(cookie && { cookie }),
      ...requestHeaders,
    };
    const method = body ? { method: 'POST', body } : {};
    const response = await send(url, { redirect: 'manual', headers: applyChanges(defaultHeaders, changes), ...method });
    jar.store(url.hostname, response.headers.getSetCookie());
    return { url, status: response.status, headers: response.headers, html: await response.text() };
  }

  return {
    get: (url, headers) => request(new URL(url), {}, headers),
    press(page, button, { fields, headers } = {}) {
      const form = getForm(page, button);
      const originHeaders = { origin: page.url.origin, 'sec-fetch-site': 'same-origin' };
      return request(form.action, originHeaders, headers, new URLSearchParams(applyChanges(form.fields, fields)));
    },
    cookies: jar.cookiesFor,
  };
}
