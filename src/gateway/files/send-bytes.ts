import type { ServerResponse } from 'node:http';
import { fileChunkBytes } from '../../domain/files/kept-files.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import type { Place } from '../../domain/work/places.ts';
import { afterRunning } from '../../domain/work/running-time.ts';
import type { ByteRange } from '../../http/byte-range.ts';

export type Patience = {
  /** How long a client may take to read a chunk, in ms. */
  slowReaderMs: number;
  /** Runs what waits for the client; rejects when the download has to end. */
  slowly: Place['slowly'];
};

/**
 * Sends the bytes of a file, chunk after chunk, each after the client has taken the one before it, and ends the response.
 * Resolves with false when they did not all arrive: the client left or read too slowly, or a chunk was deleted.
 */
export async function sendBytes(
  response: ServerResponse,
  { first, last }: ByteRange,
  chunk: (number: number) => Promise<Buffer | undefined>,
  { slowReaderMs, slowly }: Patience,
): Promise<boolean> {
  const end = last + 1;
  for (let at = first; at < end; ) {
    const start = at - (at % fileChunkBytes);
    const bytes = await chunk(start / fileChunkBytes);
    if (!bytes || response.destroyed) {
      response.destroy();
      return false;
    }
    response.write(bytes.subarray(at - start, end - start));
    at = start + fileChunkBytes;
    // Opening a chunk takes up to a millisecond of the event loop.
    await nextTurn();
    if (response.writableNeedDrain && !(await slowly(() => drained(response, slowReaderMs)))) return false;
  }
  response.end();
  return response.writableFinished || slowly(() => finished(response, slowReaderMs));
}

/** Waits until the client has taken what was written. */
const drained = (response: ServerResponse, slowReaderMs: number) => happened(response, 'drain', slowReaderMs);
const finished = (response: ServerResponse, slowReaderMs: number) => happened(response, 'finish', slowReaderMs);

/** Resolves with true at this event, and with false when the connection closes before it; it does after `mostMs`. */
function happened(response: ServerResponse, event: 'drain' | 'finish', mostMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (did: boolean) => {
      cancel();
      response.off(event, onEvent);
      response.off('close', onClose);
      resolve(did);
    };
    const onEvent = () => settle(true);
    const onClose = () => settle(false);
    const cancel = afterRunning(mostMs, () => response.destroy());
    response.on(event, onEvent);
    response.on('close', onClose);
    if (response.destroyed) settle(false);
  });
}
