import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';

const blockBytes = 512;

/** Reads files of an npm package (a gzipped tar in ustar format) without unpacking the others. */
export async function readFromPackage(archive: string, wanted: ReadonlySet<string>): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const source = createReadStream(archive).pipe(createGunzip());
  let rest: Buffer = Buffer.alloc(0);
  let file: { name: string; left: number; padding: number; chunks: Buffer[] } | undefined;
  source.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      if (file) {
        const taken = rest.subarray(0, file.left + file.padding);
        const content = taken.subarray(0, file.left);
        if (wanted.has(file.name)) file.chunks.push(Buffer.from(content));
        file.padding -= taken.length - content.length;
        file.left -= content.length;
        rest = rest.subarray(taken.length);
        if (file.left + file.padding > 0) return;
        if (wanted.has(file.name)) found.set(file.name, Buffer.concat(file.chunks).toString('utf8'));
        file = undefined;
      }
      if (rest.length < blockBytes) return;
      const header = rest.subarray(0, blockBytes);
      rest = rest.subarray(blockBytes);
      const name = textAt(header, 0, 100);
      if (name === '') continue;
      const prefix = textAt(header, 345, 155);
      const size = Number.parseInt(textAt(header, 124, 12), 8) || 0;
      const padding = (blockBytes - (size % blockBytes)) % blockBytes;
      file = { name: prefix === '' ? name : `${prefix}/${name}`, left: size, padding, chunks: [] };
    }
  });
  await once(source, 'end');
  return found;
}

function textAt(block: Buffer, start: number, length: number): string {
  const bytes = block.subarray(start, start + length);
  const end = bytes.indexOf(0);
  return bytes
    .subarray(0, end < 0 ? length : end)
    .toString('utf8')
    .trim();
}
