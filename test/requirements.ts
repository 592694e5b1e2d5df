/**
 * Requirements that the tests prove. Each has an id, a sentence, and a source. Test titles cite ids in brackets, such as
 * `[sec F3]`. `requirements.test.ts` fails for an id that is unknown here and for a requirement that no title cites.
 */
export type Requirement = { claim: string; source: string };

const specification = 'docs/contributing/specification.md';
const architecture = 'ARCHITECTURE.md';
const mcp = 'https://modelcontextprotocol.io/specification/2026-07-28';
const mcpLegacy = 'https://modelcontextprotocol.io/specification/2025-11-25';
const bestPractices = `${mcp}/basic/security_best_practices`;
const rfc = (number: number, section = '') =>
  `https://www.rfc-editor.org/rfc/rfc${number}${section && `#section-${section}`}`;
const cwe = (number: number) => `https://cwe.mitre.org/data/definitions/${number}.html`;

const requirementsFrom = (source: string, claims: Record<string, string>): Record<string, Requirement> =>
  Object.fromEntries(Object.entries(claims).map(([id, claim]) => [id, { claim, source }]));

/** Interface that the service implements, and its decisions where the interface is silent. */
const interfaces = requirementsFrom(specification, {
  'spec 2.2': 'Each authentication type puts the token where the table says.',
  'spec 2.3': 'A server with oauth logs users in at the provider that it names.',
  'spec 4.2': "The management server lists the caller's servers and creates new ones.",
  'spec 4.3.1': "The upstream request has the tool's method, URL, and static headers.",
  'spec 4.3.2': 'Each :argument in the URL is replaced, even after a prefix.',
  'spec 4.3.3': 'GET sends the other arguments in the query string.',
  'spec 4.3.4': 'PATCH sends the other arguments as a JSON body and keeps the filter in the query string.',
  'spec 4.3.5': 'POST sends the other arguments as a JSON body.',
  'spec 4.3.6': 'PUT sends a body, DELETE a query string.',
  'spec 4.3.7': "The caller's token reaches the upstream unchanged, as authentication says.",
  'spec 4.3.8': 'The upstream request ends after timeout_ms.',
  'spec 4.3.9': 'response_transform selects a part of the response.',
  'spec 4.3.10': 'In the worked example, a write returns the row only if Prefer asks for it.',
  'spec 4.4':
    'The token endpoint receives the form that the specification defines, and its response is validated accordingly.',
  'spec 5.2': 'A client presents its API key as a bearer token.',
  'spec 5.3': 'A token that the upstream expects in a custom header is sent in that header.',
  'spec 5.4.7': 'A client may send the token in the header that authentication names.',
  'spec 7': 'A request without a token gets 401, with discovery hints if oauth is set.',
  'behaviour Configuration': 'A configuration is validated as a whole, and nothing of a rejected one is stored.',
  'behaviour The tool result': 'Each kind of response and failure becomes the result that the section describes.',
  'behaviour Calls': 'Arguments and responses are recorded only while capture is on.',
  'behaviour request 1': 'A colon starts an argument only where one is declared and allowed.',
  'behaviour request 2': 'No value changes the structure of the URL.',
  'behaviour request 3': 'An absent optional argument removes its query pair.',
  'behaviour request 4': 'Arguments outside the template go where the method or `in` says.',
  'behaviour request 5': 'Arrays, objects, and null have one form in a query.',
  'behaviour request 6': 'The body has the encoding that the tool declares.',
  'behaviour request 7': 'Defaults replace absent arguments.',
  'behaviour request 8': 'No part of the caller’s request is forwarded except a valid trace context.',
  'behaviour request 9': 'No other header or parameter may have the name of the credential.',
  'behaviour request 10': 'A stored credential is sent in place of the caller’s.',
});

const transport = `${mcp}/basic/transports/streamable-http`;
const authorization = `${mcp}/basic/authorization`;
const tools = `${mcp}/server/tools`;

