import { splitWrittenNames } from '@toolhost/errors/dot-path';
import type { Problem } from '@toolhost/errors/errors';
import { findArgumentsInHeaders, findBracesInUrl, findOptionalPathArguments } from '@toolhost/errors/input-errors';
import { describeValue, formatNames, type ProblemList, type SuggestionBudget } from '@toolhost/errors/problems';
import { isDeeperThan, toPlainNumbers } from '@toolhost/json/json';
import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import { checkSchema } from '@toolhost/json-schema/schema-rules';
import {
  type Authentications,
  type Credentials,
  credentialHeaders,
  credentialQueryNames,
  getToolAuthentication,
  noCredential,
  toCredentialList,
} from './authentication.ts';
import { type BodyFields, getDestinations, getWireName, parseBodyTemplate } from './destinations.ts';
import { getHeaderNameProblem, isHeaderName, isHeaderValue } from './http/headers.ts';
import { findOwnedInQuery, foldHeaderName } from './http/parameter-names.ts';
import { getPlaceholderLimitProblem, hasMalformedPlaceholder } from './http/placeholders.ts';
import { parseUrl } from './http/read-url.ts';
import { getArgumentNames, parseUrlTemplate, type UrlTemplate } from './http/url-template.ts';
import {
  type Argument,
  checkInputSchema,
  getArguments,
  getConstants,
  type InputSchema,
  isJsonSchemaForm,
  maxArguments,
} from './input-schema.ts';
import {
  findPersonalHostProblem,
  findSecretsForPersonalHost,
  noPersonalValues,
  type PersonalValues,
  toProbeUrls,
} from './personal-host-rules.ts';
import {
  findArgumentProblems,
  findBodyProblems,
  findContentTypeProblem,
  findEmptyFormProblem,
  maxTemplateDepth,
} from './request-rules.ts';
import type { UrlRule } from './server-rules.ts';
import {
  getToolHeaders,
  interpolateVariables,
  type ServerWide,
  type SharedHeaders,
  toAbsoluteUrl,
} from './server-wide.ts';
import {
  checkConfigLength,
  checkInterpolation,
  findHeaderLengthProblems,
  getInterpolatedLength,
  toSizeProblems,
} from './sizes.ts';
import { maxUrlLength, type Tool, toolSchema } from './tool.ts';

type RawTool = { [field: string]: unknown };

/** Context of the tool rules. */
export type ToolContext = Credentials & {
  urlProblem: UrlRule;
  serverWide: ServerWide;
  /** Headers of the server, interpolated once for all its tools. */
  sharedHeaders: SharedHeaders;
  /** Values of people; none if absent. */
  personal?: PersonalValues | undefined;
};

/**
 * Adds problems of rules that span several fields of a tool. Paths are relative to the tool. `raw` may be incomplete:
 * each rule is checked where its fields are well-formed.
 */
