/**
 * What the tests prove: each requirement has an id, a sentence and a source. Test titles cite ids in brackets, such as
 * `[sec F3]`; `requirements.test.ts` fails for an id that is unknown here and for a requirement that no title cites.
 */
export type Requirement = { claim: string; source: string };

const specification = 'docs/specification.md';
const architecture = 'ARCHITECTURE.md';
const mcp = 'https://modelcontextprotocol.io/specification/2026-07-28';
const mcpLegacy = 'https://modelcontextprotocol.io/specification/2025-11-25';
const practices = `${mcp}/basic/security_best_practices`;
const rfc = (number: number, section = '') =>
  `https://www.rfc-editor.org/rfc/rfc${number}${section && `#section-${section}`}`;
const cwe = (number: number) => `https://cwe.mitre.org/data/definitions/${number}.html`;

const of = (source: string, claims: Record<string, string>): Record<string, Requirement> =>
  Object.fromEntries(Object.entries(claims).map(([id, claim]) => [id, { claim, source }]));

/** The interface that the service implements, and what it decides where the interface is silent. */
const interfaces = of(specification, {
  'spec 2.2': 'Each type of authentication puts the token where the table says.',
  'spec 2.3': 'A server with oauth logs people in at the provider that it names.',
  'spec 4.2': 'The management server lists the servers of the caller and creates new ones.',
  'spec 4.3.1': 'The upstream request has the method, URL and static headers of the tool.',
  'spec 4.3.2': 'Each :argument of the URL is replaced, also behind a prefix.',
  'spec 4.3.3': 'GET sends the other arguments in the query string.',
  'spec 4.3.4': 'PATCH sends them as a JSON body and keeps the filter in the query string.',
  'spec 4.3.5': 'POST sends them as a JSON body.',
  'spec 4.3.6': 'PUT sends a body, DELETE a query string.',
  'spec 4.3.7': 'The token of the caller reaches the upstream unchanged, as authentication says.',
  'spec 4.3.8': 'The upstream request ends after timeout_ms.',
  'spec 4.3.9': 'response_transform selects a part of the answer.',
  'spec 4.3.10': 'The worked example answers a write with the row only when Prefer asks for it.',
  'spec 4.4': 'The token endpoint receives the form of the specification, and its answer is checked as it says.',
  'spec 5.2': 'A client presents its API key as a bearer.',
  'spec 5.3': 'A token that the upstream expects in a header of its own is sent there.',
  'spec 5.4.7': 'The token may come in the header that authentication names.',
  'spec 7': 'A request without a token gets 401, with hints where oauth is set.',
  'behaviour Configuration': 'A configuration is checked as a whole, and nothing of a refused one is stored.',
  'behaviour The tool result': 'Each kind of answer and failure becomes the result that the section describes.',
  'behaviour Calls': 'Arguments and answers are recorded only while capture is on.',
  'behaviour request 1': 'A colon starts an argument only where one is declared and may stand.',
  'behaviour request 2': 'No value changes the structure of the URL.',
  'behaviour request 3': 'An absent optional argument drops its query pair.',
  'behaviour request 4': 'Arguments outside the template go where the method or `in` says.',
  'behaviour request 5': 'Arrays, objects and null have one form in a query.',
  'behaviour request 6': 'The body has the encoding that the tool declares.',
  'behaviour request 7': 'Defaults fill absent arguments.',
  'behaviour request 8': 'Nothing of the caller’s request is forwarded but a valid trace context.',
  'behaviour request 9': 'Nothing else may have the name of the credential.',
  'behaviour request 10': 'A stored credential is sent in place of the caller’s.',
});

const transport = `${mcp}/basic/transports/streamable-http`;
const authorization = `${mcp}/basic/authorization`;
const tools = `${mcp}/server/tools`;