/** Model Context Protocol. */
const protocol = {
  ...requirementsFrom(transport, {
    'mcp 1': 'A tools/call request with matching headers gets 200, the same id, and the content.',
    'mcp 5': 'A request without the required metadata gets 400 and −32602.',
    'mcp 7': 'The version header equals the version in the metadata.',
    'mcp 8': 'Mcp-Method equals the method.',
    'mcp 9': 'Mcp-Name equals the tool name, also when encoded.',
    'mcp 10': 'An annotated argument equals its header.',
    'mcp 21': 'GET and DELETE get 405.',
    'mcp 22': 'Session ids and Last-Event-ID are ignored.',
    'mcp 23': 'A foreign Origin gets 403.',
    'mcp 29': 'A disconnect cancels the call of a modern client, but not of a legacy client.',
    'mcp 30': 'A body that is too large or has another media type is rejected before anything is sent.',
  }),
  ...requirementsFrom(`${mcp}/basic/versioning`, {
    'mcp 11': 'An unknown version gets −32022 with the supported versions.',
    'mcp 24': 'A legacy request that carries Mcp-Method is served as legacy.',
    'mcp 25': 'Each request has its own protocol generation, regardless of earlier requests on the connection.',
  }),
  ...requirementsFrom(`${mcp}/server/discover`, { 'mcp 3': 'server/discover returns versions and capabilities.' }),
  ...requirementsFrom(`${mcp}/basic`, {
    'mcp 2': 'A modern result names the server.',
    'mcp 6': 'A request without clientInfo is served.',
    'mcp 12': 'An unsupported method gets 404 and −32601 with its id.',
    'mcp 16': 'A message that is not a JSON-RPC request is rejected with the right code.',
    'mcp 28': 'The server sends no requests and no unsolicited messages.',
    'mcp 35': 'A valid traceparent is forwarded, an invalid one is dropped.',
  }),
  ...requirementsFrom(tools, {
    'mcp 4': 'tools/list has a stable order and caching hints.',
    'mcp 13': 'An unknown tool gets −32602.',
    'mcp 14': 'Invalid arguments produce a result with isError.',
    'mcp 15': 'An upstream failure produces a result with isError.',
    'mcp 31': 'A tool that clients would reject is rejected when it is stored.',
    'mcp 32': 'Schemas are listed as stored, and nothing is fetched for them.',
    'mcp 33': 'Structured content matches the output schema.',
    'mcp 34': 'Tool calls have limits, and one server’s limits do not affect another server.',
  }),
  ...requirementsFrom(`${mcpLegacy}/basic/lifecycle`, {
    'mcp 18': 'initialize negotiates a legacy version and opens no session.',
    'mcp 20': 'A legacy request without a version is served, one with an unknown version is rejected.',
  }),
  ...requirementsFrom('https://modelcontextprotocol.io/specification/2025-03-26/basic/transports', {
    'mcp 17': 'A legacy batch gets a batch of responses; a modern message in a batch is rejected.',
    'mcp 19': 'A notification gets 202 without a body.',
    'mcp 26': 'A client that accepts only JSON, or any type, gets JSON.',
  }),
  ...requirementsFrom(`${mcp}/basic/utilities/subscriptions`, {
    'mcp 27': 'subscriptions/listen is acknowledged, canceled, and ended, because nothing is advertised.',
  }),
  ...requirementsFrom(authorization, {
    'mcp 36': 'A protected server responds with 401 and the URL of its metadata.',
    'mcp 37': 'A token that is not valid for this server gets invalid_token.',
    'mcp 38': 'A token that lacks a required scope gets insufficient_scope.',
    'mcp 39': 'A token in the query string is ignored.',
    'mcp 41': 'The authorization server metadata names its own issuer.',
    'mcp 45': 'A token for another resource is rejected.',
    'mcp 52': "The agent's token never goes upstream.",
    'mcp 60': 'Known clients can log in even if their metadata documents cannot be fetched, and a rejection says why.',
    'mcp 55': 'A client metadata document is fetched through the address guard and trusted only for its own URL.',
    'mcp 56': 'Web pages may use discovery, registration, and the token endpoint.',
    'mcp 57':
      'URLs in metadata come from the configured base URL, or in local mode from the local hostname of the request.',
  }),
  ...requirementsFrom(rfc(9728), { 'mcp 40': 'The protected resource metadata names exactly the URL of the server.' }),
  ...requirementsFrom(rfc(9207), { 'mcp 42': 'Redirects to the client carry the issuer, on success and error.' }),
  ...requirementsFrom(rfc(7636), { 'mcp 43': 'PKCE with S256 is required.' }),
  ...requirementsFrom(rfc(8252, '7.3'), {
    'mcp 44': 'A redirect URI is compared exactly, except for the port of a loopback address.',
  }),
  ...requirementsFrom(bestPractices, {
    'mcp 46': 'The user sees a consent page before anything is sent to the provider.',
    'mcp 47': 'Another client in the same browser needs its own consent.',
    'mcp 48': 'A callback that does not belong to the browser’s login is rejected.',
  }),
  ...requirementsFrom(rfc(6749), {
    'mcp 49': 'A code works once, only for the client, verifier, and redirect URI that it was issued for.',
    'mcp 50': 'The token endpoint response is not cacheable and states its type and lifetime.',
    'mcp 51': 'A refresh replaces the refresh token.',
    'mcp 62': 'An OAuth error has the code of its cause and states the allowed values in our own words.',
    'mcp 53': 'An unknown client gets invalid_client at the token endpoint.',
  }),
  ...requirementsFrom(rfc(7591), {
    'mcp 54': 'Dynamic registration responds with 201 and rejects unsafe redirect URIs.',
  }),
  ...requirementsFrom(rfc(6749, '2.3.1'), {
    'mcp 61': 'A client that registers with a secret gets one, and cannot use its tokens without it.',
  }),
  ...requirementsFrom('https://github.com/modelcontextprotocol/conformance', {
    'mcp 58': 'The official conformance suite passes with the recorded baselines.',
    'mcp 59': 'Real clients complete a login and a call.',
  }),
};

