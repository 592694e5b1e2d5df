import { hashSecret } from '@toolhost/credentials/ids';
import { findOldestIds, getCookieScope, getUniqueCookie } from '../http/cookies.ts';

export const consentPrefix = 'toolhost-consent-';
export const loginPrefix = 'toolhost-login-';

/** Maximum number of concurrent consent forms, and of concurrent logins, per browser. */
export const maxInProgress = 20;

/**
 * Returns the name of the cookie that binds a consent form to its browser. There is one cookie per form, so that
 * several tabs can show forms.
 */
export function getConsentCookieName(consentId: string): string {
  return consentPrefix + hashSecret(consentId).slice(0, 16);
}

/**
 * Returns the name of the cookie that binds a login to the browser that consented. There is one cookie per login, so
 * that several can be in progress.
 */
export function getLoginCookieName(stateHash: string): string {
  return loginPrefix + stateHash.slice(0, 16);
}

/** Creates and reads the cookies of the OAuth proxy. */
export function createCookieStore(baseUrl: string) {
  const { prefix: scopePrefix, path, isSecure } = getCookieScope(baseUrl);
  const set = (name: string, value: string, maxAgeMs: number, sameSite: 'Lax' | 'None' = 'Lax') =>
    `${scopePrefix}${name}=${value}; Path=${path}; HttpOnly; SameSite=${sameSite}${isSecure ? '; Secure' : ''}; Max-Age=${Math.floor(maxAgeMs / 1000)}`;
  const clear = (name: string) => set(name, '', 0);
  return {
    set,
    clear,
    /** Clears the oldest cookies with this prefix, so that with one more there are at most `maxInProgress`. */
    clearOldest: (header: string | undefined, prefix: string) =>
      findOldestIds(header, scopePrefix + prefix, maxInProgress - 1).map((id) => clear(prefix + id)),
    read: (header: string | undefined, name: string) => getUniqueCookie(header, scopePrefix + name),
  };
}
