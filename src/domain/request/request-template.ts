import {
  type Authentication,
  type Authentications,
  credentialQueryNames,
  credentialsOf,
} from '../config/authentication.ts';
import {
  type BodyKind,
  bodyKindOf,
  contentTypeOfTool,
  destinationsOf,
  parseBodyTemplate,
  readAsConstants,
} from '../config/destinations.ts';
import { type Argument, argumentsOf, constantsOf } from '../config/input-schema.ts';
import type { Tool } from '../config/tool.ts';
import { hasNoUsualBody, mediaTypeOf, sentHeaderName } from '../http/headers.ts';
import { foldedHeader, isReadAs, type OwnedNames, ownedBesides, ownedInQuery } from '../http/parameter-names.ts';
import { placeholderNames } from '../http/placeholders.ts';
import { keepingSlashes, parseUrlTemplate, type QueryPair, type UrlTemplate } from '../http/url-template.ts';
import type { ArrayFormat } from '../http/values.ts';
import type { BodyPlan } from './body.ts';
import type { Arguments, SentArgument } from './sent-argument.ts';

/** The part of a tool's request that does not depend on the call. It is compiled once per server version. */
export type RequestTemplate = {
  method: Tool['method'];
  url: UrlTemplate;
  /** Values of arguments that callers do not provide; undefined if there are none. */
  constants: Arguments | undefined;
  /** True if a constant contains `{{NAME}}`. */
  hasSecrets: boolean;
  /** Arguments that become query parameters, headers, or cookies. */
  arguments: readonly SentArgument[];
  /** Arguments in the URL whose style is not the default. */
  styledTokens: ReadonlyMap<string, SentArgument> | undefined;
  /** Headers that are the same in every call, alternating names and values. */
  fixedHeaders: readonly string[];
  /** Headers with `{{NAME}}` in their value. */
  filledHeaders: readonly { name: string; value: string }[];
  body: BodyPlan;
  arrayFormat: ArrayFormat;
  credentials: readonly Authentication[];
};

/** Compiles a tool of a valid configuration. */
export function compileRequest(
  tool: Tool,
  authentication: Authentications | undefined,
  userAgent: string,
): RequestTemplate {
  const declared = argumentsOf(tool.input_schema);
  const names = declared.map((argument) => argument.name);
  const { template } = parseUrlTemplate(tool.url, names);
  if (!template) throw new Error(`tool ${tool.name} has an invalid URL`);
  const kind = bodyKindOf(tool);
  const bodyTemplate = kind === 'template' ? parseBodyTemplate(tool.body_template, names) : undefined;
  const credential = credentialQueryNames(authentication);
  const lists = listsInUrl(tool, declared, template);
  const query = template.query.filter((pair) => !holdsCredential(pair, credential) && !lists.has(pair));
  const url = { ...template, query };
  const constants = constantsOf(tool.input_schema);
  const fixed = new Set(constants.map(({ name }) => name));
  const inTemplates = { inUrl: template.names, inBody: bodyTemplate?.names ?? [] };
  const all = [...lists.values(), ...sentArguments(tool, declared, inTemplates)].filter(
    (one) => !isCredential(one, kind, credential),
  );
  const sent = withReserved(withoutReadAsConstants(all, fixed, kind), { query: url.query, fixed }, credential);
  const ofBody = sent.filter(({ location }) => location === 'body');
  const arrayFormat = tool.array_format ?? 'repeat';
  return {
    method: tool.method,
    url: keepingSlashes(url, new Set(declared.filter(({ wire }) => wire.allow_slashes).map(({ name }) => name))),
    constants:
      constants.length === 0 ? undefined : Object.fromEntries(constants.map(({ name, value }) => [name, value])),
    hasSecrets: constants.some(({ value }) => placeholderNames(value).length > 0),
    arguments: sent.filter(({ location }) => location !== 'body'),
    styledTokens: styledTokens(declared, template),
    ...headersOf(tool, declared, userAgent, kind === 'multipart'),
    body: {
      arguments: ofBody,
      kind: ofBody.length > 0 || bodyTemplate ? kind : 'none',
      template: bodyTemplate,
      texts:
        kind === 'json' || kind === 'template' ? declared.filter(hasStyle).map((one) => sentArgument(one, 'body')) : [],
      contentType: contentTypeOfTool(tool),
      arrayFormat,
      isAlwaysSent: !hasNoUsualBody(tool.method),
    },
    arrayFormat,
    credentials: credentialsOf(authentication),
  };
}

/** Finds pairs of the URL such as `ids=:ids`. `array_format` applies to them as to lists outside the URL. */
function listsInUrl(
  { array_format }: Tool,
  declared: readonly Argument[],
  { query }: UrlTemplate,
): Map<QueryPair, SentArgument> {
  if (array_format === undefined || array_format === 'comma') return new Map();
  const lists = new Map(declared.filter((one) => one.type === 'array' && !hasStyle(one)).map((one) => [one.name, one]));
  return new Map(
    query.flatMap((pair): [QueryPair, SentArgument][] => {
      const [part, ...others] = pair.parts ?? [];
      const list = part && 'argument' in part && others.length === 0 ? lists.get(part.argument) : undefined;
      const [name = ''] = new URLSearchParams(pair.name).keys();
      const wireName = array_format === 'brackets' ? name.replace(/\[\]$/, '') : name;
      return list ? [[pair, { ...sentArgument(list, 'query'), wireName }]] : [];
    }),
  );
}

