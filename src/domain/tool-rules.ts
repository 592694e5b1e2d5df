import type { Problem } from '../errors.ts';
import { type Authentication, credentialHeader, credentialQueryNames } from './authentication.ts';
import { headerNameProblem, isHeaderValue } from './headers.ts';
import { type Argument, argumentsOf, inputSchemaProblems } from './input-schema.ts';
import type { JsonSchema } from './json-schema.ts';
import { jsonSchemaProblems } from './json-schema-rules.ts';
import { foldedHeader, ownedInQuery } from './parameter-names.ts';
import { hasMalformedPlaceholder, placeholderNames } from './placeholders.ts';
import { didYouMean, shown } from './problems.ts';
import type { UrlRule } from './server-rules.ts';
import { toolSchema } from './tool.ts';
import { parseUrlTemplate, templateProblems, type UrlTemplate } from './url-template.ts';

type RawTool = { [field: string]: unknown };

/** The rules of a tool that cross its fields. `raw` may be half-formed: each rule is judged where its fields are sound. */
export function toolProblems(
  at: string,
  raw: RawTool,
  authentication: Authentication | undefined,
  urlProblem: UrlRule,
): Problem[] {
  const problems: Problem[] = [];
  const prefixed = (found: readonly Problem[], field: string) =>
    found.map((p) => ({ ...p, path: p.path ? `${at}.${field}.${p.path}` : `${at}.${field}` }));

  const schema = toolSchema.shape.input_schema.safeParse(raw.input_schema);
  const schemaFaults = schema.success ? inputSchemaProblems(schema.data) : [];
  problems.push(...prefixed(schemaFaults, 'input_schema'));
  const declared = schema.success ? argumentsOf(schema.data) : [];

  const url = typeof raw.url === 'string' ? raw.url : undefined;
  const parsed =
    url === undefined
      ? undefined
      : parseUrlTemplate(
          url,
          declared.map((a) => a.name),
        );
  if (parsed) problems.push(...templateProblems(`${at}.url`, parsed.problems));
  const hostFault = url !== undefined ? hostProblem(url, urlProblem) : undefined;
  if (hostFault) problems.push({ path: `${at}.url`, message: hostFault });
  if (url !== undefined && placeholderNames(url).length > 0) problems.push({ path: `${at}.url`, message: unfilled });
  if (url !== undefined && parsed?.template) problems.push(...queryKeyProblems(at, url, authentication));

  const headers = toolSchema.shape.headers.safeParse(raw.headers);
  if (headers.success) problems.push(...prefixed(headerProblems(headers.data, authentication), 'headers'));
  if (schemaFaults.length === 0) problems.push(...placeProblems(at, raw, declared, parsed?.template, authentication));
  problems.push(...bodyProblems(at, raw, declared, headers.data ?? {}, parsed?.template));
  if (typeof raw.output_schema === 'object' && raw.output_schema !== null) {
    problems.push(...prefixed(jsonSchemaProblems(raw.output_schema as JsonSchema), 'output_schema'));
  }
  problems.push(...pathProblems(at, raw));
  return problems;
}

const unfilled =
  '{{NAME}} is not filled in a URL; a key in the query is authentication of type QueryParam with the token "{{NAME}}"';

function pathProblems(at: string, raw: RawTool): Problem[] {
  const fields = Array.isArray(raw.response_fields) ? raw.response_fields : [];
  const paths: [string, unknown][] = [
    [`${at}.response_transform`, raw.response_transform],
    ...fields.map((field, index): [string, unknown] => [`${at}.response_fields[${index}]`, field]),
  ];
  return paths
    .filter(([, text]) => typeof text === 'string' && /\.\.|.\.$|\s/.test(text))
    .map(([path]) => ({ path, message: 'allowed: "." or names joined by single dots, such as data.results' }));
}

/** Judges where a URL leads, apart from its tokens. */
function hostProblem(url: string, urlProblem: UrlRule): string | undefined {
  const base = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#\\]*/.exec(url)?.[0];
  if (base === undefined || !URL.canParse(base)) return URL.canParse(url) ? urlProblem(new URL(url)) : undefined;
  return urlProblem(new URL(base));
}

