import { formatFirstNames } from '@toolhost/errors/problems';
import { schemaIssues } from '@toolhost/mcp-clients/client-warnings';
import {
  clientsWithStrictNames,
  findClientNames,
  joinNames,
  knownClients,
  modelToolNamePattern,
} from '@toolhost/mcp-clients/clients';
import { asObject, type Fields, toStrings } from './web.ts';

/** A single requirement of clients, and the result for the server. */
export type Check = {
  id: string;
  title: string;
  status: 'ok' | 'warning' | 'problem';
  detail: string;
  /** Names of the affected clients. */
  clients: string[];
  /** Consequences for some clients, if they differ from `detail`. */
  reasons?: readonly Reason[];
};

/** A consequence for some clients. With `stops`, they cannot use the server at all. */
export type Reason = { clients: readonly string[]; text: string; stops?: true };

/** Result of a check. It affects all clients unless it names some. */
export type Verdict = Pick<Check, 'status' | 'detail' | 'reasons'> & { clients?: string[] };

export const ok = (detail: string, clients?: string[]): Verdict => ({
  status: 'ok',
  detail,
  ...(clients && { clients }),
});
export const warning = (detail: string, clients?: string[]): Verdict => ({ ...ok(detail, clients), status: 'warning' });

/** Creates a warning from its consequences for some clients. */
export function createWarning(reasons: readonly Reason[]): Verdict {
  const affected = new Set(reasons.flatMap(({ clients }) => clients));
  const clients = allClients.filter((name) => affected.has(name));
  return { status: 'warning', detail: reasons.map(({ text }) => text).join(' '), clients, reasons };
}
export const problem = (detail: string, clients?: string[]): Verdict => ({ ...ok(detail, clients), status: 'problem' });

export const allClients: readonly string[] = knownClients.map((client) => client.name);

/** Clients that can log in. The others use a token that their user enters. */
export const loginClients: readonly string[] = findClientNames(({ cannotLogIn }) => !cannotLogIn);

/** Shows if a client can use the server, with the reasons why not or what is missing. */
export type ClientVerdict = { client: string; works: 'yes' | 'partly' | 'no'; because: string[] };

/** Returns the consequences of the checks for each client. */
export function getClientVerdicts(checks: readonly Check[]): ClientVerdict[] {
  return knownClients.map(({ name }) => {
    const failedChecks = checks.filter(({ status, clients }) => status !== 'ok' && clients.includes(name));
    const consequences = failedChecks.flatMap((check) => getConsequences(name, check));
    const isStopped = consequences.some(({ stops }) => stops);
    const because = consequences.filter(({ stops }) => stops || !isStopped).map(({ text }) => text);
    return { client: name, works: isStopped ? 'no' : consequences.length > 0 ? 'partly' : 'yes', because };
  });
}

function getConsequences(client: string, { status, detail, reasons }: Check): { text: string; stops: boolean }[] {
  const ownReasons = reasons?.filter(({ clients }) => clients.includes(client));
  if (ownReasons) return ownReasons.map(({ text, stops }) => ({ text, stops: stops === true || status === 'problem' }));
  return [{ text: detail, stops: status === 'problem' }];
}

/** Returns the clients that are known to call only a different path than this URL has. */
export function findPathReasons(address: string): Reason[] {
  const { pathname } = new URL(address);
  return knownClients
    .filter(({ requiredPath }) => requiredPath !== undefined && requiredPath !== pathname)
    .map(({ name, requiredPath }) => ({
      clients: [name],
      text: `${name} reportedly calls only servers with the path ${requiredPath}. The path of this server is ${pathname}.`,
    }));
}

/** Checks the URL itself, before any request is sent. */
export function checkAddress(address: string): Verdict {
  if (!URL.canParse(address)) return problem(`${JSON.stringify(address)} is not a URL. Expected: https://host/path.`);
  const { protocol, hostname, hash, username, password, search } = new URL(address);
  if (protocol !== 'https:' && protocol !== 'http:')
    return problem(`The scheme is ${protocol} Clients accept https and http.`);
  if (username !== '' || password !== '')
    return problem('The URL contains a user name or a password, which clients reject.');
  if (hash !== '') return problem('The URL has a fragment (#), which is never sent.');
  const hostedClients = findClientNames(({ isHosted }) => isHosted);
  if (isLoopbackHost(hostname)) {
    const detail = `Only programs on this machine can reach it. ${joinNames(hostedClients)} connect from the internet.`;
    const text = 'It connects from the internet, but only programs on this machine can reach the URL.';
    return { ...warning(detail, hostedClients), reasons: [{ clients: hostedClients, text, stops: true }] };
  }
  if (protocol === 'http:') {
    const detail = `It is not https, so credentials can be intercepted. ${joinNames(hostedClients)} reject it.`;
    const reasons = [{ clients: hostedClients, text: 'It accepts only https.', stops: true as const }];
    return { ...warning(detail), reasons: [...reasons, { clients: allClients, text: 'It is not https.' }] };
  }
  if (search !== '') return warning('The URL has a query, which some clients drop when they look for the login.');
  const picky = findPathReasons(address);
  if (picky.length > 0) return createWarning(picky);
  return ok('The URL uses https and is not a loopback address.');
}

