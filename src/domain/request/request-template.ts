import { ToolFailure } from '../../errors.ts';
import {
  type Authentication,
  type Authentications,
  credentialQueryNames,
  credentialsOf,
} from '../config/authentication.ts';
import { type Argument, type ArgumentLocation, argumentsOf } from '../config/input-schema.ts';
import type { Tool } from '../config/tool.ts';
import { type Encoding, encodingOf, isEncoding } from '../config/tool-rules.ts';
import { isHeaderValue } from '../http/headers.ts';
import { foldedHeader, isReadAs, type OwnedNames, ownedInQuery } from '../http/parameter-names.ts';
import { encode } from '../http/percent-encoding.ts';
import { fillPlaceholders, placeholderNames } from '../http/placeholders.ts';
import { checked, parseUrlTemplate, type QueryPair, renderUrl, type UrlTemplate } from '../http/url-template.ts';
import {
  type ArrayFormat,
  arrayPairs,
  hasControlCharacter,
  mostHeaderLength,
  mostPairs,
  mostUrlLength,
  refuseLonger,
  valueText,
} from '../http/values.ts';

import { addCredentials, type Tokens } from './sent-credentials.ts';

/** Arguments of a call: validated, with defaults filled in. Numbers may be `JSON.rawJSON` objects. */
export type Arguments = { [name: string]: unknown };

/** The part of a tool's request that does not depend on the call; compiled once per version of a server. */
export type RequestTemplate = {
  method: Tool['method'];
  url: UrlTemplate;
  /** The location of each argument that the URL does not consume. */
  locations: ReadonlyMap<string, Exclude<ArgumentLocation, 'path'>>;
  /** Headers that are the same in every call, names and values in turn. */
  fixedHeaders: readonly string[];
  /** Headers with `{{NAME}}` in their value. */
  filledHeaders: readonly { name: string; value: string }[];
  /** Whether an argument may become a part of the body. */
  hasBody: boolean;
  encoding: Encoding;
  /** The one argument that is the body, when there is one. */
  bodyArgument: string | undefined;
  contentType: string | undefined;
  arrayFormat: ArrayFormat;
  credentials: readonly Authentication[];
};

/** The one HTTP request of a call. `path` has the query; `headers` alternates names and values. */
export type UpstreamRequest = {
  method: Tool['method'];
  origin: string;
  path: string;
  headers: string[];
  body: string | { fields: [name: string, value: string][] } | undefined;
};

/** The credentials of a call. `secret` throws when a value is missing. */
export type Credentials = { tokens: Tokens; secret: (name: string) => string };

