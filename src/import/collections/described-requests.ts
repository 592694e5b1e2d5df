import { foldedHeader } from '../../domain/http/parameter-names.ts';
import type { JsonFields } from '../document/lenient.ts';
import type { ApiDescription, ApiInput, ApiOperation, ApiRequirement, ApiScheme, Finding } from '../model.ts';
import { isSameAddress } from '../plan/server-address.ts';
import { short } from '../tools/input-arguments.ts';
import { operationsOf, type ReadRequest } from './join-requests.ts';
import { namedCall } from './named-calls.ts';
import { expandVariables, isPlaceholder, normalizeVariables, type Variables } from './placeholders.ts';
import {
  bodyOfRequest,
  findUnsendableBody,
  type RequestBody,
  resolveMediaType,
  schemaOfSame,
  schemaOfText,
  toExample,
} from './request-bodies.ts';
import { readRequestUrl } from './request-url.ts';
import { isOpaqueSegment, isRevealingName, isRevealingValue } from './revealing.ts';

/** Request as it appears in a collection, a command, or a recording. */
export type DescribedRequest = {
  name?: string;
  description?: string;
  tags?: readonly string[];
  method: string;
  /** URL with its query; `{{NAME}}` and `:name` are variable parts. */
  url: string;
  headers: readonly (readonly [name: string, value: string])[];
  body: RequestBody | undefined;
  /** Credential that is declared separately from the headers. */
  auth?: GivenAuth | undefined;
  /** Descriptions and values of its inputs, if the source has them. */
  inputs?: readonly DescribedInput[];
  at: string;
};

/** Input with its description. The value of a path parameter is declared separately from the path. */
export type DescribedInput = {
  location: 'path' | 'query' | 'header';
  name: string;
  value: string;
  description: string;
};

type GivenAuth =
  | 'basic'
  | 'bearer'
  | { in: 'header' | 'query'; name: string }
  | { region: string; service: string }
  /** Name of an authentication method that tools do not support. */
  | { unsupported: string };

/** Source of requests, with the variables that it defines. */
export type RequestSource = Pick<ApiDescription, 'format' | 'version' | 'title' | 'description'> & {
  /** Values of variables, by their names. */
  variables?: Variables;
  /** True if a browser recorded the requests, with headers that it adds by itself. */
  isRecorded?: boolean;
};

/** Headers that the service or HTTP itself sets, and headers that describe the body or the response. */
const ofTransport =
  /^(?:accept|accept-(?:encoding|charset)|connection|content-(?:type|length)|expect|host|keep-alive|postman-token|sec-.*|te|trailer|transfer-encoding|upgrade|:.*)$/;
/** Headers that browsers add automatically. */
const ofBrowser =
  /^(?:accept-language|cache-control|dnt|if-.*|origin|pragma|priority|referer|upgrade-insecure-requests|user-agent|x-client-data)$/;
/** Programs that people send requests with, identified by their User-Agent header. */
const programs =
  /^(?:apache|axios|bruno|curl|go-http|httpie|insomnia|intellij|mozilla|node|okhttp|postman|python|restsharp|thunder|undici|vscode|wget|yaak)/i;
/**
 * Headers whose value belongs to a single request. As a constant, the API would treat every call as a repetition of the
 * first one.
 */
const ofOneRequest = /idempot|request-?id|correlation-?id|^traceparent$|^tracestate$|^if-/;

/** Reports parts of a request that no tool sends. */
function leftOut({ at, headers }: DescribedRequest): Finding[] {
  const cookies = headers.filter(([name]) => /^cookie$/i.test(name)).flatMap(([, value]) => value.split(';'));
  const count = cookies.filter((cookie) => cookie.trim() !== '').length - 1;
  return count > 0 ? [{ at, message: `has ${count + 1} cookies; only the first is sent, as the credential` }] : [];
}

/**
 * Describes requests as operations. Requests with the same method and path shape are one operation, unless a value in
 * them selects different operations or their bodies share few fields. Credentials are not stored.
 */
export function describeRequests(
  requests: readonly DescribedRequest[],
  { variables = new Map(), isRecorded = false, ...about }: RequestSource,
  found: readonly Finding[] = [],
): ApiDescription {
  const schemes = new Map<string, ApiScheme>();
  const known = requests.map((request) => ({ ...request, body: resolveMediaType(request.body, variables) }));
  const read = known.map((request): ReadRequest => {
    const operation = operationOf(request, { schemes, variables, isRecorded: isRecorded || isOfBrowser(request) });
    const { headers, body } = request;
    const text = body && 'text' in body ? body.text : '';
    return { operation, call: namedCall({ headers, mediaType: body?.mediaType ?? '', text }, operation.body) };
  });
  const groups = Map.groupBy(read, ({ operation: { servers, method, path, unreadable }, call }) =>
    JSON.stringify([servers?.[0]?.url, method, path, call?.key, unreadable]),
  );
  const all = addFolderNames([...groups.values()].flatMap(operationsOf));
  const first = all[0]?.servers?.[0];
  return {
    ...about,
    tags: [],
    servers: first ? [first] : [],
    operations: all.map((one) => (one.servers?.[0]?.url === first?.url ? { ...one, servers: undefined } : one)),
    schemes,
    root: {},
    findings: [...found, ...requests.flatMap(leftOut)],
  };
}

