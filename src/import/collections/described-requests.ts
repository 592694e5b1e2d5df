import { mediaTypeOf } from '../../domain/http/headers.ts';
import { foldedHeader } from '../../domain/http/parameter-names.ts';
import { field, type JsonFields } from '../document/lenient.ts';
import type { ApiDescription, ApiInput, ApiOperation, ApiRequirement, ApiScheme, Finding } from '../model.ts';
import { isSameAddress } from '../plan/server-address.ts';
import { splitByAction, withActions } from './actions.ts';
import { joinOperations } from './join-operations.ts';
import { type NamedCall, namedCall } from './named-calls.ts';
import { bodyOfRequest, type RequestBody, schemaOfSame, schemaOfText } from './request-bodies.ts';
import { isOpaqueSegment, isRevealingName, isRevealingValue } from './revealing.ts';

/** A request as people have it: in a collection, in a command, in a recording. */
export type DescribedRequest = {
  name?: string;
  description?: string;
  tags?: readonly string[];
  method: string;
  /** With its query; `{{NAME}}` and `:name` are parts that differ. */
  url: string;
  headers: readonly (readonly [name: string, value: string])[];
  body: RequestBody | undefined;
  /** Credential that is given beside the headers. */
  auth?: GivenAuth | undefined;
  at: string;
};

type GivenAuth =
  | 'basic'
  | 'bearer'
  | { in: 'header' | 'query'; name: string }
  | { region: string; service: string }
  /** The name of a way to authenticate that no tool has. */
  | { unsupported: string };

/** Headers of browsers, of HTTP itself, and those that describe the body or the answer. */
const usual =
  /^(?:accept(?:-.*)?|cache-control|connection|content-(?:type|length)|dnt|expect|host|if-.*|origin|postman-token|pragma|priority|referer|sec-.*|te|upgrade-insecure-requests|user-agent|x-requested-with|:.*)$/;