/** The Model Context Protocol. */
const protocol = {
  ...of(transport, {
    'mcp 1': 'A tools/call with matching headers gets 200, the same id and content.',
    'mcp 5': 'A request without the metadata that every request carries gets 400 and −32602.',
    'mcp 7': 'The version header equals the version in the metadata.',
    'mcp 8': 'Mcp-Method equals the method.',
    'mcp 9': 'Mcp-Name equals the name of the tool, also encoded.',
    'mcp 10': 'An annotated argument equals its header.',
    'mcp 21': 'GET and DELETE get 405.',
    'mcp 22': 'Session ids and Last-Event-ID are ignored.',
    'mcp 23': 'A foreign Origin gets 403.',
    'mcp 29': 'A modern client that disconnects cancels its call, a legacy one does not.',
    'mcp 30': 'A body that is too large or of another type is refused before anything is sent.',
  }),
  ...of(`${mcp}/basic/versioning`, {
    'mcp 11': 'An unknown version gets −32022 with the versions that are served.',
    'mcp 24': 'A legacy request that carries Mcp-Method is served as legacy.',
    'mcp 25': 'Each request has its own era, whatever came before on the connection.',
  }),
  ...of(`${mcp}/server/discover`, { 'mcp 3': 'server/discover tells versions and capabilities.' }),
  ...of(`${mcp}/basic`, {
    'mcp 2': 'A modern result names the server.',
    'mcp 6': 'A request without clientInfo is served.',
    'mcp 12': 'A method that is not served gets 404 and −32601 with its id.',
    'mcp 16': 'A message that is no JSON-RPC request is refused with the right code.',
    'mcp 28': 'The server sends no request and no message that nobody asked for.',
    'mcp 35': 'A valid traceparent is forwarded, an invalid one dropped.',
  }),
  ...of(tools, {
    'mcp 4': 'tools/list has a stable order and caching hints.',
    'mcp 13': 'An unknown tool gets −32602.',
    'mcp 14': 'Arguments that do not fit become a result with isError.',
    'mcp 15': 'A failure of the upstream becomes a result with isError.',
    'mcp 31': 'A tool that clients would refuse is refused when it is stored.',
    'mcp 32': 'Schemas are listed as they were stored, and nothing is fetched for them.',
    'mcp 33': 'Structured content fits the output schema.',
    'mcp 34': 'Tool calls have limits, and one server’s limits do not touch another’s.',
  }),
  ...of(`${mcpLegacy}/basic/lifecycle`, {
    'mcp 18': 'initialize agrees on a legacy version and opens no session.',
    'mcp 20': 'A legacy request without a version is served, one with an unknown version refused.',
  }),
  ...of('https://modelcontextprotocol.io/specification/2025-03-26/basic/transports', {
    'mcp 17': 'A legacy batch gets a batch of answers; a modern message in one is refused.',
    'mcp 19': 'A notification gets 202 without a body.',
    'mcp 26': 'A client that accepts only JSON, or anything, gets JSON.',
  }),
  ...of(`${mcp}/basic/utilities/subscriptions`, {
    'mcp 27': 'subscriptions/listen is acknowledged, canceled, and ended, as nothing is advertised.',
  }),
  ...of(authorization, {
    'mcp 36': 'A protected server answers 401 with the address of its metadata.',
    'mcp 37': 'A token that is not valid here gets invalid_token.',
    'mcp 38': 'A token without a scope that is needed gets insufficient_scope.',
    'mcp 39': 'A token in the query string does not count.',
    'mcp 41': 'The authorization server metadata names its own issuer.',
    'mcp 45': 'A token for another resource is refused.',
    'mcp 52': 'The token of the agent never goes upstream.',
    'mcp 60': 'Known clients log in also where their documents cannot be fetched, and a refusal says why.',
    'mcp 55': 'A client metadata document is fetched through the guard and believed only for its own address.',
    'mcp 56': 'Web pages may use discovery, registration and the token endpoint.',
    'mcp 57':
      'Addresses in metadata come from the configured base URL, in local mode under the name of this machine that was asked.',
  }),
  ...of(rfc(9728), { 'mcp 40': 'The protected resource metadata names exactly the address of the server.' }),
  ...of(rfc(9207), { 'mcp 42': 'Redirects to the client carry the issuer, on success and error.' }),
  ...of(rfc(7636), { 'mcp 43': 'PKCE with S256 is required.' }),
  ...of(rfc(8252, '7.3'), { 'mcp 44': 'A redirect URI is compared exactly, but for the port of a loopback address.' }),
  ...of(practices, {
    'mcp 46': 'A person sees a consent page before anything is sent to the provider.',
    'mcp 47': 'Another client in the same browser needs consent of its own.',
    'mcp 48': 'A callback that does not belong to the browser’s login is refused.',
  }),
  ...of(rfc(6749), {
    'mcp 49': 'A code works once, for the client and verifier that it was made for, and for no other redirect URI.',
    'mcp 50': 'The answer of the token endpoint is not stored by caches and names its type and life.',
    'mcp 51': 'Refreshing replaces the refresh token.',
    'mcp 62': 'An error of OAuth has the code of its cause, and says what is allowed in words of our own.',
    'mcp 53': 'An unknown client gets invalid_client at the token endpoint.',
  }),
  ...of(rfc(7591), { 'mcp 54': 'Dynamic registration answers 201, and refuses redirect URIs that are not safe.' }),
  ...of(rfc(6749, '2.3.1'), {
    'mcp 61': 'A client that registers with a secret gets one, and cannot use its tokens without it.',
  }),
  ...of('https://github.com/modelcontextprotocol/conformance', {
    'mcp 58': 'The official conformance suite passes with the recorded baselines.',
    'mcp 59': 'Real clients complete a login and a call.',
  }),
};