export function checkTool(raw: RawTool, { credentials, ...serverContext }: ToolContext, problems: ProblemList): void {
  const { serverWide, sharedHeaders } = serverContext;
  const credential = toolSchema.shape.credential.safeParse(raw.credential).data;
  const authentication = getToolAuthentication({ ...serverContext, credentials }, { credential });
  const toolContext = { ...serverContext, authentication };
  const within = (field: string) => problems.nested((path) => (path ? `${field}.${path}` : field));
  const schema = toolSchema.shape.input_schema.safeParse(raw.input_schema);
  const headers = toolSchema.shape.headers.safeParse(raw.headers);
  const placeholderValues = { headers: headers.data, body_template: raw.body_template, input_schema: schema.data };
  const sizeProblems = findPlaceholderProblems(raw, placeholderValues, serverWide.variables);
  problems.addAll(sizeProblems);
  // The other rules interpolate the placeholders, which must not produce a text that is too long.
  if (sizeProblems.length > 0) return;
  problems.addAll(findCredentialNameProblems(credential, credentials));
  const countBefore = problems.count;
  if (schema.success) checkInputSchema(schema.data, within('input_schema'));
  const hasSoundSchema = problems.count === countBefore;
  // A schema with problems may have any number of arguments.
  const declared = schema.success ? getArguments(schema.data).slice(0, maxArguments) : [];

  const names = declared.map((argument) => argument.name);
  const { template, problems: urlProblems } = checkUrl(raw.url, names, toolContext);
  problems.addAll(urlProblems.map((message) => ({ path: 'url', message })));

  if (headers.success) checkHeaders(headers.data, toolContext, within('headers'));
  if (serverWide.forward_headers)
    problems.addAll(findDuplicateHeaders(headers.data ?? {}, declared, serverWide.forward_headers));
  const sentHeaders = getToolHeaders(
    { method: raw.method as Tool['method'], headers: headers.data ?? {} },
    sharedHeaders,
    serverWide.variables,
  );
  if (template?.hostName !== undefined)
    problems.addAll(
      findSecretsForPersonalHost(
        {
          url: toAbsoluteUrl(String(raw.url), serverWide),
          headers: sentHeaders,
          body_template: raw.body_template,
          constants: schema.success ? getConstants(schema.data) : [],
          authentication,
        },
        serverContext.personal,
        serverWide.variables,
      ),
    );
  const tool = getBodyFields(raw, sentHeaders);
  problems.addAll(findBodyProblems(tool, declared, template?.names ?? [], problems.suggestionBudget));
  if (hasSoundSchema)
    problems.addAll(findSendingProblems(tool, declared, template, authentication, problems.suggestionBudget));
  if (typeof raw.output_schema === 'object' && raw.output_schema !== null) {
    checkSchema(toPlainNumbers(raw.output_schema) as JsonSchema, within('output_schema'));
  }
  checkPaths(raw, problems);
  checkResponseFields(raw, problems);
  const headerTokens = findArgumentsInHeaders(headers.data ?? {}, names);
  problems.addAll(headerTokens.map(({ path, message }) => ({ path: `headers.${path}`, message })));
  const pathArguments = new Set(template?.segments.flatMap(getArgumentNames));
  problems.addAll(findOptionalPathArguments(declared.map(createRequiredMapper(raw.input_schema)), pathArguments));
}

/** Rejects forwarded headers that the tool also sets, because they would be sent twice. */
function findDuplicateHeaders(
  headers: Record<string, string>,
  declared: readonly Argument[],
  names: readonly string[],
): Problem[] {
  const forwarded = new Set(names.map(foldHeaderName));
  const inHeaders = declared.filter(({ location }) => location === 'header');
  const ownHeaders = [
    ...Object.keys(headers).map((name) => ({ path: `headers.${name}`, name })),
    ...inHeaders.map((argument) => ({ path: `input_schema.${argument.name}`, name: getWireName(argument) })),
  ];
  const message = 'forward_headers already forwards this header from the client; remove one of the two';
  return ownHeaders.filter(({ name }) => forwarded.has(foldHeaderName(name))).map(({ path }) => ({ path, message }));
}

/** Rejects an unknown credential name. The message does not repeat the name, because it may be a misplaced secret. */
function findCredentialNameProblems(name: string | undefined, named: Credentials['credentials'] = {}): Problem[] {
  if (name === undefined || name === noCredential || Object.hasOwn(named, name)) return [];
  const allowed = formatNames([...Object.keys(named), noCredential]);
  return [{ path: 'credential', message: `is not a name in the server credentials; allowed: ${allowed}` }];
}

/** Returns fields with too many placeholders, and fields that are too long after interpolation. */
function findPlaceholderProblems(
  raw: RawTool,
  fields: PlaceholderValues,
  variables: ServerWide['variables'],
): Problem[] {
  const limitProblems = fieldsWithPlaceholders.flatMap((path) => {
    const message = getPlaceholderLimitProblem(raw[path]);
    return message === undefined ? [] : [{ path, message }];
  });
  return limitProblems.length > 0 ? limitProblems : findToolLengthProblems(fields, variables);
}

const fieldsWithPlaceholders = ['url', 'headers', 'body_template', 'input_schema'] as const;

/** Treats all arguments as optional if a JSON Schema has no `required`. */
function createRequiredMapper(schema: unknown): (argument: Argument) => Argument {
  const { required } = (schema ?? {}) as { required?: unknown };
  const requiresNothing = isJsonSchemaForm((schema ?? {}) as InputSchema) && !Array.isArray(required);
  return (argument) => (requiresNothing ? { ...argument, required: false } : argument);
}

