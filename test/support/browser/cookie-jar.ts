/** Stores cookies by host. Paths are ignored because all test cookies have the path /. */
export type CookieJar = {
  /** Returns the cookies for a host by name; a test may change them. */
  of(host: string): Map<string, string>;
  /** Returns the `Cookie` header for a host; empty if it has no cookies. */
  header(host: string): string;
  keep(host: string, lines: readonly string[]): void;
};

export function createCookieJar(): CookieJar {
  const jars = new Map<string, Map<string, string>>();
  const of = (host: string) => {
    const jar = jars.get(host) ?? new Map<string, string>();
    jars.set(host, jar);
    return jar;
  };
  return {
    of,
    header: (host) => [...of(host)].map(([name, value]) => `${name}=${value}`).join('; '),
    keep(host, lines) {
      for (const line of lines) {
        const [pair = '', ...attributes] = line.split(/; */);
        const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(pair) ?? [];
        if (attributes.some((attribute) => /^max-age=0$/i.test(attribute))) of(host).delete(name);
        else of(host).set(name, value);
      }
    },
  };
}
