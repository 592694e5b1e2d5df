import { AppError, invalid, JobError, OutboundError, type Problem } from '../../errors.ts';
import type { Importing, ImportRequest } from '../../operations/imports/importing.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import type { ThreadPool } from '../../threads/thread-pool.ts';
import { userAgentOf } from '../../version.ts';

/** Imports under way: each holds a document of megabytes. */
const most = { ofWorkspace: 2, ofAll: 4 };
const limitMs = 30_000;
const fetchMs = 20_000;
const fetchedBytes = 32 * 1024 * 1024;
const mostRedirects = 3;

type ImportParts = {
  threads: ThreadPool;
  http: HttpClient;
  /** Why this deployment may not call a URL; undefined if it may. */
  urlProblem: (url: URL) => string | undefined;
};

/** Imports of documents: fetched by the guarded client, read on a thread. */
export function createImporting(parts: ImportParts): Importing {
  const { threads } = parts;
  const inTurn = createTurns();
  const documentOf = async ({ text, url }: Pick<ImportRequest, 'text' | 'url'>, workspaceId: string) =>
    text ?? (await fetchDocument(url ?? '', { ...parts, workspaceId }));
  return {
    plan: (request, workspaceId) =>
      inTurn(workspaceId, async () => {
        const { choices, report } = request;
        const input = { text: await documentOf(request, workspaceId), choices, report };
        return doneOf(await threads.run({ kind: 'plan-import', input, workspaceId, limitMs }).catch(refusedJob));
      }),
    again: (request, workspaceId) =>
      inTurn(workspaceId, async () => {
        const { choices, imported, again } = request;
        const input = { text: await documentOf(request, workspaceId), choices, imported, again };
        return doneOf(await threads.run({ kind: 'import-again', input, workspaceId, limitMs }).catch(refusedJob));
      }),
  };
}

/** Bounds the imports under way. @throws AppError tooMany */
function createTurns() {
  const running = new Map<string, number>();
  let all = 0;
  return async <Result>(workspaceId: string, work: () => Promise<Result>): Promise<Result> => {
    const ofWorkspace = running.get(workspaceId) ?? 0;
    if (all >= most.ofAll || ofWorkspace >= most.ofWorkspace) {
      throw new AppError('tooMany', 'other imports are under way; try again in a few seconds', { retryAfterS: 5 });
    }
    all++;
    running.set(workspaceId, ofWorkspace + 1);
    try {
      return await work();
    } finally {
      all--;
      const left = (running.get(workspaceId) ?? 1) - 1;
      if (left > 0) running.set(workspaceId, left);
      else running.delete(workspaceId);
    }
  };
}

/** @throws AppError invalid */
function doneOf<Done>(output: { done: Done } | { refused: string; problems: readonly Problem[] }): Done {
  if ('done' in output) return output.done;
  throw new AppError('invalid', output.refused, { problems: output.problems });
}

function refusedJob(error: unknown): never {
  if (!(error instanceof JobError) || error.reason === 'failed') throw error;
  if (error.reason === 'refused') {
    throw new AppError('tooMany', `the document was not read: ${error.message}; try again`, { retryAfterS: 5 });
  }
  throw new AppError('tooLarge', `the document was not read: ${error.message}; import a part of it`);
}

type FetchParts = Pick<ImportParts, 'http' | 'urlProblem'> & { workspaceId: string };

/** Each redirect is checked as the first address is. No credential is sent. @throws AppError invalid */
async function fetchDocument(address: string, { http, urlProblem, workspaceId }: FetchParts): Promise<string> {
  let url = address;
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    if (!URL.canParse(url)) throw refused('not a URL; allowed: the https address of a description');
    const target = new URL(url);
    target.hash = '';
    const problem = urlProblem(target);
    if (problem !== undefined) throw refused(problem);
    const { status, headers, body } = await http
      .send({
        workspaceId,
        origin: target.origin,
        credentialHash: undefined,
        path: target.pathname + target.search,
        method: 'GET',
        headers: ['Accept', 'application/json, application/yaml, text/yaml, */*;q=0.5', 'User-Agent', userAgentOf()],
        body: undefined,
        timeoutMs: fetchMs,
        limitBytes: fetchedBytes,
      })
      .catch((error: unknown) => {
        throw error instanceof OutboundError ? refused(`the document could not be fetched: ${error.message}`) : error;
      });
    if (status === 200) return body.toString('utf8');
    if (status < 300 || status > 399 || typeof headers.location !== 'string' || !URL.canParse(headers.location, url)) {
      throw refused(`the document could not be fetched: HTTP ${status}; give its text as document instead`);
    }
    url = new URL(headers.location, url).href;
  }
  throw refused(`the document could not be fetched: more than ${mostRedirects} redirects`);
}

function refused(message: string): AppError {
  return invalid([{ path: 'url', message }], 'The document was not imported');
}
