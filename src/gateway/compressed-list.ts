import { Buffer } from 'node:buffer';
import { promisify } from 'node:util';
import { constants, crc32, deflateRaw } from 'node:zlib';
import type { Pieces } from './protocol/json-rpc.ts';

const deflate = promisify(deflateRaw);

/** Minimum size of a list that is compressed, in bytes. Shorter lists fit into one packet. */
const leastBytes = 1024;
/** Maximum size of a stored block (RFC 1951, 3.2.4), in bytes. */
const mostStored = 65_535;
const gzipHead = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/** Returns true if a client accepts gzip (RFC 9110, 12.5.3). */
export function takesGzip(acceptEncoding: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(String(acceptEncoding ?? ''));
}

/**
 * Compresses a response that contains a list as gzip (RFC 1952). The gzip member consists of the list's own deflate
 * blocks, with the text before and after the list in stored blocks. The blocks of a list are computed once, in a libuv
 * thread, and are cached as long as the list exists. Returns undefined for a response that is sent uncompressed.
 */
export function createListCompression(): (body: string | Pieces | undefined) => Promise<Buffer[] | undefined> {
  const blocksOf = new WeakMap<Buffer, Promise<Buffer>>();
  const blocksOfList = (list: Buffer) => {
    const known = blocksOf.get(list);
    if (known) return known;
    const made = deflate(list, { finishFlush: constants.Z_SYNC_FLUSH });
    blocksOf.set(list, made);
    return made;
  };
  return async (body) => {
    const [start, list, end, more] = Array.isArray(body) ? (body as Pieces) : [];
    if (start === undefined || end === undefined || more !== undefined || typeof list !== 'object') return undefined;
    const [before, after] = [Buffer.from(start), Buffer.from(end)];
    if (list.length < leastBytes || Math.max(before.length, after.length) > mostStored) return undefined;
    const foot = Buffer.alloc(8);
    foot.writeUInt32LE(crc32(after, crc32(list, crc32(before))), 0);
    foot.writeUInt32LE(before.length + list.length + after.length, 4);
    const head = Buffer.concat([gzipHead, storedHead(before, false), before]);
    return [head, await blocksOfList(list), Buffer.concat([storedHead(after, true), after, foot])];
  };
}

function storedHead({ length }: Buffer, isLast: boolean): Buffer {
  const head = Buffer.from([isLast ? 1 : 0, 0, 0, 0, 0]);
  head.writeUInt16LE(length, 1);
  head.writeUInt16LE(mostStored - length, 3);
  return head;
}
