import type { ServerResponse } from 'node:http';
import { attachment, fileChunkBytes } from '../../domain/files/file-names.ts';
import type { Lookup, Strangers, Visit } from '../../domain/visit.ts';
import { type MaybePromise, nextTurn } from '../../domain/work/next-turn.ts';
import { createPlaces, type Place, type WorkParty } from '../../domain/work/places.ts';
import { afterRunning } from '../../domain/work/running-time.ts';
import { AppError, Unauthenticated } from '../../errors.ts';
import type { Incoming } from '../../http/incoming.ts';
import { wantsPage } from '../../http/page.ts';
import { problemAnswer } from '../../http/problem.ts';
import { partsOfAddress } from '../../routes.ts';
import type { FileRow } from '../../store/calls/files.ts';
import { type Caller, type CallerOptions, callerDigest } from '../callers/caller.ts';
import { resolveCaller } from '../callers/resolve-caller.ts';
import { type HostedServer, serverOrView } from '../hosted/hosted-server.ts';
import type { FileAddresses } from './attach-files.ts';
import type { KeptFiles } from './kept-files.ts';

export type FileListenerParts = {
  files: KeptFiles;
  fileAddresses: FileAddresses;
  findServer: (slug: string, look: Lookup) => MaybePromise<HostedServer | undefined>;
  callers: CallerOptions;
  strangers: Strangers;
  onUnexpected: (error: unknown, requestId: string) => void;
  /** Called after every response with its status. The status is 0 if the client disconnected first. */
  onAnswered: (status: number) => void;
  /** Time that a client may take to read a chunk, in ms. */
  slowReaderMs: number;
  /** Returns monotonic ms, excluding time in which this process was paused. */
  runningClock: () => number;
};

/** Maximum number of concurrent downloads of a tenant, and of a process. Each keeps up to two chunks in memory. */
export const mostDownloads = { ofTenant: 20, ofAll: 100 };
const firmMs = 2000;

/**
 * Serves files of responses at `GET /files/{id}`. The URL is sufficient, because a browser that opens it has no
 * credential. A request that has a credential must come from the caller that received the URL.
 */
export function createFileListener(parts: FileListenerParts) {
  const inPlace = createPlaces({
    most: mostDownloads,
    firmMs,
    clock: parts.runningClock,
    noRoom: 'too many files are being downloaded; retry in a few seconds',
    lost: 'the client read the file slowly while other downloads were waiting; request the remaining bytes',
  });
  return async function serveFile(incoming: Incoming, id: string): Promise<void> {
    const { request, response } = incoming;
    try {
      if (request.method !== 'GET' && request.method !== 'HEAD')
        throw new AppError('methodNotAllowed', 'use GET or HEAD to download a file');
      const found = await findFor(incoming, id, parts);
      if (!found) {
        parts.files.count('missing');
        throw new AppError('notFound', 'there is no file at this URL; a file URL expires after ten minutes');
      }
      const { file, party } = found;
      await inPlace(file.workspaceId, (place) => serve(incoming, file, place, parts), party);
    } catch (error) {
      await refuse(incoming, error, parts);
    } finally {
      parts.onAnswered(response.headersSent ? response.statusCode : 0);
    }
  };
}

/** Returns the file that this request may read, and the key that the request is charged to. */
async function findFor({ request, ownOrigin }: Incoming, id: string, parts: FileListenerParts) {
  const look = parts.strangers.lookFor(request);
  const file = await parts.files.find(id, look);
  if (!file) return undefined;
  const { slug, view } = partsOfAddress(file.address);
  if (ownOrigin !== undefined && !parts.fileAddresses.isOwnOrigin(ownOrigin, slug)) return undefined;
  const server = serverOrView(await parts.findServer(slug, look), view);
  if (server?.id !== file.serverId) return undefined;
  const party = await readerOf(server, file, request, { look, callers: parts.callers });
  return party && { file, party };
}

type Reader = { look: Lookup; callers: CallerOptions };

/** Returns the key that the reader is charged to, or undefined if it may not read the file. */
async function readerOf(
  server: HostedServer,
  file: FileRow,
  visit: Visit,
  { look, callers }: Reader,
): Promise<WorkParty | undefined> {
  try {
    const caller = await resolveCaller(server, visit, callers, look);
    return callerDigest(caller) === file.caller ? workPartyOf(caller) : undefined;
  } catch (error) {
    if (!(error instanceof Unauthenticated)) throw error;
    const isWithout = error.refusal === 'missing' && visit.headers.authorization === undefined;
    return isWithout ? partyOfNetwork(callers.networkOf(visit)) : undefined;
  }
}

/**
 * Returns the key that a caller's work and memory are charged to: its own, or its network's, because all callers of a
 * network may be one person.
 */
function workPartyOf({ network, id = '' }: Caller): WorkParty {
  return network === undefined ? { name: id, isStranger: false } : partyOfNetwork(network);
}

/** Returns the key of a caller without a verified credential. */
function partyOfNetwork(network: string): WorkParty {
  return { name: network, isStranger: true };
}

