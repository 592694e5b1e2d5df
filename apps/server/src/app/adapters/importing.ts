import { createHash } from 'node:crypto';
import { AppError, invalidInputError, type Problem } from '@toolhost/errors/errors';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { LargeValue } from '@toolhost/json/large-value';
import { createPreemptibleSlots, type PreemptibleSlot } from '@toolhost/limits/preemptible-slots';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import type { CheckedDocument, CheckRequest, Importer, ImportRequest, RuleSource } from '../../operations/operation.ts';
import type { ThreadPool } from '../../threads/thread-pool.ts';
import {
  type DocumentRequest,
  type FetchDeps,
  type FetchedDocument,
  fetchDocument,
  fetchTimeoutMs,
  toRegisterCancel,
} from './fetch-document.ts';
import { createThrowJobError, importTimes, toTransferable } from './threads.ts';

/** Maximum number of concurrent imports. Each holds a document of several megabytes. */
export const maxConcurrentImports = { perTenant: 2, total: 8 };
/** Time for which an import keeps its slot even if others wait, in ms. */
const minHoldMs = 2000;
const throwJobError = createThrowJobError('the document was not read', 'import a part of it');

type ImportDeps = FetchDeps & { threads: ThreadPool; rules: RuleSource };

/** Creates the importer of documents, which are fetched by the guarded HTTP client and parsed on a thread. */
export function createImporting(deps: ImportDeps): Importer {
  const { threads, rules, clock } = deps;
  const inSlot = createPreemptibleSlots({
    limits: maxConcurrentImports,
    minHoldMs,
    clock,
    noSlotMessage: 'other imports are in progress; try again in a few seconds',
    evictedMessage: 'the document was not fetched: its host was slow while other imports were waiting; try again',
  });
  const fetchInSlot = ({ evicted, runPreemptible }: PreemptibleSlot, request: DocumentRequest) =>
    runPreemptible(() => {
      const signal = request.signal ? AbortSignal.any([request.signal, evicted]) : evicted;
      return fetchWithFiles(deps, { ...request, signal });
    });
  const getDocument = async (
    slot: PreemptibleSlot,
    { text, url, headers, choices }: DocumentSource,
    workspaceId: string,
  ) => {
    if (text !== undefined) return { document: text instanceof LargeValue ? text.bytes : text, choices };
    const { body = '', foundUrl } = await fetchInSlot(slot, { url: url ?? '', headers, workspaceId });
    return { document: body, choices: foundUrl === undefined ? choices : { ...choices, documentUrl: foundUrl } };
  };
  return {
    plan: (request, workspaceId) =>
      inSlot(workspaceId, async (slot) => {
        const { report } = request;
        const { document, choices } = await getDocument(slot, request, workspaceId);
        const input = { document, choices, report, rules };
        const transfer = toTransferList(document);
        const job = { kind: 'plan-import' as const, input, transfer, ownerId: workspaceId, times: importTimes };
        return unwrap(await threads.run(job).catch(throwJobError));
      }),
    reimport: (request, workspaceId) =>
      inSlot(workspaceId, async (slot) => {
        const { imported, reimport } = request;
        const { document, choices } = await getDocument(slot, request, workspaceId);
        const input = { document, choices, imported, reimport, rules };
        const transfer = toTransferList(document);
        const job = { kind: 'reimport' as const, input, transfer, ownerId: workspaceId, times: importTimes };
        return unwrap(await threads.run(job).catch(throwJobError));
      }),
    check: (request, workspaceId) =>
      inSlot(workspaceId, async (slot) => {
        const { url, headers, lastKnown, signal } = request;
        const documentRequest = { url, headers, workspaceId, validators: lastKnown.validators, signal };
        const document = await fetchInSlot(slot, documentRequest);
        return compareDocument(deps, document, request, workspaceId);
      }),
  };
}

type DocumentSource = Pick<ImportRequest, 'text' | 'url' | 'headers' | 'choices'>;

/** Document with its files. `foundUrl` is the URL that a page named, if the document was found through a page. */
type CombinedDocument = FetchedDocument & { foundUrl?: string };

