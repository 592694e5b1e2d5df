import { createHash } from 'node:crypto';
import { readUrl } from '../../domain/http/read-url.ts';
import { LongValue } from '../../domain/json/long-value.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';
import { createPlaces, type Place } from '../../domain/work/places.ts';
import { AppError, invalid, type Problem } from '../../errors.ts';
import type {
  CheckedDocument,
  CheckRequest,
  Importing,
  ImportRequest,
  RuleSource,
} from '../../operations/operation.ts';
import type { ThreadPool } from '../../threads/thread-pool.ts';
import {
  type FetchedDocument,
  type FetchParts,
  fetchDocument,
  fetchMs,
  goneWith,
  type WantedDocument,
} from './fetch-document.ts';
import { importTimes, ownMemory, refusalOfJob } from './threads.ts';

/** Maximum number of concurrent imports. Each holds a document of several megabytes. */
export const mostImportsAtOnce = { ofTenant: 2, ofAll: 8 };
const firmMs = 2000;
const refusedJob = refusalOfJob('the document was not read', 'import a part of it');

type ImportParts = FetchParts & { threads: ThreadPool; rules: RuleSource };

/** Creates the importer of documents, which are fetched by the guarded HTTP client and parsed on a thread. */
export function createImporting(parts: ImportParts): Importing {
  const { threads, rules, clock } = parts;
  const inPlace = createPlaces({
    most: mostImportsAtOnce,
    firmMs,
    clock,
    noRoom: 'other imports are in progress; try again in a few seconds',
    lost: 'the document was not fetched: its host was slow while other imports were waiting; try again',
  });
  const fetched = ({ gone, slowly }: Place, wanted: WantedDocument) =>
    slowly(() => {
      const signal = wanted.signal ? AbortSignal.any([wanted.signal, gone]) : gone;
      return fetchWhole(parts, { ...wanted, signal });
    });
  const documentOf = async (place: Place, { text, url, headers, choices }: Source, workspaceId: string) => {
    if (text !== undefined) return { document: text instanceof LongValue ? text.bytes : text, choices };
    const { body = '', behind } = await fetched(place, { url: url ?? '', headers, workspaceId });
    return { document: body, choices: behind === undefined ? choices : { ...choices, documentUrl: behind } };
  };
  return {
    plan: (request, workspaceId) =>
      inPlace(workspaceId, async (place) => {
        const { report } = request;
        const { document, choices } = await documentOf(place, request, workspaceId);
        const input = { document, choices, report, rules };
        const job = { input, transfer: memoryOf(document), workspaceId, ...importTimes };
        return doneOf(await threads.run({ kind: 'plan-import', ...job }).catch(refusedJob));
      }),
    again: (request, workspaceId) =>
      inPlace(workspaceId, async (place) => {
        const { imported, again } = request;
        const { document, choices } = await documentOf(place, request, workspaceId);
        const input = { document, choices, imported, again, rules };
        const job = { input, transfer: memoryOf(document), workspaceId, ...importTimes };
        return doneOf(await threads.run({ kind: 'import-again', ...job }).catch(refusedJob));
      }),
    check: (request, workspaceId) =>
      inPlace(workspaceId, async (place) => {
        const { url, headers, known, signal } = request;
        const wanted = { url, headers, workspaceId, validators: known.validators, signal };
        const document = await fetched(place, wanted);
        return checkedDocument(parts, document, request, workspaceId);
      }),
  };
}

type Source = Pick<ImportRequest, 'text' | 'url' | 'headers' | 'choices'>;

/** Document with its files. `behind` is the URL that a page named, if the document was found through a page. */
type WholeDocument = FetchedDocument & { behind?: string };

/** Fetches a document, also through a page that shows it, and combines it with the files that it references. */
async function fetchWhole(parts: ImportParts, wanted: WantedDocument): Promise<WholeDocument> {
  const { threads, clock } = parts;
  const { validators: _, headers, ...rest } = wanted;
  const { workspaceId, signal } = wanted;
  const end = clock() + fetchMs;
  // Includes the YAML parser, which startup need not wait for.
  const { followPages, withFiles } = await import('../../operations/imports/description-files.ts');
  const onGone = goneWith(signal);
  const main = await followPages<WholeDocument>(await fetchDocument(parts, { ...wanted, end }), {
    step: async (input) =>
      doneOf(await threads.run({ kind: 'read-page', input, workspaceId, ...importTimes, onGone }).catch(refusedJob)),
    follow: async (url) => {
      const own = readUrl(url)?.origin === readUrl(wanted.url)?.origin ? headers : {};
      return { ...(await fetchDocument(parts, { ...wanted, headers: own, url, end })), behind: url };
    },
  });
  if (!main.body) return main;
  const isMoved = readUrl(main.url)?.origin !== readUrl(wanted.url)?.origin;
  const whole = await withFiles(main.body, main.url, {
    read: async (url) => (await fetchDocument(parts, { ...rest, headers: isMoved ? {} : headers, url, end })).body,
    bundle: async (input) => {
      if (clock() > end)
        throw invalid([{ path: 'url', message: `its files took longer than ${fetchMs / 1000} seconds` }]);
      const job = { kind: 'bundle-description' as const, input, workspaceId, ...importTimes, onGone };
      return doneOf(await threads.run(job).catch(refusedJob));
    },
  });
  // The other files may change while this one does not, so it is always fetched.
  return whole ? { ...main, body: whole, validators: undefined } : main;
}

/** Compares a fetched document on a thread, unless it is known. */
async function checkedDocument(
  { threads, rules }: ImportParts,
  { body, validators, behind }: WholeDocument,
  request: CheckRequest,
  workspaceId: string,
): Promise<CheckedDocument> {
  const { imported, known, signal } = request;
  if (!body) return { documentHash: known.documentHash ?? '', validators };
  const documentHash = await hashOf(body);
  if (documentHash === known.documentHash || documentHash === imported.documentHash)
    return { documentHash, validators };
  const again = { add: [], take: [], offered: 'new' as const };
  const choices = behind === undefined ? request.choices : { ...request.choices, documentUrl: behind };
  const input = { document: body, choices, imported, again, rules };
  signal?.throwIfAborted();
  const onGone = goneWith(signal);
  const job = { kind: 'import-again' as const, input, transfer: memoryOf(body), workspaceId, ...importTimes, onGone };
  const { report } = doneOf(await threads.run(job).catch(refusedJob));
  return { documentHash, validators, report };
}

/**
 * Returns memory to transfer to the thread. A fetched document is transferred as it is, because decoding and copying
 * 32 MB would block the event loop for 60 ms.
 */
function memoryOf(document: string | Uint8Array): ArrayBuffer[] {
  return typeof document === 'string' ? [] : ownMemory(document);
}

const hashedAtOnce = 2 * 1024 * 1024;

/**
 * Returns the SHA-256 in Base64url. Yields to the event loop, because a document of 32 MB takes tens of milliseconds.
 */
async function hashOf(body: Buffer): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < body.length; at += hashedAtOnce) {
    hash.update(body.subarray(at, at + hashedAtOnce));
    await nextTurn();
  }
  return hash.digest('base64url');
}

/** @throws AppError invalid */
function doneOf<Done>(output: { done: Done } | { refused: string; problems: readonly Problem[] }): Done {
  if ('done' in output) return output.done;
  throw new AppError('invalid', output.refused, { problems: output.problems });
}
