import type { Problem } from '../../errors.ts';
import { headerNameProblem, isHeaderName, isHeaderValue } from '../http/headers.ts';
import { foldedHeader, ownedInQuery } from '../http/parameter-names.ts';
import { crowdedProblem, hasMalformedPlaceholder } from '../http/placeholders.ts';
import { readUrl } from '../http/read-url.ts';
import { argumentsIn, parseUrlTemplate, type UrlTemplate } from '../http/url-template.ts';
import { writtenNames } from '../json/dot-path.ts';
import { isDeeperThan, plainNumbers } from '../json/json.ts';
import { argumentsInHeaders, bracesInUrl, optionalInPath } from '../mistakes.ts';
import { type Guesses, listed, type ProblemList, shown } from '../problems.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { checkSchema } from '../schema/schema-rules.ts';
import {
  type Authentications,
  authenticationOfTool,
  type Credentials,
  credentialHeaders,
  credentialQueryNames,
  credentialsOf,
  noCredential,
} from './authentication.ts';
import { type BodyFields, destinationsOf, parseBodyTemplate, wireNameOf } from './destinations.ts';
import {
  type Argument,
  argumentsOf,
  checkInputSchema,
  constantsOf,
  type InputSchema,
  isJsonSchemaForm,
  maxArguments,
} from './input-schema.ts';
import {
  argumentProblems,
  bodyProblems,
  contentTypeProblem,
  deepestTemplate,
  emptyFormProblem,
} from './sending-rules.ts';
import type { UrlRule } from './server-rules.ts';
import { absoluteUrl, fillVariables, headersOfTool, type ServerWide, type SharedHeaders } from './server-wide.ts';
import { filledHeaderProblems, filledLength, fillingProblem, lengthProblem, problemAt } from './sizes.ts';
import { maxUrlLength, type Tool, toolSchema } from './tool.ts';

type RawTool = { [field: string]: unknown };

/** Context of the tool rules. */
export type ToolSurroundings = Credentials & {
  urlProblem: UrlRule;
  wide: ServerWide;
  /** Headers of the server, interpolated once for all its tools. */
  shared: SharedHeaders;
};

/**
 * Adds problems of rules that span several fields of a tool. Paths are relative to the tool. `raw` may be incomplete:
 * each rule is checked where its fields are well-formed.
 */
export function checkTool(raw: RawTool, { credentials, ...others }: ToolSurroundings, problems: ProblemList): void {
  const { wide, shared } = others;
  const credential = toolSchema.shape.credential.safeParse(raw.credential).data;
  const authentication = authenticationOfTool({ ...others, credentials }, { credential });
  const surroundings = { ...others, authentication };
  const below = (field: string) => problems.within((path) => (path ? `${field}.${path}` : field));
  const schema = toolSchema.shape.input_schema.safeParse(raw.input_schema);
  const headers = toolSchema.shape.headers.safeParse(raw.headers);
  const filled = { headers: headers.data, body_template: raw.body_template, input_schema: schema.data };
  const tooMuch = fillProblems(raw, filled, wide.variables);
  problems.addAll(tooMuch);
  // The other rules interpolate the placeholders.
  if (tooMuch.length > 0) return;
  problems.addAll(credentialProblems(credential, credentials));
  const before = problems.count;
  if (schema.success) checkInputSchema(schema.data, below('input_schema'));
  const hasSoundSchema = problems.count === before;
  // A schema with problems may have any number of arguments.
  const declared = schema.success ? argumentsOf(schema.data).slice(0, maxArguments) : [];

  const names = declared.map((argument) => argument.name);
  const { template, problems: urlProblems } = checkUrl(raw.url, names, surroundings);
  problems.addAll(urlProblems.map((message) => ({ path: 'url', message })));

  if (headers.success) checkHeaders(headers.data, surroundings, below('headers'));
  if (wide.forward_headers) problems.addAll(twiceProblems(headers.data ?? {}, declared, wide.forward_headers));
  const sent = headersOfTool(
    { method: raw.method as Tool['method'], headers: headers.data ?? {} },
    shared,
    wide.variables,
  );
  const tool = bodyFieldsOf(raw, sent);
  problems.addAll(bodyProblems(tool, declared, template?.names ?? [], problems.guesses));
  if (hasSoundSchema) problems.addAll(sendingProblems(tool, declared, template, authentication, problems.guesses));
  if (typeof raw.output_schema === 'object' && raw.output_schema !== null) {
    checkSchema(plainNumbers(raw.output_schema) as JsonSchema, below('output_schema'));
  }
  checkPaths(raw, problems);
  checkAnswerFields(raw, problems);
  const unfilled = argumentsInHeaders(headers.data ?? {}, names);
  problems.addAll(unfilled.map(({ path, message }) => ({ path: `headers.${path}`, message })));
  const inPath = new Set(template?.segments.flatMap(argumentsIn));
  problems.addAll(optionalInPath(declared.map(withNeed(raw.input_schema)), inPath));
}

