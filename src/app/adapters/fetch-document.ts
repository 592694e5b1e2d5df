import { holdsPlainCredential } from '../../domain/credentials/own-credentials.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { percentDecoded } from '../../domain/http/values.ts';
import { type AppError, invalid, OutboundError } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import type { Validators } from '../../store/servers/imports.ts';
import { userAgentOf } from '../../version.ts';

/** For all requests of one document, its files included. */
export const fetchMs = 20_000;
export const fetchedBytes = 32 * 1024 * 1024;
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
  /** Sent only to the origin of the address, not to where it redirects to. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** When the request must have been answered, on the clock of `FetchParts`. */
  end?: number | undefined;
  signal?: AbortSignal | undefined;
};

/** `body` is missing when the document has not changed. */
export type FetchedDocument = {
  /** Where it was found, after redirects. */
  url: string;
  body: Buffer | undefined;
  validators: Validators | undefined;
};

/** After redirects, the message of a timeout would name only the time that they left. */
function whyNot({ reason, message }: OutboundError): string {
  return reason === 'timeout' ? `it did not arrive within ${fetchMs / 1000} seconds, with redirects` : message;
}

const ownCredential =
  'holds an API key or a token of this service, which is never sent to an upstream; leave it out, or give the text of the document';

/** Fetches a document. Each redirect is checked as the first address is. @throws AppError invalid */
export async function fetchDocument(
  { http, urlProblem, clock }: FetchParts,
  wanted: WantedDocument,
): Promise<FetchedDocument> {
  let { url } = wanted;
  const { end = clock() + fetchMs } = wanted;
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
    const found = target.href;
    if (answer.status === 200) return { url: found, body: answer.body, validators: validatorsOf(target, answer) };
    if (answer.status === 304 && known) return { url: found, body: undefined, validators: known };
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

/** Whether a header of the answer can be sent back as it is. */
function isPlain(value: string | undefined, longest: number): value is string {
  return value !== undefined && value.length <= longest && /^[ -~]+$/.test(value);
}

function redirectOf({ status, headers: { location } }: Answer, url: string): string {
  const isRedirect = status >= 300 && status <= 399 && typeof location === 'string';
  const target = isRedirect ? readUrl(location, url) : undefined;
  const way = status === 401 || status === 403 ? 'give headers with a credential, or' : 'give';
  if (!target) throw refused(`the document could not be fetched: HTTP ${status}; ${way} its text as document instead`);
  return target.href;
}

function refused(message: string): AppError {
  return invalid([{ path: 'url', message }], 'The document was not imported');
}