/** Security. Ids of mechanisms start with M, of failures with G, and others with the letter of the protected asset. */
const security = {
  ...requirementsFrom(bestPractices, {
    'sec A1': 'An API key of this service never reaches an upstream.',
    'sec A3': 'A server with oauth accepts only live tokens that were issued for it.',
  }),
  ...requirementsFrom(cwe(601), {
    'sec A4': 'An upstream redirect is never followed by default.',
    'sec E8': 'A sign-in returns only to a page of this service.',
  }),
  ...requirementsFrom(cwe(441), {
    'sec A9': 'No header of the caller is forwarded, and exactly one credential is sent.',
  }),
  ...requirementsFrom(cwe(532), {
    'sec A10': 'No secret appears in logs, responses, or the database.',
    'sec C': 'Metrics contain no value that a tenant or a caller chose.',
    'sec E': 'Metrics count the connections that the address guard blocks.',
  }),
  ...requirementsFrom(cwe(209), { 'sec A11': 'A placeholder without a value is never sent.' }),
  ...requirementsFrom(cwe(522), { 'sec A12': 'Each webhook signing secret is known to one origin only.' }),
  ...requirementsFrom(cwe(93), { 'sec N1': 'Names are one line of visible text, and inert text in every channel.' }),
  ...requirementsFrom(cwe(918), {
    'sec B1': 'Addresses that are not public are blocked.',
    'sec B2': 'Other spellings of such addresses are blocked.',
    'sec B3': 'A public name with a private address is blocked, and the message does not reveal the address.',
    'sec B4': 'A name is resolved once per connection, and the checked address is used.',
    'sec B8': 'URLs with user information, fragments, other schemes, or other ports are rejected.',
    'sec B10': 'Each operator exception allows exactly one address and port.',
    'sec M1': 'Connections are not shared across workspaces, and an unsolicited response is discarded.',
  }),
  ...requirementsFrom(cwe(74), {
    'sec C1': 'Arguments cannot leave their URL segment or query value.',
    'sec C2': 'Path arguments cannot be empty or dots.',
    'sec C4': 'Arguments appear only in path segments and query values.',
    'sec C7': 'Invalid arguments are rejected before anything is sent.',
    'sec C8': 'An operator prefix cannot be escaped.',
    'sec C9': 'A transform reads own properties only.',
  }),
  ...requirementsFrom(cwe(400), {
    'sec C10': 'Schemas that take long to validate are rejected.',
    'sec F3': 'Large, deeply nested, and many-part bodies are rejected at bounded cost.',
    'sec G1': 'A malicious upstream response becomes a tool error.',
  }),
  ...requirementsFrom(rfc(9700), {
    'sec D': 'A token is issued only if the same browser consented for that client and server.',
    'sec D1': 'The consent page says who requests what, and redirects no one.',
    'sec D2': 'Each client needs its own consent.',
    'sec D3': 'A login that started in another browser is rejected at the callback.',
    'sec D4': 'The consent form is accepted once, and only from our page.',
    'sec D5': 'Unknown clients and redirect URIs end on an error page, without a redirect.',
    'sec D6': 'Loopback redirect URIs may differ only in the port.',
    'sec D8': 'PKCE cannot be omitted or weakened.',
    'sec D9': 'Reuse of a code revokes the tokens that it produced.',
    'sec D11': 'Codes and refresh tokens work only for their own server and client.',
    'sec D12': 'A callback with a wrong state is rejected.',
    'sec D14': 'Provider errors reach the client with state and issuer, and without markup.',
    'sec D18': 'Reuse of a replaced refresh token revokes its token family.',
    'sec D19': 'Registrations use no storage and are rate limited.',
    'sec D20': 'Client names are shown as inert text.',
  }),
  ...requirementsFrom(cwe(639), {
    'sec E1': 'Objects of another workspace are indistinguishable from objects that do not exist.',
    'sec M9': 'Every query names its workspace, and a login ends when its agreed terms change.',
  }),
  ...requirementsFrom(specification, {
    'sec E2': 'Slugs are reserved, unique regardless of case, and never reassigned.',
  }),
  ...requirementsFrom(cwe(613), {
    'sec E3': 'A revoked key is rejected on every replica within seconds.',
    'sec E6': 'Sign-in verifies everything that OpenID Connect requires.',
  }),
  ...requirementsFrom(cwe(1188), { 'sec E7': 'The service refuses to start with an unsafe setting.' }),
  ...requirementsFrom(cwe(362), { 'sec F1': 'No response reaches another caller.' }),
  ...requirementsFrom(transport, { 'sec F2': 'Foreign origins and headers that contradict the body are rejected.' }),
  ...requirementsFrom(rfc(9112), { 'sec F4': 'Ambiguous requests are rejected, and slow ones time out.' }),
  ...requirementsFrom(cwe(770), {
    'sec F5': 'A workspace with excessive load does not slow down others.',
    'sec 4.1': 'A late event loop and a failing upstream have bounds.',
  }),
  ...requirementsFrom(cwe(400), {
    'sec R1': "A command limits the bytes, pages, and time that it spends on a service's responses.",
  }),
  ...requirementsFrom(cwe(73), {
    'sec R2': 'No text from a service decides where a command writes or how its output is interpreted.',
  }),
  ...requirementsFrom(cwe(404), {
    'sec G3': 'A client that disconnects frees its connection and its slot.',
    'sec G4': 'A shutdown lets running calls finish.',
    'sec G5': 'Acknowledged writes survive kill -9, a full disk, and a database outage.',
    'sec G6': 'A database whose write-ahead log lost acknowledged writes is not opened.',
  }),
  ...requirementsFrom(cwe(79), {
    'sec M8': 'Upstream responses are data, and credentials are removed from them.',
    'sec M10': 'Pages run only their own scripts and styles.',
  }),
};

