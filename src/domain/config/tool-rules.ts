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

/** Context of the rules of a tool. */
export type ToolSurroundings = Credentials & {
  urlProblem: UrlRule;
  wide: ServerWide;
  /** The headers of the server, filled once for all of its tools. */
  shared: SharedHeaders;
};

/**
 * Adds problems of rules across the fields of a tool; paths are relative to the tool. `raw` may be incomplete: each rule
 * is checked where its fields are well-formed.
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
  // The other rules fill the placeholders.
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

/** A header that a tool sets itself would be sent twice if it came from the client, too. */
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
  const message = 'forward_headers passes this header on from the client; drop one of the two';
  return set.filter(({ name }) => forwarded.has(foldedHeader(name))).map(({ path }) => ({ path, message }));
}

/** The name is not repeated: it may be a secret in the wrong place. */
function credentialProblems(name: string | undefined, named: Credentials['credentials'] = {}): Problem[] {
  if (name === undefined || name === noCredential || Object.hasOwn(named, name)) return [];
  const allowed = listed([...Object.keys(named), noCredential]);
  return [{ path: 'credential', message: `is no name in credentials of the server; allowed: ${allowed}` }];
}

/** Fields with too many placeholders, and those that are too long when they are filled. */
function fillProblems(raw: RawTool, fields: Filled, variables: ServerWide['variables']): Problem[] {
  const crowded = fieldsWithPlaceholders.flatMap((path) => {
    const message = crowdedProblem(raw[path]);
    return message === undefined ? [] : [{ path, message }];
  });
  return crowded.length > 0 ? crowded : filledToolProblems(fields, variables);
}

const fieldsWithPlaceholders = ['url', 'headers', 'body_template', 'input_schema'] as const;

/** A JSON Schema without `required` requires nothing. */
function withNeed(schema: unknown): (argument: Argument) => Argument {
  const { required } = (schema ?? {}) as { required?: unknown };
  const requiresNothing = isJsonSchemaForm((schema ?? {}) as InputSchema) && !Array.isArray(required);
  return (argument) => (requiresNothing ? { ...argument, required: false } : argument);
}

/** The template of a URL, and why it cannot be used. */
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
      problems: ['begins with a slash, which needs base_url; set base_url on the server, or write the whole URL'],
    };
  if (filled.startsWith('//')) return { problems: ['begins with two slashes; allowed: one, or a whole URL'] };
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
        'allowed: "." or names joined by single dots, such as data.results; a backslash before a dot makes it part of a name, and "" is the empty name',
    }));
  };
  check(() => 'response_transform', raw.response_transform);
  const fields = Array.isArray(raw.response_fields) ? raw.response_fields : [];
  for (const [index, field] of fields.entries()) {
    check(() => `response_fields[${index}]`, field);
    if (field !== '.') continue;
    const message = 'names no field; leave response_fields out to keep the whole answer';
    problems.add(() => ({ path: `response_fields[${index}]`, message }));
  }
}

/** Checks the destination of a URL, apart from its tokens. */
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

/** Adds problems of static headers; paths are their names. */
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
    if (seen.has(folded)) add('this header is given twice');
    seen.add(folded);
    if (credentials.has(folded)) {
      add('authentication sets this header; leave it out here, or change authentication.header');
    }
    if (!isHeaderValue(value)) add('allowed: one line of latin-1 text without outer spaces');
    if (hasMalformedPlaceholder(value)) add('a placeholder is {{NAME}} with letters, digits and _');
  }
}

/** The fields of a tool that decide about its body, as far as they are well-formed. */
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

/** Headers that no agent gets: credentials, and those that are about the connection and not about the answer. */
const withheld = /^(set-cookie2?|connection|keep-alive|transfer-encoding|trailer|upgrade|te|proxy-.*)$/;

/** Adds problems of the fields that say what a tool reads of an answer beside its body; paths are relative to the tool. */
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
    const message = `found ${shown(raw.method)} as the method; only redirects of GET and HEAD are followed, because another request must not be sent twice; leave it out`;
    problems.add(() => ({ path: 'redirects', message }));
  }
}

function headerFault(name: string, seen: ReadonlySet<string>): string | undefined {
  if (!isHeaderName(name)) return `found ${shown(name)}; allowed: the name of a header, such as Link`;
  if (seen.has(name.toLowerCase())) return 'this header is named twice';
  return withheld.test(name.toLowerCase())
    ? 'agents never get this header: it holds a cookie or is about the connection; leave it out'
    : undefined;
}

type Filled = {
  headers: Record<string, string> | undefined;
  body_template?: unknown;
  input_schema: InputSchema | undefined;
};

/** Why the headers, the body or the constants of a tool are too long when they are filled; paths are relative to it. */
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
