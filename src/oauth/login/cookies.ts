/** Cookies of the OAuth proxy. `__Host-` binds them to this host. Only local mode uses plain http, without the prefix. */
export type CookieJar = {
  set(name: string, value: string, maxAgeMs: number): string;
  clear(name: string): string;
  read(header: string | undefined, name: string): string | undefined;
};

/** Binds a consent form to the browser that was shown it. */
export const consentCookie = 'toolhost-consent';

/** Binds a login to the browser that consented. One cookie per login, so that several can be in progress. */
export function loginCookie(stateHash: string): string {
  return `toolhost-login-${stateHash.slice(0, 16)}`;
}

export function cookieJar(baseUrl: string): CookieJar {
  const isSecure = baseUrl.startsWith('https:');
  const full = (name: string) => (isSecure ? `__Host-${name}` : name);
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  return {
    set: (name, value, maxAgeMs) => `${full(name)}=${value}; ${attributes}; Max-Age=${Math.floor(maxAgeMs / 1000)}`,
    clear: (name) => `${full(name)}=; ${attributes}; Max-Age=0`,
    read(header, name) {
      const values = (header ?? '')
        .split(';')
        .map((pair) => pair.trim())
        .filter((pair) => pair.startsWith(`${full(name)}=`))
        .map((pair) => pair.slice(full(name).length + 1));
      // Two cookies of the same name: one was planted by someone else.
      return values.length === 1 ? values[0] : undefined;
    },
  };
}