/** Rules that an independent review of the running service found missing. */
const findings = {
  ...requirementsFrom(architecture, {
    'find A1': 'A configuration is validated in bounded time, regardless of its schema.',
    'find A2': 'Arguments and responses are validated and parsed in bounded time.',
    'find A3': 'A request from an unverified caller costs next to nothing.',
    'find A4': 'Reports do not slow down calls.',
    'find A5': 'All stored data has an expiry or a limit.',
    'find A6': 'Unverified callers take no capacity from verified callers.',
    'find A7': 'No workspace, verified caller, or unverified caller can exhaust the process memory for others.',
    'find A8': 'Shares of the process, and usage that no deletion returns, count against the creator of a workspace.',
    'find B1': 'No process clock decides about changes or expiry.',
    'find B2': 'A response reaches only the caller of its request.',
    'find C1': 'A database that a version cannot serve is rejected at startup.',
    'find C6': 'Limits apply across all processes.',
  }),
  ...requirementsFrom('docs/credentials.md', {
    'find B3': 'A credential of this service reaches no upstream, in plain text or in one layer of encoding.',
    'find B6': 'A token of a login goes only to hosts that the user agreed to.',
    'find F2': 'Keys created with a key end with it and have at most its limits.',
    'find F4': 'Anyone who may manage a server can delete its secrets at any time.',
    'find E1': 'Any token of visible characters reaches the upstream unchanged.',
    'find E8':
      "The provider's own message about a failed login reaches the user, the log, and the audit as inert text.",
    'find E7':
      'A rejected token refresh ends a login only if the provider says so, or after three consecutive rejections without a reason over a minute.',
    'find E4': 'An unusable token endpoint response ends the login and states the reason.',
  }),
  ...requirementsFrom('docs/sign-in.md', {
    'find B8':
      'Everything that a removed member created is listed, can be revoked in one step, and sends nothing until a member confirms it.',
    'find B9': 'Only people see the names and email addresses of people.',
  }),
  ...requirementsFrom(rfc(9700), {
    'find B4': 'Before consent, a request of an unknown client redirects no one to a URL of that client.',
    'find B5': 'No other parameter can be mistaken for one that the service sets.',
    'find B7': "Client metadata documents are never fetched from the operator's exceptions.",
    'find E5': 'A configuration that cannot work is a problem or a warning.',
  }),
  ...requirementsFrom('docs/files.md', {
    'find F3': 'A server file references only files of its folder and variables that the caller names.',
  }),
  ...requirementsFrom('docs/operations/deployment.md', {
    'find C2': 'A master key can be replaced while the service runs, and a wrong one is detected at startup.',
    'find C3': 'PostgreSQL can be reached through PgBouncer and TLS.',
    'find C5': 'A shutdown reports every record that it loses, and a process pause is not blamed on an upstream.',
    'find C4': 'A database failure is reported as such and loses no work in progress.',
  }),
  ...requirementsFrom(specification, {
    'find D1': 'Messages in the dashboard refer to the content on screen.',
    'find D2': 'Nothing moves while the pointer is pressed.',
    'find D3': 'Commands reject names that do not exist and suggest ones that work.',
    'find D4': 'Names, pages, and sizes are shown as users expect, and a change without effect stores nothing.',
    'find D5': 'A message names the closest existing name and the next step.',
    'find E2': 'A list without a limit returns everything up to the default quota.',
    'find E3': 'null counts as absent where the schema does not allow it.',
    'find E6': 'The documentation lists the headers that are added to a request.',
  }),
};

