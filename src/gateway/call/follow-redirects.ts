import { Redactor, redact } from '../../domain/credentials/redactor.ts';
import { readUrl } from '../../domain/http/read-url.ts';
import { runningNow, stoppedWithin } from '../../domain/work/running-time.ts';
import { OutboundError, ToolFailure } from '../../errors.ts';
import type { Answer } from '../../outbound/exchange.ts';
import type { HttpClient } from '../../outbound/http-client.ts';
import { headerText, shownRedirectTarget } from '../answer/answer-head.ts';
import type { Call, CallRequest } from './call.ts';
import { type Hop, send } from './send-request.ts';

export const mostRedirects = 3;
/** Statuses that redirect the same request to another URL (RFC 9110, 15.4). */
const redirectStatuses = new Set([301, 302, 303, 307, 308]);
/** Headers that may also be sent to another origin. */
const describing = new Set(['accept', 'user-agent']);

export type FollowParts = {
  http: HttpClient;
  /** Returns the reason why this deployment may not call a URL, or undefined if it may. */
  urlProblem: (url: URL) => string | undefined;
};

/**
 * Follows the redirects of a GET or HEAD, within the tool's timeout. Each target must satisfy the rules for configured
 * URLs and the guarded connector. After a redirect has left the tool's origin, no further request carries a credential,
 * a header of the tool, or trace context.
 * @throws ToolFailure redirect, blocked
 * @throws OutboundError
 */
export async function followRedirects(call: Call, first: Answer, parts: FollowParts): Promise<Answer> {
  if (!redirectStatuses.has(first.status)) return first;
  const sentClock = call.sentClock as number;
  const elapsedMs = performance.now() - sentClock;
  const until = runningNow() + call.tool.timeoutMs - elapsedMs + stoppedWithin(elapsedMs);
  try {
    return await lastAnswer(call, first, until, parts);
  } finally {
    // The time of the redirects counts as upstream time.
    call.upstreamMs = performance.now() - sentClock;
  }
}

async function lastAnswer(
  call: Call,
  first: Answer,
  until: number,
  { http, urlProblem }: FollowParts,
): Promise<Answer> {
  const { request, credentialHash } = call.request as CallRequest;
  const path = new Path(call, new URL(request.origin + request.path));
  if (request.body !== undefined)
    throw path.refusal(first, 'redirect', 'the request has a body, which is sent only once');
  let answer = first;
  while (redirectStatuses.has(answer.status)) {
    const to = path.next(answer, urlProblem);
    const { isHome } = path;
    const headers = isHome ? request.headers : openHeaders(request.headers, call);
    const asked = {
      method: request.method,
      origin: to.origin,
      path: to.pathname + to.search,
      headers,
      body: undefined,
    };
    const sent = { request: asked, credentialHash: isHome ? credentialHash : undefined };
    answer = await sendHop(call, sent, http, { isElsewhere: !isHome, timeoutMs: until - runningNow() });
    call.answer = answer;
  }
  return answer;
}

/** The URLs that one call has requested. */
class Path {
  readonly #call: Call;
  readonly #asked: Set<string>;
  #at: URL;
  /** True while every URL so far has the tool's origin. */
  isHome = true;

  constructor(call: Call, start: URL) {
    this.#call = call;
    this.#at = start;
    this.#asked = new Set([start.href]);
  }

  /** Returns the target of a redirect that may be followed. @throws ToolFailure redirect, blocked */
  next(answer: Answer, urlProblem: FollowParts['urlProblem']): URL {
    const location = headerText(String(answer.headers.location ?? ''));
    const to = location === '' ? undefined : readUrl(location, this.#at);
    if (!to) throw this.refusal(answer, 'redirect', 'it has no valid URL');
    to.hash = '';
    const isSame = to.origin === this.#at.origin;
    const refuse = (outcome: 'redirect' | 'blocked', why: string) => this.refusal(answer, outcome, why);
    if (this.#at.protocol === 'https:' && to.protocol === 'http:') {
      throw refuse('redirect', 'it leads from https to http, where others can read the response');
    }
    if (to.username !== '' || to.password !== '') throw refuse('redirect', 'its URL contains a user name or password');
    if (!isSame && urlProblem(to) !== undefined) {
      throw refuse('blocked', 'its URL is not allowed; allowed: https, web ports, and public hosts');
    }
    if (to.origin !== this.#call.tool.request.url.origin) this.isHome = false;
    if (!this.isHome && redact(to.href, this.#call.sensitive) !== to.href) {
      throw refuse('redirect', 'it would send a credential of this call to another origin');
    }
    if (this.#asked.has(to.href))
      throw refuse('redirect', 'it leads back to a URL that was already requested (a redirect loop)');
    if (this.#asked.size > mostRedirects) throw refuse('redirect', `a call follows at most ${mostRedirects} redirects`);
    this.#asked.add(to.href);
    this.#at = to;
    return to;
  }

  refusal({ status, headers }: Answer, outcome: 'redirect' | 'blocked', why: string): ToolFailure {
    const location = headerText(String(headers.location ?? ''));
    const target = (location === '' ? undefined : readUrl(location, this.#at))?.href ?? '';
    const shown = shownRedirectTarget(target, new Redactor(this.#call.sensitive)) ?? 'another URL';
    const count = this.#asked.size === 1 ? '' : ` after ${this.#asked.size - 1} other redirects`;
    const said = (of: string) => `HTTP ${status}: the redirect${of}${count} was not followed: ${why}`;
    return new ToolFailure(outcome, said(` to ${shown}`), [], said(''));
  }
}

/**
 * Returns the headers that any origin may receive: neither static headers nor arguments, and no text that contains a
 * credential.
 */
function openHeaders(headers: readonly string[], { sensitive }: Call): string[] {
  const redact = new Redactor(sensitive);
  return headers.flatMap((name, index) => {
    const value = headers[index + 1] ?? '';
    const isOpen = index % 2 === 0 && describing.has(name.toLowerCase()) && redact.text(value) === value;
    return isOpen ? [name, value] : [];
  });
}

/**
 * Sends a redirected request. @throws OutboundError about the whole call; its text for the record names no host that
 * the upstream chose
 */
async function sendHop(call: Call, sent: Parameters<typeof send>[1], http: HttpClient, hop: Hop): Promise<Answer> {
  try {
    if (hop.timeoutMs < 1) throw new OutboundError('timeout', '');
    return await send(call, sent, http, hop);
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    const { reason, message } = error;
    const said =
      reason === 'timeout'
        ? `the upstream did not respond within ${call.tool.timeoutMs} ms, including redirects`
        : `after a redirect: ${message}`;
    throw new OutboundError(reason, said, said.replaceAll(new URL(sent.request.origin).host, '(its target)'));
  }
}
