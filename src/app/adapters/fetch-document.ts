import { holdsPlainCredential } from '../../domain/credentials/plain-credentials.ts';
import { percentDecoded } from '../../domain/http/percent-encoding.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { type AppError, invalid, OutboundError } from '../../errors.ts';
import type { Answer, HttpClient } from '../../outbound/http-client.ts';
import type { Validators } from '../../store/servers/import-checks.ts';
import { userAgentOf } from '../../version.ts';

/** For all requests of one document. */
const fetchMs = 20_000;
const fetchedBytes = 32 * 1024 * 1024;
const mostRedirects = 3;
const longestEtag = 300;
const longestTime = 100;

export type FetchParts = {
  http: HttpClient;
  /** Why this deployment may not call a URL; undefined if it may. */
  urlProblem: (url: URL) => string | undefined;
  /** Monotonic ms. */
  clock: () => number;
};

export type WantedDocument = {
  url: string;
  workspaceId: string;
  /** Of the document that is known: with them it is sent again only when it has changed. */
  validators?: Validators | undefined;
  signal?: AbortSignal | undefined;
};

/** `body` is missing when the document has not changed. */
export type FetchedDocument = { body: Buffer | undefined; validators: Validators | undefined };

/** After redirects, the message of a timeout would name only the time that they left. */
function whyNot({ reason, message }: OutboundError): string {
  return reason === 'timeout' ? `it did not arrive within ${fetchMs / 1000} seconds, with redirects` : message;
}

const ownCredential =
  'holds an API key or a token of this service, which is never sent to an upstream; leave it out, or give the text of the document';

/** Fetches a document. Each redirect is checked as the first address is, and no credential is sent. @throws AppError invalid */
export async function fetchDocument(
  { http, urlProblem, clock }: FetchParts,
  wanted: WantedDocument,
): Promise<FetchedDocument> {
  let { url } = wanted;
  const end = clock() + fetchMs;
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    wanted.signal?.throwIfAborted();
    const target = readUrl(url);
    if (!target) throw refused('not a URL; allowed: the https address of a description');
    target.hash = '';
    const problem = urlProblem(target);
    if (problem !== undefined) throw refused(problem);
    if (holdsOurs(target)) throw refused(ownCredential);
    const known = wanted.validators?.url === target.href ? wanted.validators : undefined;
    const answer = await http
      .send(exchangeOf(target, wanted, known, Math.max(1, Math.ceil(end - clock()))))
      .catch((error: unknown) => {
        throw error instanceof OutboundError ? refused(`the document could not be fetched: ${whyNot(error)}`) : error;
      });
    if (answer.status === 200) return { body: answer.body, validators: validatorsOf(target, answer) };
    if (answer.status === 304 && known) return { body: undefined, validators: known };
    url = redirectOf(answer, url);
  }
  throw refused(`the document could not be fetched: more than ${mostRedirects} redirects`);
}

/** Only whole credentials count: addresses hold tokens of other services, of which some look like damaged ones of ours. */
function holdsOurs({ href }: URL): boolean {
  return holdsPlainCredential(href) || holdsPlainCredential(percentDecoded(href).toString('latin1'));
}

/** Cancels what it is given when a signal that has not been aborted yet is. */
export function goneWith(signal: AbortSignal | undefined): ((cancel: () => void) => void) | undefined {
  return signal && ((cancel) => signal.addEventListener('abort', cancel, { once: true }));
}

function exchangeOf(
  target: URL,
  { workspaceId, signal }: WantedDocument,
  known: Validators | undefined,
  timeoutMs: number,
) {
  const conditions = [
    ...(known?.etag === undefined ? [] : ['If-None-Match', known.etag]),
    ...(known?.modified === undefined ? [] : ['If-Modified-Since', known.modified]),
  ];
  const accept = 'application/json, application/yaml, text/yaml, */*;q=0.5';
  return {
    workspaceId,
    origin: target.origin,
    credentialHash: undefined,
    path: target.pathname + target.search,
    method: 'GET' as const,
    headers: ['Accept', accept, 'User-Agent', userAgentOf(), ...conditions],
    body: undefined,
    timeoutMs,
    limitBytes: fetchedBytes,
    onGone: goneWith(signal),
  };
}

function validatorsOf({ href }: URL, { headers }: Answer): Validators | undefined {
  const { etag, 'last-modified': modified } = headers;
  const validators = {
    url: href,
    ...(isPlain(etag, longestEtag) && { etag }),
    ...(isPlain(modified, longestTime) && { modified }),
  };
  return Object.keys(validators).length > 1 ? validators : undefined;
}

/** Whether a header of the answer can be sent back as it is. */
function isPlain(value: string | undefined, longest: number): value is string {
  return value !== undefined && value.length <= longest && /^[ -~]+$/.test(value);
}

function redirectOf({ status, headers: { location } }: Answer, url: string): string {
  const isRedirect = status >= 300 && status <= 399 && typeof location === 'string';
  const target = isRedirect ? readUrl(location, url) : undefined;
  if (!target) throw refused(`the document could not be fetched: HTTP ${status}; give its text as document instead`);
  return target.href;
}

function refused(message: string): AppError {
  return invalid([{ path: 'url', message }], 'The document was not imported');
}
