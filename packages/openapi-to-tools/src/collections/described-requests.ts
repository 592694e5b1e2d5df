import { foldHeaderName } from '@toolhost/tool-config/http/parameter-names';
import type { JsonFields } from '../document/lenient.ts';
import type { ApiDescription, ApiInput, ApiOperation, ApiRequirement, ApiScheme, Finding } from '../model.ts';
import { isSameAddress } from '../plan/server-address.ts';
import { quoteShort } from '../tools/input-arguments.ts';
import { type ReadRequest, toOperations } from './join-requests.ts';
import { findNamedCall } from './named-calls.ts';
import { expandVariables, isPlaceholder, normalizeVariables, type Variables } from './placeholders.ts';
import {
  describeBody,
  findUnsendableBody,
  type RequestBody,
  resolveMediaType,
  toExample,
  toRepeatedSchema,
  toTextSchema,
} from './request-bodies.ts';
import { readRequestUrl } from './request-url.ts';
import { isOpaqueSegment, isRevealingName, isRevealingValue } from './revealed-credentials.ts';

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
  auth?: RequestAuth | undefined;
  /** Descriptions and values of its inputs, if the source has them. */
  inputs?: readonly DescribedInput[];
  /** Location in the source, for findings. */
  at: string;
};

/** Description and value of an input, which collections declare separately from the URL and the headers. */
export type DescribedInput = {
  location: 'path' | 'query' | 'header';
  name: string;
  value: string;
  description: string;
};

type RequestAuth =
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

/** Matches headers that Toolhost or HTTP itself sets, and headers that describe the body or the response. */
const technicalHeader =
  /^(?:accept|accept-(?:encoding|charset)|connection|content-(?:type|length)|expect|host|keep-alive|postman-token|sec-.*|te|trailer|transfer-encoding|upgrade|:.*)$/;
/** Matches headers that browsers add automatically. */
const browserHeader =
  /^(?:accept-language|cache-control|dnt|if-.*|origin|pragma|priority|referer|upgrade-insecure-requests|user-agent|x-client-data)$/;
/** Matches the User-Agent header of programs that people send requests with. */
const programPattern =
  /^(?:apache|axios|bruno|curl|go-http|httpie|insomnia|intellij|mozilla|node|okhttp|postman|python|restsharp|thunder|undici|vscode|wget|yaak)/i;
/**
 * Matches headers whose value is different in each request. With a constant value, the API would take every call for a
 * repetition of the first one.
 */
const perRequestHeader = /idempot|request-?id|correlation-?id|^traceparent$|^tracestate$|^if-/;

/** Reports cookies that no tool sends: all but the first. */
function reportLeftOut({ at, headers }: DescribedRequest): Finding[] {
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
  { variables = new Map(), isRecorded = false, ...metadata }: RequestSource,
  findings: readonly Finding[] = [],
): ApiDescription {
  const schemes = new Map<string, ApiScheme>();
  const resolvedRequests = requests.map((request) => ({ ...request, body: resolveMediaType(request.body, variables) }));
  const readRequests = resolvedRequests.map((request): ReadRequest => {
    const operation = toOperation(request, {
      schemes,
      variables,
      isRecorded: isRecorded || isCopiedFromBrowser(request),
    });
    const { headers, body } = request;
    const text = body && 'text' in body ? body.text : '';
    return { operation, call: findNamedCall({ headers, mediaType: body?.mediaType ?? '', text }, operation.body) };
  });
  const groups = Map.groupBy(readRequests, ({ operation: { servers, method, path, unsupportedReason }, call }) =>
    JSON.stringify([servers?.[0]?.url, method, path, call?.key, unsupportedReason]),
  );
  const operations = addFolderNames([...groups.values()].flatMap(toOperations));
  const firstServer = operations[0]?.servers?.[0];
  return {
    ...metadata,
    tags: [],
    servers: firstServer ? [firstServer] : [],
    operations: operations.map((operation) =>
      operation.servers?.[0]?.url === firstServer?.url ? { ...operation, servers: undefined } : operation,
    ),
    schemes,
    root: {},
    findings: [...findings, ...requests.flatMap(reportLeftOut)],
  };
}

/** Adds the folder name to requests that share a name, such as `list` for orders and for customers. */
function addFolderNames(operations: readonly ApiOperation[]): ApiOperation[] {
  const byName = Map.groupBy(operations, ({ operationId }) => operationId);
  return operations.map((operation) => {
    const { operationId, tags } = operation;
    const isUnique = operationId === undefined || tags[0] === undefined || byName.get(operationId)?.length === 1;
    return isUnique ? operation : { ...operation, operationId: `${operationId} ${tags[0]}` };
  });
}

