import { clientsThat, inWords } from '../domain/clients/clients.ts';
import {
  checkAuthorization,
  checkPkceIsRequired,
  checkRedirectUris,
  checkTokenEndpoint,
  type Trial,
} from './authorization.ts';
import { type Check, everyClient, type Fields, ok, problem, type Verdict, warning } from './check.ts';
import { checkRegistrationMetadata, isLoopbackHost } from './check-metadata.ts';
import { checkSchemas, checkTokens, checkToolCount, checkToolList, checkToolNames } from './check-tools.ts';
import { checkChallenge, checkCors, documentUrls, findIssuer, findResource, readChallenge } from './discovery.ts';
import { checkKnownClients, checkRegistration, ownRedirectUri, register } from './registration.ts';
import {
  checkGet,
  checkInitialize,
  checkModern,
  checkNotification,
  checkUnknownMethod,
  initialize,
  listTools,
  type McpAddress,
  post,
  resultOf,
  rpcOf,
  sessionOf,
} from './session.ts';
import { type Answered, typeOfAnswer, Unreachable, type WebClient } from './web.ts';

export type ExamineOptions = {
  web: WebClient;
  /** A token or API key that the server accepts; without it only what comes before the login can be examined. */
  token?: string | undefined;
  /** Whether clients may be registered; each registration may be stored by the server. */
  registers: boolean;
};

type Report = (id: string, title: string, verdict: Verdict) => Verdict;
type Patient = ExamineOptions & { address: string; report: Report };

/**
 * Plays what clients do with an MCP server of which they know the address: discovery, registration, the begin of a
 * login, the handshake, the list of tools. Stops where every client would stop. No tool is called.
 */
export async function examine(address: string, options: ExamineOptions): Promise<Check[]> {
  const checks: Check[] = [];
  const report: Report = (id, title, verdict) => {
    checks.push({ id, title, clients: [...everyClient], ...verdict });
    return verdict;
  };
  try {
    await examineAll({ ...options, address, report });
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error;
    report('answer', 'Every request is answered', problem(`A request got no answer: ${error.message}.`));
  }
  return checks;
}

async function examineAll(patient: Patient): Promise<void> {
  const { address, report, web } = patient;
  if (report('address', 'The address can be used', checkAddress(address)).status === 'problem') return;
  const first = await post({ web, address, token: undefined }, initialize);
  const reach = report('reach', 'The address answers MCP clients', checkFirstAnswer(first));
  if (reach.status === 'problem') return;
  if (first.status === 401) await examineLogin(patient, first);
  if (first.status === 401 && patient.token === undefined) return;
  const at: McpAddress = { web, address, token: first.status === 401 ? patient.token : undefined };
  const opened = first.status === 401 ? await post(at, initialize) : first;
  if (first.status === 401) {
    const verdict =
      opened.status === 200 ? ok('The token is accepted.') : problem(`The token is answered with ${opened.status}.`);
    if (report('token', 'The given token is accepted', verdict).status === 'problem') return;
  }
  await examineSession(at, opened, patient);
}

function checkAddress(address: string): Verdict {
  if (!URL.canParse(address)) return problem(`${JSON.stringify(address)} is no URL; expected: https://host/path.`);
  const { protocol, hostname, hash, username, password, search } = new URL(address);
  if (protocol !== 'https:' && protocol !== 'http:')
    return problem(`The scheme is ${protocol} clients take https and http.`);
  if (username !== '' || password !== '')
    return problem('The address holds a user name or a password; clients refuse that.');
  if (hash !== '') return problem('The address has a part after #, which is never sent.');
  const hosted = clientsThat(({ isHosted }) => isHosted);
  if (isLoopbackHost(hostname))
    return warning(`Only programs on this machine reach it. ${inWords(hosted)} connect from the internet.`, hosted);
  if (protocol === 'http:')
    return warning(`It is not https, so credentials can be read on their way. ${inWords(hosted)} refuse it.`, hosted);
  if (search !== '')
    return warning('The address has a query, which some clients leave out when they look for the login.');
  return ok('https, and reachable from anywhere that can reach its host.');
}