/** Rejects forwarded headers that the tool also sets, because they would be sent twice. */
function twiceProblems(
  headers: Record<string, string>,
  declared: readonly Argument[],
  names: readonly string[],
): Problem[] {
  const forwarded = new Set(names.map(foldedHeader));
  const inHeaders = declared.filter(({ location }) => location === 'header');
  const set = [
    ...Object.keys(headers).map((name) => ({ path: `headers.${name}`, name })),
    ...inHeaders.map((argument) => ({ path: `input_schema.${argument.name}`, name: wireNameOf(argument) })),
  ];
  const message = 'forward_headers already forwards this header from the client; remove one of the two';
  return set.filter(({ name }) => forwarded.has(foldedHeader(name))).map(({ path }) => ({ path, message }));
}

/** Rejects an unknown credential name. The message does not repeat the name, because it may be a misplaced secret. */
function credentialProblems(name: string | undefined, named: Credentials['credentials'] = {}): Problem[] {
  if (name === undefined || name === noCredential || Object.hasOwn(named, name)) return [];
  const allowed = listed([...Object.keys(named), noCredential]);
  return [{ path: 'credential', message: `is not a name in the server credentials; allowed: ${allowed}` }];
}

/** Returns fields with too many placeholders, and fields that are too long after interpolation. */
function fillProblems(raw: RawTool, fields: Filled, variables: ServerWide['variables']): Problem[] {
  const crowded = fieldsWithPlaceholders.flatMap((path) => {
    const message = crowdedProblem(raw[path]);
    return message === undefined ? [] : [{ path, message }];
  });
  return crowded.length > 0 ? crowded : filledToolProblems(fields, variables);
}

const fieldsWithPlaceholders = ['url', 'headers', 'body_template', 'input_schema'] as const;

/** Treats all arguments as optional if a JSON Schema has no `required`. */
function withNeed(schema: unknown): (argument: Argument) => Argument {
  const { required } = (schema ?? {}) as { required?: unknown };
  const requiresNothing = isJsonSchemaForm((schema ?? {}) as InputSchema) && !Array.isArray(required);
  return (argument) => (requiresNothing ? { ...argument, required: false } : argument);
}

/** Returns the template of a URL, or the problems that prevent its use. */
function checkUrl(
  raw: unknown,
  names: readonly string[],
  { authentication, urlProblem, wide }: ToolSurroundings,
): { template?: UrlTemplate; problems: string[] } {
  if (typeof raw !== 'string' || raw === '' || raw.length > maxUrlLength) return { problems: [] };
  const tooLong = lengthProblem(filledLength(raw, wide.variables), maxUrlLength);
  if (tooLong !== undefined) return { problems: [tooLong] };
  const filled = fillVariables(raw, wide.variables);
  const isRelative = filled.startsWith('/');
  if (isRelative && wide.base_url === undefined)
    return {
      problems: ['begins with a slash, which requires base_url; set base_url on the server, or use a full URL'],
    };
  if (filled.startsWith('//')) return { problems: ['begins with two slashes; allowed: one slash, or a full URL'] };
  const braces = bracesInUrl(raw, new Set(names));
  const url = absoluteUrl(raw, wide);
  const wholeTooLong = lengthProblem(url.length, maxUrlLength);
  if (wholeTooLong !== undefined) return { problems: [wholeTooLong] };
  const { template, problems } = parseUrlTemplate(url, names);
  const hostFault = isRelative ? undefined : hostProblem(url, urlProblem);
  if (hostFault) problems.push(hostFault);
  problems.push(...braces);
  if (!template) return { problems };
  return { template, problems: [...problems, ...queryKeyProblems(url, authentication)] };
}

function checkPaths(raw: RawTool, problems: ProblemList): void {
  const check = (path: () => string, text: unknown) => {
    if (typeof text !== 'string' || !writtenNames(text).includes('')) return;
    problems.add(() => ({
      path: path(),
      message:
        'allowed: "." or names separated by single dots, such as data.results; a backslash before a dot makes it part of a name, and "" is the empty name',
    }));
  };
  check(() => 'response_transform', raw.response_transform);
  const fields = Array.isArray(raw.response_fields) ? raw.response_fields : [];
  for (const [index, field] of fields.entries()) {
    check(() => `response_fields[${index}]`, field);
    if (field !== '.') continue;
    const message = 'names no field; leave response_fields out to keep the whole response';
    problems.add(() => ({ path: `response_fields[${index}]`, message }));
  }
}

/** Checks the destination of a URL, except its tokens. */
export function hostProblem(url: string, urlProblem: UrlRule): string | undefined {
  const base = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#\\]*(?:\/[^?#]*)?/.exec(url)?.[0];
  const target = (base === undefined ? undefined : readUrl(base)) ?? readUrl(url);
  return target && urlProblem(target);
}