/** Returns the host of the first request as a title for sources that have none. */
export function findHostTitle(
  [firstRequest]: readonly DescribedRequest[],
  defaultTitle: string,
  variables: Variables = new Map(),
): string {
  const url = expandVariables(normalizeVariables(firstRequest?.url ?? ''), variables);
  const host = /^(?:[a-z]+:\/\/)?(?:[^/?#]*@)?([^/?#@]+)/i.exec(url)?.[1];
  return host === undefined || /[{<$]/.test(host) ? defaultTitle : host;
}

/** Returns true if a command was copied from a browser: no one writes these headers by hand. */
function isCopiedFromBrowser({ headers }: DescribedRequest): boolean {
  return headers.some(([name]) => /^sec-(?:fetch|ch|gpc)/i.test(name));
}

/** State shared by all requests of a source. */
type ReadContext = { schemes: Map<string, ApiScheme>; variables: Variables; isRecorded: boolean };

/** Creates an input for a value of a request. A placeholder value is not used as an example. */
type InputFactory = (name: string, location: ApiInput['location'], value: string) => ApiInput;

function createInputFactory(inputs: readonly DescribedInput[], variables: Variables): InputFactory {
  const byKey = new Map(inputs.map((input) => [getInputKey(input.location, input.name), input]));
  return (name, location, value) => {
    const declaredInput = byKey.get(getInputKey(location, name));
    const [ownExample = '', declaredExample = ''] = [value, declaredInput?.value ?? ''].map((text) =>
      toExample(normalizeVariables(text), variables),
    );
    const schema = toTextSchema(ownExample || declaredExample, name);
    return { name, location, required: false, description: declaredInput?.description ?? '', schema };
  };
}

function getInputKey(location: string, name: string): string {
  return `${location} ${location === 'header' ? foldHeaderName(name) : name}`;
}

function toOperation(request: DescribedRequest, { schemes, variables, isRecorded }: ReadContext): ApiOperation {
  const { name: requestName = '', description = '', tags = [], auth, inputs: declaredInputs = [] } = request;
  const declaredPathNames = declaredInputs.flatMap(({ location, name }) => (location === 'path' ? [name] : []));
  const { origin, hasUser, path, query } = readRequestUrl(request.url, variables, declaredPathNames);
  const createInput = createInputFactory(declaredInputs, variables);
  const inputs: ApiInput[] = [];
  const segments = path
    .split('/')
    .map((segment, index, all) => toPathSegment(segment, all[index - 1] ?? '', inputs, createInput));
  const requiredSchemes: string[] = [];
  const requireScheme = (scheme: ApiScheme) => {
    const server = toServer(origin, variables);
    const isForOtherServer = !isSameAddress(schemes.get(scheme.name)?.address ?? server.url, server.url);
    const name = isForOtherServer ? `${scheme.name} of ${server.url.replace(/^[a-z]+:\/\//i, '')}` : scheme.name;
    schemes.set(name, { ...scheme, name, address: server.url });
    if (!requiredSchemes.includes(name)) requiredSchemes.push(name);
  };
  if (hasUser) requireScheme(createScheme('basic'));
  if (auth) requireScheme(toAuthScheme(auth));
  for (const [name, pairs] of Map.groupBy(query, ([name]) => name)) {
    if (/^(?:api[_-]?key|key|token|access_token|apikey|auth)$/i.test(name))
      requireScheme(createKeyScheme('query', name));
    else {
      const repeated = pairs.map(([, value]) => createInput(name, 'query', value));
      const schemas = repeated.map((input) => input.schema as JsonFields);
      inputs.push({ ...(repeated[0] as ApiInput), schema: toRepeatedSchema(name, schemas) });
    }
  }
  for (const [name, value] of request.headers) {
    if (isRecorded && browserHeader.test(name.toLowerCase())) continue;
    addHeader(name, normalizeVariables(value), { inputs, createInput, requireScheme });
  }
  const requirement: ApiRequirement = new Map(requiredSchemes.map((name) => [name, []]));
  return {
    at: request.at,
    method: request.method,
    path: segments.join('/') || '/',
    route: segments.join('/') || '/',
    operationId: requestName || undefined,
    tags,
    summary: requestName,
    description,
    isDeprecated: false,
    inputs,
    body: request.body && describeBody(request.body, variables),
    security: requiredSchemes.length > 0 ? [requirement] : [],
    servers: origin === '' ? undefined : [toServer(origin, variables)],
    responses: { mediaTypes: getAcceptedTypes(request), headers: [], isRedirect: false, fields: [], schema: undefined },
    unsupportedReason: findPathProblem(segments) ?? findUnsendableBody(request.body),
  };
}

/** Returns the reason why a path cannot be sent: it contains an incomplete placeholder. */
function findPathProblem(segments: readonly string[]): string | undefined {
  const invalidSegment = segments.find((segment) => /[{}<>]/.test(segment.replaceAll(/\{[^{}<>]+\}/g, '')));
  return invalidSegment === undefined
    ? undefined
    : `the path segment ${quoteShort(invalidSegment)}, whose brackets contain no parameter name`;
}

/** Returns the response types that a request accepts. */
function getAcceptedTypes({ headers }: DescribedRequest): string[] {
  const accept = headers.find(([name]) => name.toLowerCase() === 'accept')?.[1] ?? '';
  return accept.split(',').map((type) => type.trim());
}

function toServer(origin: string, variables: Variables) {
  const url = origin.replaceAll(/\{\{\s*([\w.-]+)\s*\}\}/g, '{$1}');
  const names = [...new Set([...url.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] as string))];
  return {
    url,
    description: '',
    variables: names.map((name) => {
      const literals = (variables.get(name) ?? []).filter((value) => value !== '' && !isPlaceholder(value));
      // Values such as `ftp://…` cannot be called.
      const values = literals.filter((value) => !/^(?!https?:)[a-z]+:\/\//i.test(value));
      return { name, fallback: values[0], options: values, description: '' };
    }),
  };
}

/** Converts a path segment. Placeholders, numbers, UUIDs, and token-like values become path parameters. */
function toPathSegment(
  segment: string,
  previousSegment: string,
  inputs: ApiInput[],
  createInput: InputFactory,
): string {
  const addParameter = (baseName: string, value: string): string => {
    let name = baseName;
    for (let count = 2; inputs.some((input) => input.location === 'path' && input.name === name); count++)
      name = `${baseName}_${count}`;
    inputs.push({ ...createInput(baseName, 'path', value), name, required: true });
    return `{${name}}`;
  };
  if (segment.includes('{{'))
    return segment.replaceAll(/\{\{([^{}]+)\}\}/g, (placeholder, name: string) => addParameter(name, placeholder));
  const parameterName = /^:([A-Za-z_][\w-]*)$/.exec(segment)?.[1];
  if (parameterName !== undefined) return addParameter(parameterName, '');
  const isValue = /^\d+$|^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$|^[0-9a-f]{24,64}$/i.test(segment);
  const isOpaque = isOpaqueSegment(segment);
  if (!isValue && !isOpaque) return segment;
  return addParameter(
    `${previousSegment.replaceAll(/\W+/g, '_').replace(/s$/, '') || 'item'}_id`,
    isOpaque ? '' : segment,
  );
}

type HeaderContext = { inputs: ApiInput[]; createInput: InputFactory; requireScheme: (scheme: ApiScheme) => void };

/**
 * Adds a header. A header with a fixed value is a constant, and a header with a credential becomes a secret. A value
 * that may be a credential, such as a trace ID, is not stored: the header becomes an argument.
 */
function addHeader(name: string, value: string, { inputs, createInput, requireScheme }: HeaderContext): void {
  const foldedName = foldHeaderName(name);
  if (foldedName === 'authorization') {
    requireScheme(toAuthorizationScheme(name, value));
    return;
  }
  if (foldedName === 'cookie') {
    const [cookie = ''] = value.split('=');
    if (/^[\w.-]{1,64}$/.test(cookie.trim())) requireScheme(createKeyScheme('cookie', cookie.trim()));
    return;
  }
  if (technicalHeader.test(name.toLowerCase()) || (foldedName === 'user-agent' && programPattern.test(value))) return;
  const isVariable = isPlaceholder(value) || value === '';
  if (perRequestHeader.test(foldedName)) inputs.push(createInput(name, 'header', isVariable ? value : ''));
  else if (isRevealingName(name)) requireScheme(createKeyScheme('header', name));
  else if (isVariable) inputs.push(createInput(name, 'header', value));
  else if (isRevealingValue(value)) inputs.push(createInput(name, 'header', ''));
  else inputs.push({ ...createInput(name, 'header', ''), required: true, schema: { type: 'string', enum: [value] } });
}

function toAuthorizationScheme(name: string, value: string): ApiScheme {
  const [schemeName = '', ...credentials] = value.trim().split(/\s+/);
  if (/^(?:bearer|basic)$/i.test(schemeName)) return createScheme(/^bearer$/i.test(schemeName) ? 'bearer' : 'basic');
  if (/^(?:digest|ntlm|negotiate|aws|hawk)$/i.test(schemeName) && credentials.length > 0)
    return toAuthScheme({ unsupported: schemeName });
  return { ...createKeyScheme('header', name), prefix: credentials.length > 0 ? `${schemeName} ` : '' };
}

function toAuthScheme(auth: RequestAuth): ApiScheme {
  if (typeof auth === 'string') return createScheme(auth);
  if ('in' in auth) return createKeyScheme(auth.in, auth.name);
  if ('region' in auth) return { ...createScheme('aws'), aws: auth };
  const name = auth.unsupported.slice(0, 40);
  return { name, kind: 'unsupported', description: '', reason: `credentials of type ${JSON.stringify(name)}` };
}

function createScheme(kind: 'bearer' | 'basic' | 'aws'): ApiScheme {
  return { name: kind, kind, description: '' };
}

function createKeyScheme(location: 'header' | 'query' | 'cookie', parameter: string): ApiScheme {
  return { name: parameter, kind: 'key', description: '', in: location, parameter };
}
