import { ToolFailure } from '../errors.ts';
import { type Authentication, credentialHeader, credentialQueryKey, credentialValue } from './authentication.ts';
import { isHeaderValue } from './headers.ts';
import { argumentsOf, type Place } from './input-schema.ts';
import { fillPlaceholders, placeholderNames } from './placeholders.ts';
import type { Tool } from './tool.ts';
import { type Encoding, encodingOf, isEncoding } from './tool-rules.ts';
import { encode, parseUrlTemplate, renderUrl, type UrlTemplate } from './url-template.ts';
import { type ArrayFormat, arrayPairs, valueText } from './values.ts';

/** Arguments of a call: validated, with defaults filled in. Numbers may be `JSON.rawJSON` objects. */
export type Arguments = { [name: string]: unknown };

/** Everything about a tool's request that does not depend on the call; compiled once per version of a server. */
export type RequestTemplate = {
  method: Tool['method'];
  url: UrlTemplate;
  /** Where each argument that the URL does not consume goes. */
  places: ReadonlyMap<string, Exclude<Place, 'path'>>;
  headers: readonly { name: string; value: string; filled: boolean }[];
  encoding: Encoding;
  /** The one argument that is the body, when there is one. */
  bodyArgument: string | undefined;
  contentType: string | undefined;
  arrayFormat: ArrayFormat;
  authentication: Authentication | undefined;
};

/** The one HTTP request of a call. `path` has the query; `headers` alternates names and values. */
export type UpstreamRequest = {
  method: Tool['method'];
  origin: string;
  path: string;
  headers: string[];
  body: string | { fields: [name: string, value: string][] } | undefined;
};

/** What the call brings besides its arguments. `secret` throws when a value is missing. */
export type Credentials = { token: string | undefined; secret: (name: string) => string };

/** Compiles a tool of a valid configuration. */
export function compileRequest(
  tool: Tool,
  authentication: Authentication | undefined,
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
  const usual = tool.method === 'GET' || tool.method === 'DELETE' || bodyArgument !== undefined ? 'query' : 'body';
  const places = new Map<string, Exclude<Place, 'path'>>();
  for (const argument of declared) {
    if (template.names.includes(argument.name)) continue;
    const wanted = argument.name === bodyArgument ? 'body' : argument.place;
    places.set(argument.name, wanted === undefined || wanted === 'path' ? usual : wanted);
  }
  return {
    method: tool.method,
    url: template,
    places,
    headers: staticHeaders(tool, userAgent, encoding === 'multipart' && bodyArgument === undefined),
    encoding,
    bodyArgument,
    contentType,
    arrayFormat: tool.array_format ?? 'repeat',
    authentication,
  };
}

function staticHeaders(tool: Tool, userAgent: string, isMultipart: boolean): RequestTemplate['headers'] {
  const given = Object.entries(tool.headers).map(([name, value]) => ({
    name,
    value,
    filled: placeholderNames(value).length > 0,
  }));
  const has = (name: string) => given.some((header) => header.name.toLowerCase() === name);
  return [
    ...(has('accept') ? [] : [{ name: 'Accept', value: 'application/json', filled: false }]),
    ...(has('user-agent') ? [] : [{ name: 'User-Agent', value: userAgent, filled: false }]),
    // With multipart the boundary decides the header, so it is written together with the body.
    ...given.filter((header) => header.name.toLowerCase() !== 'content-type' || !isMultipart),
  ];
}

/**
 * Builds the request of a call (spec 4.3). Pure: nothing is sent.
 * @throws ToolFailure invalid_arguments when an argument cannot stand where it belongs
 * @throws ToolFailure secret_missing from `credentials.secret`
 */
export function buildRequest(template: RequestTemplate, args: Arguments, credentials: Credentials): UpstreamRequest {
  const { path, query } = renderUrl(template.url, (name) => templateText(name, own(args, name)));
  const queryKey = template.authentication && credentialQueryKey(template.authentication);
  const headers = headersOf(template, credentials.secret);
  const left: [string, unknown][] = [];
  for (const [name, place] of template.places) {
    const value = own(args, name);
    if (value === undefined) continue;
    if (place === 'body') left.push([name, value]);
    else if (place === 'header') addArgumentHeader(headers, name, value);
    else if (name !== queryKey) query.push(...queryPairs(name, value, template.arrayFormat));
  }
  const body = bodyOf(template, left, headers);
  if (template.authentication && credentials.token !== undefined) {
    const header = credentialHeader(template.authentication);
    if (header !== undefined) addHeader(headers, header, credentialValue(template.authentication, credentials.token));
    else query.push(`${encode(queryKey as string)}=${encode(credentials.token)}`);
  }
  const search = query.length > 0 ? `?${query.join('&')}` : '';
  return { method: template.method, origin: template.url.origin, path: path + search, headers, body };
}

/** An argument may be called `toString`; what every object inherits is not one. */
function own(args: Arguments, name: string): unknown {
  return Object.hasOwn(args, name) ? args[name] : undefined;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controlCharacters = /[\u0000-\u001f\u007f]/;

/** Text of an argument that a template places; control characters have no business in a path or a filter. */
function templateText(name: string, value: unknown): string | undefined {
  const text = valueText(name, value);
  if (text !== undefined && controlCharacters.test(text)) {
    throw new ToolFailure('invalid_arguments', `${name}: must not hold control characters`);
  }
  return text;
}

function queryPairs(name: string, value: unknown, format: ArrayFormat): string[] {
  return arrayPairs(name, value, format).map(([key, text]) => `${encode(key)}=${encode(text)}`);
}

function headersOf(template: RequestTemplate, secret: (name: string) => string): string[] {
  const headers: string[] = [];
  for (const { name, value, filled } of template.headers) {
    // What a configuration says has been judged with it; what a secret says has not.
    if (filled) addHeader(headers, name, fillPlaceholders(value, secret));
    else headers.push(name, value);
  }
  return headers;
}

function addArgumentHeader(headers: string[], name: string, value: unknown): void {
  const text = valueText(name, value);
  if (text !== undefined) addHeader(headers, name, text);
}

function addHeader(headers: string[], name: string, value: string): void {
  if (!isHeaderValue(value)) {
    throw new ToolFailure(
      'invalid_arguments',
      `the value for the header ${name} has characters that a header cannot hold`,
    );
  }
  headers.push(name, value);
}

/** The body, and its Content-Type where the tool does not say it. */
function bodyOf(template: RequestTemplate, left: [string, unknown][], headers: string[]): UpstreamRequest['body'] {
  const { bodyArgument, contentType, encoding } = template;
  const type = (fallback: string) => {
    if (contentType === undefined) headers.push('Content-Type', fallback);
  };
  if (bodyArgument !== undefined) {
    const value = left.find(([name]) => name === bodyArgument)?.[1];
    if (value === undefined) return undefined;
    if (typeof value === 'string' && (contentType === undefined || encodingOf(contentType) !== 'json')) {
      type('text/plain; charset=utf-8');
      return value;
    }
    type('application/json');
    return JSON.stringify(value);
  }
  const declares = [...template.places.values()].includes('body');
  if (!declares || (template.method === 'DELETE' && left.length === 0)) return undefined;
  if (encoding === 'json') {
    type('application/json');
    return JSON.stringify(Object.fromEntries(left));
  }
  const fields = left.flatMap(([name, value]) => arrayPairs(name, value, template.arrayFormat));
  if (encoding === 'multipart') return { fields };
  type('application/x-www-form-urlencoded');
  return fields.map(([name, text]) => `${encode(name)}=${encode(text)}`).join('&');
}