/** Security. Mechanisms have an M, failures a G, the rest the letter of what they protect. */
const security = {
  ...of(practices, {
    'sec A1': 'An API key of this service never reaches an upstream.',
    'sec A3': 'A server with oauth takes only live tokens that were issued for it.',
  }),
  ...of(cwe(601), {
    'sec A4': 'A redirect of an upstream is never followed.',
    'sec E8': 'A sign-in returns only to a page of this service.',
  }),
  ...of(cwe(441), { 'sec A9': 'No header of the caller is forwarded, and exactly one credential is sent.' }),
  ...of(cwe(532), {
    'sec A10': 'No secret is found in logs, answers or the database.',
    'sec C': 'Metrics hold nothing that a tenant or a caller chose.',
    'sec E': 'Metrics count what the address guard refuses.',
  }),
  ...of(cwe(209), { 'sec A11': 'A placeholder without a value never goes out.' }),
  ...of(cwe(522), { 'sec A12': 'Each webhook signing secret is known to one origin only.' }),
  ...of(cwe(93), { 'sec N1': 'Names are one line of visible text, and nothing but text in every channel.' }),
  ...of(cwe(918), {
    'sec B1': 'Addresses that are not public are refused.',
    'sec B2': 'Other spellings of such addresses are refused.',
    'sec B3': 'A public name with a private address is refused, and the message does not tell what is there.',
    'sec B4': 'A name is resolved once for each connection, and the address that was checked is used.',
    'sec B8': 'URLs with user information, fragments, other schemes or other ports are refused.',
    'sec B10': 'The operator’s exceptions hold for exactly one address and port.',
    'sec M1': 'Connections are not shared across workspaces, and an answer that nobody asked for is thrown away.',
  }),
  ...of(cwe(74), {
    'sec C1': 'Arguments cannot leave their segment or value of the URL.',
    'sec C2': 'Path arguments cannot be empty or dots.',
    'sec C4': 'Arguments stand only in path segments and query values.',
    'sec C7': 'Arguments that do not fit are refused before anything is sent.',
    'sec C8': 'An operator prefix cannot be escaped.',
    'sec C9': 'A transform sees own properties only.',
  }),
  ...of(cwe(400), {
    'sec C10': 'Schemas that take long to check are refused.',
    'sec F3': 'Large, deep and many-part bodies are refused at a bounded cost.',
    'sec G1': 'A hostile answer of an upstream becomes a tool error.',
  }),
  ...of(rfc(9700), {
    'sec D': 'A token is issued only if that browser consented for that client and server.',
    'sec D1': 'The consent page says who asks for what, and redirects nobody.',
    'sec D2': 'Consent is asked again for each client.',
    'sec D3': 'A login that was begun in another browser is refused at the callback.',
    'sec D4': 'The consent form counts once and only from our page.',
    'sec D5': 'Unknown clients and redirect URIs end on a page, without a redirect.',
    'sec D6': 'Loopback redirect URIs may differ in the port only.',
    'sec D8': 'PKCE cannot be left out or weakened.',
    'sec D9': 'A code that is used twice revokes what it produced.',
    'sec D11': 'Codes and refresh tokens work only at their own server and client.',
    'sec D12': 'A callback with a wrong state gets no further.',
    'sec D14': 'Errors of the provider reach the client with state and issuer, and no markup.',
    'sec D18': 'A replaced refresh token revokes its family.',
    'sec D19': 'Registrations cost no storage and have a limit.',
    'sec D20': 'Names of clients are shown as inert text.',
  }),
  ...of(cwe(639), {
    'sec E1': 'Objects of another workspace look like objects that do not exist.',
    'sec M9': 'Every query names its workspace, and a login ends when what was agreed to changes.',
  }),
  ...of(specification, { 'sec E2': 'Slugs are reserved, unique regardless of case and never given out twice.' }),
  ...of(cwe(613), {
    'sec E3': 'A revoked key is refused on every replica within seconds.',
    'sec E6': 'Sign-in verifies everything that OpenID Connect asks for.',
  }),
  ...of(cwe(1188), { 'sec E7': 'A start with an unsafe setting is refused.' }),
  ...of(cwe(362), { 'sec F1': 'No answer reaches another caller.' }),
  ...of(transport, { 'sec F2': 'Foreign origins and headers that contradict the body are refused.' }),
  ...of(rfc(9112), { 'sec F4': 'Requests that can be read in two ways are refused, and slow ones end on time.' }),
  ...of(cwe(770), {
    'sec F5': 'A workspace that asks for too much slows nobody else down.',
    'sec 4.1': 'A late event loop and a failing upstream have bounds.',
  }),
  ...of(cwe(400), {
    'sec R1': 'What a command believes of a service is bounded in bytes, pages and time.',
  }),
  ...of(cwe(73), { 'sec R2': 'No text of a service chooses where a command writes, or how its output is read.' }),
  ...of(cwe(404), {
    'sec G3': 'A client that leaves frees its connection and its slot.',
    'sec G4': 'A stop lets running calls finish.',
    'sec G5': 'What was acknowledged survives kill -9, a full disk and a database that is down.',
    'sec G6': 'A database whose write-ahead log lost what was acknowledged is not opened.',
  }),
  ...of(cwe(79), {
    'sec M8': 'Answers of upstreams are data, and credentials are removed from them.',
    'sec M10': 'Pages run only their own scripts and styles.',
  }),
};

