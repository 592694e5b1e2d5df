import { plainFailure, type ToolFailure } from '../../errors.ts';
import { decoded } from './parameter-names.ts';
import { fillPlaceholders, placeholderNames, placeholderParts } from './placeholders.ts';
import { canHaveHost, readUrl } from './read-url.ts';
import { encode, encodeText, lengthOf, mostUrlLength, refuseLonger, type WireText } from './values.ts';

/**
 * A part of a template: literal text, or the name of an argument or secret. An argument in the path may keep its
 * slashes.
 */
export type Part = { text: string } | { argument: string; keepsSlashes?: boolean } | { secret: string };

/** A `name=value` pair of the query; `parts` is undefined if there is no `=`. */
export type QueryPair = { name: string; parts: Part[] | undefined };

/**
 * A URL template, parsed once. Tokens are allowed only in path segments and query values, so an argument can never
 * change the origin, a query name, or, unless it keeps its slashes, the number of segments.
 */
export type UrlTemplate = {
  origin: string;
  host: string;
  segments: Part[][];
  query: QueryPair[];
  names: string[];
  /** True if a token occurs more than once. */
  hasRepeats: boolean;
};

const wordCharacter = /[A-Za-z0-9_]/;
const word = /[A-Za-z_]\w*/y;

/**
 * Returns a pattern that matches a token: a colon and the longest declared name that fits. Matches nothing if no name
 * is declared.
 */
export function tokenPattern(declared: readonly string[], flags: string): RegExp {
  const longestFirst = declared.filter((name) => /^[A-Za-z_]/.test(name)).toSorted((a, b) => b.length - a.length);
  const names = longestFirst.map(escapeForPattern);
  return names.length === 0 ? /(?!)/y : new RegExp(`:(${names.join('|')})(?![A-Za-z0-9_])`, flags);
}

/** Escapes text for use inside a group, like `RegExp.escape`, which Node 22 does not have. */
function escapeForPattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, (character) => `\\x${character.charCodeAt(0).toString(16)}`);
}

/** Splits text into literal parts, tokens, and secrets. `token` must be sticky. */
export function parseParts(text: string, token: RegExp, problems: string[]): Part[] {
  return placeholderParts(text).flatMap((part) => ('secret' in part ? part : parseTokens(part.text, token, problems)));
}

function parseTokens(text: string, token: RegExp, problems: string[]): Part[] {
  const parts: Part[] = [];
  let literal = '';
  let from = 0;
  for (let colon = text.indexOf(':'); colon >= 0; colon = text.indexOf(':', from)) {
    literal += text.slice(from, colon);
    token.lastIndex = colon;
    const name = token.exec(text)?.[1];
    if (name !== undefined) {
      if (literal) parts.push({ text: literal });
      parts.push({ argument: name });
      literal = '';
      from = colon + 1 + name.length;
      continue;
    }
    word.lastIndex = colon + 1;
    const undeclared = word.exec(text)?.[0];
    if (undeclared !== undefined && !wordCharacter.test(text[colon - 1] ?? '')) {
      problems.push(`\`:${undeclared}\` looks like a token, but input_schema has no such argument`);
    }
    literal += ':';
    from = colon + 1;
  }
  literal += text.slice(from);
  if (literal) parts.push({ text: literal });
  return parts;
}

/** Rewrites literal text in the URL parser's own spelling, so that a rendered URL can be compared byte by byte. */
function canonical(parts: Part[], wrap: (text: string) => string): Part[] {
  return parts.map((part) => ('text' in part ? { text: wrap(part.text) } : part));
}

/** Wraps the text in two letters, because a text of only dots would be removed as a dot segment. */
function canonicalPath(text: string): string {
  return new URL(`http://x/x${text}x`).pathname.slice(2, -1);
}

function canonicalQuery(text: string): string {
  return new URL(`http://x/?${text}`).search.slice(1);
}

