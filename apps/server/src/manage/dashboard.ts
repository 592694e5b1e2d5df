import { createHash } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { HttpBindings } from '@hono/node-server';
import { AppError } from '@toolhost/errors/errors';
import { type Context, Hono, type Next } from 'hono';
import type { SecureHeadersVariables } from 'hono/secure-headers';
import { readCookie } from '../http/cookies.ts';
import { addFont, getPagePolicy } from '../http/page.ts';
import { getBasePath } from '../own-hosts.ts';
import { routes } from '../routes.ts';
import { getSessionCookie } from './actors.ts';
import { renderLandingPage } from './landing-page.ts';
import type { SignInKind } from './local-sign-in.ts';
import { matchesEntityTag } from './rest.ts';

type Env = { Bindings: HttpBindings; Variables: SecureHeadersVariables };

/** Paths that the dashboard renders in the browser. Without a session, they show the landing page. */
const pagePaths = [
  '/',
  '/servers',
  '/servers/*',
  '/keys',
  '/keys/*',
  '/calls',
  '/calls/*',
  '/audit',
  '/usage',
  '/notifications',
  '/settings',
  '/settings/*',
  '/api-reference',
];

const yearS = 365 * 24 * 60 * 60;
const noncePlaceholder = 'name="style-nonce" content=""';
const basePathPlaceholder = 'name="base-path" content=""';

/** Serves the built dashboard. Hashed files may be cached for a year, the page may not. Each file is read once. */
export function createDashboard(folder: string, baseUrl: string, signInKind: SignInKind): Hono<Env> {
  const basePath = getBasePath(baseUrl);
  const sessionCookie = getSessionCookie(baseUrl).name;
  const app = new Hono<Env>();
  const assets = createFileFinder(join(folder, 'assets'));
  const rootFiles = createFileFinder(folder);
  app.get('/assets/:name', serveFile(assets, `public, max-age=${yearS}, immutable`));
  app.get('/favicon.svg', serveFile(rootFiles, 'no-cache'));
  const readPage = createPageReader(join(folder, 'index.html'), basePath);
  const renderDashboard = (c: Context<Env>) =>
    c.html(
      readPage().replace(noncePlaceholder, () => `name="style-nonce" content="${c.get('secureHeadersNonce') ?? ''}"`),
    );
  for (const path of pagePaths) {
    app.get(path, (c) => {
      if (readCookie(c.env.incoming.headers, sessionCookie) !== undefined) return renderDashboard(c);
      c.header('Content-Security-Policy', `${getPagePolicy(basePath)}; img-src 'self'`);
      const { pathname, search } = new URL(c.req.url);
      return c.html(addFont(renderLandingPage(basePath, basePath + pathname + search, signInKind), basePath));
    });
  }
  app.get(routes.loginCheck, renderDashboard);
  return app;
}

function serveFile(findFile: ReturnType<typeof createFileFinder>, caching: string) {
  return async (c: Context<Env>, next: Next) => {
    const file = await findFile(c.req.param('name') ?? c.req.path.slice(1));
    if (!file) return next();
    const headers = { 'Content-Type': file.type, ETag: file.etag, 'Cache-Control': caching, Vary: 'Accept-Encoding' };
    if (matchesEntityTag(c.req.header('if-none-match'), file.etag)) return c.body(null, 304, headers);
    if (!file.brotli || !/\bbr\b/.test(c.req.header('accept-encoding') ?? '')) return c.body(file.plain, 200, headers);
    return c.body(file.brotli, 200, { ...headers, 'Content-Encoding': 'br' });
  };
}

/**
 * Creates a reader of the page's HTML that adds the base path to the paths of its files. The file is read again only
 * after a new build.
 */
function createPageReader(path: string, basePath: string): () => string {
  let cached = { html: '', mtimeMs: Number.NaN };
  return () => {
    const mtimeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (mtimeMs === undefined) throw new AppError('unavailable', 'the dashboard is not built; run npm run build');
    if (mtimeMs !== cached.mtimeMs) {
      const pageHtml = readFileSync(path, 'utf8').replace(
        basePathPlaceholder,
        `name="base-path" content="${basePath}"`,
      );
      cached = { html: pageHtml.replaceAll('="./', `="${basePath}/`), mtimeMs };
    }
    return cached.html;
  };
}

/** A file of the built dashboard, and its compressed copy, which the build wrote next to it. */
type BuiltFile = { type: string; etag: string; plain: Buffer<ArrayBuffer>; brotli: Buffer<ArrayBuffer> | undefined };

const mediaTypes: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.png': 'image/png',
  '.json': 'application/json',
};

/** Maximum number of files in memory. A build has fewer, but a rebuild while serving leaves old files behind. */
const maxCachedFiles = 500;

/**
 * Returns a function that finds a file of a folder by name; undefined for a missing file, and for a name with a slash
 * or a leading dot. Each file is read once, at its first request.
 */
function createFileFinder(folder: string): (name: string) => Promise<BuiltFile | undefined> {
  const cachedFiles = new Map<string, Promise<BuiltFile>>();
  return async (name) => {
    const type = mediaTypes[extname(name)];
    if (type === undefined || !/^[\w-][\w.-]*$/.test(name)) return undefined;
    const file = cachedFiles.get(name) ?? readBuiltFile(join(folder, name), type);
    if (cachedFiles.size < maxCachedFiles) cachedFiles.set(name, file);
    try {
      return await file;
    } catch (error) {
      cachedFiles.delete(name);
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  };
}

async function readBuiltFile(path: string, type: string): Promise<BuiltFile> {
  const plain = await readFile(path);
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  const brotli = existsSync(`${path}.br`) ? await readFile(`${path}.br`) : undefined;
  return { type, etag, plain, brotli };
}
