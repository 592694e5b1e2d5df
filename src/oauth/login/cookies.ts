import { cookieScope, olderCookies } from '../../http/cookies.ts';

/** Cookies of the OAuth proxy. */
export type CookieJar = {
  set(name: string, value: string, maxAgeMs: number): string;
  clear(name: string): string;
  /** Clears the oldest of the cookies with this prefix, so that one more makes `mostInProgress`. */
  clearOlder(header: string | undefined, prefix: string): string[];
  read(header: string | undefined, name: string): string | undefined;
};

export const consentPrefix = 'toolhost-consent-';
export const loginPrefix = 'toolhost-login-';

/** Most forms, and most logins, of a browser at once. */
const mostInProgress = 20;

/** Binds a consent form to the browser that was shown it. One cookie per form, so that tabs can open several at once. */
export function consentCookie(consentHash: string): string {
  return consentPrefix + consentHash.slice(0, 16);
}

/** Binds a login to the browser that consented. One cookie per login, so that several can be in progress. */
export function loginCookie(stateHash: string): string {
  return loginPrefix + stateHash.slice(0, 16);
}

export function cookieJar(baseUrl: string): CookieJar {
  const { prefix: scope, path, isSecure } = cookieScope(baseUrl);
  const full = (name: string) => scope + name;
  const attributes = `Path=${path}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  const clear = (name: string) => `${full(name)}=; ${attributes}; Max-Age=0`;
  return {
    set: (name, value, maxAgeMs) => `${full(name)}=${value}; ${attributes}; Max-Age=${Math.floor(maxAgeMs / 1000)}`,
    clear,
    clearOlder: (header, prefix) =>
      olderCookies(header, full(prefix), mostInProgress - 1).map((id) => clear(prefix + id)),
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