/** Playground: models and their hosts. */
const playground = requirementsFrom('docs/playground.md', {
  'play 1': 'A model response is read in bounded time and memory, and an error names the limit.',
  'play 2': 'A key with only the call scope makes the service connect only to hosts that an editor configured.',
  'play 3': 'A question to a model counts against call limits and leaves a call record.',
});

/** Expressiveness of configurations for real APIs, and how they are changed. */
const configurations = requirementsFrom('docs/configuration.md', {
  'conf 1': 'An argument reaches the upstream under the name and in the form that the API expects.',
  'conf 2': 'A body can be a form, files, bytes, or JSON from a template, with every method except HEAD.',
  'conf 8': 'The record of a failed call states the reason, without caller values or API texts.',
  'conf 5':
    'An agent gets the headers, files, and redirect targets that the tool requests, and nothing secret with them.',
  'conf 3': 'base_url, headers, variables, and secrets in URLs are defined once and go only where they may.',
  'conf 4': 'Each kind of credential reaches the API, alone or combined with others, and no other recipient.',
  'conf 6': 'A configuration that cannot work is a problem or a warning that says what to do.',
  'conf 7': 'One tool can be changed without the others, and a server may have a thousand tools.',
  'conf 9': 'Numbers in a configuration keep all digits on their way to the upstream and back.',
  'conf 10': 'Client headers go to the upstream if the server names them, and never a credential.',
});

