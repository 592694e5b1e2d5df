import type { HttpBindings } from '@hono/node-server';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { parse } from 'hono/utils/cookie';
import type { RequestHeaders } from '../domain/visit.ts';

type Env = { Bindings: HttpBindings };

/** A cookie of this host only, which no script can read; `__Host-` wherever there is https. */
export type HostCookie = {
  name: string;
  set(c: Context<Env>, value: string, maxAgeMs: number): void;
  get(c: Context<Env>): string | undefined;
  clear(c: Context<Env>): void;
};

export function hostCookie(name: string, baseUrl: string): HostCookie {
  const isSecure = baseUrl.startsWith('https:');
  const full = isSecure ? `__Host-${name}` : name;
  const options = { path: '/', httpOnly: true, sameSite: 'Lax', secure: isSecure } as const;
  return {
    name: full,
    set: (c, value, maxAgeMs) => setCookie(c, full, value, { ...options, maxAge: Math.floor(maxAgeMs / 1000) }),
    get: (c) => getCookie(c, full),
    clear: (c) => {
      deleteCookie(c, full, options);
    },
  };
}

/** A cookie of a request that has no Hono context. */
export function readCookie(headers: RequestHeaders, name: string): string | undefined {
  return typeof headers.cookie === 'string' ? parse(headers.cookie, name)[name] : undefined;
}
