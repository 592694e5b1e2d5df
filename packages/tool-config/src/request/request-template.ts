import { type Authentications, credentialQueryNames, type SentCredential, withTokenPrefix } from '../authentication.ts';
import {
  type BodyKind,
  createConstantMatcher,
  getBodyKind,
  getContentType,
  getDestinations,
  parseBodyTemplate,
} from '../destinations.ts';
import { hasOptionalBody, parseMediaType, toSentHeaderName } from '../http/headers.ts';
import {
  createOwnedNamesSelector,
  findOwnedInQuery,
  foldHeaderName,
  isReadAs,
  type OwnedNames,
} from '../http/parameter-names.ts';
import { getPlaceholderNames } from '../http/placeholders.ts';
import { parseUrlTemplate, type QueryPair, type UrlTemplate, withAllowedSlashes } from '../http/url-template.ts';
import type { ArrayFormat } from '../http/values.ts';
import { type Argument, getArguments, getConstants } from '../input-schema.ts';
import type { Tool } from '../tool.ts';
import type { BodyPlan } from './body.ts';
import type { Arguments, WireArgument } from './wire-argument.ts';

/** Part of a tool's request that does not depend on the call, compiled once per server version. */
export type RequestTemplate = {
  method: Tool['method'];
  url: UrlTemplate;
  /** Hosts that a whole origin from a person's login may have; undefined for any other origin. */
  originHosts: readonly string[] | undefined;
  /** Values of arguments that callers do not provide; undefined if there are none. */
  constants: Arguments | undefined;
  /** True if a constant contains `{{NAME}}`. */
  hasSecrets: boolean;
  /** Arguments that become query parameters, headers, or cookies. */
  arguments: readonly WireArgument[];
  /** Arguments in the URL whose style is not the default. */
  styledArguments: ReadonlyMap<string, WireArgument> | undefined;
  /** Headers that are the same in every call, alternating names and values. */
  fixedHeaders: readonly string[];
  /** Headers with `{{NAME}}` in their value. */
  interpolatedHeaders: readonly { name: string; value: string }[];
  body: BodyPlan;
  arrayFormat: ArrayFormat;
  credentials: readonly SentCredential[];
};

type CompileOptions = {
  userAgent: string;
  /** Hosts of each value that may be a whole origin. */
  originHosts?: ReadonlyMap<string, readonly string[]>;
  /** Scheme of the login token (`oauth.token_prefix`). */
  tokenPrefix?: string | undefined;
};

/** Compiles a tool of a valid configuration. */
export function compileRequest(
  tool: Tool,
  authentication: Authentications | undefined,
  { userAgent, originHosts, tokenPrefix }: CompileOptions,
): RequestTemplate {
  const declared = getArguments(tool.input_schema);
  const names = declared.map((argument) => argument.name);
  const { template } = parseUrlTemplate(tool.url, names);
  if (!template) throw new Error(`tool ${tool.name} has an invalid URL`);
  const kind = getBodyKind(tool);
  const bodyTemplate = kind === 'template' ? parseBodyTemplate(tool.body_template, names) : undefined;
  const credential = credentialQueryNames(authentication);
  const lists = findListsInUrl(tool, declared, template);
  const query = template.query.filter((pair) => !containsCredentialName(pair, credential) && !lists.has(pair));
  const url = { ...template, query };
  const constants = getConstants(tool.input_schema);
  const fixed = new Set(constants.map(({ name }) => name));
  const inTemplates = { inUrl: template.names, inBody: bodyTemplate?.names ?? [] };
  const sendableArguments = [...lists.values(), ...getWireArguments(tool, declared, inTemplates)].filter(
    (argument) => !isReadAsCredential(argument, kind, credential),
  );
  const wireArguments = addReservedNames(
    removeConstantCollisions(sendableArguments, fixed, kind),
    { query: url.query, fixed },
    credential,
  );
  const bodyArguments = wireArguments.filter(({ location }) => location === 'body');
  const arrayFormat = tool.array_format ?? 'repeat';
  return {
    method: tool.method,
    url: withAllowedSlashes(url, new Set(declared.filter(({ wire }) => wire.allow_slashes).map(({ name }) => name))),
    originHosts: originHosts?.get(url.hostName ?? ''),
    constants:
      constants.length === 0 ? undefined : Object.fromEntries(constants.map(({ name, value }) => [name, value])),
    hasSecrets: constants.some(({ value }) => getPlaceholderNames(value).length > 0),
    arguments: wireArguments.filter(({ location }) => location !== 'body'),
    styledArguments: getStyledArguments(declared, template),
    ...buildHeaders(tool, declared, userAgent, kind === 'multipart'),
    body: {
      arguments: bodyArguments,
      kind: bodyArguments.length > 0 || bodyTemplate ? kind : 'none',
      template: bodyTemplate,
      textArguments:
        kind === 'json' || kind === 'template'
          ? declared.filter(hasStyle).map((argument) => toWireArgument(argument, 'body'))
          : [],
      contentType: getContentType(tool),
      arrayFormat,
      isAlwaysSent: !hasOptionalBody(tool.method),
    },
    arrayFormat,
    credentials: withTokenPrefix(authentication, tokenPrefix),
  };
}