/** Adds the folder name to requests that share a name, such as `list` for orders and for customers. */
function addFolderNames(all: readonly ApiOperation[]): ApiOperation[] {
  const byName = Map.groupBy(all, ({ operationId }) => operationId);
  return all.map((one) => {
    const { operationId, tags } = one;
    const isAlone = operationId === undefined || tags[0] === undefined || byName.get(operationId)?.length === 1;
    return isAlone ? one : { ...one, operationId: `${operationId} ${tags[0]}` };
  });
}

/** Returns the host of the first request as a title for sources that have none. */
export function findHostTitle(
  [first]: readonly DescribedRequest[],
  otherwise: string,
  variables: Variables = new Map(),
): string {
  const url = expandVariables(normalizeVariables(first?.url ?? ''), variables);
  const host = /^(?:[a-z]+:\/\/)?(?:[^/?#]*@)?([^/?#@]+)/i.exec(url)?.[1];
  return host === undefined || /[{<$]/.test(host) ? otherwise : host;
}

/** Returns true if a command was copied from a browser: no one writes these headers by hand. */
function isOfBrowser({ headers }: DescribedRequest): boolean {
  return headers.some(([name]) => /^sec-(?:fetch|ch|gpc)/i.test(name));
}

/** State shared by all requests of a source. */
type Reading = { schemes: Map<string, ApiScheme>; variables: Variables; isRecorded: boolean };

/** Creates an input for a value of a request. A placeholder value is not used as an example. */
type InputMaker = (name: string, location: ApiInput['location'], value: string) => ApiInput;

function inputMaker(inputs: readonly DescribedInput[], variables: Variables): InputMaker {
  const byKey = new Map(inputs.map((input) => [keyOf(input.location, input.name), input]));
  return (name, location, value) => {
    const said = byKey.get(keyOf(location, name));
    const [first = '', second = ''] = [value, said?.value ?? ''].map((text) =>
      toExample(normalizeVariables(text), variables),
    );
    const schema = schemaOfText(first || second, name);
    return { name, location, required: false, description: said?.description ?? '', schema };
  };
}

function keyOf(location: string, name: string): string {
  return `${location} ${location === 'header' ? foldedHeader(name) : name}`;
}

function operationOf(request: DescribedRequest, { schemes, variables, isRecorded }: Reading): ApiOperation {
  const { name: called = '', description = '', tags = [], auth, inputs: said = [] } = request;
  const declared = said.flatMap(({ location, name }) => (location === 'path' ? [name] : []));
  const { origin, hasUser, path, query } = readRequestUrl(request.url, variables, declared);
  const inputOf = inputMaker(said, variables);
  const inputs: ApiInput[] = [];
  const segments = path
    .split('/')
    .map((segment, index, all) => pathSegment(segment, all[index - 1] ?? '', inputs, inputOf));
  const needed: string[] = [];
  const need = (found: ApiScheme) => {
    const server = serverOf(origin, variables);
    const isOfOther = !isSameAddress(schemes.get(found.name)?.address ?? server.url, server.url);
    const name = isOfOther ? `${found.name} of ${server.url.replace(/^[a-z]+:\/\//i, '')}` : found.name;
    schemes.set(name, { ...found, name, address: server.url });
    if (!needed.includes(name)) needed.push(name);
  };
  if (hasUser) need(schemeOf('basic'));
  if (auth) need(schemeOfAuth(auth));
  for (const [name, pairs] of Map.groupBy(query, ([one]) => one)) {
    if (/^(?:api[_-]?key|key|token|access_token|apikey|auth)$/i.test(name)) need(keyScheme('query', name));
    else {
      const all = pairs.map(([, value]) => inputOf(name, 'query', value));
      const schema = schemaOfSame(
        name,
        all.map((input) => input.schema as JsonFields),
      );
      inputs.push({ ...(all[0] as ApiInput), schema });
    }
  }
  for (const [name, value] of request.headers) {
    if (isRecorded && ofBrowser.test(name.toLowerCase())) continue;
    addHeader(name, normalizeVariables(value), { inputs, inputOf, need });
  }
  const requirement: ApiRequirement = new Map(needed.map((name) => [name, []]));
  return {
    at: request.at,
    method: request.method,
    path: segments.join('/') || '/',
    route: segments.join('/') || '/',
    operationId: called || undefined,
    tags,
    summary: called,
    description,
    isDeprecated: false,
    inputs,
    body: request.body && bodyOfRequest(request.body, variables),
    security: needed.length > 0 ? [requirement] : [],
    servers: origin === '' ? undefined : [serverOf(origin, variables)],
    answers: { mediaTypes: acceptedBy(request), headers: [], isRedirect: false, fields: [], schema: undefined },
    unreadable: pathProblem(segments) ?? findUnsendableBody(request.body),
  };
}

/** Returns the reason why a path cannot be sent: a URL must not contain an incomplete placeholder. */
function pathProblem(segments: readonly string[]): string | undefined {
  const odd = segments.find((segment) => /[{}<>]/.test(segment.replaceAll(/\{[^{}<>]+\}/g, '')));
  return odd === undefined ? undefined : `the path segment ${short(odd)}, whose brackets contain no parameter name`;
}

/** Returns the response types that a request accepts. */
function acceptedBy({ headers }: DescribedRequest): string[] {
  const accept = headers.find(([name]) => name.toLowerCase() === 'accept')?.[1] ?? '';
  return accept.split(',').map((type) => type.trim());
}

function serverOf(origin: string, variables: Variables) {
  const url = origin.replaceAll(/\{\{\s*([\w.-]+)\s*\}\}/g, '{$1}');
  const names = [...new Set([...url.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] as string))];
  return {
    url,
    description: '',
    variables: names.map((name) => {
      const all = (variables.get(name) ?? []).filter((value) => value !== '' && !isPlaceholder(value));
      const values = all.filter((value) => !/^(?!https?:)[a-z]+:\/\//i.test(value));
      return { name, fallback: values[0], options: values, description: '' };
    }),
  };
}

/** Converts a path segment. Placeholders, numbers, UUIDs, and token-like values become path parameters. */
function pathSegment(segment: string, before: string, inputs: ApiInput[], inputOf: InputMaker): string {
  const take = (wanted: string, value: string): string => {
    let name = wanted;
    for (let count = 2; inputs.some((input) => input.location === 'path' && input.name === name); count++)
      name = `${wanted}_${count}`;
    inputs.push({ ...inputOf(wanted, 'path', value), name, required: true });
    return `{${name}}`;
  };
  if (segment.includes('{{'))
    return segment.replaceAll(/\{\{([^{}]+)\}\}/g, (found, name: string) => take(name, found));
  const named = /^:([A-Za-z_][\w-]*)$/.exec(segment)?.[1];
  if (named !== undefined) return take(named, '');
  const isValue = /^\d+$|^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$|^[0-9a-f]{24,64}$/i.test(segment);
  const isOpaque = isOpaqueSegment(segment);
  if (!isValue && !isOpaque) return segment;
  return take(`${before.replaceAll(/\W+/g, '_').replace(/s$/, '') || 'item'}_id`, isOpaque ? '' : segment);
}

type Found = { inputs: ApiInput[]; inputOf: InputMaker; need: (scheme: ApiScheme) => void };

/**
 * Adds a header. A header with a fixed value is a constant, and a header with a credential becomes a secret. A value
 * that may be a credential, such as a trace ID, is not stored: the header becomes an argument.
 */
function addHeader(name: string, value: string, { inputs, inputOf, need }: Found): void {
  const folded = foldedHeader(name);
  if (folded === 'authorization') {
    need(authorizationScheme(name, value));
    return;
  }
  if (folded === 'cookie') {
    const [cookie = ''] = value.split('=');
    if (/^[\w.-]{1,64}$/.test(cookie.trim())) need(keyScheme('cookie', cookie.trim()));
    return;
  }
  if (ofTransport.test(name.toLowerCase()) || (folded === 'user-agent' && programs.test(value))) return;
  const isVariable = isPlaceholder(value) || value === '';
  if (ofOneRequest.test(folded)) inputs.push(inputOf(name, 'header', isVariable ? value : ''));
  else if (isRevealingName(name)) need(keyScheme('header', name));
  else if (isVariable) inputs.push(inputOf(name, 'header', value));
  else if (isRevealingValue(value)) inputs.push(inputOf(name, 'header', ''));
  else inputs.push({ ...inputOf(name, 'header', ''), required: true, schema: { type: 'string', enum: [value] } });
}

function authorizationScheme(name: string, value: string): ApiScheme {
  const [word = '', ...rest] = value.trim().split(/\s+/);
  if (/^(?:bearer|basic)$/i.test(word)) return schemeOf(/^bearer$/i.test(word) ? 'bearer' : 'basic');
  if (/^(?:digest|ntlm|negotiate|aws|hawk)$/i.test(word) && rest.length > 0) return schemeOfAuth({ unsupported: word });
  return { ...keyScheme('header', name), prefix: rest.length > 0 ? `${word} ` : '' };
}

function schemeOfAuth(auth: GivenAuth): ApiScheme {
  if (typeof auth === 'string') return schemeOf(auth);
  if ('in' in auth) return keyScheme(auth.in, auth.name);
  if ('region' in auth) return { ...schemeOf('aws'), aws: auth };
  const name = auth.unsupported.slice(0, 40);
  return { name, kind: 'unsupported', description: '', reason: `credentials of type ${JSON.stringify(name)}` };
}

function schemeOf(kind: 'bearer' | 'basic' | 'aws'): ApiScheme {
  return { name: kind, kind, description: '' };
}

function keyScheme(location: 'header' | 'query' | 'cookie', parameter: string): ApiScheme {
  return { name: parameter, kind: 'key', description: '', in: location, parameter };
}