const fixedHeaders = [
  ...['Accept-Ranges', 'bytes'],
  // The browser saves the file. If it ever displays the file, it does so without scripts and without our origin.
  ...['Content-Security-Policy', "default-src 'none'; sandbox"],
  ...['Cross-Origin-Resource-Policy', 'same-origin'],
  ...['Referrer-Policy', 'no-referrer'],
];

async function serve({ request, response, headers }: Incoming, file: FileRow, place: Place, parts: FileListenerParts) {
  const { bytes: length, head } = file;
  const tag = `"${file.id}"`;
  const isSame = request.headers['if-range'] === undefined || request.headers['if-range'] === tag;
  const range = request.method === 'GET' && isSame ? byteRange(request.headers.range, length) : undefined;
  const common = [...headers, ...fixedHeaders];
  if (range === 'unsatisfiable') {
    response.writeHead(416, [...common, 'Content-Range', `bytes */${length}`, 'Content-Length', '0']).end();
    return;
  }
  const { first, last } = range ?? { first: 0, last: length - 1 };
  const part = range ? ['Content-Range', `bytes ${first}-${last}/${length}`] : [];
  response.writeHead(range ? 206 : 200, [
    ...common,
    ...['Content-Type', head.mediaType, 'Content-Disposition', attachment(head.name), 'ETag', tag],
    ...['Content-Length', String(last - first + 1), ...part],
  ]);
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  const chunk = (number: number) => parts.files.chunk(file, number);
  const waitFor: WaitFor = (event) => place.slowly(() => happened(response, event, parts.slowReaderMs));
  place.gone.addEventListener('abort', () => response.destroy());
  let isWhole = false;
  try {
    isWhole = await sendBytes(response, { first, last }, chunk, waitFor);
  } finally {
    parts.files.count(isWhole ? 'served' : 'cut');
  }
}

/**
 * Sends an error as a problem document, or as a page for browsers. Closes the connection if bytes were already sent.
 */
async function refuse(incoming: Incoming, thrown: unknown, parts: FileListenerParts) {
  const { request, response, headers, requestId } = incoming;
  if (response.headersSent) {
    // Database failures are logged where they occur.
    if (!(thrown instanceof AppError)) parts.onUnexpected(thrown, requestId);
    response.destroy();
    return;
  }
  const status = thrown instanceof AppError ? thrown.status : 0;
  const error = parts.strangers.onRefused(request, status) ?? thrown;
  const isForPerson = wantsPage(request.method, request.headers.accept);
  const answer = problemAnswer(error, requestId, parts.onUnexpected, isForPerson ? incoming.home : undefined);
  const allow = answer.status === 405 ? ['Allow', 'GET, HEAD'] : [];
  endWith(response, answer.status, [...headers, ...[...answer.headers].flat(), ...allow], await answer.text());
}

function endWith(response: ServerResponse, status: number, headers: string[], text: string): void {
  if (response.destroyed) return;
  response.writeHead(status, [...headers, 'Content-Length', String(Buffer.byteLength(text))]).end(text);
}

/** Waits until the client has read the buffered bytes, or all of them. Rejects if the download has to end. */
type WaitFor = (event: 'drain' | 'finish') => Promise<boolean>;

/**
 * Sends the bytes of a file chunk by chunk, each after the client has read the previous one, and ends the response.
 * Resolves with false if not all bytes arrived, because the client disconnected or read too slowly, or because a chunk
 * was deleted.
 */
async function sendBytes(
  response: ServerResponse,
  { first, last }: ByteRange,
  chunk: (number: number) => Promise<Buffer | undefined>,
  waitFor: WaitFor,
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
    // Decrypting a chunk takes up to a millisecond of the event loop.
    await nextTurn();
    if (response.writableNeedDrain && !(await waitFor('drain'))) return false;
  }
  response.end();
  return response.writableFinished || waitFor('finish');
}

/**
 * Resolves with true at this event, and with false if the connection closes before it. Closes the connection after
 * `mostMs`.
 */
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

/** The first and the last byte of a range. */
type ByteRange = { first: number; last: number };

const oneRange = /^bytes=(\d{0,15})-(\d{0,15})$/;

/**
 * Parses the single range of a `Range` header (RFC 9110, 14.2), for a body of `length` bytes, which is not empty.
 * Returns undefined for the complete body: without the header, and for several ranges or another unit, which a server
 * may ignore.
 */
function byteRange(header: string | undefined, length: number): ByteRange | 'unsatisfiable' | undefined {
  const [, from = '', to = ''] = oneRange.exec(header ?? '') ?? [];
  if (from === '' && to === '') return undefined;
  if (from === '') {
    const size = Math.min(Number(to), length);
    return size === 0 ? 'unsatisfiable' : { first: length - size, last: length - 1 };
  }
  const first = Number(from);
  const last = to === '' ? length - 1 : Math.min(Number(to), length - 1);
  if (to !== '' && Number(to) < first) return undefined;
  return first >= length ? 'unsatisfiable' : { first, last };
}
