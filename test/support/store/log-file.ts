/* Reads the write-ahead log format independently of the service: https://sqlite.org/fileformat2.html#walformat */

const headerBytes = 32;
const frameHeaderBytes = 24;

/** Position of a transaction in a log, in bytes. */
export type LoggedTransaction = { from: number; to: number };

/** Returns the size of each frame of a log, in bytes. */
export function frameBytesOf(log: Buffer): number {
  return frameHeaderBytes + log.readUInt32BE(8);
}

/** Returns the transactions of the current salt, in order. */
export function transactionsOf(log: Buffer): LoggedTransaction[] {
  const transactions: LoggedTransaction[] = [];
  const frameBytes = frameBytesOf(log);
  let from = headerBytes;
  for (let at = headerBytes; at + frameBytes <= log.length; at += frameBytes) {
    if (log.compare(log, 16, 24, at + 8, at + 16) !== 0) break;
    if (log.readUInt32BE(at + 4) === 0) continue;
    transactions.push({ from, to: at + frameBytes });
    from = at + frameBytes;
  }
  return transactions;
}

/** Returns a copy of a log with changed bytes from `offset` on. */
export function withDamage(log: Buffer, at: number, length: number): Buffer {
  const damaged = Buffer.from(log);
  for (const [index, byte] of log.subarray(at, at + length).entries()) damaged[at + index] = byte ^ 0xff;
  return damaged;
}

/**
 * Returns a log with other bytes after its last transaction. They overwrite existing bytes and keep any that follow.
 */
export function withBytesAfter(log: Buffer, bytes: Buffer): Buffer {
  const end = transactionsOf(log).at(-1)?.to ?? headerBytes;
  return Buffer.concat([log.subarray(0, end), bytes, log.subarray(end + bytes.length)]);
}

/** Returns the frames of a log with the salt of the previous log. */
export function olderFrames(log: Buffer): Buffer {
  const frames = Buffer.from(log.subarray(headerBytes, transactionsOf(log).at(-1)?.to));
  for (let at = 0; at < frames.length; at += frameBytesOf(log))
    frames.writeUInt32BE(frames.readUInt32BE(at + 8) - 1, at + 8);
  return frames;
}
