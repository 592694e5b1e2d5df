/* The form of a write-ahead log, apart from how the service reads it: https://sqlite.org/fileformat2.html#walformat */

const headerBytes = 32;
const frameHeaderBytes = 24;

/** Where a transaction is in a log, in bytes. */
export type LoggedTransaction = { from: number; to: number };

/** Bytes of each frame of a log. */
export function frameBytesOf(log: Buffer): number {
  return frameHeaderBytes + log.readUInt32BE(8);
}

/** The transactions of the current salt, in their order. */
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

/** A log that has other bytes from `at` on. */
export function withDamage(log: Buffer, at: number, length: number): Buffer {
  const damaged = Buffer.from(log);
  for (const [index, byte] of log.subarray(at, at + length).entries()) damaged[at + index] = byte ^ 0xff;
  return damaged;
}

/** A log with other bytes behind its last transaction; what there was behind them stays where there is more. */
export function withBytesAfter(log: Buffer, bytes: Buffer): Buffer {
  const end = transactionsOf(log).at(-1)?.to ?? headerBytes;
  return Buffer.concat([log.subarray(0, end), bytes, log.subarray(end + bytes.length)]);
}

/** The frames of a log, with the salt of the log before it. */
export function olderFrames(log: Buffer): Buffer {
  const frames = Buffer.from(log.subarray(headerBytes, transactionsOf(log).at(-1)?.to));
  for (let at = 0; at < frames.length; at += frameBytesOf(log))
    frames.writeUInt32BE(frames.readUInt32BE(at + 8) - 1, at + 8);
  return frames;
}