/** Returns the template of a URL, or the problems that prevent its use. */
function checkUrl(
  raw: unknown,
  names: readonly string[],
  context: ToolContext,
): { template?: UrlTemplate; problems: string[] } {
  const { authentication, serverWide, personal = noPersonalValues } = context;
  if (typeof raw !== 'string' || raw === '' || raw.length > maxUrlLength) return { problems: [] };
  const lengthProblem = checkConfigLength(getInterpolatedLength(raw, serverWide.variables), maxUrlLength);
  if (lengthProblem !== undefined) return { problems: [lengthProblem] };
  const interpolatedUrl = interpolateVariables(raw, serverWide.variables);
  const isRelativeUrl = interpolatedUrl.startsWith('/');
  if (isRelativeUrl && serverWide.base_url === undefined)
    return {
      problems: ['begins with a slash, which requires base_url; set base_url on the server, or use a full URL'],
    };
  if (interpolatedUrl.startsWith('//'))
    return { problems: ['begins with two slashes; allowed: one slash, or a full URL'] };
  const braceProblems = findBracesInUrl(raw, new Set(names));
  const url = toAbsoluteUrl(raw, serverWide);
  const totalLengthProblem = checkConfigLength(url.length, maxUrlLength);
  if (totalLengthProblem !== undefined) return { problems: [totalLengthProblem] };
  const personalProblem = isRelativeUrl ? undefined : findPersonalHostProblem(url, personal);
  if (personalProblem !== undefined) return { problems: [personalProblem] };
  const { template, problems } = parseUrlTemplate(url, names);
  const hostError = isRelativeUrl ? undefined : getHostProblem(url, context);
  if (hostError) problems.push(hostError);
  problems.push(...braceProblems);
  if (!template) return { problems };
  return { template, problems: [...problems, ...findQueryKeyProblems(url, authentication)] };
}

function checkPaths(raw: RawTool, problems: ProblemList): void {
  const checkPath = (path: () => string, text: unknown) => {
    if (typeof text !== 'string' || !splitWrittenNames(text).includes('')) return;
    problems.add(() => ({
      path: path(),
      message:
        'allowed: "." or names separated by single dots, such as data.results; a backslash before a dot makes it part of a name, and "" is the empty name',
    }));
  };
  checkPath(() => 'response_transform', raw.response_transform);
  const fields = Array.isArray(raw.response_fields) ? raw.response_fields : [];
  for (const [index, field] of fields.entries()) {
    checkPath(() => `response_fields[${index}]`, field);
    if (field !== '.') continue;
    const message = 'names no field; leave response_fields out to keep the whole response';
    problems.add(() => ({ path: `response_fields[${index}]`, message }));
  }
}

