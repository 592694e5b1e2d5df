import type { HttpBindings } from '@hono/node-server';
import type { RequestHeaders } from '@toolhost/credentials/client-request';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { parse } from 'hono/utils/cookie';

type Env = { Bindings: HttpBindings };

/** A cookie for this service only, which scripts cannot read. */
export type HostCookie = {
  name: string;
  set(c: Context<Env>, value: string, maxAgeMs: number): void;
  get(c: Context<Env>): string | undefined;
  clear(c: Context<Env>): void;
};

/**
 * Returns the prefix of cookie names, and the cookie path. `__Host-` binds a cookie to this host, and browsers accept
 * it only for the whole host. If the service is below a path, other services on the host must not receive the cookie,
 * so the prefix is `__Secure-`. Plain http, which is local mode, has no prefix.
 */
export function getCookieScope(baseUrl: string): { prefix: string; path: string; isSecure: boolean } {
  const { pathname: path, protocol } = new URL(baseUrl);
  const isSecure = protocol === 'https:';
  const prefix = path === '/' ? '__Host-' : '__Secure-';
  return { prefix: isSecure ? prefix : '', path, isSecure };
}

export function createHostCookie(name: string, baseUrl: string): HostCookie {
  const { prefix, path, isSecure } = getCookieScope(baseUrl);
  const fullName = prefix + name;
  const options = { path, httpOnly: true, sameSite: 'Lax', secure: isSecure } as const;
  return {
    name: fullName,
    set: (c, value, maxAgeMs) => setCookie(c, fullName, value, { ...options, maxAge: Math.floor(maxAgeMs / 1000) }),
    get: (c) => getCookie(c, fullName),
    clear: (c) => {
      deleteCookie(c, fullName, options);
    },
  };
}

/** Cookies of one kind, each named by an ID, so that two browser tabs do not overwrite each other's cookie. */
export type HostCookies = {
  withId(id: string): HostCookie;
  /** Clears older cookies so that one more fits among the newest `maxCount`. */
  clearOldest(c: Context<Env>): void;
};

export function createHostCookies(kind: string, baseUrl: string, maxCount: number): HostCookies {
  const withId = (id: string) => createHostCookie(`${kind}-${id}`, baseUrl);
  return {
    withId,
    clearOldest(c) {
      for (const id of findOldestIds(c.req.header('cookie'), withId('').name, maxCount - 1)) withId(id).clear(c);
    },
  };
}

/**
 * Returns the 16 hex digits after `prefix` in the names of a `Cookie` header, except for the newest `maxCount`.
 * Browsers send the oldest cookie first (RFC 6265, 5.4), and all cookies with every request.
 */
export function findOldestIds(header: string | undefined, prefix: string, maxCount: number): string[] {
  const names = (header ?? '').split(';').map((pair) => pair.trim().replace(/=.*$/s, ''));
  const suffixes = names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  const ids = suffixes.filter((id) => /^[0-9a-f]{16}$/.test(id));
  return ids.slice(0, Math.max(0, ids.length - maxCount));
}

/**
 * Returns the value of a cookie that a request contains only once. If two cookies have the same name, someone else
 * planted one of them.
 */
export function getUniqueCookie(header: string | undefined, name: string): string | undefined {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  const matches = pairs.filter((pair) => pair.startsWith(`${name}=`));
  return matches.length === 1 ? matches[0]?.slice(name.length + 1) : undefined;
}

/** Reads a cookie of a request without a Hono context. */
export function readCookie(headers: RequestHeaders, name: string): string | undefined {
  return typeof headers.cookie === 'string' ? parse(headers.cookie, name)[name] : undefined;
}
