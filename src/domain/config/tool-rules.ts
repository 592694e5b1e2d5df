import type { Problem } from '../../errors.ts';
import { headerNameProblem, isHeaderValue } from '../http/headers.ts';
import { mediaTypeOf } from '../http/media-type.ts';
import { foldedHeader, ownedInQuery } from '../http/parameter-names.ts';
import { hasMalformedPlaceholder } from '../http/placeholders.ts';
import { parseUrlTemplate, type UrlTemplate } from '../http/url-template.ts';
import { didYouMean, type ProblemList, shown } from '../problems.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { judgeSchema } from '../schema/schema-rules.ts';
import { judgeAnswerFields } from './answer-rules.ts';
import { type Authentications, credentialHeaders, credentialQueryNames } from './authentication.ts';
import { type Argument, argumentsOf, judgeInputSchema, maxArguments } from './input-schema.ts';
import type { UrlRule } from './server-rules.ts';
import { absoluteUrl, fillVariables, headersOfTool, type ServerWide } from './server-wide.ts';
import { maxUrlLength, type Tool, toolSchema } from './tool.ts';

type RawTool = { [field: string]: unknown };

/** Context of the rules of a tool. */
export type ToolSurroundings = {
  authentication: Authentications | undefined;
  urlProblem: UrlRule;
  wide: ServerWide;
};

/**
 * Adds problems of rules across the fields of a tool; paths are relative to the tool. `raw` may be incomplete: each rule
 * is checked where its fields are well-formed.
 */
export function judgeTool(raw: RawTool, surroundings: ToolSurroundings, problems: ProblemList): void {
  const { authentication, wide } = surroundings;
  const below = (field: string) => problems.within((path) => (path ? `${field}.${path}` : field));
  const addAll = (found: readonly Problem[]) => {
    for (const problem of found) problems.add(() => problem);
  };
  const before = problems.count;
  const schema = toolSchema.shape.input_schema.safeParse(raw.input_schema);
  if (schema.success) judgeInputSchema(schema.data, below('input_schema'));
  const hasSoundSchema = problems.count === before;
  // A schema with problems may have any number of arguments.
  const declared = schema.success ? argumentsOf(schema.data).slice(0, maxArguments) : [];

  const names = declared.map((argument) => argument.name);
  const { template, problems: urlProblems } = judgeUrl(raw.url, names, surroundings);
  addAll(urlProblems.map((message) => ({ path: 'url', message })));

  const headers = toolSchema.shape.headers.safeParse(raw.headers);
  if (headers.success) judgeHeaders(headers.data, surroundings, below('headers'));
  const sent = headersOfTool({ method: raw.method as Tool['method'], headers: headers.data ?? {} }, wide);
  if (hasSoundSchema) addAll(placeProblems(raw, declared, template, { authentication, headers: sent }));
  addAll(bodyProblems(raw, declared, sent, template));
  if (typeof raw.output_schema === 'object' && raw.output_schema !== null) {
    judgeSchema(raw.output_schema as JsonSchema, below('output_schema'));
  }
  judgePaths(raw, problems);
  judgeAnswerFields(raw, problems);
}

/** The template of a URL, and why it cannot be used. */
function judgeUrl(
  raw: unknown,
  names: readonly string[],
  { authentication, urlProblem, wide }: ToolSurroundings,
): { template?: UrlTemplate; problems: string[] } {
  if (typeof raw !== 'string' || raw === '' || raw.length > maxUrlLength) return { problems: [] };
  const filled = fillVariables(raw, wide.variables);
  const isRelative = filled.startsWith('/');
  if (isRelative && wide.base_url === undefined)
    return {
      problems: ['begins with a slash, which needs base_url; set base_url on the server, or write the whole URL'],
    };
  if (filled.startsWith('//')) return { problems: ['begins with two slashes; allowed: one, or a whole URL'] };
  const url = absoluteUrl(raw, wide);
  if (url.length > maxUrlLength)
    return { problems: [`has ${url.length} characters when filled; allowed: ${maxUrlLength}`] };
  const { template, problems } = parseUrlTemplate(url, names);
  const hostFault = isRelative ? undefined : hostProblem(url, urlProblem);
  if (hostFault) problems.push(hostFault);
  if (!template) return { problems };
  return { template, problems: [...problems, ...queryKeyProblems(url, authentication)] };
}