/** Servers created from existing API descriptions, collections, and commands. */
const imports = requirementsFrom('docs/import.md', {
  'imp 1':
    'API descriptions of every version are parsed leniently, within limits, and their references are never fetched.',
  'imp 2': 'Every client accepts an imported tool, and the tool sends what the description says.',
  'imp 3': 'An import plan lists the tools, their cost, open questions, and incomplete parts.',
  'imp 4': 'People and agents can import over REST, the management server, and the command line, within limits.',
  'imp 5': 'A reimport keeps every edit, follows the document elsewhere, and can be undone.',
});

/** Guarantees for operators. */
const shipping = {
  ...requirementsFrom('docs/operations/installation.md', {
    'ship 1': 'The npm package installs and runs on every maintained Node.js release line.',
    'ship 2': 'The image and the container files are correct, confine the service, and run it.',
  }),
  ...requirementsFrom('.github/workflows/release.yml', {
    'ship 11': 'Release inputs are pinned, and code of dependencies runs only where nothing can be published.',
  }),
  ...requirementsFrom('docs/clients.md', {
    'ship 5': 'A server can have its own host, with the same discovery and login as at its path.',
    'ship 6': 'A command simulates the known clients against any server and reports which would fail, and why.',
  }),
  ...requirementsFrom('docs/rest-api.md', {
    'rest 1': 'The OpenAPI document of the REST API gives generated clients named types and every possible response.',
  }),
  ...requirementsFrom('docs/command-line.md', {
    'ship 7':
      'The command line logs in without a key, keeps its tokens private, and shows the same data as the service.',
  }),
  ...requirementsFrom('docs/operations/proxies.md', {
    'ship 9': 'Everything works below a path of a host, including discovery, and other paths are left alone.',
  }),
  ...requirementsFrom('docs/operations/backup.md', {
    'ship 3':
      'A backup is a consistent snapshot of the database and is restored completely or not at all, on either engine.',
    'ship 10': 'A backup with a missing or wrong signature is restored only with --unverified.',
  }),
  ...requirementsFrom('docs/operations/upgrades.md', {
    'ship 4': 'A version never misreads a configuration of a newer version: it rejects what it does not know.',
  }),
  ...requirementsFrom('bench/README.md', {
    'ship bench':
      'Every benchmark mode finishes with its report, and the benchmark of any commit can start this version.',
  }),
  ...requirementsFrom('README.md', {
    'ship 8': 'Every command on a page runs or says why not, and every page and link of the site resolves.',
  }),
};

/** Configuration files. */
const files = requirementsFrom('docs/files.md', {
  'imp 6': 'Servers are defined in files, and the service is updated to match them without surprises.',
});
const gallery = requirementsFrom('examples/gallery/README.md', {
  'imp 7': 'Each example sends exactly what the API documents and can start a server in the dashboard.',
});

/** Agents on a server with many tools or long responses. */
const agents = requirementsFrom('docs/large-servers.md', {
  'agent 1':
    'A server of any size costs an agent few tokens: it searches, reads, and calls tools instead of listing all of them.',
  'agent 3': 'No response exceeds its limit, and an agent that got a part can read the remainder.',
  'agent 4': 'A large file in a response has a URL for ten minutes, which also works as an upload.',
  'agent 5':
    'A call can be viewed from both sides, replayed, and copied in other forms, and its response reduced to the needed fields.',
});

const views = requirementsFrom('docs/views.md', {
  'agent 2':
    'A view serves a subset of the tools at its own URL: listed tools can be called, and all others are unknown.',
});

export const requirements: Readonly<Record<string, Requirement>> = {
  ...interfaces,
  ...protocol,
  ...security,
  ...findings,
  ...playground,
  ...configurations,
  ...imports,
  ...agents,
  ...views,
  ...shipping,
  ...files,
  ...gallery,
};