/** Checks the destinations of a URL, except its tokens. */
export function getHostProblem(
  url: string,
  { urlProblem, personal = noPersonalValues }: Pick<ToolContext, 'urlProblem' | 'personal'>,
): string | undefined {
  for (const probe of toProbeUrls(url, personal)) {
    const problem = getProbeProblem(probe, urlProblem);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function getProbeProblem(url: string, urlProblem: UrlRule): string | undefined {
  const base = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#\\]*(?:\/[^?#]*)?/.exec(url)?.[0];
  const target = (base === undefined ? undefined : parseUrl(base)) ?? parseUrl(url);
  return target && urlProblem(target);
}

function findQueryKeyProblems(url: string, authentication: Authentications | undefined): string[] {
  const query = /\?([^#]*)/.exec(url)?.[1] ?? '';
  return findOwnedInQuery(query, credentialQueryNames(authentication)).map(
    (name) => `the query has ${describeValue(name)}, which carries the credential; leave it out`,
  );
}

/** Adds problems of static headers. Paths are header names. */
export function checkHeaders(
  headers: Record<string, string>,
  { authentication, serverWide }: Pick<ToolContext, 'authentication' | 'serverWide'>,
  problems: ProblemList,
): void {
  const seenNames = new Set<string>();
  const credentials = credentialHeaders(authentication);
  for (const [name, rawValue] of Object.entries(headers)) {
    const value = interpolateVariables(rawValue, serverWide.variables);
    const add = (message: string) => problems.add(() => ({ path: name, message }));
    const nameProblem = getHeaderNameProblem(name);
    if (nameProblem) add(nameProblem);
    const folded = foldHeaderName(name);
    if (seenNames.has(folded)) add('this header is set twice');
    seenNames.add(folded);
    if (credentials.has(folded)) {
      add('authentication sets this header; leave it out here, or change authentication.header');
    }
    if (!isHeaderValue(value)) add('allowed: one line of latin-1 text without outer spaces');
    if (hasMalformedPlaceholder(value)) add('allowed as a placeholder: {{NAME}} with letters, digits, and _');
  }
}

/** Returns the fields of a tool that determine its body, as far as they are well-formed. */
function getBodyFields(raw: RawTool, headers: { [name: string]: string }): BodyFields {
  const { body, body_template } = raw;
  const method = String(raw.method).toUpperCase();
  return { method, body: typeof body === 'string' && body !== '' ? body : undefined, body_template, headers };
}

function findSendingProblems(
  tool: BodyFields,
  declared: readonly Argument[],
  template: UrlTemplate | undefined,
  authentication: Authentications | undefined,
  budget: SuggestionBudget,
): Problem[] {
  const names = declared.map(({ name }) => name);
  const hasTemplate = tool.body_template !== undefined && !isDeeperThan(tool.body_template, maxTemplateDepth);
  const inBody = hasTemplate ? parseBodyTemplate(tool.body_template, names).names : [];
  const destinations = getDestinations(tool, declared, { inUrl: template?.names ?? [], inBody });
  const credentials = credentialHeaders(authentication);
  const cookies = toCredentialList(authentication).flatMap(({ cookie }) => cookie ?? []);
  const hasQueryCredential = credentialQueryNames(authentication).folded.size > 0;
  const bodyArguments = declared.filter(({ name }) => destinations.get(name) === 'body');
  const contentProblems = [findContentTypeProblem(tool, bodyArguments), findEmptyFormProblem(tool, bodyArguments)];
  return [
    ...findArgumentProblems({
      tool,
      declared,
      destinations,
      template,
      credentials,
      cookies,
      hasQueryCredential,
      budget,
    }),
    ...contentProblems.filter((problem) => problem !== undefined),
  ];
}

/** Matches headers that agents never receive: credentials, and headers that describe the connection. */
const withheldHeaders = /^(set-cookie2?|connection|keep-alive|transfer-encoding|trailer|upgrade|te|proxy-.*)$/;

/** Adds problems of the fields that select other parts of a response than its body. Paths are relative to the tool. */
function checkResponseFields(raw: { [field: string]: unknown }, problems: ProblemList): void {
  const names = toolSchema.shape.response_headers.safeParse(raw.response_headers).data ?? [];
  const seenNames = new Set<string>();
  for (const [index, name] of names.entries()) {
    const message = checkResponseHeader(name, seenNames);
    if (message) problems.add(() => ({ path: `response_headers[${index}]`, message }));
    seenNames.add(name.toLowerCase());
  }
  const method = String(raw.method).toUpperCase();
  if (raw.redirects === 'follow' && method !== 'GET' && method !== 'HEAD') {
    const message = `found ${describeValue(raw.method)} as the method; only redirects of GET and HEAD are followed, because other requests must not be sent twice; leave this out`;
    problems.add(() => ({ path: 'redirects', message }));
  }
}

function checkResponseHeader(name: string, seenNames: ReadonlySet<string>): string | undefined {
  if (!isHeaderName(name)) return `found ${describeValue(name)}; allowed: a header name, such as Link`;
  if (seenNames.has(name.toLowerCase())) return 'this header is listed twice';
  return withheldHeaders.test(name.toLowerCase())
    ? 'agents never receive this header, because it contains a cookie or describes the connection; leave it out'
    : undefined;
}

type PlaceholderValues = {
  headers: Record<string, string> | undefined;
  body_template?: unknown;
  input_schema: InputSchema | undefined;
};

/**
 * Returns the headers, body, or constants of a tool that are too long after interpolation. Paths are relative to the
 * tool.
 */
export function findToolLengthProblems(
  { headers, body_template, input_schema }: PlaceholderValues,
  variables: ServerWide['variables'],
): Problem[] {
  const constants = input_schema && getConstants(input_schema).map(({ value }) => value);
  return [
    ...findHeaderLengthProblems(headers, variables),
    ...toSizeProblems('body_template', checkInterpolation(body_template, variables)),
    ...toSizeProblems('input_schema', checkInterpolation(constants, variables)),
  ];
}
