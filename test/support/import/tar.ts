import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';

const blockBytes = 512;

/** Reads files of an npm package (a gzipped tar in ustar format) without unpacking the others. */
export async function readFromPackage(archive: string, names: ReadonlySet<string>): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const source = createReadStream(archive).pipe(createGunzip());
  let unread: Buffer = Buffer.alloc(0);
  let file: { name: string; remaining: number; padding: number; chunks: Buffer[] } | undefined;
  source.on('data', (chunk: Buffer) => {
    unread = unread.length === 0 ? chunk : Buffer.concat([unread, chunk]);
    for (;;) {
      if (file) {
        const available = unread.subarray(0, file.remaining + file.padding);
        const content = available.subarray(0, file.remaining);
        if (names.has(file.name)) file.chunks.push(Buffer.from(content));
        file.padding -= available.length - content.length;
        file.remaining -= content.length;
        unread = unread.subarray(available.length);
        if (file.remaining + file.padding > 0) return;
        if (names.has(file.name)) files.set(file.name, Buffer.concat(file.chunks).toString('utf8'));
        file = undefined;
      }
      if (unread.length < blockBytes) return;
      const header = unread.subarray(0, blockBytes);
      unread = unread.subarray(blockBytes);
      const name = readText(header, 0, 100);
      if (name === '') continue;
      const prefix = readText(header, 345, 155);
      const size = Number.parseInt(readText(header, 124, 12), 8) || 0;
      const padding = (blockBytes - (size % blockBytes)) % blockBytes;
      file = { name: prefix === '' ? name : `${prefix}/${name}`, remaining: size, padding, chunks: [] };
    }
  });
  await once(source, 'end');
  return files;
}

function readText(block: Buffer, start: number, length: number): string {
  const bytes = block.subarray(start, start + length);
  const end = bytes.indexOf(0);
  return bytes
    .subarray(0, end < 0 ? length : end)
    .toString('utf8')
    .trim();
}
