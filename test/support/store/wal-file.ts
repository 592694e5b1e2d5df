/* Reads the write-ahead log format independently of the service: https://sqlite.org/fileformat2.html#walformat */

const headerBytes = 32;
const frameHeaderBytes = 24;

/** Position of a transaction in a log, in bytes. */
export type LoggedTransaction = { from: number; to: number };

/** Returns the size of each frame of a log, in bytes. */
export function getFrameBytes(log: Buffer): number {
  return frameHeaderBytes + log.readUInt32BE(8);
}

/** Returns the transactions of the current salt, in order. */
export function findTransactions(log: Buffer): LoggedTransaction[] {
  const transactions: LoggedTransaction[] = [];
  const frameBytes = getFrameBytes(log);
  let from = headerBytes;
  for (let offset = headerBytes; offset + frameBytes <= log.length; offset += frameBytes) {
    if (log.compare(log, 16, 24, offset + 8, offset + 16) !== 0) break;
    if (log.readUInt32BE(offset + 4) === 0) continue;
    transactions.push({ from, to: offset + frameBytes });
    from = offset + frameBytes;
  }
  return transactions;
}

/** Returns a copy of a log with changed bytes from `offset` on. */
export function damageBytes(log: Buffer, offset: number, length: number): Buffer {
  const damaged = Buffer.from(log);
  for (const [index, byte] of log.subarray(offset, offset + length).entries()) damaged[offset + index] = byte ^ 0xff;
  return damaged;
}

/**
 * Returns a log with other bytes after its last transaction. They overwrite existing bytes and keep any that follow.
 */
export function withTrailingBytes(log: Buffer, bytes: Buffer): Buffer {
  const end = findTransactions(log).at(-1)?.to ?? headerBytes;
  return Buffer.concat([log.subarray(0, end), bytes, log.subarray(end + bytes.length)]);
}

/** Returns the frames of a log with the salt of the previous log. */
export function buildOlderFrames(log: Buffer): Buffer {
  const frames = Buffer.from(log.subarray(headerBytes, findTransactions(log).at(-1)?.to));
  for (let offset = 0; offset < frames.length; offset += getFrameBytes(log))
    frames.writeUInt32BE(frames.readUInt32BE(offset + 8) - 1, offset + 8);
  return frames;
}
