import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { olderCookies, uniqueCookie } from '../http/cookies.ts';

const prefix = 'toolhost-identity-form-';
/** Most forms of a browser at once. */
const mostForms = 20;

/** One cookie per form, so that two tabs do not replace each other's. */
function cookieName(path: string): string {
  return prefix + createHash('sha256').update(path).digest('hex').slice(0, 16);
}

/** URL at which a form is shown and submitted, and the cookies that are set for it: its own, and the ends of the oldest. */
export type FormAddress = { location: string; cookies: string[] };

/** Binds forms to the browser that was shown them: their URL holds a token that belongs to its cookie. */
export type FormTokens = {
  addressFor(request: IncomingMessage): FormAddress;
  /** Whether the URL of a request is the one issued to this browser. */
  isOwnAddress(request: IncomingMessage): boolean;
};

/** `origin` is that of the pages. The key lasts as long as the process, like all state of local mode. */
export function createFormTokens(origin: string, lifeS: number): FormTokens {
  const key = randomBytes(32);
  const tokenOf = (path: string, browser: string) =>
    createHmac('sha256', key).update(`${path} ${browser}`).digest('base64url');
  // Lax, because a browser that follows a link from another site must be recognised at the next step.
  const cookie = (name: string, value: string, ageS: number) =>
    `${name}=${value}; Path=/interaction; HttpOnly; SameSite=Lax; Max-Age=${ageS}`;
  return {
    addressFor(request) {
      const { pathname } = new URL(request.url ?? '', origin);
      const browser = browserOf(request, pathname) ?? randomBytes(32).toString('base64url');
      const older = olderCookies(request.headers.cookie, prefix, mostForms - 1);
      const cookies = [cookie(cookieName(pathname), browser, lifeS), ...older.map((id) => cookie(prefix + id, '', 0))];
      return { location: `${pathname}?form=${tokenOf(pathname, browser)}`, cookies };
    },
    isOwnAddress(request) {
      const { pathname, searchParams } = new URL(request.url ?? '', origin);
      const browser = browserOf(request, pathname);
      if (browser === undefined) return false;
      const given = Buffer.from(searchParams.get('form') ?? '');
      const wanted = Buffer.from(tokenOf(pathname, browser));
      return given.length === wanted.length && timingSafeEqual(given, wanted);
    },
  };
}

function browserOf({ headers }: IncomingMessage, path: string): string | undefined {
  return uniqueCookie(headers.cookie, cookieName(path));
}

/** Whether a request comes from a page of its own host, or has no header that names the origin. */
export function isFromOwnPage({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  return (site === undefined || site === 'same-origin') && (origin === undefined || origin === `http://${host}`);
}