function queryKeyProblems(at: string, url: string, authentication: Authentication | undefined): Problem[] {
  const query = /\?([^#]*)/.exec(url)?.[1] ?? '';
  return ownedInQuery(query, credentialQueryNames(authentication)).map((name) => ({
    path: `${at}.url`,
    message: `the query has ${shown(name)}, which carries the credential; leave it out`,
  }));
}

function headerProblems(headers: Record<string, string>, authentication: Authentication | undefined): Problem[] {
  const problems: Problem[] = [];
  const seen = new Set<string>();
  const credential = credentialFolded(authentication);
  for (const [name, value] of Object.entries(headers)) {
    const fault = headerNameProblem(name);
    if (fault) problems.push({ path: name, message: fault });
    const folded = foldedHeader(name);
    if (seen.has(folded)) problems.push({ path: name, message: 'this header is given twice' });
    seen.add(folded);
    if (folded === credential) {
      problems.push({
        path: name,
        message: 'authentication sets this header; leave it out here, or change authentication.header',
      });
    }
    if (!isHeaderValue(value))
      problems.push({ path: name, message: 'allowed: one line of latin-1 text without outer spaces' });
    if (hasMalformedPlaceholder(value)) {
      problems.push({ path: name, message: 'a placeholder is {{NAME}} with letters, digits and _' });
    }
  }
  return problems;
}

function credentialFolded(authentication: Authentication | undefined): string | undefined {
  const header = authentication && credentialHeader(authentication);
  return header === undefined ? undefined : foldedHeader(header);
}

function placeProblems(
  at: string,
  raw: RawTool,
  declared: readonly Argument[],
  template: UrlTemplate | undefined,
  authentication: Authentication | undefined,
): Problem[] {
  const problems: Problem[] = [];
  const headers = new Set(Object.keys((raw.headers as object | undefined) ?? {}).map(foldedHeader));
  const credential = credentialFolded(authentication);
  for (const { name, place } of declared) {
    const path = `${at}.input_schema.${name}`;
    if (place === 'path' && template && !template.segments.flat().some((p) => 'argument' in p && p.argument === name)) {
      problems.push({ path: `${path}.in`, message: `"path" needs the token :${name} in the path of url` });
    }
    if (place === 'body' && String(raw.method).toUpperCase() === 'GET') {
      problems.push({ path: `${path}.in`, message: 'a GET request has no body; allowed: path, query, header' });
    }
    if (place === 'header') {
      const fault = headerNameProblem(name);
      if (fault) problems.push({ path, message: fault });
      const folded = foldedHeader(name);
      if (folded === 'content-type')
        problems.push({ path, message: 'the body decides this header; set it in headers' });
      if (headers.has(folded) || folded === credential) {
        problems.push({ path, message: 'this header is set already by headers, authentication or another argument' });
      }
      headers.add(folded);
    }
  }
  return problems;
}

const encodings = ['json', 'form', 'multipart'] as const;
export type Encoding = (typeof encodings)[number];

/** Whether the `body` of a tool names an encoding; otherwise it names an argument. */
export function isEncoding(body: string | undefined): body is Encoding {
  return (encodings as readonly (string | undefined)[]).includes(body);
}

function bodyProblems(
  at: string,
  raw: RawTool,
  declared: readonly Argument[],
  headers: Record<string, string>,
  template: UrlTemplate | undefined,
): Problem[] {
  const { body } = raw;
  if (typeof body !== 'string') return [];
  const names = declared.map((argument) => argument.name);
  if (body !== 'json' && String(raw.method).toUpperCase() === 'GET') {
    return [{ path: `${at}.body`, message: 'a GET request has no body; leave it out' }];
  }
  if (!isEncoding(body) && !names.includes(body)) {
    return [
      {
        path: `${at}.body`,
        message: `found ${JSON.stringify(body.slice(0, 64))}; allowed: json, form, multipart or the name of an argument${didYouMean(body, [...encodings, ...names])}`,
      },
    ];
  }
  if (!isEncoding(body) && template?.names.includes(body)) {
    return [{ path: `${at}.body`, message: `"${body}" stands in the url already; name another argument` }];
  }
  const type = Object.entries(headers).find(([name]) => name.toLowerCase() === 'content-type')?.[1];
  const implied = type === undefined ? undefined : encodingOf(type);
  // Any type can be written over JSON or a form, but the one of multipart holds a boundary that is ours.
  const contradicts = implied !== undefined ? implied !== body : type !== undefined && body === 'multipart';
  if (isEncoding(body) && contradicts) {
    return [{ path: `${at}.body`, message: `"${body}" contradicts the Content-Type header; drop one of the two` }];
  }
  return [];
}

/** The body encoding that a static Content-Type decides, or undefined when it decides none. */
export function encodingOf(contentType: string): Encoding | undefined {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (type === 'application/x-www-form-urlencoded') return 'form';
  if (type === 'multipart/form-data') return 'multipart';
  return type === 'application/json' || type.endsWith('+json') ? 'json' : undefined;
}