/** What an independent look at the running service found, as the rules that were missing. */
const findings = {
  ...of(architecture, {
    'find A1': 'A configuration is checked in bounded time, whatever its schema.',
    'find A2': 'Arguments and answers are checked and read in bounded time.',
    'find A3': 'A request from a stranger costs next to nothing.',
    'find A4': 'Reports do not slow down calls.',
    'find A5': 'Nothing is stored without an end.',
    'find A6': 'Callers who were never let in take nothing from those who were.',
    'find A7': 'No workspace, caller or stranger takes the memory of the process from the others.',
    'find A8': 'Shares of the process, and what no deletion gives back, count for the creator of a workspace.',
    'find B1': 'No clock of a process decides about changes or expiry.',
    'find B2': 'An answer reaches only the caller whose request it answers.',
    'find C1': 'A database that a version cannot serve is refused at the start.',
    'find C6': 'Limits hold for all processes together.',
  }),
  ...of('docs/credentials.md', {
    'find B3': 'A credential of this service reaches no upstream, as it stands or in one layer of encoding.',
    'find B6': 'A token that was handed out goes only to hosts that the person agreed to.',
    'find B8':
      'What a removed member made is named, can be ended in one step, and sends nothing until a member confirms it.',
    'find B9': 'Only people see the names and addresses of people.',
    'find F2': 'What a credential makes ends with it and has at most its limits.',
    'find F4': 'Whoever may manage a server can remove its secrets at any time.',
    'find E1': 'Any visible token of a caller reaches the upstream unchanged.',
    'find E8':
      "The provider's own sentence about a failed login reaches the person, the log and the audit, as inert text.",
    'find E7':
      'A refused renewal ends a login only where the provider says so, or at the third without a reason in a row over a minute.',
    'find E4': 'An answer of a token endpoint that cannot be used ends the login with the reason.',
  }),
  ...of(rfc(9700), {
    'find B4': 'Before consent, a request of an unknown client leads nobody to an address of that client.',
    'find B5': 'No other parameter can be taken for one that the service sets.',
    'find B7': 'Documents that strangers name are never fetched from the exceptions of the operator.',
    'find E5': 'A configuration that cannot work is a problem or a warning.',
  }),
  ...of('docs/files.md', {
    'find F3': 'A file of servers names only files of its folder and variables that the caller names.',
  }),
  ...of('docs/operations/deployment.md', {
    'find C2': 'A master key can be replaced while the service runs, and a wrong one is noticed at the start.',
    'find C3': 'PostgreSQL may be reached through PgBouncer and TLS.',
    'find C5': 'A stop loses no record without a word, and a pause of a process is not blamed on an upstream.',
    'find C4': 'A fault of the database is told for what it is, and loses nothing that was begun.',
  }),
  ...of(specification, {
    'find D1': 'What the dashboard says belongs to what is on screen.',
    'find D2': 'Nothing moves under a pressed pointer.',
    'find D3': 'Commands refuse names that do not exist and recommend what works.',
    'find D4': 'Names, pages and sizes are told as a person expects them; a change that changes nothing makes nothing.',
    'find D5': 'A message names the nearest thing that exists and what to do.',
    'find E2': 'A list without a limit holds everything up to the usual quota.',
    'find E3': 'null counts as absent where the schema does not allow it.',
    'find E6': 'Users can read which headers are added to a request.',
  }),
};

