import type { ServerResponse } from 'node:http';
import type { ClientRequest, QueryCharge, UnverifiedCallerLimits } from '@toolhost/credentials/client-request';
import { AppError, Unauthenticated } from '@toolhost/errors/errors';
import { type MaybePromise, yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { type CallerKey, createPreemptibleSlots, type PreemptibleSlot } from '@toolhost/limits/preemptible-slots';
import { setRunningTimeout } from '@toolhost/limits/running-time';
import { fileChunkBytes, formatContentDisposition } from '@toolhost/tool-config/file-names';
import type { Incoming } from '../../http/incoming.ts';
import { acceptsPage } from '../../http/page.ts';
import { createErrorResponse } from '../../http/problem.ts';
import { splitAddress } from '../../routes.ts';
import type { FileRow } from '../../store/calls/files.ts';
import { type Caller, type CallerOptions, toCallerDigest } from '../callers/caller.ts';
import { resolveCaller } from '../callers/resolve-caller.ts';
import { getServerOrView, type HostedServer } from '../hosted/hosted-server.ts';
import type { FileUrls } from './attach-files.ts';
import type { FileStore } from './stored-files.ts';

export type FileListenerDeps = {
  files: FileStore;
  fileUrls: FileUrls;
  findServer: (slug: string, chargeQuery: QueryCharge) => MaybePromise<HostedServer | undefined>;
  callers: CallerOptions;
  unverifiedCallers: UnverifiedCallerLimits;
  onUnexpected: (error: unknown, requestId: string) => void;
  /** Called after every response with its status. The status is 0 if the client disconnected first. */
  onResponse: (status: number) => void;
  /** Time that a client may take to read a chunk, in ms. */
  slowReaderMs: number;
  /** Returns monotonic ms, excluding time in which this process was paused. */
  runningClock: () => number;
};

/** Maximum number of concurrent downloads of a tenant, and of a process. Each keeps up to two chunks in memory. */
export const maxDownloads = { perTenant: 20, total: 100 };
/** Time for which a download keeps its slot before a waiting one may take it, in ms. */
const minHoldMs = 2000;

/**
 * Serves files of responses at `GET /files/{id}`. The URL is sufficient, because a browser that opens it has no
 * credential. A request that has a credential must come from the caller that received the URL.
 */
export function createFileListener(deps: FileListenerDeps) {
  const runInSlot = createPreemptibleSlots({
    limits: maxDownloads,
    minHoldMs,
    clock: deps.runningClock,
    noSlotMessage: 'too many files are being downloaded; retry in a few seconds',
    evictedMessage: 'the client read the file slowly while other downloads were waiting; request the remaining bytes',
  });
  return async function serveFile(incoming: Incoming, id: string): Promise<void> {
    const { request, response } = incoming;
    try {
      if (request.method !== 'GET' && request.method !== 'HEAD')
        throw new AppError('methodNotAllowed', 'use GET or HEAD to download a file');
      const authorizedFile = await findAuthorizedFile(incoming, id, deps);
      if (!authorizedFile) {
        deps.files.count('missing');
        throw new AppError('notFound', 'there is no file at this URL; a file URL expires after ten minutes');
      }
      const { file, callerKey } = authorizedFile;
      await runInSlot(file.workspaceId, (slot) => sendFile(incoming, file, slot, deps), callerKey);
    } catch (error) {
      await sendError(incoming, error, deps);
    } finally {
      deps.onResponse(response.headersSent ? response.statusCode : 0);
    }
  };
}

/** Returns the file that this request may read, and the key that the request is charged to. */
async function findAuthorizedFile({ request, serverOrigin }: Incoming, id: string, deps: FileListenerDeps) {
  const chargeQuery = deps.unverifiedCallers.getQueryCharge(request);
  const file = await deps.files.find(id, chargeQuery);
  if (!file) return undefined;
  const { slug, view } = splitAddress(file.address);
  if (serverOrigin !== undefined && !deps.fileUrls.isOwnOrigin(serverOrigin, slug)) return undefined;
  const server = getServerOrView(await deps.findServer(slug, chargeQuery), view);
  if (server?.id !== file.serverId) return undefined;
  const callerKey = await authorizeReader(server, file, request, { chargeQuery, callers: deps.callers });
  return callerKey && { file, callerKey };
}

type ReaderDeps = { chargeQuery: QueryCharge; callers: CallerOptions };

/** Returns the key that the reader is charged to, or undefined if it may not read the file. */
async function authorizeReader(
  server: HostedServer,
  file: FileRow,
  request: ClientRequest,
  { chargeQuery, callers }: ReaderDeps,
): Promise<CallerKey | undefined> {
  try {
    const caller = await resolveCaller(server, request, callers, chargeQuery);
    return toCallerDigest(caller) === file.caller ? toCallerKey(caller) : undefined;
  } catch (error) {
    if (!(error instanceof Unauthenticated)) throw error;
    const hasNoCredential = error.refusal === 'missing' && request.headers.authorization === undefined;
    return hasNoCredential ? toNetworkKey(callers.getNetwork(request)) : undefined;
  }
}

/**
 * Returns the key that a caller's work and memory are charged to: its own, or its network's, because all callers of a
 * network may be one person.
 */
function toCallerKey({ network, id = '' }: Caller): CallerKey {
  return network === undefined ? { name: id, isUnverified: false } : toNetworkKey(network);
}

/** Returns the key of a caller without a verified credential. */
function toNetworkKey(network: string): CallerKey {
  return { name: network, isUnverified: true };
}

const fixedHeaders = [
  ...['Accept-Ranges', 'bytes'],
  // The browser saves the file. If it ever displays the file, it does so without scripts and without our origin.
  ...['Content-Security-Policy', "default-src 'none'; sandbox"],
  ...['Cross-Origin-Resource-Policy', 'same-origin'],
  ...['Referrer-Policy', 'no-referrer'],
];

async function sendFile(
  { request, response, headers }: Incoming,
  file: FileRow,
  slot: PreemptibleSlot,
  deps: FileListenerDeps,
) {
  const { bytes: length, head } = file;
  const tag = `"${file.id}"`;
  const isCurrent = request.headers['if-range'] === undefined || request.headers['if-range'] === tag;
  const range = request.method === 'GET' && isCurrent ? parseRange(request.headers.range, length) : undefined;
  const baseHeaders = [...headers, ...fixedHeaders];
  if (range === 'unsatisfiable') {
    response.writeHead(416, [...baseHeaders, 'Content-Range', `bytes */${length}`, 'Content-Length', '0']).end();
    return;
  }
  const { first, last } = range ?? { first: 0, last: length - 1 };
  const rangeHeaders = range ? ['Content-Range', `bytes ${first}-${last}/${length}`] : [];
  response.writeHead(range ? 206 : 200, [
    ...baseHeaders,
    ...['Content-Type', head.mediaType, 'Content-Disposition', formatContentDisposition(head.name), 'ETag', tag],
    ...['Content-Length', String(last - first + 1), ...rangeHeaders],
  ]);
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  const readChunk = (number: number) => deps.files.findChunk(file, number);
  const waitFor: WaitFor = (event) => slot.runPreemptible(() => waitForEvent(response, event, deps.slowReaderMs));
  slot.evicted.addEventListener('abort', () => response.destroy());
  let isComplete = false;
  try {
    isComplete = await sendBytes(response, { first, last }, readChunk, waitFor);
  } finally {
    deps.files.count(isComplete ? 'served' : 'cut');
  }
}

/**
 * Sends an error as a problem document, or as a page for browsers. Closes the connection if bytes were already sent.
 */
async function sendError(incoming: Incoming, caught: unknown, deps: FileListenerDeps) {
  const { request, response, headers, requestId } = incoming;
  if (response.headersSent) {
    // Database failures are logged where they occur.
    if (!(caught instanceof AppError)) deps.onUnexpected(caught, requestId);
    response.destroy();
    return;
  }
  const status = caught instanceof AppError ? caught.status : 0;
  const error = deps.unverifiedCallers.recordRefusal(request, status) ?? caught;
  const isBrowserRequest = acceptsPage(request.method, request.headers.accept);
  const problem = createErrorResponse(
    error,
    requestId,
    deps.onUnexpected,
    isBrowserRequest ? incoming.homeUrl : undefined,
  );
  const allow = problem.status === 405 ? ['Allow', 'GET, HEAD'] : [];
  sendText(response, problem.status, [...headers, ...[...problem.headers].flat(), ...allow], await problem.text());
}

function sendText(response: ServerResponse, status: number, headers: string[], text: string): void {
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
  readChunk: (number: number) => Promise<Buffer | undefined>,
  waitFor: WaitFor,
): Promise<boolean> {
  const end = last + 1;
  for (let offset = first; offset < end; ) {
    const start = offset - (offset % fileChunkBytes);
    const bytes = await readChunk(start / fileChunkBytes);
    if (!bytes || response.destroyed) {
      response.destroy();
      return false;
    }
    response.write(bytes.subarray(offset - start, end - start));
    offset = start + fileChunkBytes;
    // Decrypting a chunk takes up to a millisecond of the event loop.
    await yieldToEventLoop();
    if (response.writableNeedDrain && !(await waitFor('drain'))) return false;
  }
  response.end();
  return response.writableFinished || waitFor('finish');
}

/** Resolves with false if the connection closes before the event occurs. Closes the connection after `timeoutMs`. */
function waitForEvent(response: ServerResponse, event: 'drain' | 'finish', timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (hasHappened: boolean) => {
      cancel();
      response.off(event, onEvent);
      response.off('close', onClose);
      resolve(hasHappened);
    };
    const onEvent = () => settle(true);
    const onClose = () => settle(false);
    const cancel = setRunningTimeout(timeoutMs, () => response.destroy());
    response.on(event, onEvent);
    response.on('close', onClose);
    if (response.destroyed) settle(false);
  });
}

/** The positions of the first and the last byte of a range. */
type ByteRange = { first: number; last: number };

/** Matches `bytes=0-499`, `bytes=500-`, and `bytes=-500`. */
const singleRange = /^bytes=(\d{0,15})-(\d{0,15})$/;

/**
 * Parses the single range of a `Range` header (RFC 9110, 14.2), for a body of `length` bytes, which is not empty.
 * Returns undefined for the complete body: without the header, and for several ranges or another unit, which a server
 * may ignore.
 */
function parseRange(header: string | undefined, length: number): ByteRange | 'unsatisfiable' | undefined {
  const [, firstText = '', lastText = ''] = singleRange.exec(header ?? '') ?? [];
  if (firstText === '' && lastText === '') return undefined;
  if (firstText === '') {
    const size = Math.min(Number(lastText), length);
    return size === 0 ? 'unsatisfiable' : { first: length - size, last: length - 1 };
  }
  const first = Number(firstText);
  const last = lastText === '' ? length - 1 : Math.min(Number(lastText), length - 1);
  if (lastText !== '' && Number(lastText) < first) return undefined;
  return first >= length ? 'unsatisfiable' : { first, last };
}
