/** Stores cookies by host. Paths are ignored because all test cookies have the path /. */
export type CookieJar = {
  /** Returns the cookies for a host by name; a test may change them. */
  cookiesFor(host: string): Map<string, string>;
  /** Returns the `Cookie` header for a host; empty if it has no cookies. */
  header(host: string): string;
  store(host: string, lines: readonly string[]): void;
};

export function createCookieJar(): CookieJar {
  const jars = new Map<string, Map<string, string>>();
  const cookiesFor = (host: string) => {
    const jar = jars.get(host) ?? new Map<string, string>();
    jars.set(host, jar);
    return jar;
  };
  return {
    cookiesFor,
    header: (host) => [...cookiesFor(host)].map(([name, value]) => `${name}=${value}`).join('; '),
    store(host, lines) {
      for (const line of lines) {
        const [pair = '', ...attributes] = line.split(/; */);
        const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(pair) ?? [];
        if (attributes.some((attribute) => /^max-age=0$/i.test(attribute))) cookiesFor(host).delete(name);
        else cookiesFor(host).set(name, value);
      }
    },
  };
}