function checkFirstAnswer(page: Answered): Verdict {
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

async function examineLogin(patient: Patient, refusal: Answered): Promise<void> {
  const { address, report, web, token } = patient;
  report('challenge', 'A request without a credential is refused with a challenge', checkChallenge(refusal));
  const found = await findResource(web, address, refusal);
  if (!found.resource && token !== undefined && readChallenge(refusal).metadataUrl === undefined) {
    const only = clientsThat(({ onlyLogsIn }) => onlyLogsIn);
    report(
      'sign_in',
      'Clients can present the credential',
      warning(`There is no login, only tokens. ${inWords(only)} can only log in.`, only),
    );
    return;
  }
  report('resource_metadata', 'The login is announced', found.verdict);
  if (!found.resource) return;
  const server = await findIssuer(web, found.resource);
  report('server_metadata', 'The login is described', server.verdict);
  report('cors', 'Pages may read the metadata', await checkCors(web, documentUrls(address, refusal, server.issuer)));
  if (!server.metadata) return;
  const isWhole = server.verdict.status !== 'problem' || typeof server.metadata.authorization_endpoint === 'string';
  if (isWhole) await examineClient(patient, server.metadata);
}

async function examineClient(patient: Patient, metadata: Fields): Promise<void> {
  const { address, report, web, registers } = patient;
  const announced = report('registration', 'Clients can get a client id', checkRegistrationMetadata(metadata));
  const endpoint = metadata.registration_endpoint;
  if (announced.status === 'problem' || !registers || typeof endpoint !== 'string' || !URL.canParse(endpoint)) return;
  const page = await register(web, endpoint, 'Toolhost doctor', [ownRedirectUri]);
  const registered = report('register', 'A client registers', checkRegistration(page, [ownRedirectUri]));
  const clientId = page.json?.client_id;
  if (registered.status === 'problem' || typeof clientId !== 'string') return;
  report('redirect_uris', 'The redirect URIs of known clients are taken', await checkKnownClients(web, endpoint));
  const trial: Trial = { web, metadata, clientId, address };
  if (!hasUrl(metadata, 'authorization_endpoint') || !hasUrl(metadata, 'token_endpoint')) return;
  if (report('authorize', 'A login begins', await checkAuthorization(trial)).status !== 'problem') {
    report('pkce', 'PKCE is required', await checkPkceIsRequired(trial));
    report('redirect_uri', 'Only registered redirect URIs are taken', await checkRedirectUris(trial));
  }
  report('token_endpoint', 'The token endpoint answers as clients expect', await checkTokenEndpoint(trial));
  const made = await post({ web, address, token: 'made-up-token-of-toolhost-doctor' }, initialize);
  report('expired_token', 'A token that is not valid is refused with 401', checkMadeUpToken(made));
}

const hasUrl = (metadata: Fields, name: string) => typeof metadata[name] === 'string' && URL.canParse(metadata[name]);

function checkMadeUpToken({ status }: Answered): Verdict {
  if (status === 401) return ok('401, so clients log in again when their token expires.');
  if (status === 200) return ok('It is accepted until a tool is called, so this server passes tokens on.');
  return problem(
    `A token that is not valid is answered with ${status} instead of 401, so clients do not log in again when it expires.`,
  );
}

async function examineSession(at: McpAddress, opened: Answered, { address, report }: Patient): Promise<void> {
  const rpc = rpcOf(opened);
  if (report('handshake', 'The server introduces itself', checkInitialize(resultOf(rpc))).status === 'problem') return;
  const session = sessionOf(at, opened);
  report('notification', 'The handshake is completed', await checkNotification(session));
  const tools = await listTools(session);
  if (typeof tools === 'string') report('tool_list', 'The list of tools is well-formed', problem(tools));
  else reportTools(tools, address, report);
  report('unknown_method', 'Unknown methods are answered', await checkUnknownMethod(session));
  report('get', 'GET is answered', await checkGet(session));
  report('modern', 'The newest revision', await checkModern(at));
}

function reportTools(tools: readonly Fields[], address: string, report: Report): void {
  const names = tools.map(({ name }) => String(name));
  const cost = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  report('tool_list', 'The list of tools is well-formed', checkToolList(tools));
  report('tool_count', 'The number of tools is within limits', checkToolCount(tools.length));
  report('tool_names', 'The names of the tools are usable', checkToolNames(names, nameOf(address)));
  report('tool_schemas', 'The schemas of the tools are taken by every client', checkSchemas(tools));
  report('token_estimate', 'The list of tools is affordable', checkTokens(Math.ceil(JSON.stringify(cost).length / 4)));
}

/** The name that people would give the server in their client. */
function nameOf(address: string): string {
  const { hostname, pathname } = new URL(address);
  const last = pathname.split('/').findLast((part) => part !== '' && part !== 'mcp');
  return last ?? (hostname.split('.').at(-2) || hostname);
}