function judgePaths(raw: RawTool, problems: ProblemList): void {
  const judge = (path: () => string, text: unknown) => {
    if (typeof text !== 'string' || !/\.\.|.\.$|\s/.test(text)) return;
    problems.add(() => ({
      path: path(),
      message: 'allowed: "." or names joined by single dots, such as data.results',
    }));
  };
  judge(() => 'response_transform', raw.response_transform);
  const fields = Array.isArray(raw.response_fields) ? raw.response_fields : [];
  for (const [index, field] of fields.entries()) judge(() => `response_fields[${index}]`, field);
}

/** Checks the destination of a URL, apart from its tokens. */
export function hostProblem(url: string, urlProblem: UrlRule): string | undefined {
  const base = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#\\]*/.exec(url)?.[0];
  if (base === undefined || !URL.canParse(base)) return URL.canParse(url) ? urlProblem(new URL(url)) : undefined;
  return urlProblem(new URL(base));
}

function queryKeyProblems(url: string, authentication: Authentications | undefined): string[] {
  const query = /\?([^#]*)/.exec(url)?.[1] ?? '';
  return ownedInQuery(query, credentialQueryNames(authentication)).map(
    (name) => `the query has ${shown(name)}, which carries the credential; leave it out`,
  );
}

/** Adds problems of static headers; paths are their names. */
export function judgeHeaders(
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

function placeProblems(
  raw: RawTool,
  declared: readonly Argument[],
  template: UrlTemplate | undefined,
  { authentication, headers: sent }: { authentication: Authentications | undefined; headers: Record<string, string> },
): Problem[] {
  const problems: Problem[] = [];
  const headers = new Set(Object.keys(sent).map(foldedHeader));
  const credentials = credentialHeaders(authentication);
  for (const { name, location } of declared) {
    const path = `input_schema.${name}`;
    if (
      location === 'path' &&
      template &&
      !template.segments.flat().some((p) => 'argument' in p && p.argument === name)
    ) {
      problems.push({ path: `${path}.in`, message: `"path" needs the token :${name} in the path of url` });
    }
    if (location === 'body' && String(raw.method).toUpperCase() === 'GET') {
      problems.push({ path: `${path}.in`, message: 'a GET request has no body; allowed: path, query, header' });
    }
    if (location === 'header') {
      const fault = headerNameProblem(name);
      if (fault) problems.push({ path, message: fault });
      const folded = foldedHeader(name);
      if (folded === 'content-type')
        problems.push({ path, message: 'the body decides this header; set it in headers' });
      if (headers.has(folded) || credentials.has(folded)) {
        problems.push({ path, message: 'this header is set already by headers, authentication or another argument' });
      }
      headers.add(folded);
    }
  }
  return problems;
}

export const bodyEncodings = ['json', 'form', 'multipart'] as const;
export type Encoding = (typeof bodyEncodings)[number];

/** Whether the `body` of a tool names an encoding; otherwise it names an argument. */
export function isEncoding(body: string | undefined): body is Encoding {
  return (bodyEncodings as readonly (string | undefined)[]).includes(body);
}

function bodyProblems(
  raw: RawTool,
  declared: readonly Argument[],
  headers: Record<string, string>,
  template: UrlTemplate | undefined,
): Problem[] {
  const { body } = raw;
  if (typeof body !== 'string' || body === '') return [];
  const names = declared.map((argument) => argument.name);
  if (body !== 'json' && String(raw.method).toUpperCase() === 'GET') {
    return [{ path: 'body', message: 'a GET request has no body; leave it out' }];
  }
  if (!isEncoding(body) && !names.includes(body)) {
    return [
      {
        path: 'body',
        message: `found ${JSON.stringify(body.slice(0, 64))}; allowed: json, form, multipart or the name of an argument${didYouMean(body, [...bodyEncodings, ...names])}`,
      },
    ];
  }
  if (!isEncoding(body) && template?.names.includes(body)) {
    return [{ path: 'body', message: `"${body}" stands in the url already; name another argument` }];
  }
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  const implied = type === undefined ? undefined : encodingOf(type);
  // The type of JSON or of a form can be replaced by any other, but that of multipart holds our boundary.
  const contradicts = implied !== undefined ? implied !== body : type !== undefined && body === 'multipart';
  if (isEncoding(body) && contradicts) {
    return [{ path: 'body', message: `"${body}" contradicts the Content-Type header; drop one of the two` }];
  }
  return [];
}

/** The body encoding that a static Content-Type decides, or undefined when it decides none. */
export function encodingOf(contentType: string): Encoding | undefined {
  const type = mediaTypeOf(contentType);
  if (type === 'application/x-www-form-urlencoded') return 'form';
  if (type === 'multipart/form-data') return 'multipart';
  return type === 'application/json' || type.endsWith('+json') ? 'json' : undefined;
}
