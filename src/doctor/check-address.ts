import { clientsThat, inWords, knownClients } from '../domain/clients/clients.ts';
import { everyClient, ok, problem, type Reason, type Verdict, warning, warningOf } from './check.ts';
import { isLoopbackHost } from './check-metadata.ts';
import { rpcOf } from './session.ts';
import { type Answered, typeOfAnswer } from './web.ts';

/** The clients that are known to call servers only at another path than this address has. */
export function pathReasons(address: string): Reason[] {
  const { pathname } = new URL(address);
  return knownClients
    .filter(({ onlyPath }) => onlyPath !== undefined && onlyPath !== pathname)
    .map(({ name, onlyPath }) => ({
      clients: [name],
      text: `${name} was reported to call only servers whose path is ${onlyPath}; this one has ${pathname}.`,
    }));
}

/** Checks the address itself, before anything is sent there. */
export function checkAddress(address: string): Verdict {
  if (!URL.canParse(address)) return problem(`${JSON.stringify(address)} is no URL; expected: https://host/path.`);
  const { protocol, hostname, hash, username, password, search } = new URL(address);
  if (protocol !== 'https:' && protocol !== 'http:')
    return problem(`The scheme is ${protocol} clients take https and http.`);
  if (username !== '' || password !== '')
    return problem('The address holds a user name or a password; clients refuse that.');
  if (hash !== '') return problem('The address has a part after #, which is never sent.');
  const hosted = clientsThat(({ isHosted }) => isHosted);
  if (isLoopbackHost(hostname)) {
    const detail = `Only programs on this machine reach it. ${inWords(hosted)} connect from the internet.`;
    const text = 'It connects from the internet, and only programs on this machine reach the address.';
    return { ...warning(detail, hosted), reasons: [{ clients: hosted, text, stops: true }] };
  }
  if (protocol === 'http:') {
    const detail = `It is not https, so credentials can be read on their way. ${inWords(hosted)} refuse it.`;
    const reasons = [{ clients: hosted, text: 'It takes only https.', stops: true as const }];
    return { ...warning(detail), reasons: [...reasons, { clients: everyClient, text: 'It is not https.' }] };
  }
  if (search !== '')
    return warning('The address has a query, which some clients leave out when they look for the login.');
  const picky = pathReasons(address);
  if (picky.length > 0) return warningOf(picky);
  return ok('https, and reachable from anywhere that can reach its host.');
}

/** Checks the answer to `initialize` without a credential. */
export function checkFirstAnswer(page: Answered): Verdict {
  const { status, headers } = page;
  if (status === 401) return ok('A request without a credential is refused with 401.');
  if (status >= 300 && status < 400) {
    const target = URL.parse(headers.get('location') ?? '', page.url);
    return problem(
      `It answers with a redirect (${status})${target ? ` to ${target.origin}${target.pathname}` : ''}. Clients lose the message or the credential on the way; give them the address behind it.`,
    );
  }
  if (status === 403)
    return problem('A request without a credential is answered with 403; clients log in only after 401.');
  if (status === 404) return problem('There is nothing at this address (404); check the path.');
  if (status === 405)
    return problem(
      'The address does not take POST (405). It may be the address of a page, or of the older SSE transport.',
    );
  if (status === 406)
    return problem('It refuses clients that accept both JSON and event streams (406), as all of them do.');
  if (status !== 200) return problem(`initialize is answered with ${status}.`);
  const type = typeOfAnswer(headers);
  if (type !== 'application/json' && type !== 'text/event-stream')
    return problem(
      `The answer is ${type || 'without a Content-Type'}; an MCP server answers with application/json or text/event-stream.`,
    );
  if (!rpcOf(page)) return problem('The answer is no JSON-RPC message.');
  return ok('It answers without a credential.');
}
