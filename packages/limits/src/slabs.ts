import { Buffer } from 'node:buffer';

/** Sizes of slabs, in bytes. Shorter buffers are cheap as they are. */
const minSlabBytes = 4 * 1024;
const maxSlabBytes = 64 * 1024;
/** Maximum number of free slabs of each size: 4 MB of the largest. */
const maxFreeSlabs = 64;

const freeSlabs = new Map<number, ArrayBuffer[]>();
/** Slabs that have an owner. A slab whose owner forgets it is collected like any other memory. */
const ownedSlabs = new WeakSet<ArrayBufferLike>();

/**
 * Returns uninitialized memory. If it has some KB, it is a slab that is used again after `releaseSlab`: a new buffer of
 * that size for each response lasts until the next collection, and the system takes and returns its pages each time.
 */
export function takeSlab(length: number): Buffer {
  if (length < minSlabBytes || length > maxSlabBytes) return Buffer.allocUnsafe(length);
  const size = 2 ** Math.ceil(Math.log2(length));
  const slab = freeSlabs.get(size)?.pop() ?? (Buffer.allocUnsafeSlow(size).buffer as ArrayBuffer);
  ownedSlabs.add(slab);
  return Buffer.from(slab, 0, length);
}

/**
 * Returns the slab of a buffer for another use. Only its owner calls this, once nothing reads the bytes anymore. Has no
 * effect on other memory, or on a slab that was released or transferred to a thread.
 */
export function releaseSlab({ buffer }: Buffer): void {
  if (!ownedSlabs.delete(buffer) || buffer.byteLength === 0) return;
  const free = freeSlabs.get(buffer.byteLength) ?? [];
  if (free.length === 0) freeSlabs.set(buffer.byteLength, free);
  if (free.length < maxFreeSlabs) free.push(buffer as ArrayBuffer);
}