/**
 * Checks the metadata of a protected resource (RFC 9728, 2). Clients compare `resource` with the URL character by
 * character.
 */
export function checkResourceMetadata(resource: Fields, address: string): Verdict {
  if (typeof resource.resource !== 'string') return problem('"resource" is missing.');
  if (resource.resource !== address) {
    const differsBySlash = resource.resource.replace(/\/$/, '') === address.replace(/\/$/, '');
    const detail = `"resource" is ${formatJson(resource.resource)}, not ${address}; clients compare it character by character.`;
    return differsBySlash
      ? warning(`${detail} Only the trailing slash differs, which some clients ignore.`)
      : problem(detail);
  }
  const servers = toStrings(resource.authorization_servers);
  if (servers.length === 0) return problem('The metadata names no authorization server.');
  const unusable = servers.filter((server) => !URL.canParse(server));
  if (unusable.length > 0)
    return problem(`The authorization server ${formatJson(unusable[0] as string)} is not a URL.`);
  return ok('The resource is exactly the URL that people configure.');
}

const endpoints = ['authorization_endpoint', 'token_endpoint'] as const;

/**
 * Checks the metadata of an authorization server (RFC 8414, 2). `issuer` is the issuer whose metadata was requested.
 */
export function checkServerMetadata(metadata: Fields, issuer: string): Verdict {
  if (metadata.issuer !== issuer)
    return problem(
      `"issuer" is ${formatJson(metadata.issuer)}, not ${issuer}; clients compare it character by character.`,
    );
  const missing = endpoints.filter((name) => typeof metadata[name] !== 'string');
  if (missing.length > 0) return problem(`${missing.join(' and ')} is missing.`);
  const unsafe = endpoints.filter((name) => !isSafeUrl(metadata[name] as string));
  if (unsafe.length > 0) return problem(`${unsafe.join(' and ')} is neither https nor on a loopback address.`);
  if (!toStrings(metadata.code_challenge_methods_supported).includes('S256'))
    return problem('PKCE with S256 is not announced, and clients must not continue without it.');
  const types = metadata.response_types_supported;
  if (types !== undefined && !toStrings(types).includes('code'))
    return problem('The response type "code" is not announced.');
  const grants = metadata.grant_types_supported;
  if (grants !== undefined && !toStrings(grants).includes('authorization_code'))
    return problem('The grant type "authorization_code" is not announced.');
  return ok('The issuer is as announced, and no endpoint is missing.');
}

/** Checks how clients get a client ID: by dynamic registration (RFC 7591) or with a client metadata document. */
export function checkRegistrationMetadata(metadata: Fields): Verdict {
  if (typeof metadata.registration_endpoint === 'string') return ok('Clients can register themselves.');
  if (metadata.client_id_metadata_document_supported === true)
    return warning(
      'Only client metadata documents are accepted. Clients that support only dynamic registration cannot log in.',
    );
  return problem(
    'There is no registration_endpoint, so each person must obtain a client ID and enter it in the client.',
  );
}

/** Returns true if a URL uses https or a loopback address. */
export function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

function formatJson(value: unknown): string {
  return (JSON.stringify(value) ?? 'missing').slice(0, 200);
}

const maxTokens = 10_000;

/** Checks the entries of `tools/list` (MCP 2025-11-25, server/tools). */
export function checkToolList(tools: readonly Fields[]): Verdict {
  const unnamedCount = tools.filter(({ name }) => typeof name !== 'string' || name === '').length;
  if (unnamedCount > 0) return problem(`Tools without a name: ${unnamedCount}.`);
  const byName = Map.groupBy(tools, ({ name }) => String(name));
  const duplicates = [...byName].filter(([, { length }]) => length > 1).map(([name]) => name);
  if (duplicates.length > 0) return problem(`Several tools have the same name: ${formatFirstNames(duplicates)}.`);
  const invalid = tools.filter(({ inputSchema }) => asObject(inputSchema).type !== 'object');
  if (invalid.length > 0) {
    const strict = findClientNames(({ addsMissingTypes }) => !addsMissingTypes);
    return problem(`These tools have no input schema of type object: ${formatFirstNames(getNames(invalid))}.`, strict);
  }
  const invalidOutput = tools.filter(
    ({ outputSchema }) => outputSchema !== undefined && asObject(outputSchema).type !== 'object',
  );
  if (invalidOutput.length > 0)
    return problem(
      `These tools have an output schema that is not of type object, so SDKs reject the whole list: ${formatFirstNames(getNames(invalidOutput))}.`,
    );
  const incomplete = tools.filter(({ description }) => typeof description !== 'string' || description.trim() === '');
  if (incomplete.length > 0)
    return warning(
      `Models choose tools by their description. These tools have none: ${formatFirstNames(getNames(incomplete))}.`,
    );
  return ok('Every tool has a name, a description, and an input schema of type object.');
}

