import type { Problem } from '@toolhost/errors/errors';
import { describeValue, type SuggestionBudget, suggestName } from '@toolhost/errors/problems';
import { isDeeperThan, isRawNumber } from '@toolhost/json/json';
import {
  type BodyFields,
  bodyEncodings,
  type Destination,
  findNameConflicts,
  getBodyKind,
  getContentType,
  getImpliedEncoding,
  getNamePath,
  getWireName,
  isEncoding,
  parseBodyTemplate,
} from './destinations.ts';
import { getHeaderNameProblem, isHeaderName, parseMediaType, parseMediaTypeChoices } from './http/headers.ts';
import { foldHeaderName } from './http/parameter-names.ts';
import { getArgumentNames, type UrlTemplate } from './http/url-template.ts';
import type { Argument, TextOrArgument } from './input-schema.ts';

/** A tool, its arguments, and the destination of each. */
export type ArgumentContext = {
  tool: BodyFields;
  declared: readonly Argument[];
  destinations: ReadonlyMap<string, Destination>;
  /** Parsed `url`; undefined if it is not valid. */
  template: UrlTemplate | undefined;
  /** Headers of the credentials, folded. */
  credentials: ReadonlySet<string>;
  /** Cookie names of the credentials. */
  cookies: readonly string[];
  hasQueryCredential: boolean;
  budget: SuggestionBudget;
};

/** Returns the problems in how the arguments of a tool are sent. Paths are relative to the tool. */
export function findArgumentProblems(context: ArgumentContext): Problem[] {
  return [
    ...context.declared.flatMap((argument) => [
      ...findLocationProblems(argument, context),
      ...findStyleProblems(argument, context),
      ...findFileProblems(argument, context),
      ...findConstantProblems(argument),
    ]),
    ...findHeaderProblems(context),
    ...findUpstreamNameProblems(context),
  ];
}

const fieldPath = ({ name }: Argument, field: string) => `input_schema.${name}.${field}`;

function isInPath({ name }: Argument, template: UrlTemplate): boolean {
  return template.segments.some((parts) => getArgumentNames(parts).includes(name));
}

/** Returns true if `in` agrees with the location of the argument's token. */
function matchesTokenLocation(argument: Argument, template: UrlTemplate): boolean {
  if (argument.location === 'path') return true;
  const inQuery = template.query.some(({ parts = [] }) => getArgumentNames(parts).includes(argument.name));
  return argument.location === 'query' && inQuery && !isInPath(argument, template);
}

function findLocationProblems(argument: Argument, { tool, destinations, template }: ArgumentContext): Problem[] {
  const { name, location, wire } = argument;
  const to = destinations.get(name);
  const problems: Problem[] = [];
  const add = (field: string, message: string) => problems.push({ path: fieldPath(argument, field), message });
  if (location === 'path' && template && !isInPath(argument, template)) {
    add('in', `"path" needs the token :${name} in the path of url`);
  }
  if (to === 'url' && location !== undefined && template && !matchesTokenLocation(argument, template)) {
    const message = `the value already goes to the token :${name} in url; leave "in" out, or declare another argument with wire_name "${wire.wire_name ?? name}" for the ${location}`;
    add('in', message);
  }
  if (wire.allow_slashes && template && !isInPath(argument, template)) {
    add('allow_slashes', `is for an argument of the path, which needs the token :${name} in the path of url`);
  }
  if (wire.allow_reserved && to !== 'query') {
    add('allow_reserved', 'is for a query argument that is not in the url; leave it out');
  }
  if (to === 'body' && tool.method === 'HEAD')
    add('in', 'a HEAD request has no body; allowed: path, query, header, cookie');
  if (to === 'body' && getBodyKind(tool) === 'argument' && name !== tool.body) {
    add('in', `the argument ${tool.body} is the body; allowed: path, query, header, cookie`);
  }
  if (to === 'body' && getBodyKind(tool) === 'template') add('in', `"body" needs the token :${name} in body_template`);
  if (to === 'query' && location === undefined && getBodyKind(tool) === 'template') {
    const path = `input_schema.${name}`;
    problems.push({
      path,
      message: `is in neither url nor body_template; write :${name} there, or set its location with "in"`,
    });
  }
  return problems;
}