function queryKeyProblems(url: string, authentication: Authentications | undefined): string[] {
  const query = /\?([^#]*)/.exec(url)?.[1] ?? '';
  return ownedInQuery(query, credentialQueryNames(authentication)).map(
    (name) => `the query has ${shown(name)}, which carries the credential; leave it out`,
  );
}

/** Adds problems of static headers. Paths are header names. */
export function checkHeaders(
  headers: Record<string, string>,
  { authentication, wide }: Pick<ToolSurroundings, 'authentication' | 'wide'>,
  problems: ProblemList,
): void {
  const seen = new Set<string>();
  const credentials = credentialHeaders(authentication);
  for (const [name, unfilled] of Object.entries(headers)) {
    const value = fillVariables(unfilled, wide.variables);
    const add = (message: string) => problems.add(() => ({ path: name, message }));
    const fault = headerNameProblem(name);
    if (fault) add(fault);
    const folded = foldedHeader(name);
    if (seen.has(folded)) add('this header is set twice');
    seen.add(folded);
    if (credentials.has(folded)) {
      add('authentication sets this header; leave it out here, or change authentication.header');
    }
    if (!isHeaderValue(value)) add('allowed: one line of latin-1 text without outer spaces');
    if (hasMalformedPlaceholder(value)) add('allowed as a placeholder: {{NAME}} with letters, digits, and _');
  }
}

/** Returns the fields of a tool that determine its body, as far as they are well-formed. */
function bodyFieldsOf(raw: RawTool, headers: { [name: string]: string }): BodyFields {
  const { body, body_template } = raw;
  const method = String(raw.method).toUpperCase();
  return { method, body: typeof body === 'string' && body !== '' ? body : undefined, body_template, headers };
}

function sendingProblems(
  tool: BodyFields,
  declared: readonly Argument[],
  template: UrlTemplate | undefined,
  authentication: Authentications | undefined,
  guesses: Guesses,
): Problem[] {
  const names = declared.map(({ name }) => name);
  const hasTemplate = tool.body_template !== undefined && !isDeeperThan(tool.body_template, deepestTemplate);
  const inBody = hasTemplate ? parseBodyTemplate(tool.body_template, names).names : [];
  const destinations = destinationsOf(tool, declared, { inUrl: template?.names ?? [], inBody });
  const credentials = credentialHeaders(authentication);
  const cookies = credentialsOf(authentication).flatMap(({ cookie }) => cookie ?? []);
  const hasQueryCredential = credentialQueryNames(authentication).folded.size > 0;
  const ofBody = declared.filter(({ name }) => destinations.get(name) === 'body');
  const ofWhole = [contentTypeProblem(tool, ofBody), emptyFormProblem(tool, ofBody)];
  return [
    ...argumentProblems({ tool, declared, destinations, template, credentials, cookies, hasQueryCredential, guesses }),
    ...ofWhole.filter((problem) => problem !== undefined),
  ];
}

/** Headers that agents never receive: credentials, and headers that describe the connection instead of the response. */
const withheld = /^(set-cookie2?|connection|keep-alive|transfer-encoding|trailer|upgrade|te|proxy-.*)$/;

/** Adds problems of the fields that select other parts of a response than its body. Paths are relative to the tool. */
function checkAnswerFields(raw: { [field: string]: unknown }, problems: ProblemList): void {
  const names = toolSchema.shape.response_headers.safeParse(raw.response_headers).data ?? [];
  const seen = new Set<string>();
  for (const [index, name] of names.entries()) {
    const message = headerFault(name, seen);
    if (message) problems.add(() => ({ path: `response_headers[${index}]`, message }));
    seen.add(name.toLowerCase());
  }
  const method = String(raw.method).toUpperCase();
  if (raw.redirects === 'follow' && method !== 'GET' && method !== 'HEAD') {
    const message = `found ${shown(raw.method)} as the method; only redirects of GET and HEAD are followed, because other requests must not be sent twice; leave this out`;
    problems.add(() => ({ path: 'redirects', message }));
  }
}

function headerFault(name: string, seen: ReadonlySet<string>): string | undefined {
  if (!isHeaderName(name)) return `found ${shown(name)}; allowed: a header name, such as Link`;
  if (seen.has(name.toLowerCase())) return 'this header is listed twice';
  return withheld.test(name.toLowerCase())
    ? 'agents never receive this header, because it contains a cookie or describes the connection; leave it out'
    : undefined;
}

type Filled = {
  headers: Record<string, string> | undefined;
  body_template?: unknown;
  input_schema: InputSchema | undefined;
};

/**
 * Returns why the headers, the body, or the constants of a tool are too long after interpolation. Paths are relative to
 * the tool.
 */
export function filledToolProblems(
  { headers, body_template, input_schema }: Filled,
  variables: ServerWide['variables'],
): Problem[] {
  const constants = input_schema && constantsOf(input_schema).map(({ value }) => value);
  return [
    ...filledHeaderProblems(headers, variables),
    ...problemAt('body_template', fillingProblem(body_template, variables)),
    ...problemAt('input_schema', fillingProblem(constants, variables)),
  ];
}