const shape = /^([A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/s;

/**
 * Parses the `url` of a tool. `declared` contains the argument names of its `input_schema`. Problems are sentences; if
 * there are any, no template is returned. This function does not decide whether the host may be called.
 */
export function parseUrlTemplate(
  url: string,
  declared: readonly string[],
): { template?: UrlTemplate; problems: string[] } {
  const problems: string[] = [];
  const match = shape.exec(url);
  const [unfilled] = placeholderNames(match?.[1] ?? '');
  if (unfilled !== undefined) {
    return {
      problems: [`{{${unfilled}}} is in the host, where only variables are allowed; declare it in variables`],
    };
  }
  if (match && !canHaveHost(match[1] as string))
    return { problems: ['has a host that is too long; allowed: 253 characters, and 63 between two dots'] };
  const target = readUrl(match?.[1] ?? '');
  const [foreign] = /[\s\\]/.exec(fillPlaceholders(url, (name) => `{{${name}}}`)) ?? [];
  if (foreign !== undefined) {
    const what = foreign === '\\' ? 'a backslash' : foreign === ' ' ? 'a space' : 'white space';
    const before = url.slice(Math.max(0, url.indexOf(foreign) - 30), url.indexOf(foreign));
    return {
      problems: [
        `has ${what} ${before === '' ? 'at its beginning' : `after ${JSON.stringify(before)}`}; write ${encodeURIComponent(foreign)}, or remove it`,
      ],
    };
  }
  if (!match || !target) {
    return {
      problems: ['not a URL; allowed: https://host/path?query with :param tokens in the path and in query values'],
    };
  }
  const [, base = '', path = '', query, fragment] = match;
  if (fragment !== undefined) problems.push('a request URL must not have a #fragment');
  if (tokenPattern(declared, '').test(base.replace(/^[^:]*:\/\//, ''))) {
    problems.push('a token is not allowed in the host, port, or user part');
  }
  const token = tokenPattern(declared, 'y');
  const segments = path.split('/').slice(1);
  const parsed: UrlTemplate = {
    origin: target.origin,
    host: target.host,
    segments: segments.map((segment) => canonical(parseParts(segment, token, problems), canonicalPath)),
    query: query === undefined || query === '' ? [] : query.split('&').map((pair) => parsePair(pair, token, problems)),
    names: [],
    hasRepeats: false,
  };
  if (segments.some((segment) => isDotSegment(segment))) problems.push('the path has a . or .. segment');
  const tokens = [...parsed.segments, ...parsed.query.map((p) => p.parts ?? [])].flatMap(argumentsIn);
  parsed.names = [...new Set(tokens)];
  parsed.hasRepeats = tokens.length > parsed.names.length;
  return problems.length > 0 ? { problems } : { template: parsed, problems };
}

function parsePair(pair: string, token: RegExp, problems: string[]): QueryPair {
  const equals = pair.indexOf('=');
  const name = equals < 0 ? pair : pair.slice(0, equals);
  if (argumentsIn(parseTokens(name, token, problems)).length > 0)
    problems.push('a token is not allowed in a query name');
  if (placeholderNames(name).length > 0) problems.push('a secret is not allowed in a query name');
  const parts = equals < 0 ? undefined : canonical(parseParts(pair.slice(equals + 1), token, problems), canonicalQuery);
  return { name: canonicalQuery(name), parts };
}

export function argumentsIn(parts: readonly Part[]): string[] {
  return parts.flatMap((part) => ('argument' in part ? [part.argument] : []));
}

function isDotSegment(segment: string): boolean {
  return /^(?:\.|%2e){1,2}$/i.test(segment);
}

/** Returns the encoded text of a token or secret; undefined for an absent argument. */
type EncodedText = (part: Exclude<Part, { text: string }>) => string | undefined;

/** Values for a template. An absent argument is undefined; a missing secret throws. */
export type UrlValues = { argument: (name: string) => WireText | undefined; secret: (name: string) => string };

/**
 * Renders the path and query of a template with arguments and secrets, each value percent-encoded.
 * @throws ToolFailure invalid_arguments if a path token is absent, empty, or becomes a dot segment, or if the URL is
 * too long
 */
export function renderUrl(
  template: UrlTemplate,
  { argument: value, secret }: UrlValues,
): { path: string; query: string[] } {
  const encoded: EncodedText = (part) => {
    if ('secret' in part) return encode(secret(part.secret));
    const { argument } = part;
    const text = value(argument);
    if (text === undefined) return undefined;
    if (typeof text !== 'string' || text.length > mostUrlLength)
      refuseLonger(argument, lengthOf(text), mostUrlLength, 'a URL');
    return encodeText(text);
  };
  const textOf = template.hasRepeats ? rememberedTexts(encoded) : encoded;
  let path = '';
  for (const segment of template.segments) path = checked(`${path}/${renderSegment(segment, textOf)}`);
  const query: string[] = [];
  let length = path.length;
  for (const pair of template.query) {
    const rendered = renderPair(pair, textOf);
    if (rendered === undefined) continue;
    query.push(rendered);
    length += rendered.length + 1;
    if (length > mostUrlLength) throw tooLong();
  }
  return { path: path || '/', query };
}

function rememberedTexts(textOf: EncodedText): EncodedText {
  const known = new Map<string, string | undefined>();
  return (part) => {
    if ('secret' in part) return textOf(part);
    const { argument } = part;
    if (!known.has(argument)) known.set(argument, textOf(part));
    return known.get(argument);
  };
}

/** Returns part of a URL unless it is already too long. @throws ToolFailure invalid_arguments */
export function checked(part: string): string {
  if (part.length > mostUrlLength) throw tooLong();
  return part;
}

function tooLong(): ToolFailure {
  const message = `the arguments produce a URL of more than ${mostUrlLength} characters; send less, or use a tool that sends them in the body`;
  return plainFailure('invalid_arguments', message);
}

function nameOf(part: Exclude<Part, { text: string }>): string {
  return 'secret' in part ? `the secret ${part.secret}` : part.argument;
}

function namesOf(part: Part): string[] {
  return 'text' in part ? [] : [nameOf(part)];
}

function renderSegment(parts: readonly Part[], textOf: EncodedText): string {
  let segment = '';
  for (const part of parts) {
    if ('text' in part) {
      segment += part.text;
      continue;
    }
    const text = textOf(part);
    if (text === undefined) throw refusal(nameOf(part), 'is missing; it is part of the path');
    if (text === '' || text === '.' || text === '..') throw refusal(nameOf(part), 'must not be empty, "." or ".."');
    const keepsSlashes = 'argument' in part && part.keepsSlashes === true;
    segment += keepsSlashes ? withSlashes(part.argument, text) : text;
    if (segment.length > mostUrlLength) throw tooLong();
  }
  // False for nearly every segment, so most need not be split.
  const mayHaveDots = segment.includes('.') || segment.includes('%');
  if (mayHaveDots && segment.split('/').some(isDotSegment))
    throw refusal(parts.flatMap(namesOf).join(', '), 'produces a "." or ".." path segment');
  return segment;
}

/**
 * Returns the encoded text of an argument whose slashes separate segments. Some servers decode a path twice, so a
 * segment must not become a different one when it is decoded again.
 * @throws ToolFailure invalid_arguments
 */
function withSlashes(argument: string, encoded: string): string {
  const text = encoded.replaceAll('%2F', '/');
  for (const segment of text.split('/')) {
    if (segment === '') throw refusal(argument, 'must not begin or end with a slash, or contain two in a row');
    const plain = decoded(segment);
    if (isDotSegment(plain)) throw refusal(argument, 'must not contain a "." or ".." segment');
    if (/[/\\]/.test(plain)) throw refusal(argument, 'must not contain a backslash or an encoded slash');
  }
  return text;
}

function renderPair(pair: QueryPair, textOf: EncodedText): string | undefined {
  if (!pair.parts) return pair.name;
  let value = '';
  let present = 0;
  const absent: string[] = [];
  for (const part of pair.parts) {
    const text = 'text' in part ? part.text : textOf(part);
    if (text === undefined) absent.push(...namesOf(part));
    else if ('argument' in part) present++;
    value = checked(value + (text ?? ''));
  }
  if (present === 0 && absent.length > 0) return undefined;
  if (absent.length > 0)
    throw refusal([...new Set(absent)].join(', '), `is missing; the query value ${pair.name} needs it`);
  return `${pair.name}=${value}`;
}

function refusal(argument: string, what: string): ToolFailure {
  return plainFailure('invalid_arguments', `${argument}: ${what}`, [{ path: argument, message: what }]);
}

/** Returns the template with the slashes of these arguments kept in its path. */
export function keepingSlashes(template: UrlTemplate, names: ReadonlySet<string>): UrlTemplate {
  if (names.size === 0) return template;
  const keeping = (part: Part) =>
    'argument' in part && names.has(part.argument) ? { ...part, keepsSlashes: true } : part;
  return { ...template, segments: template.segments.map((segment) => segment.map(keeping)) };
}