const missingStyle =
  'is missing; forms have no standard syntax for objects, so choose one: "indices" as in Stripe and PHP, "deep", or "json" for JSON text';

/** Styles that serialize a value as a single text. */
const textStyles = ['comma', 'pipe', 'space', 'json'];
const headerStyles = ['repeat', ...textStyles];

function findStyleProblems(argument: Argument, context: ArgumentContext): Problem[] {
  const { tool, destinations } = context;
  const { style, media_type, content } = argument.wire;
  const to = destinations.get(argument.name);
  const problem = (message: string) => [{ path: fieldPath(argument, 'style'), message }];
  const isFormField = to === 'body' && ['form', 'multipart'].includes(getBodyKind(tool));
  if (isFormField && argument.isNested && style === undefined && media_type === undefined && content === undefined) {
    return problem(missingStyle);
  }
  if (style === undefined || to === undefined) return [];
  if (style === 'querystring') return findWholeQueryProblem(argument, context).flatMap(problem);
  if (to === 'url' && !textStyles.includes(style)) {
    return problem(`found ${describeValue(style)}; allowed for a token of the url: ${textStyles.join(', ')}`);
  }
  if (to === 'cookie' && !textStyles.includes(style)) {
    return problem(`found ${describeValue(style)}; allowed in a cookie: ${textStyles.join(', ')}`);
  }
  if (to === 'header' && !headerStyles.includes(style)) {
    return problem(`found ${describeValue(style)}; allowed in a header: ${headerStyles.join(', ')}`);
  }
  const kind = getBodyKind(tool);
  if (to === 'body' && kind === 'argument') return problem('has no effect on the whole body; leave it out');
  if ((to === 'body' || to === 'part') && !isFormField && !textStyles.includes(style)) {
    return problem(
      `found ${describeValue(style)}; allowed in a JSON body, where the result is text: ${textStyles.join(', ')}`,
    );
  }
  return [];
}

/** Returns the reason why an argument cannot be the whole query, if there is one. */
function findWholeQueryProblem(
  { name }: Argument,
  { destinations, template, hasQueryCredential }: ArgumentContext,
): string[] {
  if (destinations.get(name) !== 'query') return ['"querystring" is for a query argument; allowed here: json'];
  const isAlone = [...destinations].every(([otherName, to]) => otherName === name || to !== 'query');
  if (isAlone && !hasQueryCredential && (template?.query ?? []).length === 0) return [];
  return [
    'makes this argument the whole query, so the query cannot contain another argument, a pair from url, or a credential',
  ];
}

function findFileProblems(argument: Argument, { tool, declared, destinations, budget }: ArgumentContext): Problem[] {
  const { content, file_name, media_type } = argument.wire;
  const isBody = getBodyKind(tool) === 'argument' && tool.body === argument.name;
  const isMultipartPart = getBodyKind(tool) === 'multipart' && destinations.get(argument.name) === 'body';
  const problems: Problem[] = [];
  const add = (field: string, message: string) => problems.push({ path: fieldPath(argument, field), message });
  const allowed = 'is for a multipart body part or for the argument that is the body';
  if (content !== undefined && !isBody && !isMultipartPart) {
    add('content', `${allowed}; elsewhere the Base64 text is sent unchanged, so leave this out`);
  }
  const types = isMultipartPart ? ['string', 'array'] : ['string'];
  if (content !== undefined && argument.type !== undefined && !types.includes(argument.type)) {
    add('content', `needs an argument of type ${types.join(' or ')}, which holds Base64`);
  }
  if (file_name !== undefined && !isMultipartPart) add('file_name', 'is for a multipart body part; leave it out');
  if (media_type !== undefined && !isBody && !isMultipartPart) add('media_type', `${allowed}; leave it out`);
  if (
    media_type !== undefined &&
    isBody &&
    Object.keys(tool.headers).some((name) => foldHeaderName(name) === 'content-type')
  ) {
    add('media_type', 'headers already contains Content-Type; remove one of the two');
  }
  if (typeof media_type === 'string' && parseMediaTypeChoices(media_type) === undefined) {
    add(
      'media_type',
      `found ${describeValue(media_type)}; allowed: a media type such as image/png, or several with commas`,
    );
  }
  for (const [field, text] of [
    ['file_name', file_name],
    ['media_type', media_type],
  ] as const) {
    const message = findReferenceProblem(argument, text, declared, budget);
    if (message) add(`${field}.argument`, message);
  }
  return problems;
}

