import { Redactor, redact } from '@toolhost/credentials/redactor';
import { OutboundError, ToolFailure } from '@toolhost/errors/errors';
import { getRunningTimeMs, getStoppedMs } from '@toolhost/limits/running-time';
import type { UpstreamResponse } from '@toolhost/safe-http/exchange';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { decodeHeaderText, formatRedirectTarget } from '../response/response-head.ts';
import type { Call, CallRequest } from './call.ts';
import { type RedirectHop, type SendDeps, send } from './send-request.ts';

export const maxRedirects = 3;
/** Statuses that redirect the same request to another URL (RFC 9110, 15.4). */
const redirectStatuses = new Set([301, 302, 303, 307, 308]);
/** Headers that may also be sent to another origin. */
const safeHeaders = new Set(['accept', 'user-agent']);

export type RedirectDeps = SendDeps & {
  /** Returns the reason why this deployment may not call a URL, or undefined if it may. */
  urlProblem: (url: URL) => string | undefined;
};

/**
 * Follows the redirects of a GET or HEAD, within the tool's timeout. Each target must satisfy the rules for configured
 * URLs and the address guard. After a redirect has left the tool's origin, no further request carries a credential,
 * a header of the tool, or trace context.
 * @throws ToolFailure redirect, blocked
 * @throws OutboundError
 */
export async function followRedirects(
  call: Call,
  firstResponse: UpstreamResponse,
  deps: RedirectDeps,
): Promise<UpstreamResponse> {
  if (!redirectStatuses.has(firstResponse.status)) return firstResponse;
  const sentClock = call.sentClock as number;
  const elapsedMs = performance.now() - sentClock;
  // Time during which this process was stopped does not count.
  const deadline = getRunningTimeMs() + call.tool.timeoutMs - elapsedMs + getStoppedMs(elapsedMs);
  try {
    return await followToEnd(call, firstResponse, deadline, deps);
  } finally {
    // The time of the redirects counts as upstream time.
    call.upstreamMs = performance.now() - sentClock;
  }
}

async function followToEnd(
  call: Call,
  firstResponse: UpstreamResponse,
  deadline: number,
  deps: RedirectDeps,
): Promise<UpstreamResponse> {
  const { request, credentialHash } = call.request as CallRequest;
  const chain = new RedirectChain(call, new URL(request.origin + request.path));
  if (request.body !== undefined)
    throw chain.createRefusal(firstResponse, 'redirect', 'the request has a body, which is sent only once');
  let response = firstResponse;
  while (redirectStatuses.has(response.status)) {
    const target = chain.next(response, deps.urlProblem);
    const { isOnToolOrigin } = chain;
    const headers = isOnToolOrigin ? request.headers : getSafeHeaders(request.headers, call);
    const redirectRequest = {
      method: request.method,
      origin: target.origin,
      path: target.pathname + target.search,
      headers,
      body: undefined,
    };
    const callRequest = { request: redirectRequest, credentialHash: isOnToolOrigin ? credentialHash : undefined };
    response = await sendRedirected(call, callRequest, deps, {
      isCrossOrigin: !isOnToolOrigin,
      timeoutMs: deadline - getRunningTimeMs(),
    });
    call.response = response;
  }
  return response;
}

/** The URLs that one call has requested. */
class RedirectChain {
  readonly #call: Call;
  readonly #requested: Set<string>;
  /** Origin of the first request, which may depend on the person who calls. */
  readonly #toolOrigin: string;
  #current: URL;
  /** True while every URL so far has the tool's origin. */
  isOnToolOrigin = true;

  constructor(call: Call, start: URL) {
    this.#call = call;
    this.#current = start;
    this.#toolOrigin = start.origin;
    this.#requested = new Set([start.href]);
  }

  /** Returns the target of a redirect that may be followed. @throws ToolFailure redirect, blocked */
  next(response: UpstreamResponse, urlProblem: RedirectDeps['urlProblem']): URL {
    const location = decodeHeaderText(String(response.headers.location ?? ''));
    const target = location === '' ? undefined : parseUrl(location, this.#current);
    if (!target) throw this.createRefusal(response, 'redirect', 'it has no valid URL');
    target.hash = '';
    const isSameOrigin = target.origin === this.#current.origin;
    const refuse = (outcome: 'redirect' | 'blocked', reason: string) => this.createRefusal(response, outcome, reason);
    if (this.#current.protocol === 'https:' && target.protocol === 'http:')
      throw refuse('redirect', 'it leads from https to http, where others can read the response');
    if (target.username !== '' || target.password !== '')
      throw refuse('redirect', 'its URL contains a user name or password');
    if (!isSameOrigin && urlProblem(target) !== undefined)
      throw refuse('blocked', 'its URL is not allowed; allowed: https, web ports, and public hosts');
    if (target.origin !== this.#toolOrigin) this.isOnToolOrigin = false;
    if (!this.isOnToolOrigin && redact(target.href, this.#call.sensitive) !== target.href)
      throw refuse('redirect', 'it would send a credential of this call to another origin');
    if (this.#requested.has(target.href))
      throw refuse('redirect', 'it leads back to a URL that was already requested (a redirect loop)');
    if (this.#requested.size > maxRedirects)
      throw refuse('redirect', `a call follows at most ${maxRedirects} redirects`);
    this.#requested.add(target.href);
    this.#current = target;
    return target;
  }

  createRefusal({ status, headers }: UpstreamResponse, outcome: 'redirect' | 'blocked', reason: string): ToolFailure {
    const location = decodeHeaderText(String(headers.location ?? ''));
    const target = (location === '' ? undefined : parseUrl(location, this.#current))?.href ?? '';
    const displayedTarget = formatRedirectTarget(target, new Redactor(this.#call.sensitive)) ?? 'another URL';
    const hopsText = this.#requested.size === 1 ? '' : ` after ${this.#requested.size - 1} other redirects`;
    const formatMessage = (targetText: string) =>
      `HTTP ${status}: the redirect${targetText}${hopsText} was not followed: ${reason}`;
    return new ToolFailure(outcome, formatMessage(` to ${displayedTarget}`), [], formatMessage(''));
  }
}

/**
 * Returns the headers that any origin may receive: neither static headers nor arguments, and no text that contains a
 * credential.
 */
function getSafeHeaders(headers: readonly string[], { sensitive }: Call): string[] {
  const redactor = new Redactor(sensitive);
  return headers.flatMap((name, index) => {
    const value = headers[index + 1] ?? '';
    const isSafe = index % 2 === 0 && safeHeaders.has(name.toLowerCase()) && redactor.text(value) === value;
    return isSafe ? [name, value] : [];
  });
}

/**
 * Sends a redirected request. @throws OutboundError about the whole call; its message for the record omits the host,
 * which the upstream chose
 */
async function sendRedirected(
  call: Call,
  callRequest: Parameters<typeof send>[1],
  deps: SendDeps,
  hop: RedirectHop,
): Promise<UpstreamResponse> {
  try {
    if (hop.timeoutMs < 1) throw new OutboundError('timeout', '');
    return await send(call, callRequest, deps, hop);
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    const { timeoutMs } = call.tool;
    if (error.reason === 'timeout')
      throw new OutboundError(
        'timeout',
        `upstream did not answer within ${timeoutMs} ms, including redirects`,
        `the upstream did not respond within ${timeoutMs / 1000} s, including redirects`,
      );
    const { reason, message } = error;
    const text = `after a redirect: ${message}`;
    throw new OutboundError(reason, text, text.replaceAll(new URL(callRequest.request.origin).host, '(its target)'));
  }
}