/** Compiles a tool of a valid configuration. */
export function compileRequest(
  tool: Tool,
  authentication: Authentications | undefined,
  userAgent: string,
): RequestTemplate {
  const declared = argumentsOf(tool.input_schema);
  const { template } = parseUrlTemplate(
    tool.url,
    declared.map((argument) => argument.name),
  );
  if (!template) throw new Error(`tool ${tool.name} has a URL that was never valid`);
  const contentType = Object.entries(tool.headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  const named = isEncoding(tool.body) ? tool.body : undefined;
  const bodyArgument = named === undefined ? tool.body : undefined;
  const encoding = named ?? (contentType === undefined ? undefined : encodingOf(contentType)) ?? 'json';
  const usual =
    tool.method === 'GET' || tool.method === 'HEAD' || tool.method === 'DELETE' || bodyArgument !== undefined
      ? 'query'
      : 'body';
  const credential = credentialQueryNames(authentication);
  const isForm = encoding !== 'json' && bodyArgument === undefined;
  const locations = new Map<string, Exclude<ArgumentLocation, 'path'>>();
  for (const argument of declared) {
    if (template.names.includes(argument.name)) continue;
    const wanted = argument.name === bodyArgument ? 'body' : argument.location;
    const location = wanted === undefined || wanted === 'path' ? usual : wanted;
    // Receivers merge the fields of a form with the query, so neither may hold a name that they could read as the credential's.
    const isMerged = location === 'query' || (location === 'body' && isForm);
    if (!isMerged || !isReadAs(argument.name, credential)) locations.set(argument.name, location);
  }
  return {
    method: tool.method,
    url: { ...template, query: template.query.filter((pair) => !holdsCredential(pair, credential)) },
    locations,
    ...headersOf(tool, declared, userAgent, encoding === 'multipart' && bodyArgument === undefined),
    hasBody: [...locations.values()].includes('body'),
    encoding,
    bodyArgument,
    contentType,
    arrayFormat: tool.array_format ?? 'repeat',
    credentials: credentialsOf(authentication),
  };
}

/** A configuration that was stored before its names were compared may hold such a pair. */
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
  // With multipart the boundary decides the header, so it is written together with the body.
  const given = Object.entries(tool.headers).filter(([name]) => name.toLowerCase() !== 'content-type' || !isMultipart);
  const ofArguments = declared.filter(({ location }) => location === 'header').map(({ name }) => name);
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

/**
 * Builds the request of a call (specification 4.3). Pure: nothing is sent.
 * @throws ToolFailure invalid_arguments when an argument cannot go where it belongs
 * @throws ToolFailure secret_missing from `credentials.secret`
 */
export function buildRequest(template: RequestTemplate, args: Arguments, credentials: Credentials): UpstreamRequest {
  const { path, query } = renderUrl(template.url, {
    argument: (name) => templateText(name, own(args, name)),
    secret: credentials.secret,
  });
  // The configuration was checked when it was stored; the values of its secrets were not.
  const headers = template.fixedHeaders.slice();
  for (const { name, value } of template.filledHeaders) {
    headers.push(name, headerText(name, fillPlaceholders(value, credentials.secret)));
  }
  const left: [string, unknown][] = [];
  for (const [name, location] of template.locations) {
    const value = own(args, name);
    if (value === undefined) continue;
    if (location === 'body') left.push([name, value]);
    else if (location === 'query') query.push(...queryPairs(name, value, template.arrayFormat));
    else headers.push(...argumentHeader(name, value));
  }
  const { body, contentType } = bodyOf(template, left);
  if (contentType !== undefined) headers.push('Content-Type', contentType);
  if (template.credentials.length > 0) addCredentials(template.credentials, credentials.tokens, headers, query);
  const search = query.length > 0 ? `?${query.join('&')}` : '';
  return { method: template.method, origin: template.url.origin, path: checked(path + search), headers, body };
}

/** An argument may be called `toString`, so inherited properties are left out. */
function own(args: Arguments, name: string): unknown {
  return Object.hasOwn(args, name) ? args[name] : undefined;
}

/** Text of an argument in a template; control characters are refused in a path or a filter. */
function templateText(name: string, value: unknown): string | undefined {
  const text = valueText(name, value);
  if (text !== undefined && hasControlCharacter(text)) {
    throw new ToolFailure('invalid_arguments', `${name}: must not hold control characters`);
  }
  return text;
}

function queryPairs(name: string, value: unknown, format: ArrayFormat): string[] {
  // Each entry takes its name, two signs and a character at least.
  if (Array.isArray(value) && format !== 'comma')
    refuseLonger(name, value.length * (name.length + 2), mostUrlLength, 'a URL');
  return arrayPairs(name, value, format).map(([key, text]) => {
    refuseLonger(name, text.length, mostUrlLength, 'a URL');
    return `${encode(key)}=${encode(text)}`;
  });
}

/** A pair of name and value; none for an argument without a text. */
function argumentHeader(name: string, value: unknown): string[] {
  const text = valueText(name, value);
  if (text === undefined) return [];
  refuseLonger(name, text.length, mostHeaderLength, 'a header');
  return [name, headerText(name, text)];
}

/** @throws ToolFailure invalid_arguments */
function headerText(name: string, value: string): string {
  if (isHeaderValue(value)) return value;
  const message = `the value for the header ${name} has characters that a header cannot hold`;
  throw new ToolFailure('invalid_arguments', message);
}

/** A body, and its Content-Type where the tool does not set it. */
type Content = { body: UpstreamRequest['body']; contentType?: string };
const noContent: Content = { body: undefined };

function bodyOf(template: RequestTemplate, left: [string, unknown][]): Content {
  const content = contentOf(template, left);
  return template.contentType === undefined ? content : { body: content.body };
}

function contentOf(template: RequestTemplate, left: [string, unknown][]): Content {
  const { bodyArgument, contentType, encoding } = template;
  if (bodyArgument !== undefined) {
    const value = left.find(([name]) => name === bodyArgument)?.[1];
    if (value === undefined) return noContent;
    if (typeof value === 'string' && (contentType === undefined || encodingOf(contentType) !== 'json'))
      return { body: value, contentType: 'text/plain; charset=utf-8' };
    return { body: JSON.stringify(value), contentType: 'application/json' };
  }
  if (!template.hasBody || (template.method === 'DELETE' && left.length === 0)) return noContent;
  if (encoding === 'json') return { body: JSON.stringify(Object.fromEntries(left)), contentType: 'application/json' };
  const fields = left.flatMap(([name, value]) => arrayPairs(name, value, template.arrayFormat));
  if (fields.length > mostPairs) {
    throw new ToolFailure('invalid_arguments', `found ${fields.length} fields; a form has at most ${mostPairs}`);
  }
  if (encoding === 'multipart') return { body: { fields } };
  const body = fields.map(([name, text]) => `${encode(name)}=${encode(text)}`).join('&');
  return { body, contentType: 'application/x-www-form-urlencoded' };
}