function findReferenceProblem(
  { name }: Argument,
  text: TextOrArgument | undefined,
  declared: readonly Argument[],
  budget: SuggestionBudget,
): string | undefined {
  if (typeof text !== 'object') return undefined;
  const names = declared.map((argument) => argument.name).filter((otherName) => otherName !== name);
  if (names.includes(text.argument)) return undefined;
  return `found ${describeValue(text.argument)}; allowed: the name of another argument${suggestName(text.argument, names, budget)}`;
}

function findConstantProblems(argument: Argument): Problem[] {
  if (argument.wire.value === undefined || argument.fallback === undefined) return [];
  return [{ path: fieldPath(argument, 'default'), message: 'has no effect on a constant; leave it out' }];
}

function findHeaderProblems({ tool, declared, credentials, cookies }: ArgumentContext): Problem[] {
  const problems: Problem[] = [];
  const headers = new Set(Object.keys(tool.headers).map(foldHeaderName));
  const usedCookies = [...cookies];
  for (const argument of declared) {
    if (argument.location === 'cookie') problems.push(...findCookieProblem(argument, usedCookies));
    if (argument.location !== 'header') continue;
    const add = (message: string) => problems.push({ path: getNamePath(argument), message });
    const problem = getHeaderNameProblem(getWireName(argument));
    if (problem) add(problem);
    const folded = foldHeaderName(getWireName(argument));
    if (folded === 'content-type') add('the body determines this header; set it in headers');
    if (headers.has(folded) || credentials.has(folded)) {
      add('this header is already set by headers, authentication, or another argument');
    }
    headers.add(folded);
  }
  return problems;
}

/** Returns the problem of a cookie argument. Adds its name to `usedCookies`, the cookie names so far. */
function findCookieProblem(argument: Argument, usedCookies: string[]): Problem[] {
  const name = getWireName(argument);
  const path = getNamePath(argument);
  if (!isHeaderName(name))
    return [{ path, message: `found ${describeValue(name)}; allowed: letters, digits and !#$%&'*+-.^_\`|~` }];
  const isUsed = usedCookies.some((otherName) => otherName.toLowerCase() === name.toLowerCase());
  usedCookies.push(name);
  return isUsed ? [{ path, message: 'this cookie is already set by authentication or another argument' }] : [];
}

/** Returns the problems of upstream names that have no effect, or that receivers could confuse with one another. */
function findUpstreamNameProblems({ tool, declared, destinations }: ArgumentContext): Problem[] {
  const kind = getBodyKind(tool);
  const isNamed = ({ name }: Argument) => {
    const to = destinations.get(name);
    return (
      to === 'query' ||
      to === 'header' ||
      to === 'cookie' ||
      (to === 'body' && kind !== 'argument' && kind !== 'template')
    );
  };
  const unnamed = declared
    .filter((argument) => argument.wire.wire_name !== undefined && !isNamed(argument))
    .map((argument) => ({
      path: fieldPath(argument, 'wire_name'),
      message: 'has no effect here, because the value is sent without a name; leave it out',
    }));
  return [...unnamed, ...findNameConflicts(declared, destinations, kind)];
}

export const maxTemplateDepth = 32;
const maxTokens = 1000;

/** Returns the problems of `body` and `body_template`. `inUrl` are the arguments in the URL. */
export function findBodyProblems(
  tool: BodyFields,
  declared: readonly Argument[],
  inUrl: readonly string[],
  budget: SuggestionBudget,
): Problem[] {
  const names = declared.map((argument) => argument.name);
  if (tool.method === 'HEAD' && (tool.body !== undefined || tool.body_template !== undefined)) {
    const path = tool.body === undefined ? 'body_template' : 'body';
    return [{ path, message: 'a HEAD request has no body; leave it out' }];
  }
  return [...findEncodingProblems(tool, names, inUrl, budget), ...findTemplateProblems(tool, names, budget)];
}