/** Headers whose value belongs to one request: as a constant they would make the API take each call for the first one. */
const ofOneRequest = /idempot|request-?id|correlation-?id|^traceparent$|^tracestate$/;
/** Values that stand for another one, such as `{{name}}` and `<string>`. */
const isPlaceholder = /\{\{|^<.*>$/;

/** What no tool of a request sends. */
function leftOut({ at, headers }: DescribedRequest): Finding[] {
  const cookies = headers.filter(([name]) => /^cookie$/i.test(name)).flatMap(([, value]) => value.split(';'));
  const count = cookies.filter((cookie) => cookie.trim() !== '').length - 1;
  return count > 0 ? [{ at, message: `has ${count + 1} cookies; only the first is sent, as the credential` }] : [];
}

type Read = { operation: ApiOperation; call: NamedCall | undefined };

/**
 * A description of requests. Those of the same method and shape of path are one operation, unless a value in them says
 * that they are several. No credential is kept.
 */
export function describeRequests(
  requests: readonly DescribedRequest[],
  about: Pick<ApiDescription, 'format' | 'version' | 'title' | 'description'>,
  found: readonly Finding[] = [],
): ApiDescription {
  const schemes = new Map<string, ApiScheme>();
  const read = requests.map((request): Read => {
    const operation = operationOf(request, schemes);
    const { headers, body } = request;
    const text = body && 'text' in body ? body.text : '';
    return { operation, call: namedCall({ headers, mediaType: body?.mediaType ?? '', text }, operation.body) };
  });
  const groups = Map.groupBy(read, ({ operation: { servers, method, path }, call }) =>
    JSON.stringify([servers?.[0]?.url, method, path, call?.key]),
  );
  const all = [...groups.values()].flatMap(operationsOf);
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

/** The operations of requests to one address. */
function operationsOf(group: readonly Read[]): ApiOperation[] {
  const call = group[0]?.call;
  const all = group.map(({ operation, call: own }) => (own ? { ...operation, body: own.body } : operation));
  if (!call)
    return byBody(all).flatMap((same) =>
      splitByAction(same).map(({ actions, operations }) => withActions(joinOperations(operations), actions)),
    );
  return byBody(all).map((same) => {
    const operation = joinOperations(same);
    const path = `${operation.path}#${encodeURIComponent(call.name)}`;
    return { ...operation, path, operationId: operation.operationId ?? call.name };
  });
}

/** Bodies of one kind can be joined. A request without a body belongs to the first of them. */
function byBody(all: readonly ApiOperation[]): ApiOperation[][] {
  const kindOf = ({ body }: ApiOperation) => {
    const [content] = body?.contents ?? [];
    return content && `${mediaTypeOf(content.mediaType)} ${field(content.schema, 'type')}`;
  };
  const usual = all.map(kindOf).find((kind) => kind !== undefined);
  return [...Map.groupBy(all, (operation) => kindOf(operation) ?? usual).values()];
}

function operationOf(request: DescribedRequest, schemes: Map<string, ApiScheme>): ApiOperation {
  const { origin, hasUser, path, query } = partsOf(request.url);
  const inputs: ApiInput[] = [];
  const segments = path.split('/').map((segment, index, all) => pathSegment(segment, all[index - 1] ?? '', inputs));
  const needed: string[] = [];
  const need = (found: ApiScheme) => {
    const server = serverOf(origin);
    const isOfOther = !isSameAddress(schemes.get(found.name)?.address ?? server.url, server.url);
    const name = isOfOther ? `${found.name} of ${server.url.replace(/^[a-z]+:\/\//i, '')}` : found.name;
    schemes.set(name, { ...found, name, address: server.url });
    if (!needed.includes(name)) needed.push(name);
  };
  const { name: called = '', description = '', tags = [], auth } = request;
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
  for (const [name, value] of request.headers) addHeader(name, value, inputs, need);
  const requirement: ApiRequirement = new Map(needed.map((name) => [name, []]));
  return {
    at: request.at,
    method: request.method,
    path: segments.join('/') || '/',
    operationId: called || undefined,
    tags,
    summary: called,
    description,
    isDeprecated: false,
    inputs,
    body: request.body && bodyOfRequest(request.body),
    security: needed.length > 0 ? [requirement] : [],
    servers: origin === '' ? undefined : [serverOf(origin)],
    answers: { mediaTypes: acceptedBy(request), headers: [], isRedirect: false, fields: [], schema: undefined },
    unreadable: undefined,
  };
}

/** The types of the answer that a request asks for. */
function acceptedBy({ headers }: DescribedRequest): string[] {
  const accept = headers.find(([name]) => name.toLowerCase() === 'accept')?.[1] ?? '';
  return accept.split(',').map((type) => type.trim());
}

function serverOf(origin: string) {
  const url = origin.replaceAll(/\{\{\s*([\w.-]+)\s*\}\}/g, '{$1}');
  const names = [...new Set([...url.matchAll(/\{([^{}]+)\}/g)].map((match) => match[1] as string))];
  return {
    url,
    description: '',
    variables: names.map((name) => ({ name, fallback: undefined, options: [], description: '' })),
  };
}

/** The parts of an address; a user and a password in it are left out. */
function partsOf(url: string): { origin: string; hasUser: boolean; path: string; query: [string, string][] } {
  const plain = url.replace(/^((?:[a-z][a-z0-9+.-]*:)?\/\/)?[^/?#]*@/i, '$1');
  const [before = '', after = ''] = plain.split('#')[0]?.split(/\?(.*)/s) ?? [];
  const match = /^((?:[a-z][a-z0-9+.-]*:)?\/\/[^/]*|\{\{[^{}]*\}\}|[^/:]+\.[^/]+)?(.*)$/is.exec(before);
  const found = match?.[1] ?? '';
  const origin = found === '' || /^(?:[a-z]+:)?\/\/|^\{\{/i.test(found) ? found : `https://${found}`;
  const query = after.split('&').flatMap((pair): [string, string][] => {
    const equals = pair.indexOf('=');
    const [name, value] = equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)];
    return name === '' ? [] : [[decoded(name), decoded(value)]];
  });
  return { origin, hasUser: plain !== url, path: match?.[2] ?? '', query };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    // A percent sign that encodes nothing stands for itself.
    return text;
  }
}

/** `:id`, `{{id}}`, numbers, UUIDs and what looks like a token are path parameters. */
function pathSegment(segment: string, before: string, inputs: ApiInput[]): string {
  const named =
    /^:([A-Za-z_][\w-]*)$/.exec(segment)?.[1] ??
    /^\{\{\s*([\w.-]+)\s*\}\}$/.exec(segment)?.[1] ??
    /^\{([\w.-]+)\}$/.exec(segment)?.[1];
  const isValue = /^\d+$|^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$|^[0-9a-f]{24,64}$/i.test(segment);
  const isOpaque = isOpaqueSegment(segment);
  if (named === undefined && !isValue && !isOpaque) return segment;
  const plain = `${before.replaceAll(/\W+/g, '_').replace(/s$/, '') || 'item'}_id`;
  let name = named ?? plain;
  for (let count = 2; inputs.some((input) => input.location === 'path' && input.name === name); count++)
    name = `${named ?? plain}_${count}`;
  inputs.push({ ...inputOf(name, 'path', named === undefined && !isOpaque ? segment : ''), required: true });
  return `{${name}}`;
}

function inputOf(name: string, location: ApiInput['location'], value: string): ApiInput {
  const example = isPlaceholder.test(value) ? '' : value;
  return { name, location, required: false, description: '', schema: schemaOfText(example, name) };
}

/**
 * A header with one value is sent as it is; one that holds a credential becomes a secret. Of a value that may be one, as a
 * trace id may, nothing is kept: the header becomes an argument.
 */
function addHeader(name: string, value: string, inputs: ApiInput[], need: (scheme: ApiScheme) => void): void {
  const folded = foldedHeader(name);
  if (folded === 'authorization') {
    const [word = '', ...rest] = value.trim().split(/\s+/);
    if (/^(?:bearer|basic)$/i.test(word)) need(schemeOf(/^bearer$/i.test(word) ? 'bearer' : 'basic'));
    else need({ ...keyScheme('header', name), prefix: rest.length > 0 ? `${word} ` : '' });
    return;
  }
  if (folded === 'cookie') {
    const [cookie = ''] = value.split('=');
    if (/^[\w.-]{1,64}$/.test(cookie.trim())) need(keyScheme('cookie', cookie.trim()));
    return;
  }
  if (usual.test(name.toLowerCase())) return;
  if (ofOneRequest.test(folded)) inputs.push(inputOf(name, 'header', ''));
  else if (isRevealingName(name)) need(keyScheme('header', name));
  else if (isPlaceholder.test(value) || value === '' || isRevealingValue(value))
    inputs.push(inputOf(name, 'header', ''));
  else inputs.push({ ...inputOf(name, 'header', ''), required: true, schema: { type: 'string', enum: [value] } });
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