/** Finds pairs of the URL such as `ids=:ids`. `array_format` applies to them as to lists outside the URL. */
function findListsInUrl(
  { array_format }: Tool,
  declared: readonly Argument[],
  { query }: UrlTemplate,
): Map<QueryPair, WireArgument> {
  if (array_format === undefined || array_format === 'comma') return new Map();
  const lists = new Map(
    declared
      .filter((argument) => argument.type === 'array' && !hasStyle(argument))
      .map((argument) => [argument.name, argument]),
  );
  return new Map(
    query.flatMap((pair): [QueryPair, WireArgument][] => {
      const [part, ...otherParts] = pair.parts ?? [];
      const list = part && 'argument' in part && otherParts.length === 0 ? lists.get(part.argument) : undefined;
      const [name = ''] = new URLSearchParams(pair.name).keys();
      const wireName = array_format === 'brackets' ? name.replace(/\[\]$/, '') : name;
      return list ? [[pair, { ...toWireArgument(list, 'query'), wireName }]] : [];
    }),
  );
}

const hasStyle = ({ wire }: Argument) => wire.style !== undefined;

function getStyledArguments(declared: readonly Argument[], { names }: UrlTemplate): RequestTemplate['styledArguments'] {
  const styled = declared.filter((argument) => hasStyle(argument) && names.includes(argument.name));
  return styled.length === 0
    ? undefined
    : new Map(styled.map((argument) => [argument.name, toWireArgument(argument, 'query')]));
}

/** Returns the arguments outside the templates. If `body` names an argument, no other one is in the body. */
function getWireArguments(
  tool: Tool,
  declared: readonly Argument[],
  templates: Parameters<typeof getDestinations>[2],
): WireArgument[] {
  const destinations = getDestinations(tool, declared, templates);
  const kind = getBodyKind(tool);
  return declared.flatMap((argument) => {
    const destination = destinations.get(argument.name);
    if (destination === undefined || destination === 'url' || destination === 'part') return [];
    const isOutsideBody =
      destination === 'body' && (kind === 'template' || (kind === 'argument' && argument.name !== tool.body));
    return isOutsideBody ? [] : [toWireArgument(argument, destination)];
  });
}

/**
 * Returns true for arguments that a receiver could read as the credential. Receivers merge form fields with the query,
 * so neither may contain such a name.
 */
function isReadAsCredential({ location, wireName }: WireArgument, kind: BodyKind, credential: OwnedNames): boolean {
  const isMerged = location === 'query' || (location === 'body' && (kind === 'form' || kind === 'multipart'));
  return isMerged && isReadAs(wireName, credential);
}

/**
 * Removes caller arguments that a receiver could read as a constant. The check of a configuration rejects such
 * arguments, so only views that fix the other argument have them.
 */