export function checkToolCount(count: number, emptyText = 'The server has no tools'): Verdict {
  const tools = count === 1 ? '1 tool' : `${count} tools`;
  if (count === 0) return warning(`${emptyText}.`);
  const limited = knownClients.filter((client) => client.maxTools !== undefined);
  const exceeded = limited.filter((client) => count > (client.maxTools ?? 0));
  const limits = limited.map(({ name, maxTools }) => `${name} ${maxTools}`).join(', ');
  if (exceeded.length === 0)
    return ok(`${tools}. Limits across all servers of a client: ${limits}.`, clientNames(limited));
  return warning(
    `${tools}. Limits across all servers of a client: ${limits}. Split the server.`,
    clientNames(exceeded),
  );
}

/** Checks tool names. `slug` is the name under which people add the server to their client. */
export function checkToolNames(names: readonly string[], slug: string): Verdict {
  const invalidNames = names.filter((name) => !modelToolNamePattern.test(name));
  const longNames = knownClients.flatMap(({ name: client, toolName }) =>
    names
      .filter((name) => toolName.format(slug, name).length > toolName.max)
      .map((name) => ({ client, name, max: toolName.max })),
  );
  const reasons: Reason[] = [...Map.groupBy(longNames, ({ client }) => client)].map(([client, excessive]) => ({
    clients: [client],
    text: `${client} allows ${excessive[0]?.max} characters including the server name. Longer names: ${formatFirstNames(excessive.map(({ name }) => name))}.`,
  }));
  if (invalidNames.length > 0) {
    const text = `Models accept only letters, digits, _ and -. Other names: ${formatFirstNames(invalidNames)}.`;
    reasons.unshift({ clients: clientsWithStrictNames, text, stops: true });
  }
  if (reasons.length === 0) return ok('Short enough for every client, including the server name as prefix.');
  return createWarning(reasons);
}

export function checkTokens(tokens: number): Verdict {
  const summary = `About ${tokens} tokens in every conversation`;
  return tokens <= maxTokens ? ok(`${summary}.`) : warning(`${summary}; shorten descriptions or split the server.`);
}

/** Checks input schemas for anything that known clients reject or omit. */
export function checkSchemas(tools: readonly Fields[]): Verdict {
  const reasons = schemaIssues.flatMap(({ title, rejectedBy, degradedBy, find }): Reason[] => {
    const affectedTools = tools.filter(({ inputSchema }) => find(asObject(inputSchema)).length > 0);
    if (affectedTools.length === 0) return [];
    const text = `${title}: ${formatFirstNames(getNames(affectedTools))}`;
    const rejected: Reason[] = rejectedBy.length === 0 ? [] : [{ text: `${text}.`, clients: rejectedBy, stops: true }];
    if (!degradedBy) return rejected;
    const { clients, effect } = degradedBy;
    return [...rejected, { text: `${text}; ${joinNames(clients)} ${effect}.`, clients }];
  });
  return reasons.length === 0 ? ok('No schema has anything that a known client rejects.') : createWarning(reasons);
}

const hints = ['readOnlyHint', 'destructiveHint', 'openWorldHint'];

/** Checks the annotations by which some clients decide if a tool only reads. */
export function checkHints(tools: readonly Fields[]): Verdict {
  const affected = findClientNames(({ requiresHints }) => requiresHints);
  const incomplete = tools.filter(({ annotations }) =>
    hints.some((hint) => typeof asObject(annotations)[hint] !== 'boolean'),
  );
  if (incomplete.length === 0) return ok('Every tool has the annotations that show if it only reads.', affected);
  return warning(
    `${joinNames(affected)} assumes that tools without ${joinNames(hints)} change data: ${formatFirstNames(getNames(incomplete))}.`,
    affected,
  );
}

const getNames = (tools: readonly Fields[]) => tools.map(({ name }) => String(name));
const clientNames = (clients: readonly { name: string }[]) => clients.map((client) => client.name);
