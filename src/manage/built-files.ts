import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/** A file of the built dashboard, read and compressed once. */
export type BuiltFile = { type: string; etag: string; plain: Buffer<ArrayBuffer>; gzipped: Buffer<ArrayBuffer> };

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
export function builtFiles(folder: string): (name: string) => Promise<BuiltFile | undefined> {
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
