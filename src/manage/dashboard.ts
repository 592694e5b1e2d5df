import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono, type Next } from 'hono';
import type { SecureHeadersVariables } from 'hono/secure-headers';
import { AppError } from '../errors.ts';
import { routes } from '../routes.ts';
import { builtFiles } from './built-files.ts';
import { isSame } from './static-document.ts';

type Env = { Bindings: HttpBindings; Variables: SecureHeadersVariables };

/** Paths that the dashboard renders in the browser; each can be linked to. */
const pages = [
  '/',
  '/servers',
  '/servers/*',
  '/keys',
  '/keys/*',
  '/calls',
  '/calls/*',
  '/audit',
  '/settings',
  '/settings/*',
  routes.loginCheck,
];

const yearS = 365 * 24 * 60 * 60;
const noncePlace = 'name="style-nonce" content=""';

/** Serves the built dashboard. Hashed files may be cached for a year, the page not. Each is read and compressed once. */
export function createDashboard(folder: string): Hono<Env> {
  const app = new Hono<Env>();
  const assets = builtFiles(join(folder, 'assets'));
  const others = builtFiles(folder);
  app.get('/assets/:name', fileAnswer(assets, `public, max-age=${yearS}, immutable`));
  app.get('/favicon.svg', fileAnswer(others, 'no-cache'));
  const page = pageOf(join(folder, 'index.html'));
  for (const path of pages) {
    app.get(path, (c) =>
      c.html(page().replace(noncePlace, () => `name="style-nonce" content="${c.get('secureHeadersNonce') ?? ''}"`)),
    );
  }
  return app;
}

function fileAnswer(find: ReturnType<typeof builtFiles>, caching: string) {
  return async (c: Context<Env>, next: Next) => {
    const file = await find(c.req.param('name') ?? c.req.path.slice(1));
    if (!file) return next();
    const headers = { 'Content-Type': file.type, ETag: file.etag, 'Cache-Control': caching, Vary: 'Accept-Encoding' };
    if (isSame(c.req.header('if-none-match'), file.etag)) return c.body(null, 304, headers);
    if (!/\bgzip\b/.test(c.req.header('accept-encoding') ?? '')) return c.body(file.plain, 200, headers);
    return c.body(file.gzipped, 200, { ...headers, 'Content-Encoding': 'gzip' });
  };
}

/** Text of the page, read again only after a new build. */
function pageOf(path: string): () => string {
  let read = { text: '', mtimeMs: Number.NaN };
  return () => {
    const mtimeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (mtimeMs === undefined) throw new AppError('unavailable', 'the dashboard is not built; run: npm start');
    if (mtimeMs !== read.mtimeMs) read = { text: readFileSync(path, 'utf8'), mtimeMs };
    return read.text;
  };
}
