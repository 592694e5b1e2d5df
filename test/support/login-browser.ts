import assert from 'node:assert/strict';
import { password } from './honest-provider.ts';

export type Page = { url: URL; status: number; html: string };

/** A browser without script: it keeps cookies, follows redirects and refreshes, and sends forms. */
export type LoginBrowser = {
  /** Ends at a page, or, with an empty page, at the first address of another origin than those it was made for. */
  open(url: string | URL): Promise<Page>;
  /** Presses a button of the page's only form. */
  press(page: Page, button: string, fields?: Record<string, string>): Promise<Page>;
};

type Cookie = { host: string; path: string; name: string; value: string };

const maxHops = 20;

function decodeEntities(text: string): string {
  const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => entities[name] ?? '');
}

function attribute(tag: string, name: string): string | undefined {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(tag)?.[1];
  return value === undefined ? undefined : decodeEntities(value);
}

/** Cookies know hosts and paths but no ports (RFC 6265, 8.5). */
function createJar() {
  let cookies: Cookie[] = [];
  return {
    header: ({ hostname, pathname }: URL) =>
      cookies
        .filter(({ host, path }) => host === hostname && `${pathname}/`.startsWith(path.replace(/\/?$/, '/')))
        .map(({ name, value }) => `${name}=${value}`)
        .join('; '),
    keep(url: URL, lines: readonly string[]) {
      for (const line of lines) {
        const [pair = '', ...attributes] = line.split(/; */);
        const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(pair) ?? [];
        const path = attributes.find((one) => /^path=/i.test(one))?.slice(5) ?? '/';
        const old = cookies.filter((one) => one.name !== name || one.path !== path || one.host !== url.hostname);
        const expires = attributes.find((one) => /^expires=/i.test(one))?.slice(8);
        const isOver = attributes.some((one) => /^max-age=0$/i.test(one)) || Date.parse(expires ?? '') < Date.now();
        cookies = isOver ? old : [...old, { host: url.hostname, path, name, value }];
      }
    },
  };
}

function nextAddress(response: Response, html: string, url: URL): URL | undefined {
  const location = response.headers.get('location');
  if (response.status >= 300 && response.status < 400 && location !== null) return new URL(location, url);
  const refresh = /<meta http-equiv="refresh"[^>]*>/.exec(html)?.[0];
  const content = refresh && attribute(refresh, 'content');
  return content ? new URL(content.replace(/^\d+; *url=/, ''), url) : undefined;
}

export function createLoginBrowser(origins: readonly string[]): LoginBrowser {
  const jar = createJar();

  async function travel(start: URL, form?: { body: URLSearchParams; from: URL }): Promise<Page> {
    let url = start;
    let sent = form;
    for (let hop = 0; hop < maxHops; hop++) {
      if (!origins.includes(url.origin)) return { url, status: 0, html: '' };
      const site = { origin: sent?.from.origin ?? '', 'sec-fetch-site': 'same-origin' };
      const response = await fetch(url, {
        redirect: 'manual',
        headers: { cookie: jar.header(url), accept: 'text/html', ...(sent && site) },
        ...(sent && { method: 'POST', body: sent.body }),
      });
      jar.keep(url, response.headers.getSetCookie());
      const html = await response.text();
      const next = nextAddress(response, html, url);
      if (!next) return { url, status: response.status, html };
      url = next;
      sent = undefined;
    }
    throw new Error(`the browser is led in circles, at last to ${url}`);
  }

  return {
    open: (url) => travel(new URL(url)),
    press(page, button, fields = {}) {
      const form = /<form[^>]*method="post"[^>]*>.*?<\/form>/s.exec(page.html)?.[0];
      assert.ok(form, `no form on ${page.url}: ${page.status} ${page.html}`);
      const pressed = [...form.matchAll(/<button[^>]*>([^<]*)<\/button>/g)].find(([, label]) => label === button)?.[0];
      assert.ok(pressed, `no button "${button}" in ${form}`);
      const inputs = [...form.matchAll(/<input[^>]*>/g)].map(([tag]) => tag).concat(pressed);
      const values = inputs.map((tag) => [attribute(tag, 'name') ?? '', attribute(tag, 'value') ?? '']);
      const body = new URLSearchParams({ ...Object.fromEntries(values), ...fields });
      return travel(new URL(attribute(form, 'action') ?? page.url, page.url), { body, from: page.url });
    },
  };
}

/** What a person does: allows the client, logs in at the provider, and ends where the client is told of it. */
export async function logIn(browser: LoginBrowser, authorizationUrl: string | URL, name: string): Promise<URL> {
  const consent = await browser.open(authorizationUrl);
  const login = await browser.press(consent, 'Allow and log in');
  const end = await browser.press(login, 'Log in', { name, password });
  assert.equal(end.html, '', `the login ended at ${end.url}: ${end.status} ${end.html}`);
  return end.url;
}