/** Fetches a document, also through a page that shows it, and combines it with the files that it references. */
async function fetchWithFiles(deps: ImportDeps, request: DocumentRequest): Promise<CombinedDocument> {
  const { threads, clock } = deps;
  const { validators: _, headers, ...withoutHeaders } = request;
  const { workspaceId, signal } = request;
  const deadline = clock() + fetchTimeoutMs;
  // Includes the YAML parser, which startup need not wait for.
  const { followPages, bundleFiles } = await import('../../operations/imports/description-files.ts');
  const registerCancel = toRegisterCancel(signal);
  const main = await followPages<CombinedDocument>(await fetchDocument(deps, { ...request, deadline }), {
    examine: async (input) =>
      unwrap(
        await threads
          .run({ kind: 'read-page', input, ownerId: workspaceId, times: importTimes, registerCancel })
          .catch(throwJobError),
      ),
    follow: async (url) => {
      const ownHeaders = parseUrl(url)?.origin === parseUrl(request.url)?.origin ? headers : {};
      return { ...(await fetchDocument(deps, { ...request, headers: ownHeaders, url, deadline })), foundUrl: url };
    },
  });
  if (!main.body) return main;
  const wasRedirected = parseUrl(main.url)?.origin !== parseUrl(request.url)?.origin;
  const combined = await bundleFiles(main.body, main.url, {
    readFile: async (url) =>
      (await fetchDocument(deps, { ...withoutHeaders, headers: wasRedirected ? {} : headers, url, deadline })).body,
    bundle: async (input) => {
      if (clock() > deadline)
        throw invalidInputError([
          { path: 'url', message: `its files took longer than ${fetchTimeoutMs / 1000} seconds` },
        ]);
      const job = {
        kind: 'bundle-description' as const,
        input,
        ownerId: workspaceId,
        times: importTimes,
        registerCancel,
      };
      return unwrap(await threads.run(job).catch(throwJobError));
    },
  });
  // Without validators, the next check fetches all files, because one may change while the main document does not.
  return combined ? { ...main, body: combined, validators: undefined } : main;
}

/** Compares a fetched document on a thread, unless it is known. */
async function compareDocument(
  { threads, rules }: ImportDeps,
  { body, validators, foundUrl }: CombinedDocument,
  request: CheckRequest,
  workspaceId: string,
): Promise<CheckedDocument> {
  const { imported, lastKnown, signal } = request;
  if (!body) return { documentHash: lastKnown.documentHash ?? '', validators };
  const documentHash = await hashInChunks(body);
  if (documentHash === lastKnown.documentHash || documentHash === imported.documentHash)
    return { documentHash, validators };
  const selection = { add: [], take: [], offered: 'new' as const };
  const choices = foundUrl === undefined ? request.choices : { ...request.choices, documentUrl: foundUrl };
  const input = { document: body, choices, imported, reimport: selection, rules };
  signal?.throwIfAborted();
  const registerCancel = toRegisterCancel(signal);
  const job = {
    kind: 'reimport' as const,
    input,
    transfer: toTransferList(body),
    ownerId: workspaceId,
    times: importTimes,
    registerCancel,
  };
  const { report } = unwrap(await threads.run(job).catch(throwJobError));
  return { documentHash, validators, report };
}

/**
 * Returns memory to transfer to the thread. A fetched document is transferred as it is, because decoding and copying
 * 32 MB would block the event loop for 60 ms.
 */
function toTransferList(document: string | Uint8Array): ArrayBuffer[] {
  return typeof document === 'string' ? [] : toTransferable(document);
}

const bytesPerChunk = 2 * 1024 * 1024;

/** Returns the SHA-256 in Base64url. Yields to the event loop, because 32 MB take tens of milliseconds. */
async function hashInChunks(body: Buffer): Promise<string> {
  const hash = createHash('sha256');
  for (let offset = 0; offset < body.length; offset += bytesPerChunk) {
    hash.update(body.subarray(offset, offset + bytesPerChunk));
    await yieldToEventLoop();
  }
  return hash.digest('base64url');
}

/** @throws AppError invalid */
function unwrap<Result>(output: { done: Result } | { refused: string; problems: readonly Problem[] }): Result {
  if ('done' in output) return output.done;
  throw new AppError('invalid', output.refused, { problems: output.problems });
}