function findEncodingProblems(
  tool: BodyFields,
  names: readonly string[],
  inUrl: readonly string[],
  budget: SuggestionBudget,
): Problem[] {
  const { body } = tool;
  if (body === undefined || body === '') return [];
  const problem = (message: string) => [{ path: 'body', message }];
  if (!isEncoding(body) && !names.includes(body)) {
    const guess = suggestName(body, [...bodyEncodings, ...names], budget);
    return problem(
      `found ${JSON.stringify(body.slice(0, 64))}; allowed: json, form, multipart or the name of an argument${guess}`,
    );
  }
  if (tool.body_template !== undefined && body !== 'json') {
    return problem('cannot be combined with body_template, which produces a JSON body; remove one of the two');
  }
  if (!isEncoding(body) && inUrl.includes(body)) {
    return problem(`"${body}" is already in the url; name another argument`);
  }
  const type = getContentType(tool);
  const implied = type === undefined ? undefined : getImpliedEncoding(type);
  // A custom type may replace that of JSON or of a form, but a multipart type contains the boundary generated here.
  const contradicts = implied !== undefined ? implied !== body : type !== undefined && body === 'multipart';
  if (isEncoding(body) && contradicts)
    return problem(`"${body}" contradicts the Content-Type header; remove one of the two`);
  return [];
}

function findTemplateProblems(
  { body_template: template }: BodyFields,
  names: readonly string[],
  budget: SuggestionBudget,
): Problem[] {
  if (template === undefined) return [];
  const problem = (message: string) => [{ path: 'body_template', message }];
  if (isDeeperThan(template, maxTemplateDepth)) return problem(`nested deeper than ${maxTemplateDepth} levels`);
  const { repeats, names: used } = parseBodyTemplate(template, names);
  const tokens = used.length + repeats.reduce((sum, [, count]) => sum + count - 1, 0);
  if (tokens > maxTokens) return problem(`contains ${tokens} arguments; allowed: at most ${maxTokens}`);
  const unknown = listTexts(template).find((text) => /^:[A-Za-z_]\w*$/.test(text) && !names.includes(text.slice(1)));
  if (unknown === undefined) return [];
  return problem(
    `${describeValue(unknown)} looks like a token, but input_schema has no such argument${suggestName(unknown.slice(1), names, budget)}`,
  );
}

function listTexts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null && !isRawNumber(value)
    ? Object.values(value).flatMap(listTexts)
    : [];
}

/** Returns the problem of a GET request whose form body contains no arguments. */
export function findEmptyFormProblem({ method, body }: BodyFields, inBody: readonly Argument[]): Problem | undefined {
  if (method !== 'GET' || (body !== 'form' && body !== 'multipart') || inBody.length > 0) return undefined;
  return {
    path: 'body',
    message: 'no argument is in the body of this GET request; set "in": "body" on arguments, or leave this out',
  };
}

/** Returns the problem of a static Content-Type that contradicts the body. `inBody` are the arguments in the body. */
export function findContentTypeProblem(tool: BodyFields, inBody: readonly Argument[]): Problem | undefined {
  const type = getContentType(tool);
  const isTemplate = tool.body_template !== undefined;
  if (type === undefined || getImpliedEncoding(type) === 'json' || (inBody.length === 0 && !isTemplate))
    return undefined;
  // Some services use their own names for JSON, such as application/x-amz-json-1.1.
  if (parseMediaType(type).includes('json') || (tool.body === 'json' && getImpliedEncoding(type) === undefined))
    return undefined;
  const path = `headers.${Object.keys(tool.headers).find((name) => foldHeaderName(name) === 'content-type')}`;
  const foundText = `found ${describeValue(type)}, but`;
  if (isTemplate) return { path, message: `${foundText} body_template produces a JSON body; leave this header out` };
  const argument = inBody.find(({ name }) => name === tool.body);
  if (argument && (argument.type === 'object' || argument.type === 'array')) {
    return {
      path,
      message: `${foundText} the argument ${argument.name} is sent as JSON; make it a string, or leave this header out`,
    };
  }
  if (tool.body !== undefined || getImpliedEncoding(type) !== undefined) return undefined;
  const message = `${foundText} the arguments are sent as JSON; name the one argument that is the body in \`body\`, or set "body": "json"`;
  return { path, message };
}