function removeConstantCollisions(
  candidates: readonly WireArgument[],
  fixed: ReadonlySet<string>,
  kind: BodyKind,
): readonly WireArgument[] {
  if (fixed.size === 0) return candidates;
  const removedNames = (['query', 'body'] as const).flatMap((location) => {
    const sameLocation = candidates.filter((argument) => argument.location === location);
    return createConstantMatcher(sameLocation, location === 'query' ? 'query' : kind)(fixed).map(({ name }) => name);
  });
  return removedNames.length === 0 ? candidates : candidates.filter(({ name }) => !removedNames.includes(name));
}

function toWireArgument({ name, wire }: Argument, location: WireArgument['location']): WireArgument {
  return {
    name,
    wireName: location === 'header' ? toSentHeaderName(wire.wire_name ?? name) : (wire.wire_name ?? name),
    location,
    style: wire.style,
    reservedNames: undefined,
    allowsReserved: location === 'query' && wire.allow_reserved === true,
    isBase64: wire.content === 'base64',
    fileName: wire.file_name,
    mediaType: wire.media_type,
  };
}

/**
 * Adds the reserved names of object arguments. With `repeat`, an object's properties are parameters next to all others.
 * Otherwise their names begin with the argument's own name, and only names that callers must not set are compared with
 * them.
 */
function addReservedNames(
  wireArguments: readonly WireArgument[],
  { query, fixed }: Pick<UrlTemplate, 'query'> & { fixed: ReadonlySet<string> },
  credential: OwnedNames,
): readonly WireArgument[] {
  if (!wireArguments.some(hasSpreadProperties)) return wireArguments;
  const names = [...wireArguments.map(({ wireName }) => wireName), ...query.map(({ name }) => name)];
  const getOwnedBesides = createOwnedNamesSelector(names, credential);
  return wireArguments.map((argument, index) => {
    if (!hasSpreadProperties(argument)) return argument;
    const isRepeated = argument.style === 'repeat';
    const isComparable = (otherIndex: number) => isRepeated || fixed.has(wireArguments[otherIndex]?.name ?? '');
    return {
      ...argument,
      reservedNames: getOwnedBesides((otherIndex) => otherIndex !== index && isComparable(otherIndex)),
    };
  });
}

/** Returns true if an object's properties have names of their own in a request. */
function hasSpreadProperties({ style }: WireArgument): boolean {
  return style === 'repeat' || style === 'brackets' || style === 'indices' || style === 'deep';
}

/**
 * Returns true if a query pair contains a credential's name. Configurations stored before names were compared may have
 * such a pair.
 */
function containsCredentialName({ name, parts }: QueryPair, credential: OwnedNames): boolean {
  const value = (parts ?? []).map((part) => ('text' in part ? part.text : '')).join('');
  return findOwnedInQuery(`${name}=${value}`, credential).length > 0;
}

function buildHeaders(
  tool: Tool,
  declared: readonly Argument[],
  userAgent: string,
  isMultipart: boolean,
): Pick<RequestTemplate, 'fixedHeaders' | 'interpolatedHeaders'> {
  // The boundary of a multipart form determines the header, so it is written together with the body.
  const isSetWithBody = isMultipart && parseMediaType(getContentType(tool)) === 'multipart/form-data';
  const configuredHeaders = Object.entries(tool.headers)
    .filter(([name]) => foldHeaderName(name) !== 'content-type' || !isSetWithBody)
    .map(([name, value]): [string, string] => [toSentHeaderName(name), value]);
  const argumentHeaders = declared
    .filter(({ location }) => location === 'header')
    .map(({ name, wire }) => wire.wire_name ?? name);
  const names = new Set([...Object.keys(tool.headers), ...argumentHeaders].map(foldHeaderName));
  const hasPlaceholder = ([, value]: [string, string]) => getPlaceholderNames(value).length > 0;
  return {
    fixedHeaders: [
      ...(names.has('accept') ? [] : ['Accept', 'application/json']),
      ...(names.has('user-agent') ? [] : ['User-Agent', userAgent]),
      ...configuredHeaders.filter((header) => !hasPlaceholder(header)).flat(),
    ],
    interpolatedHeaders: configuredHeaders.filter(hasPlaceholder).map(([name, value]) => ({ name, value })),
  };
}
