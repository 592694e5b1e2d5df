import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { parse } from 'hono/utils/cookie';
import type { RequestHeaders } from '../domain/visit.ts';

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
export function cookieScope(baseUrl: string): { prefix: string; path: string; isSecure: boolean } {
  const { pathname: path, protocol } = new URL(baseUrl);
  const isSecure = protocol === 'https:';
  const prefix = path === '/' ? '__Host-' : '__Secure-';
  return { prefix: isSecure ? prefix : '', path, isSecure };
}

export function hostCookie(name: string, baseUrl: string): HostCookie {
  const { prefix, path, isSecure } = cookieScope(baseUrl);
  const full = prefix + name;
  const options = { path, httpOnly: true, sameSite: 'Lax', secure: isSecure } as const;
  return {
    name: full,
    set: (c, value, maxAgeMs) => setCookie(c, full, value, { ...options, maxAge: Math.floor(maxAgeMs / 1000) }),
    get: (c) => getCookie(c, full),
    clear: (c) => {
      deleteCookie(c, full, options);
    },
  };
}

/** Cookies of one kind, each named by an ID, so that two browser tabs do not overwrite each other's cookie. */
export type HostCookies = {
  named(id: string): HostCookie;
  /** Clears older cookies so that one more fits among the newest `most`. */
  clearOlder(c: Context<Env>): void;
};

export function hostCookies(kind: string, baseUrl: string, most: number): HostCookies {
  const named = (id: string) => hostCookie(`${kind}-${id}`, baseUrl);
  return {
    named,
    clearOlder(c) {
      for (const id of olderCookies(c.req.header('cookie'), named('').name, most - 1)) named(id).clear(c);
    },
  };
}

/**
 * Returns the 16 hex digits after `prefix` in the names of a `Cookie` header, except for the newest `most`. Browsers
 * send the oldest cookie first (RFC 6265, 5.4). Every request carries all cookies, so their number must be limited.
 */
export function olderCookies(header: string | undefined, prefix: string, most: number): string[] {
  const names = (header ?? '').split(';').map((pair) => pair.trim().replace(/=.*$/s, ''));
  const found = names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  const ids = found.filter((id) => /^[0-9a-f]{16}$/.test(id));
  return ids.slice(0, Math.max(0, ids.length - most));
}

/**
 * Returns the value of a cookie that a request contains only once. If two cookies have the same name, someone else
 * planted one of them.
 */
export function uniqueCookie(header: string | undefined, name: string): string | undefined {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim());
  const found = pairs.filter((pair) => pair.startsWith(`${name}=`));
  return found.length === 1 ? found[0]?.slice(name.length + 1) : undefined;
}

/** Reads a cookie of a request without a Hono context. */
export function readCookie(headers: RequestHeaders, name: string): string | undefined {
  return typeof headers.cookie === 'string' ? parse(headers.cookie, name)[name] : undefined;
}
