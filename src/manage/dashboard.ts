import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HttpBindings } from '@hono/node-server';
import { serveStatic } from '@hono/node-server/serve-static';
import { Hono } from 'hono';
import { compress } from 'hono/compress';
import type { SecureHeadersVariables } from 'hono/secure-headers';
import { AppError } from '../errors.ts';

type Env = { Bindings: HttpBindings; Variables: SecureHeadersVariables };

/** Pages that the dashboard draws itself; each is a deep link. */
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
  '/login-check',
];

const yearS = 365 * 24 * 60 * 60;

/** The built dashboard: hashed files for a year, its one page never. */
export function createDashboard(folder: string): Hono<Env> {
  const app = new Hono<Env>();
  app.use('/assets/*', compress());
  app.use(
    '/assets/*',
    serveStatic({
      root: folder,
      onFound: (_path, c) => c.header('Cache-Control', `public, max-age=${yearS}, immutable`),
    }),
  );
  app.use('/favicon.svg', serveStatic({ root: folder }));
  const index = join(folder, 'index.html');
  for (const path of pages) {
    app.get(path, (c) => {
      if (!existsSync(index)) throw new AppError('unavailable', 'the dashboard is not built; run: npm start');
      const nonce = c.get('secureHeadersNonce') ?? '';
      return c.html(
        readFileSync(index, 'utf8').replace('name="style-nonce" content=""', `name="style-nonce" content="${nonce}"`),
      );
    });
  }
  return app;
}
