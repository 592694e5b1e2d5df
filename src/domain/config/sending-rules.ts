import type { Problem } from '../../errors.ts';
import { headerNameProblem, isHeaderName, mediaTypeChoices, mediaTypeOf } from '../http/headers.ts';
import { foldedHeader } from '../http/parameter-names.ts';
import { argumentsIn, type UrlTemplate } from '../http/url-template.ts';
import { isDeeperThan, isRawNumber } from '../json/json.ts';
import { didYouMean, type Guesses, shown } from '../problems.ts';
import {
  type BodyFields,
  bodyEncodings,
  bodyKindOf,
  contentTypeOfTool,
  type Destination,
  encodingOf,
  isEncoding,
  namesBesideProblems,
  parseBodyTemplate,
  pathOfName,
  wireNameOf,
} from './destinations.ts';
import type { Argument, TextOrArgument } from './input-schema.ts';

/** A tool, its arguments, and the destination of each. */
export type ArgumentContext = {
  tool: BodyFields;
  declared: readonly Argument[];
  destinations: ReadonlyMap<string, Destination>;
  /** Undefined when the URL is not valid. */
  template: UrlTemplate | undefined;
  /** Headers of the credentials, folded. */
  credentials: ReadonlySet<string>;
  /** Cookie names of the credentials. */
  cookies: readonly string[];
  hasQueryCredential: boolean;
  guesses: Guesses;
};

/** Returns the problems of how the arguments of a tool are sent. Paths are relative to the tool. */
export function argumentProblems(context: ArgumentContext): Problem[] {
  return [
    ...context.declared.flatMap((argument) => [
      ...locationProblems(argument, context),
      ...styleProblems(argument, context),
      ...fileProblems(argument, context),
      ...constantProblems(argument),
    ]),
    ...headerProblems(context),
    ...nameProblems(context),
  ];
}

const at = ({ name }: Argument, field: string) => `input_schema.${name}.${field}`;

function isInPath({ name }: Argument, template: UrlTemplate): boolean {
  return template.segments.some((parts) => argumentsIn(parts).includes(name));
}

/** Returns true if `in` agrees with the location of the argument's token. */
function isInPlace(argument: Argument, template: UrlTemplate): boolean {
  if (argument.location === 'path') return true;
  const inQuery = template.query.some(({ parts = [] }) => argumentsIn(parts).includes(argument.name));
  return argument.location === 'query' && inQuery && !isInPath(argument, template);
}

