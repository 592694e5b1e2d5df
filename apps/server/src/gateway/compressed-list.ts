import { Buffer } from 'node:buffer';
import { promisify } from 'node:util';
import { constants, crc32, deflateRaw } from 'node:zlib';
import type { JsonChunks } from '@toolhost/mcp-protocol/json-rpc';

const deflate = promisify(deflateRaw);

/** Minimum size of a list that is compressed, in bytes. Shorter lists fit into one packet. */
const minBytes = 1024;
/** Maximum size of a stored block (RFC 1951, 3.2.4), in bytes. */
const maxStoredBytes = 65_535;
/** Method deflate, without name and time, from an unknown system (RFC 1952, 2.3). */
const gzipHeader = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]);

/** Returns true if `Accept-Encoding` lists gzip, and not with the weight 0 (RFC 9110, 12.5.3). */
export function acceptsGzip(acceptEncoding: string | string[] | undefined): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(String(acceptEncoding ?? ''));
}

/**
 * Compresses a response that contains a list as gzip (RFC 1952). The gzip member consists of the list's own deflate
 * blocks, with the text before and after the list in stored blocks. The blocks of a list are computed once, in a libuv
 * thread, and are cached as long as the list exists. Returns undefined for a response that is sent uncompressed.
 */
export function createListCompression(): (body: string | JsonChunks | undefined) => Promise<Buffer[] | undefined> {
  const blocksByList = new WeakMap<Buffer, Promise<Buffer>>();
  const getBlocks = (list: Buffer) => {
    const cached = blocksByList.get(list);
    if (cached) return cached;
    const blocks = deflate(list, { finishFlush: constants.Z_SYNC_FLUSH });
    blocksByList.set(list, blocks);
    return blocks;
  };
  return async (body) => {
    const [start, list, end, extra] = Array.isArray(body) ? (body as JsonChunks) : [];
    if (start === undefined || end === undefined || extra !== undefined || typeof list !== 'object') return undefined;
    const [prefix, suffix] = [Buffer.from(start), Buffer.from(end)];
    if (list.length < minBytes || Math.max(prefix.length, suffix.length) > maxStoredBytes) return undefined;
    const trailer = Buffer.alloc(8);
    trailer.writeUInt32LE(crc32(suffix, crc32(list, crc32(prefix))), 0);
    trailer.writeUInt32LE(prefix.length + list.length + suffix.length, 4);
    const header = Buffer.concat([gzipHeader, toStoredBlockHeader(prefix, false), prefix]);
    return [header, await getBlocks(list), Buffer.concat([toStoredBlockHeader(suffix, true), suffix, trailer])];
  };
}

function toStoredBlockHeader({ length }: Buffer, isLast: boolean): Buffer {
  const header = Buffer.from([isLast ? 1 : 0, 0, 0, 0, 0]);
  header.writeUInt16LE(length, 1);
  header.writeUInt16LE(maxStoredBytes - length, 3);
  return header;
}