const hasStyle = ({ wire }: Argument) => wire.style !== undefined;

function styledTokens(declared: readonly Argument[], { names }: UrlTemplate): RequestTemplate['styledTokens'] {
  const styled = declared.filter((one) => hasStyle(one) && names.includes(one.name));
  return styled.length === 0 ? undefined : new Map(styled.map((one) => [one.name, sentArgument(one, 'query')]));
}

/** Returns the arguments outside the templates. If `body` names an argument, no other one is in the body. */
function sentArguments(
  tool: Tool,
  declared: readonly Argument[],
  templates: Parameters<typeof destinationsOf>[2],
): SentArgument[] {
  const destinations = destinationsOf(tool, declared, templates);
  const kind = bodyKindOf(tool);
  return declared.flatMap((argument) => {
    const to = destinations.get(argument.name);
    if (to === undefined || to === 'url' || to === 'part') return [];
    const isExtra = to === 'body' && (kind === 'template' || (kind === 'argument' && argument.name !== tool.body));
    return isExtra ? [] : [sentArgument(argument, to)];
  });
}

/**
 * Returns true for arguments that a receiver could read as the credential. Receivers merge form fields with the query,
 * so neither may contain such a name.
 */
function isCredential({ location, wireName }: SentArgument, kind: BodyKind, credential: OwnedNames): boolean {
  const isMerged = location === 'query' || (location === 'body' && (kind === 'form' || kind === 'multipart'));
  return isMerged && isReadAs(wireName, credential);
}

/**
 * Removes caller arguments that a receiver could read as a constant. Configurations with such an argument are refused;
 * a view that fixes the other argument works without it.
 */
function withoutReadAsConstants(
  all: readonly SentArgument[],
  fixed: ReadonlySet<string>,
  kind: BodyKind,
): readonly SentArgument[] {
  if (fixed.size === 0) return all;
  const lost = (['query', 'body'] as const).flatMap((location) => {
    const beside = all.filter((one) => one.location === location);
    return readAsConstants(beside, location === 'query' ? 'query' : kind)(fixed).map(({ name }) => name);
  });
  return lost.length === 0 ? all : all.filter(({ name }) => !lost.includes(name));
}

function sentArgument({ name, wire }: Argument, location: SentArgument['location']): SentArgument {
  return {
    name,
    wireName: location === 'header' ? sentHeaderName(wire.wire_name ?? name) : (wire.wire_name ?? name),
    location,
    style: wire.style,
    reserved: undefined,
    keepsReserved: location === 'query' && wire.allow_reserved === true,
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
function withReserved(
  all: readonly SentArgument[],
  { query, fixed }: Pick<UrlTemplate, 'query'> & { fixed: ReadonlySet<string> },
  credential: OwnedNames,
): readonly SentArgument[] {
  if (!all.some(isSpread)) return all;
  const names = [...all.map(({ wireName }) => wireName), ...query.map(({ name }) => name)];
  const besides = ownedBesides(names, credential);
  return all.map((one, index) => {
    if (!isSpread(one)) return one;
    const isRepeated = one.style === 'repeat';
    const isOther = (other: number) => isRepeated || fixed.has(all[other]?.name ?? '');
    return { ...one, reserved: besides((other) => other !== index && isOther(other)) };
  });
}

/** Returns true if an object's properties have names of their own in a request. */
function isSpread({ style }: SentArgument): boolean {
  return style === 'repeat' || style === 'brackets' || style === 'indices' || style === 'deep';
}

/**
 * Returns true if a query pair contains a credential's name. Configurations stored before names were compared may have
 * such a pair.
 */
function holdsCredential({ name, parts }: QueryPair, credential: OwnedNames): boolean {
  const value = (parts ?? []).map((part) => ('text' in part ? part.text : '')).join('');
  return ownedInQuery(`${name}=${value}`, credential).length > 0;
}

function headersOf(
  tool: Tool,
  declared: readonly Argument[],
  userAgent: string,
  isMultipart: boolean,
): Pick<RequestTemplate, 'fixedHeaders' | 'filledHeaders'> {
  // The boundary of a multipart form determines the header, so it is written together with the body.
  const isWrittenLater = isMultipart && mediaTypeOf(contentTypeOfTool(tool)) === 'multipart/form-data';
  const given = Object.entries(tool.headers)
    .filter(([name]) => foldedHeader(name) !== 'content-type' || !isWrittenLater)
    .map(([name, value]): [string, string] => [sentHeaderName(name), value]);
  const ofArguments = declared
    .filter(({ location }) => location === 'header')
    .map(({ name, wire }) => wire.wire_name ?? name);
  const names = new Set([...Object.keys(tool.headers), ...ofArguments].map(foldedHeader));
  const isFilled = ([, value]: [string, string]) => placeholderNames(value).length > 0;
  return {
    fixedHeaders: [
      ...(names.has('accept') ? [] : ['Accept', 'application/json']),
      ...(names.has('user-agent') ? [] : ['User-Agent', userAgent]),
      ...given.filter((header) => !isFilled(header)).flat(),
    ],
    filledHeaders: given.filter(isFilled).map(([name, value]) => ({ name, value })),
  };
}
