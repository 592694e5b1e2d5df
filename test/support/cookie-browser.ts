/** A browser of its own: cookies by host, no script, nothing followed by itself. */
export type CookieBrowser = {
  /** Names and values for a host that was visited; a test may change them. */
  cookies(host: string): Map<string, string>;
  open(url: URL | string, init?: CookieBrowserInit): Promise<{ response: Response; html: string }>;
};

type CookieBrowserInit = { method?: string; body?: URLSearchParams; headers?: Record<string, string> };

export function createCookieBrowser(): CookieBrowser {
  const jars = new Map<string, Map<string, string>>();
  return {
    cookies: (host) => jars.get(host) ?? new Map<string, string>(),
    async open(url, init = {}) {
      const { host } = new URL(url);
      const jar = jars.get(host) ?? new Map<string, string>();
      jars.set(host, jar);
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
      const response = await fetch(url, { ...init, redirect: 'manual', headers: { ...init.headers, cookie } });
      for (const header of response.headers.getSetCookie()) {
        const pair = header.split(';')[0] ?? '';
        const [name = '', value = ''] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
        if (/Max-Age=0/i.test(header)) jar.delete(name);
        else jar.set(name, value);
      }
      return { response, html: await response.text() };
    },
  };
}
