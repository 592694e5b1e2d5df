import { containsPlainCredential } from '@toolhost/credentials/own-credentials';
import { type AppError, invalidInputError, OutboundError } from '@toolhost/errors/errors';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import type { HttpClient } from '@toolhost/safe-http/http-client';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { percentDecode } from '@toolhost/tool-config/http/values';
import type { Validators } from '../../store/servers/imports.ts';
import { formatUserAgent } from '../../version.ts';

/** Time limit for all requests of one document, including its files. */
export const fetchTimeoutMs = 20_000;
export const maxDocumentBytes = 32 * 1024 * 1024;
const maxRedirects = 3;
/** Maximum lengths of stored validators, in characters. */
const maxEtagLength = 300;
const maxTimeLength = 100;

export type FetchDeps = {
  http: HttpClient;
  /** Returns the reason why this deployment may not call a URL; undefined if it may. */
  findUrlProblem: (url: URL) => string | undefined;
  /** Monotonic ms. */
  clock: () => number;
};

export type DocumentRequest = {
  url: string;
  workspaceId: string;
  /** Validators of the known document. The server sends the document only if it has changed. */
  validators?: Validators | undefined;
  /** Sent only to the origin of the URL, not to redirect targets. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Deadline for the response, on the clock of `FetchDeps`. */
  deadline?: number | undefined;
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
function getFailureReason({ reason, message }: OutboundError): string {
  return reason === 'timeout' ? `it did not arrive within ${fetchTimeoutMs / 1000} seconds, with redirects` : message;
}

const ownCredentialMessage =
  'contains an API key or a token of this service, which is never sent to an upstream; remove it, or provide the text of the document';

/** Fetches a document. Each redirect is checked like the first URL. @throws AppError invalid */
export async function fetchDocument(
  { http, findUrlProblem, clock }: FetchDeps,
  request: DocumentRequest,
): Promise<FetchedDocument> {
  let { url } = request;
  const { deadline = clock() + fetchTimeoutMs } = request;
  for (let redirects = 0; redirects <= maxRedirects; redirects++) {
    request.signal?.throwIfAborted();
    const target = parseUrl(url);
    if (!target) throw rejectedError('not a URL; allowed: the https URL of a description');
    target.hash = '';
    const problem = findUrlProblem(target);
    if (problem !== undefined) throw rejectedError(problem);
    if (containsOwnCredential(target)) throw rejectedError(ownCredentialMessage);
    const knownValidators = request.validators?.url === target.href ? request.validators : undefined;
    const response = await http
      .send(toExchange(target, request, knownValidators, Math.max(1, Math.ceil(deadline - clock()))))
      .catch((error: unknown) => {
        throw error instanceof OutboundError
          ? rejectedError(`the document could not be fetched: ${getFailureReason(error)}`)
          : error;
      });
    const finalUrl = target.href;
    if (response.status === 200)
      return { url: finalUrl, body: response.body, validators: toValidators(target, response) };
    if (response.status === 304 && knownValidators)
      return { url: finalUrl, body: undefined, validators: knownValidators };
    url = getRedirect(response, url);
  }
  throw rejectedError(`the document could not be fetched: more than ${maxRedirects} redirects`);
}

/**
 * Returns true if a URL contains a credential of this service. Only intact credentials count, because URLs contain
 * tokens of other services, some of which look like damaged credentials of this service.
 */
function containsOwnCredential({ href }: URL): boolean {
  return containsPlainCredential(href) || containsPlainCredential(percentDecode(href).toString('latin1'));
}

/** Returns a function that registers work for the time when the signal aborts. The signal must not be aborted yet. */
export function toRegisterCancel(signal: AbortSignal | undefined): ((cancel: () => void) => void) | undefined {
  return signal && ((cancel) => signal.addEventListener('abort', cancel, { once: true }));
}

function toExchange(
  target: URL,
  { workspaceId, signal, url, headers = {} }: DocumentRequest,
  validators: Validators | undefined,
  timeoutMs: number,
) {
  const conditions = [
    ...(validators?.etag === undefined ? [] : ['If-None-Match', validators.etag]),
    ...(validators?.modified === undefined ? [] : ['If-Modified-Since', validators.modified]),
  ];
  const ownHeaders = parseUrl(url)?.origin === target.origin ? headers : {};
  const defaultHeaders = {
    Accept: 'application/json, application/yaml, text/yaml, */*;q=0.5',
    'User-Agent': formatUserAgent(),
  };
  const ownNames = new Set(Object.keys(ownHeaders).map((name) => name.toLowerCase()));
  const otherHeaders = Object.entries(defaultHeaders).filter(([name]) => !ownNames.has(name.toLowerCase()));
  return {
    workspaceId,
    origin: target.origin,
    credentialHash: undefined,
    path: target.pathname + target.search,
    method: 'GET' as const,
    headers: [...otherHeaders.flat(), ...conditions, ...Object.entries(ownHeaders).flat()],
    body: undefined,
    timeoutMs,
    limitBytes: maxDocumentBytes,
    registerCancel: toRegisterCancel(signal),
  };
}

function toValidators({ href }: URL, { headers }: UpstreamResponse): Validators | undefined {
  const { etag, 'last-modified': modified } = headers;
  const validators = {
    url: href,
    ...(isReusable(etag, maxEtagLength) && { etag }),
    ...(isReusable(modified, maxTimeLength) && { modified }),
  };
  return Object.keys(validators).length > 1 ? validators : undefined;
}

/** Returns true if a response header is short, visible ASCII, so that it can be sent back unchanged. */
function isReusable(value: string | undefined, maxLength: number): value is string {
  return value !== undefined && value.length <= maxLength && /^[ -~]+$/.test(value);
}

function getRedirect({ status, headers: { location } }: UpstreamResponse, url: string): string {
  const isRedirect = status >= 300 && status <= 399 && typeof location === 'string';
  const target = isRedirect ? parseUrl(location, url) : undefined;
  const advice = status === 401 || status === 403 ? 'provide headers with a credential, or' : 'provide';
  if (!target)
    throw rejectedError(`the document could not be fetched: HTTP ${status}; ${advice} its text as document instead`);
  return target.href;
}

function rejectedError(message: string): AppError {
  return invalidInputError([{ path: 'url', message }], 'The document was not imported');
}