function locationProblems(argument: Argument, { tool, destinations, template }: ArgumentContext): Problem[] {
  const { name, location, wire } = argument;
  const to = destinations.get(name);
  const problems: Problem[] = [];
  const add = (field: string, message: string) => problems.push({ path: at(argument, field), message });
  if (location === 'path' && template && !isInPath(argument, template)) {
    add('in', `"path" needs the token :${name} in the path of url`);
  }
  if (to === 'url' && location !== undefined && template && !isInPlace(argument, template)) {
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
  if (to === 'body' && bodyKindOf(tool) === 'argument' && name !== tool.body) {
    add('in', `the argument ${tool.body} is the body; allowed: path, query, header, cookie`);
  }
  if (to === 'body' && bodyKindOf(tool) === 'template') add('in', `"body" needs the token :${name} in body_template`);
  if (to === 'query' && location === undefined && bodyKindOf(tool) === 'template') {
    const path = `input_schema.${name}`;
    problems.push({
      path,
      message: `is in neither url nor body_template; write :${name} there, or set its location with "in"`,
    });
  }
  return problems;
}

const unstyled =
  'is missing; forms have no standard syntax for objects, so choose one: "indices" as in Stripe and PHP, "deep", or "json" for JSON text';

/** Styles that serialize a value as a single text. */
const textStyles = ['comma', 'pipe', 'space', 'json'];
const headerStyles = ['repeat', ...textStyles];

function styleProblems(argument: Argument, context: ArgumentContext): Problem[] {
  const { tool, destinations } = context;
  const { style, media_type, content } = argument.wire;
  const to = destinations.get(argument.name);
  const problem = (message: string) => [{ path: at(argument, 'style'), message }];
  const isFormField = to === 'body' && ['form', 'multipart'].includes(bodyKindOf(tool));
  if (isFormField && argument.isNested && style === undefined && media_type === undefined && content === undefined) {
    return problem(unstyled);
  }
  if (style === undefined || to === undefined) return [];
  if (style === 'querystring') return wholeQueryProblem(argument, context).flatMap(problem);
  if (to === 'url' && !textStyles.includes(style)) {
    return problem(`found ${shown(style)}; allowed for a token of the url: ${textStyles.join(', ')}`);
  }
  if (to === 'cookie' && !textStyles.includes(style)) {
    return problem(`found ${shown(style)}; allowed in a cookie: ${textStyles.join(', ')}`);
  }
  if (to === 'header' && !headerStyles.includes(style)) {
    return problem(`found ${shown(style)}; allowed in a header: ${headerStyles.join(', ')}`);
  }
  const kind = bodyKindOf(tool);
  if (to === 'body' && kind === 'argument') return problem('has no effect on the whole body; leave it out');
  if ((to === 'body' || to === 'part') && !isFormField && !textStyles.includes(style)) {
    return problem(`found ${shown(style)}; allowed in a JSON body, where the result is text: ${textStyles.join(', ')}`);
  }
  return [];
}

/** Returns why an argument cannot be the whole query. */
function wholeQueryProblem(
  { name }: Argument,
  { destinations, template, hasQueryCredential }: ArgumentContext,
): string[] {
  if (destinations.get(name) !== 'query') return ['"querystring" is for a query argument; allowed here: json'];
  const isAlone = [...destinations].every(([other, to]) => other === name || to !== 'query');
  if (isAlone && !hasQueryCredential && (template?.query ?? []).length === 0) return [];
  return [
    'makes this argument the whole query, so the query cannot contain another argument, a pair from url, or a credential',
  ];
}

function fileProblems(argument: Argument, { tool, declared, destinations, guesses }: ArgumentContext): Problem[] {
  const { content, file_name, media_type } = argument.wire;
  const isBody = bodyKindOf(tool) === 'argument' && tool.body === argument.name;
  const isPart = bodyKindOf(tool) === 'multipart' && destinations.get(argument.name) === 'body';
  const problems: Problem[] = [];
  const add = (field: string, message: string) => problems.push({ path: at(argument, field), message });
  const allowed = 'is for a multipart body part or for the argument that is the body';
  if (content !== undefined && !isBody && !isPart) {
    add('content', `${allowed}; elsewhere the Base64 text is sent unchanged, so leave this out`);
  }
  const types = isPart ? ['string', 'array'] : ['string'];
  if (content !== undefined && argument.type !== undefined && !types.includes(argument.type)) {
    add('content', `needs an argument of type ${types.join(' or ')}, which holds Base64`);
  }
  if (file_name !== undefined && !isPart) add('file_name', 'is for a multipart body part; leave it out');
  if (media_type !== undefined && !isBody && !isPart) add('media_type', `${allowed}; leave it out`);
  if (
    media_type !== undefined &&
    isBody &&
    Object.keys(tool.headers).some((name) => foldedHeader(name) === 'content-type')
  ) {
    add('media_type', 'headers already contains Content-Type; remove one of the two');
  }
  if (typeof media_type === 'string' && mediaTypeChoices(media_type) === undefined) {
    add('media_type', `found ${shown(media_type)}; allowed: a media type such as image/png, or several with commas`);
  }
  for (const [field, text] of [
    ['file_name', file_name],
    ['media_type', media_type],
  ] as const) {
    const message = referenceProblem(argument, text, declared, guesses);
    if (message) add(`${field}.argument`, message);
  }
  return problems;
}

function referenceProblem(
  { name }: Argument,
  text: TextOrArgument | undefined,
  declared: readonly Argument[],
  guesses: Guesses,
): string | undefined {
  if (typeof text !== 'object') return undefined;
  const names = declared.map((argument) => argument.name).filter((other) => other !== name);
  if (names.includes(text.argument)) return undefined;
  return `found ${shown(text.argument)}; allowed: the name of another argument${didYouMean(text.argument, names, guesses)}`;
}

function constantProblems(argument: Argument): Problem[] {
  if (argument.wire.value === undefined || argument.fallback === undefined) return [];
  return [{ path: at(argument, 'default'), message: 'has no effect on a constant; leave it out' }];
}

function headerProblems({ tool, declared, credentials, cookies }: ArgumentContext): Problem[] {
  const problems: Problem[] = [];
  const headers = new Set(Object.keys(tool.headers).map(foldedHeader));
  const taken = [...cookies];
  for (const argument of declared) {
    if (argument.location === 'cookie') problems.push(...cookieProblem(argument, taken));
    if (argument.location !== 'header') continue;
    const add = (message: string) => problems.push({ path: pathOfName(argument), message });
    const fault = headerNameProblem(wireNameOf(argument));
    if (fault) add(fault);
    const folded = foldedHeader(wireNameOf(argument));
    if (folded === 'content-type') add('the body determines this header; set it in headers');
    if (headers.has(folded) || credentials.has(folded)) {
      add('this header is already set by headers, authentication, or another argument');
    }
    headers.add(folded);
  }
  return problems;
}

/** `taken` are the cookie names so far. */
function cookieProblem(argument: Argument, taken: string[]): Problem[] {
  const name = wireNameOf(argument);
  const path = pathOfName(argument);
  if (!isHeaderName(name))
    return [{ path, message: `found ${shown(name)}; allowed: letters, digits and !#$%&'*+-.^_\`|~` }];
  const isTaken = taken.some((other) => other.toLowerCase() === name.toLowerCase());
  taken.push(name);
  return isTaken ? [{ path, message: 'this cookie is already set by authentication or another argument' }] : [];
}

/** Returns names that have no effect, or that receivers could confuse with others in the same location. */
function nameProblems({ tool, declared, destinations }: ArgumentContext): Problem[] {
  const kind = bodyKindOf(tool);
  const isNamed = ({ name }: Argument) => {
    const to = destinations.get(name);
    return (
      to === 'query' ||
      to === 'header' ||
      to === 'cookie' ||
      (to === 'body' && kind !== 'argument' && kind !== 'template')
    );
  };
  const nameless = declared
    .filter((argument) => argument.wire.wire_name !== undefined && !isNamed(argument))
    .map((argument) => ({
      path: at(argument, 'wire_name'),
      message: 'has no effect here, because the value is sent without a name; leave it out',
    }));
  return [...nameless, ...namesBesideProblems(declared, destinations, kind)];
}

export const deepestTemplate = 32;
const mostTokens = 1000;

/** Returns the problems of `body` and `body_template`. `inUrl` are the arguments in the URL. */
export function bodyProblems(
  tool: BodyFields,
  declared: readonly Argument[],
  inUrl: readonly string[],
  guesses: Guesses,
): Problem[] {
  const names = declared.map((argument) => argument.name);
  if (tool.method === 'HEAD' && (tool.body !== undefined || tool.body_template !== undefined)) {
    const path = tool.body === undefined ? 'body_template' : 'body';
    return [{ path, message: 'a HEAD request has no body; leave it out' }];
  }
  return [...encodingProblems(tool, names, inUrl, guesses), ...templateProblemsOf(tool, names, guesses)];
}

function encodingProblems(
  tool: BodyFields,
  names: readonly string[],
  inUrl: readonly string[],
  guesses: Guesses,
): Problem[] {
  const { body } = tool;
  if (body === undefined || body === '') return [];
  const problem = (message: string) => [{ path: 'body', message }];
  if (!isEncoding(body) && !names.includes(body)) {
    const guess = didYouMean(body, [...bodyEncodings, ...names], guesses);
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
  const type = contentTypeOfTool(tool);
  const implied = type === undefined ? undefined : encodingOf(type);
  // Any other type may replace the one of JSON or of a form, but a multipart type contains the boundary generated here.
  const contradicts = implied !== undefined ? implied !== body : type !== undefined && body === 'multipart';
  if (isEncoding(body) && contradicts)
    return problem(`"${body}" contradicts the Content-Type header; remove one of the two`);
  return [];
}

function templateProblemsOf(
  { body_template: template }: BodyFields,
  names: readonly string[],
  guesses: Guesses,
): Problem[] {
  if (template === undefined) return [];
  const problem = (message: string) => [{ path: 'body_template', message }];
  if (isDeeperThan(template, deepestTemplate)) return problem(`nested deeper than ${deepestTemplate} levels`);
  const { repeats, names: used } = parseBodyTemplate(template, names);
  const tokens = used.length + repeats.reduce((sum, [, count]) => sum + count - 1, 0);
  if (tokens > mostTokens) return problem(`contains ${tokens} arguments; allowed: at most ${mostTokens}`);
  const unknown = wholeTexts(template).find((text) => /^:[A-Za-z_]\w*$/.test(text) && !names.includes(text.slice(1)));
  if (unknown === undefined) return [];
  return problem(
    `${shown(unknown)} looks like a token, but input_schema has no such argument${didYouMean(unknown.slice(1), names, guesses)}`,
  );
}

function wholeTexts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null && !isRawNumber(value)
    ? Object.values(value).flatMap(wholeTexts)
    : [];
}

/** Returns the problem of a GET request whose form body contains no arguments. */
export function emptyFormProblem({ method, body }: BodyFields, inBody: readonly Argument[]): Problem | undefined {
  if (method !== 'GET' || (body !== 'form' && body !== 'multipart') || inBody.length > 0) return undefined;
  return {
    path: 'body',
    message: 'no argument is in the body of this GET request; set "in": "body" on arguments, or leave this out',
  };
}

/** Returns the problem of a static Content-Type that contradicts the body. `inBody` are the arguments in the body. */
export function contentTypeProblem(tool: BodyFields, inBody: readonly Argument[]): Problem | undefined {
  const type = contentTypeOfTool(tool);
  const isTemplate = tool.body_template !== undefined;
  if (type === undefined || encodingOf(type) === 'json' || (inBody.length === 0 && !isTemplate)) return undefined;
  // Some services use their own names for JSON, such as application/x-amz-json-1.1.
  if (mediaTypeOf(type).includes('json') || (tool.body === 'json' && encodingOf(type) === undefined)) return undefined;
  const path = `headers.${Object.keys(tool.headers).find((name) => foldedHeader(name) === 'content-type')}`;
  const found = `found ${shown(type)}, but`;
  if (isTemplate) return { path, message: `${found} body_template produces a JSON body; leave this header out` };
  const argument = inBody.find(({ name }) => name === tool.body);
  if (argument && (argument.type === 'object' || argument.type === 'array')) {
    return {
      path,
      message: `${found} the argument ${argument.name} is sent as JSON; make it a string, or leave this header out`,
    };
  }
  if (tool.body !== undefined || encodingOf(type) !== undefined) return undefined;
  const message = `${found} the arguments are sent as JSON; name the one argument that is the body in \`body\`, or set "body": "json"`;
  return { path, message };
}
