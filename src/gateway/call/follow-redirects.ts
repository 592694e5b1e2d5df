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
/** Statuses that lead to another URL for the same request (RFC 9110, 15.4). */
const redirectStatuses = new Set([301, 302, 303, 307, 308]);
/** Headers that another origin gets, too. */
const describing = new Set(['accept', 'user-agent']);

export type FollowParts = {
  http: HttpClient;
  /** Why this deployment may not call a URL; undefined if it may. */
  urlProblem: (url: URL) => string | undefined;
};

/**
 * Follows the redirects of a GET or HEAD, all within the time of the tool. Each target passes the rules of configured URLs
 * and the guarded connector. Once a redirect has left the origin of the tool, no further request has a credential, a
 * header of the tool, or trace context.
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
    // The time of the redirects is that of the upstream.
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
  if (request.body !== undefined) throw path.refusal(first, 'redirect', 'the request has a body, which is sent once');
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

/** The URLs that one call has asked for. */
class Path {
  readonly #call: Call;
  readonly #asked: Set<string>;
  #at: URL;
  /** Whether every URL so far has the origin of the tool. */
  isHome = true;

  constructor(call: Call, start: URL) {
    this.#call = call;
    this.#at = start;
    this.#asked = new Set([start.href]);
  }

  /** The target of a redirect that may be followed. @throws ToolFailure redirect, blocked */
  next(answer: Answer, urlProblem: FollowParts['urlProblem']): URL {
    const location = headerText(String(answer.headers.location ?? ''));
    const to = location === '' ? undefined : readUrl(location, this.#at);
    if (!to) throw this.refusal(answer, 'redirect', 'it has no URL that can be read');
    to.hash = '';
    const isSame = to.origin === this.#at.origin;
    const refuse = (outcome: 'redirect' | 'blocked', why: string) => this.refusal(answer, outcome, why);
    if (this.#at.protocol === 'https:' && to.protocol === 'http:') {
      throw refuse('redirect', 'it leads from https to http, where others can read the answer');
    }
    if (to.username !== '' || to.password !== '') throw refuse('redirect', 'its URL holds a user name or password');
    if (!isSame && urlProblem(to) !== undefined) {
      throw refuse('blocked', 'its URL may not be called: only https, web ports and public hosts are allowed');
    }
    if (to.origin !== this.#call.tool.request.url.origin) this.isHome = false;
    if (!this.isHome && redact(to.href, this.#call.sensitive) !== to.href) {
      throw refuse('redirect', 'it would carry a credential of this call to another origin');
    }
    if (this.#asked.has(to.href)) throw refuse('redirect', 'it leads to a URL that was asked before, in a circle');
    if (this.#asked.size > mostRedirects)
      throw refuse('redirect', `at most ${mostRedirects} redirects of a call are followed`);
    this.#asked.add(to.href);
    this.#at = to;
    return to;
  }

  refusal({ status, headers }: Answer, outcome: 'redirect' | 'blocked', why: string): ToolFailure {
    const location = headerText(String(headers.location ?? ''));
    const target = (location === '' ? undefined : readUrl(location, this.#at))?.href ?? '';
    const shown = shownRedirectTarget(target, new Redactor(this.#call.sensitive)) ?? 'another URL';
    const count = this.#asked.size === 1 ? '' : ` after ${this.#asked.size - 1} others`;
    const said = (of: string) => `HTTP ${status}: the redirect${of}${count} was not followed: ${why}`;
    return new ToolFailure(outcome, said(` to ${shown}`), [], said(''));
  }
}

/** What every origin may be told: neither static headers nor arguments, and no text with a credential in it. */
function openHeaders(headers: readonly string[], { sensitive }: Call): string[] {
  const redact = new Redactor(sensitive);
  return headers.flatMap((name, index) => {
    const value = headers[index + 1] ?? '';
    const isOpen = index % 2 === 0 && describing.has(name.toLowerCase()) && redact.text(value) === value;
    return isOpen ? [name, value] : [];
  });
}

/** @throws OutboundError about the whole call; its text for the record names no host that the upstream chose */
async function sendHop(call: Call, sent: Parameters<typeof send>[1], http: HttpClient, hop: Hop): Promise<Answer> {
  try {
    if (hop.timeoutMs < 1) throw new OutboundError('timeout', '');
    return await send(call, sent, http, hop);
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    const { reason, message } = error;
    const said =
      reason === 'timeout'
        ? `upstream did not answer within ${call.tool.timeoutMs} ms, its redirects included`
        : `after a redirect: ${message}`;
    throw new OutboundError(reason, said, said.replaceAll(new URL(sent.request.origin).host, '(its target)'));
  }
}
