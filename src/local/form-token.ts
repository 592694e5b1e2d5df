import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

const cookieName = 'toolhost-identity-form';

/** Where a form is shown and sent to, and the cookie of the browser that may send it. */
export type FormAddress = { location: string; cookie: string };

/** Forms that only the browser sends that was shown them: their address holds a token that belongs to its cookie. */
export type FormTokens = {
  addressFor(request: IncomingMessage): FormAddress;
  /** Whether the address of a request is the one that this browser was given. */
  isOwnAddress(request: IncomingMessage): boolean;
};

/** `origin` is where the pages are. The key lasts as long as the process, like everything here. */
export function createFormTokens(origin: string, lifeS: number): FormTokens {
  const key = randomBytes(32);
  const tokenOf = (path: string, browser: string) =>
    createHmac('sha256', key).update(`${path} ${browser}`).digest('base64url');
  return {
    addressFor(request) {
      const { pathname } = new URL(request.url ?? '', origin);
      const browser = browserOf(request) ?? randomBytes(32).toString('base64url');
      // Lax, because whoever comes by a link from another site must be recognised at the next step.
      const cookie = `${cookieName}=${browser}; Path=/interaction; HttpOnly; SameSite=Lax; Max-Age=${lifeS}`;
      return { location: `${pathname}?form=${tokenOf(pathname, browser)}`, cookie };
    },
    isOwnAddress(request) {
      const { pathname, searchParams } = new URL(request.url ?? '', origin);
      const browser = browserOf(request);
      if (browser === undefined) return false;
      const given = Buffer.from(searchParams.get('form') ?? '');
      const wanted = Buffer.from(tokenOf(pathname, browser));
      return given.length === wanted.length && timingSafeEqual(given, wanted);
    },
  };
}

function browserOf(request: IncomingMessage): string | undefined {
  const found = (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${cookieName}=`));
  // Two of one name mean that somebody planted one.
  return found.length === 1 ? found[0]?.slice(cookieName.length + 1) : undefined;
}

/** Whether a browser says that a request comes from a page of the host that it is sent to, or says nothing. */
export function isFromOwnPage({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  return (site === undefined || site === 'same-origin') && (origin === undefined || origin === `http://${host}`);
}
