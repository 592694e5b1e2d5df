import { holdsPlainCredential } from '../../domain/credentials/own-credentials.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { percentDecoded } from '../../domain/http/values.ts';
import { type AppError, invalid, OutboundError } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import type { Validators } from '../../store/servers/imports.ts';
import { userAgentOf } from '../../version.ts';

/** Time limit for all requests of one document, including its files. */
export const fetchMs = 20_000;
export const fetchedBytes = 32 * 1024 * 1024;
const mostRedirects = 3;
const longestEtag = 300;
const longestTime = 100;

export type FetchParts = {
  http: HttpClient;
  /** Returns the reason why this deployment may not call a URL; undefined if it may. */
  urlProblem: (url: URL) => string | undefined;
  /** Monotonic ms. */
  clock: () => number;
};

export type WantedDocument = {
  url: string;
  workspaceId: string;
  /** Validators of the known document. The server sends the document only if it has changed. */
  validators?: Validators | undefined;
  /** Sent only to the origin of the URL, not to redirect targets. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Deadline for the response, on the clock of `FetchParts`. */
  end?: number | undefined;
  signal?: AbortSignal | undefined;
};

/** Downloaded document. `body` is undefined if the document has not changed. */
export type FetchedDocument = {
  /** Final URL after redirects. */
  url: string;
  body: Buffer | undefined;
  validators: Validators | undefined;
};

/** Replaces the message of a timeout, which would name only the time that redirects left. */
function whyNot({ reason, message }: OutboundError): string {
  return reason === 'timeout' ? `it did not arrive within ${fetchMs / 1000} seconds, with redirects` : message;
}

const ownCredential =
  'contains an API key or a token of this service, which is never sent to an upstream; remove it, or provide the text of the document';

/** Fetches a document. Each redirect is checked like the first URL. @throws AppError invalid */
export async function fetchDocument(
  { http, urlProblem, clock }: FetchParts,
  wanted: WantedDocument,
): Promise<FetchedDocument> {
  let { url } = wanted;
  const { end = clock() + fetchMs } = wanted;
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    wanted.signal?.throwIfAborted();
    const target = readUrl(url);
    if (!target) throw refused('not a URL; allowed: the https URL of a description');
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
    const found = target.href;
    if (answer.status === 200) return { url: found, body: answer.body, validators: validatorsOf(target, answer) };
    if (answer.status === 304 && known) return { url: found, body: undefined, validators: known };
    url = redirectOf(answer, url);
  }
  throw refused(`the document could not be fetched: more than ${mostRedirects} redirects`);
}

/**
 * Returns true if a URL contains a credential of this service. Only intact credentials count, because URLs contain
 * tokens of other services, some of which look like damaged credentials of this service.
 */
function holdsOurs({ href }: URL): boolean {
  return holdsPlainCredential(href) || holdsPlainCredential(percentDecoded(href).toString('latin1'));
}

/** Registers a cancel function for a signal that is not aborted yet. */
export function goneWith(signal: AbortSignal | undefined): ((cancel: () => void) => void) | undefined {
  return signal && ((cancel) => signal.addEventListener('abort', cancel, { once: true }));
}

function exchangeOf(
  target: URL,
  { workspaceId, signal, url, headers = {} }: WantedDocument,
  known: Validators | undefined,
  timeoutMs: number,
) {
  const conditions = [
    ...(known?.etag === undefined ? [] : ['If-None-Match', known.etag]),
    ...(known?.modified === undefined ? [] : ['If-Modified-Since', known.modified]),
  ];
  const own = readUrl(url)?.origin === target.origin ? headers : {};
  const usual = { Accept: 'application/json, application/yaml, text/yaml, */*;q=0.5', 'User-Agent': userAgentOf() };
  const given = new Set(Object.keys(own).map((name) => name.toLowerCase()));
  const others = Object.entries(usual).filter(([name]) => !given.has(name.toLowerCase()));
  return {
    workspaceId,
    origin: target.origin,
    credentialHash: undefined,
    path: target.pathname + target.search,
    method: 'GET' as const,
    headers: [...others.flat(), ...conditions, ...Object.entries(own).flat()],
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

/** Returns true if a response header can be sent back unchanged. */
function isPlain(value: string | undefined, longest: number): value is string {
  return value !== undefined && value.length <= longest && /^[ -~]+$/.test(value);
}

function redirectOf({ status, headers: { location } }: Answer, url: string): string {
  const isRedirect = status >= 300 && status <= 399 && typeof location === 'string';
  const target = isRedirect ? readUrl(location, url) : undefined;
  const way = status === 401 || status === 403 ? 'provide headers with a credential, or' : 'provide';
  if (!target) throw refused(`the document could not be fetched: HTTP ${status}; ${way} its text as document instead`);
  return target.href;
}

function refused(message: string): AppError {
  return invalid([{ path: 'url', message }], 'The document was not imported');
}
