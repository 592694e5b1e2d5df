import assert from 'node:assert/strict';
import { createCookieJar } from './cookie-jar.ts';

/** An answer to a browser. Redirects are not followed: a test decides about every step. */
export type Page = { url: URL; status: number; headers: Headers; html: string };

/** Fields or headers that differ from what the browser would send; undefined leaves one out. */
export type Changes = Record<string, string | undefined>;

/** A browser without script that keeps cookies; each belongs to another person. */
export type Browser = {
  get(url: string | URL, headers?: Changes): Promise<Page>;
  /** Presses a button of the page's only form. */
  press(page: Page, button: string, changes?: { fields?: Changes; headers?: Changes }): Promise<Page>;
  /** Names and values of the cookies for a host. */
  cookies(hostname: string): ReadonlyMap<string, string>;
};

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };

function decoded(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, entity: string) => entities[entity] ?? '');
}

function attribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];
  return value === undefined ? undefined : decoded(value);
}

/** The text of a page. */
export function visibleText({ html }: Page): string {
  const body = /<body>(.*)<\/body>/s.exec(html)?.[1] ?? '';
  return decoded(body.replaceAll(/<(?!\/?(bdi|code|b|a)\b)[^>]*>/g, ' ').replaceAll(/<[^>]*>/g, '')).replaceAll(
    /\s+/g,
    ' ',
  );
}

/** The target of a page's redirect or refresh. */
export function leadsTo({ status, headers, html, url }: Page): URL | undefined {
  const location = headers.get('location');
  if (status >= 300 && status < 400 && location !== null) return new URL(location, url);
  const refresh = /<meta http-equiv="refresh"[^>]*>/.exec(html)?.[0];
  const target = refresh && /^\d+; *url=(.*)$/.exec(attribute(refresh, 'content') ?? '')?.[1];
  return target === undefined ? undefined : new URL(target, url);
}

/** The target of a page, which must have one. */
export function next(page: Page): URL {
  return leadsTo(page) ?? assert.fail(`${page.url} leads nowhere: ${page.status} ${page.html}`);
}

function formOf(page: Page, button: string): { action: URL; fields: Record<string, string> } {
  const form = /<form[^>]*method="post"[^>]*>.*?<\/form>/s.exec(page.html)?.[0];
  assert.ok(form, `no form on ${page.url}: ${page.status} ${page.html}`);
  const pressed = [...form.matchAll(/<button[^>]*>([^<]*)<\/button>/g)].find(([, label]) => label === button)?.[0];
  assert.ok(pressed, `no button "${button}" in ${form}`);
  const inputs = [...form.matchAll(/<input[^>]*>/g)].map(([tag]) => tag).concat(pressed);
  return {
    action: new URL(attribute(form, 'action') ?? page.url, page.url),
    fields: Object.fromEntries(inputs.map((tag) => [attribute(tag, 'name') ?? '', attribute(tag, 'value') ?? ''])),
  };
}

/** An object with its changes made, without undefined members. */
export function changed(given: Record<string, string>, changes: Changes = {}): Record<string, string> {
  const all = Object.entries({ ...given, ...changes });
  return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** `address` is where its requests seem to come from, to a service that trusts one proxy; `send` sends them. */
export function createBrowser(address = '203.0.113.1', send: typeof fetch = fetch): Browser {
  // Cookies know hosts but no ports (RFC 6265, 8.5).
  const jar = createCookieJar();

  async function request(url: URL, own: Record<string, string>, changes: Changes = {}, body?: URLSearchParams) {
    const cookie = jar.header(url.hostname);
    const usual = { accept: 'text/html', 'x-forwarded-for': address, ...(cookie && { cookie }), ...own };
    const method = body ? { method: 'POST', body } : {};
    const response = await send(url, { redirect: 'manual', headers: changed(usual, changes), ...method });
    jar.keep(url.hostname, response.headers.getSetCookie());
    return { url, status: response.status, headers: response.headers, html: await response.text() };
  }

  return {
    get: (url, headers) => request(new URL(url), {}, headers),
    press(page, button, { fields, headers } = {}) {
      const form = formOf(page, button);
      const own = { origin: page.url.origin, 'sec-fetch-site': 'same-origin' };
      return request(form.action, own, headers, new URLSearchParams(changed(form.fields, fields)));
    },
    cookies: jar.of,
  };
}
