import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono, type Next } from 'hono';
import type { SecureHeadersVariables } from 'hono/secure-headers';
import { AppError } from '../errors.ts';
import { routes } from '../routes.ts';
import { isSame } from './rest.ts';

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
  '/usage',
  '/notifications',
  '/settings',
  '/settings/*',
  '/api-reference',
  routes.loginCheck,
];

const yearS = 365 * 24 * 60 * 60;
const noncePlace = 'name="style-nonce" content=""';
const basePathPlace = 'name="base-path" content=""';

/** Serves the built dashboard. Hashed files may be cached for a year, the page not. Each is read and compressed once. */
export function createDashboard(folder: string, basePath: string): Hono<Env> {
  const app = new Hono<Env>();
  const assets = builtFiles(join(folder, 'assets'));
  const others = builtFiles(folder);
  app.get('/assets/:name', fileAnswer(assets, `public, max-age=${yearS}, immutable`));
  app.get('/favicon.svg', fileAnswer(others, 'no-cache'));
  const page = pageOf(join(folder, 'index.html'), basePath);
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

/** Text of the page, which names its files below the base URL. It is read again only after a new build. */
function pageOf(path: string, basePath: string): () => string {
  let read = { text: '', mtimeMs: Number.NaN };
  return () => {
    const mtimeMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (mtimeMs === undefined) throw new AppError('unavailable', 'the dashboard is not built; run: npm start');
    if (mtimeMs !== read.mtimeMs) {
      const text = readFileSync(path, 'utf8').replace(basePathPlace, `name="base-path" content="${basePath}"`);
      read = { text: text.replaceAll('="./', `="${basePath}/`), mtimeMs };
    }
    return read.text;
  };
}

/** A file of the built dashboard, read and compressed once. */
type BuiltFile = { type: string; etag: string; plain: Buffer<ArrayBuffer>; gzipped: Buffer<ArrayBuffer> };

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
  '.png': 'image/png',
  '.json': 'application/json',
};

/** Most files kept in memory. More than any build has, but a rebuild while serving leaves old files behind. */
const mostFiles = 500;

const compress = promisify(gzip);

/**
 * Files of a folder by name, or undefined for a missing one. Each file is read and compressed only at its first request,
 * so that a flood of requests costs neither.
 */
function builtFiles(folder: string): (name: string) => Promise<BuiltFile | undefined> {
  const known = new Map<string, Promise<BuiltFile>>();
  return async (name) => {
    const type = types[extname(name)];
    if (type === undefined || !/^[\w-][\w.-]*$/.test(name)) return undefined;
    const file = known.get(name) ?? read(join(folder, name), type);
    if (known.size < mostFiles) known.set(name, file);
    try {
      return await file;
    } catch (error) {
      known.delete(name);
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  };
}

async function read(path: string, type: string): Promise<BuiltFile> {
  const plain = await readFile(path);
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return { type, etag, plain, gzipped: (await compress(plain)) as Buffer<ArrayBuffer> };
}