/** The playground: models that people ask, and their hosts. */
const playground = of('docs/playground.md', {
  'play 1': "A response of a model's host is read in bounded time and memory, and an error names the limit.",
  'play 2': 'A key that may only call makes the service connect to nothing that an editor did not configure.',
  'play 3': 'A question to a model counts against the limits of calls and leaves a record.',
});

/** What a configuration can say of real APIs, and how it is changed. */
const configurations = of('docs/configuration.md', {
  'conf 1': 'An argument reaches the upstream under the name and in the form that the API expects.',
  'conf 2': 'A body can be a form, files, bytes, or JSON from a template, with every method but HEAD.',
  'conf 8': 'The record of a failed call says why, without a value of the caller or a text of the API.',
  'conf 5':
    'An agent gets the headers, files and targets of redirects that the tool asks for, and nothing secret with them.',
  'conf 3': 'base_url, headers, variables and secrets in URLs are written once and go only where they may.',
  'conf 4': 'Each kind of credential that APIs ask for reaches them, alone or beside others, and nobody else.',
  'conf 6': 'What a configuration cannot do is a problem or a warning that says what to do.',
  'conf 7': 'One tool can be changed without the others, and a server may have a thousand.',
  'conf 9': 'Numbers of a configuration keep their digits on every way to the upstream and back.',
  'conf 10': 'Headers of the client go to the upstream where the server names them, and never a credential.',
});

/** Servers made of what people have: API descriptions, collections and commands. */
const imports = of('docs/import.md', {
  'imp 1':
    'Descriptions of every version are read leniently, within limits, and nothing that they refer to is fetched.',
  'imp 2': 'An imported tool is one that every client takes and that sends what the description says.',
  'imp 3': 'A plan says what an import would make, what it costs, what has to be answered, and what is not whole.',
  'imp 4': 'People and agents import over REST, the management server and the command line, within bounds.',
  'imp 5': 'Importing again keeps every edit, follows the document elsewhere, and can be undone.',
});

/** What an operator gets and can rely on. */
const shipping = {
  ...of('docs/operations/installation.md', {
    'ship 1': 'The npm package installs and runs on every maintained Node line.',
  }),
  ...of('.github/workflows/release.yml', {
    'ship 11':
      'What a release is made with is pinned, and code of dependencies runs only where nothing can be published.',
  }),
  ...of('docs/clients.md', {
    'ship 5': 'A server may have a host of its own, where it is found and logged in to as at its path.',
    'ship 6': 'A command plays the known clients against any server and says which would fail, and why.',
  }),
  ...of('docs/rest-api.md', {
    'rest 1':
      'The OpenAPI document of the REST API gives generated clients named types and all that a response can be.',
  }),
  ...of('docs/operations/containers.md', {
    'ship 2': 'The image and the files for engines are correct, confine the service, and run it.',
  }),
  ...of('docs/command-line.md', {
    'ship 7': 'The command line logs in without a key, keeps its tokens to itself, and shows what the service shows.',
  }),
  ...of('docs/operations/proxies.md', {
    'ship 9': 'Everything works below a path of a host, discovery included, and leaves the other paths alone.',
  }),
  ...of('docs/operations/backup.md', {
    'ship 3': 'A backup holds one moment of the database, and is restored whole or not at all, on either engine.',
    'ship 10': 'A backup whose signature is missing or wrong is restored only with --unverified.',
  }),
  ...of('docs/operations/upgrades.md', {
    'ship 4': 'A version does nothing else than was configured with a newer one, and refuses what it does not know.',
  }),
  ...of('bench/README.md', {
    'ship bench': 'Every mode of the bench ends with its report, and the bench of any commit can start this one.',
  }),
  ...of('README.md', {
    'ship 8': 'Every command on a page is run or says why not, and every page and link of the site leads somewhere.',
  }),
};

/** Configurations as files. */
const files = of('docs/files.md', {
  'imp 6': 'Servers are described by files, and the service is made to match them without surprises.',
});
const gallery = of('examples/gallery/README.md', {
  'imp 7': 'Each example sends exactly what the API documents, and begins a server in the dashboard.',
});

/** What an agent sees of a server with many tools or long answers. */
const agents = of('docs/large-servers.md', {
  'agent 1':
    'A server of any size costs an agent little: it finds, reads and calls tools instead of getting all of them.',
  'agent 3': 'No answer is longer than its limit, and the agent that got a part of one can read the rest.',
  'agent 4': 'A large file of an answer has an address for ten minutes, which also serves as an upload.',
  'agent 5':
    'A call can be looked at from both sides, repeated, copied in other forms, and its answers made smaller by what was seen.',
});

const views = of('docs/views.md', {
  'agent 2':
    'A view serves a part of the tools at its own address: what is listed is what can be called, and what is not there is unknown.',
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
