import { createCookieJar } from './cookie-jar.ts';

/** Separate browser with cookies by host. It runs no scripts and follows no redirects. */
export type CookieBrowser = {
  /** Returns the cookies for a visited host by name; a test may change them. */
  cookies(host: string): Map<string, string>;
  open(url: URL | string, init?: CookieBrowserInit): Promise<{ response: Response; html: string }>;
};

type CookieBrowserInit = { method?: string; body?: URLSearchParams; headers?: Record<string, string> };

export function createCookieBrowser(): CookieBrowser {
  const jar = createCookieJar();
  return {
    cookies: jar.cookiesFor,
    async open(url, init = {}) {
      const { host } = new URL(url);
      const headers = { ...init.headers, cookie: jar.header(host) };
      const response = await fetch(url, { ...init, redirect: 'manual', headers });
      jar.store(host, response.headers.getSetCookie());
      return { response, html: await response.text() };
    },
  };
}
