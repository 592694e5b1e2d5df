import { recordableFailure, type ToolFailure } from '@toolhost/errors/errors';
import { isCurlCommand } from '@toolhost/errors/input-errors';
import { parseOriginTemplate } from './origin-template.ts';
import { decodeFully } from './parameter-names.ts';
import { getPlaceholderNames, interpolatePlaceholders, splitPlaceholders } from './placeholders.ts';
import { isHostShortEnough, parseUrl } from './read-url.ts';
import {
  checkLength,
  encodeText,
  getTextLength,
  maxRequestTargetLength,
  percentEncode,
  type WireText,
} from './values.ts';

/**
 * Part of a template: literal text, or the name of an argument or secret. `allowsSlashes` is for an argument in the
 * path whose slashes separate segments.
 */
export type TemplatePart = { text: string } | { argument: string; allowsSlashes?: boolean } | { secret: string };

/** A `name=value` pair of the query; `parts` is undefined if there is no `=`. */
export type QueryPair = { name: string; parts: TemplatePart[] | undefined };

/**
 * Parsed URL template. Tokens, such as `:id`, are allowed only in path segments and query values, so an argument can
 * never change the origin or a query name. Only an argument that allows slashes can change the number of segments.
 */
export type UrlTemplate = {
  origin: string;
  host: string;
  /** Name of the person's value that `origin` contains; absent for a fixed origin. */
  hostName?: string;
  segments: TemplatePart[][];
  query: QueryPair[];
  names: string[];
  /** True if a token occurs more than once. */
  hasRepeats: boolean;
};

const wordCharacterPattern = /[A-Za-z0-9_]/;
const wordPattern = /[A-Za-z_]\w*/y;

/**
 * Returns a pattern that matches a token: a colon and the longest declared name that fits. Matches nothing if no name
 * is declared.
 */
export function createTokenPattern(declaredNames: readonly string[], flags: string): RegExp {
  const namesByLength = declaredNames.filter((name) => /^[A-Za-z_]/.test(name)).toSorted((a, b) => b.length - a.length);
  const names = namesByLength.map(escapeForPattern);
  return names.length === 0 ? /(?!)/y : new RegExp(`:(${names.join('|')})(?![A-Za-z0-9_])`, flags);
}

/** Escapes text for use inside a group, like `RegExp.escape`, which Node 22 does not have. */
function escapeForPattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, (character) => `\\x${character.charCodeAt(0).toString(16)}`);
}

/** Splits text into literal parts, tokens, and secrets. `tokenPattern` must be sticky. */
export function parseTemplateParts(text: string, tokenPattern: RegExp, problems: string[]): TemplatePart[] {
  return splitPlaceholders(text).flatMap((part) =>
    'secret' in part ? part : parseTokens(part.text, tokenPattern, problems),
  );
}

function parseTokens(text: string, tokenPattern: RegExp, problems: string[]): TemplatePart[] {
  const parts: TemplatePart[] = [];
  let literal = '';
  let from = 0;
  for (let colon = text.indexOf(':'); colon >= 0; colon = text.indexOf(':', from)) {
    literal += text.slice(from, colon);
    tokenPattern.lastIndex = colon;
    const name = tokenPattern.exec(text)?.[1];
    if (name !== undefined) {
      if (literal) parts.push({ text: literal });
      parts.push({ argument: name });
      literal = '';
      from = colon + 1 + name.length;
      continue;
    }
    wordPattern.lastIndex = colon + 1;
    const undeclared = wordPattern.exec(text)?.[0];
    if (undeclared !== undefined && !wordCharacterPattern.test(text[colon - 1] ?? '')) {
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
function canonicalizeParts(parts: TemplatePart[], canonicalize: (text: string) => string): TemplatePart[] {
  return parts.map((part) => ('text' in part ? { text: canonicalize(part.text) } : part));
}

/** Wraps the text in two letters, because a text of only dots would be removed as a dot segment. */
function canonicalizePath(text: string): string {
  return new URL(`http://x/x${text}x`).pathname.slice(2, -1);
}

function canonicalizeQuery(text: string): string {
  return new URL(`http://x/?${text}`).search.slice(1);
}

const urlPattern = /^([A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?$/s;

type ParsedUrl = { template?: UrlTemplate; problems: string[] };

/**
 * Parses the `url` of a tool. `declaredNames` are the argument names of its `input_schema`. Returns a template, or
 * problems as sentences. Does not check if the host may be called, or if the server has the value in the host.
 */
export function parseUrlTemplate(url: string, declaredNames: readonly string[]): ParsedUrl {
  const personal = parseOriginTemplate(url);
  if (!personal) return parseFixedUrl(url, declaredNames);
  const { template, problems } = parseFixedUrl(personal.probe + url.slice(personal.length), declaredNames);
  const { origin, host, name: hostName } = personal;
  return template ? { template: { ...template, origin, host, hostName }, problems } : { problems };
}

function parseFixedUrl(url: string, declaredNames: readonly string[]): ParsedUrl {
  if (isCurlCommand(url)) return { problems: ['found a curl command; enter only its URL, or import the command'] };
  const problems: string[] = [];
  const match = urlPattern.exec(url);
  const [hostPlaceholder] = getPlaceholderNames(match?.[1] ?? '');
  if (hostPlaceholder !== undefined) {
    return {
      problems: [`{{${hostPlaceholder}}} is in the host, where only variables are allowed; declare it in variables`],
    };
  }
  if (match && !isHostShortEnough(match[1] as string))
    return { problems: ['has a host that is too long; allowed: 253 characters, and 63 between two dots'] };
  const hostUrl = parseUrl(match?.[1] ?? '');
  const [disallowedCharacter] = /[\s\\]/.exec(interpolatePlaceholders(url, (name) => `{{${name}}}`)) ?? [];
  if (disallowedCharacter !== undefined) {
    const characterName =
      disallowedCharacter === '\\' ? 'a backslash' : disallowedCharacter === ' ' ? 'a space' : 'white space';
    const before = url.slice(Math.max(0, url.indexOf(disallowedCharacter) - 30), url.indexOf(disallowedCharacter));
    return {
      problems: [
        `has ${characterName} ${before === '' ? 'at its beginning' : `after ${JSON.stringify(before)}`}; write ${encodeURIComponent(disallowedCharacter)}, or remove it`,
      ],
    };
  }
  if (!match || !hostUrl) {
    return {
      problems: ['not a URL; allowed: https://host/path?query with :param tokens in the path and in query values'],
    };
  }
  const [, base = '', path = '', query, fragment] = match;
  if (fragment !== undefined) problems.push('a request URL must not have a #fragment');
  if (createTokenPattern(declaredNames, '').test(base.replace(/^[^:]*:\/\//, ''))) {
    problems.push('a token is not allowed in the host, port, or user part');
  }
  const tokenPattern = createTokenPattern(declaredNames, 'y');
  const segments = path.split('/').slice(1);
  const parsed: UrlTemplate = {
    origin: hostUrl.origin,
    host: hostUrl.host,
    segments: segments.map((segment) =>
      canonicalizeParts(parseTemplateParts(segment, tokenPattern, problems), canonicalizePath),
    ),
    query:
      query === undefined || query === ''
        ? []
        : query.split('&').map((pair) => parsePair(pair, tokenPattern, problems)),
    names: [],
    hasRepeats: false,
  };
  if (segments.some((segment) => isDotSegment(segment))) problems.push('the path has a . or .. segment');
  const tokens = [...parsed.segments, ...parsed.query.map(({ parts }) => parts ?? [])].flatMap(getArgumentNames);
  parsed.names = [...new Set(tokens)];
  parsed.hasRepeats = tokens.length > parsed.names.length;
  return problems.length > 0 ? { problems } : { template: parsed, problems };
}

function parsePair(pair: string, tokenPattern: RegExp, problems: string[]): QueryPair {
  const equals = pair.indexOf('=');
  const name = equals < 0 ? pair : pair.slice(0, equals);
  if (getArgumentNames(parseTokens(name, tokenPattern, problems)).length > 0)
    problems.push('a token is not allowed in a query name');
  if (getPlaceholderNames(name).length > 0) problems.push('a secret is not allowed in a query name');
  const parts =
    equals < 0
      ? undefined
      : canonicalizeParts(parseTemplateParts(pair.slice(equals + 1), tokenPattern, problems), canonicalizeQuery);
  return { name: canonicalizeQuery(name), parts };
}

export function getArgumentNames(parts: readonly TemplatePart[]): string[] {
  return parts.flatMap((part) => ('argument' in part ? [part.argument] : []));
}

function isDotSegment(segment: string): boolean {
  return /^(?:\.|%2e){1,2}$/i.test(segment);
}

/** Returns the encoded text of a token or secret; undefined for an absent argument. */
type PartEncoder = (part: Exclude<TemplatePart, { text: string }>) => string | undefined;

/** Values for a template. An absent argument is undefined; a missing secret throws. */
export type UrlValues = { argument: (name: string) => WireText | undefined; secret: (name: string) => string };

/**
 * Renders the path and query of a template with arguments and secrets, each value percent-encoded.
 * @throws ToolFailure invalid_arguments if a path token is absent, empty, or becomes a dot segment, or if the URL is
 * too long
 */
export function renderUrl(
  template: UrlTemplate,
  { argument: getValue, secret }: UrlValues,
): { path: string; query: string[] } {
  const encodePart: PartEncoder = (part) => {
    if ('secret' in part) return percentEncode(secret(part.secret));
    const { argument } = part;
    const text = getValue(argument);
    if (text === undefined) return undefined;
    if (typeof text !== 'string' || text.length > maxRequestTargetLength)
      checkLength(argument, getTextLength(text), maxRequestTargetLength, 'a URL');
    return encodeText(text);
  };
  const renderPart = template.hasRepeats ? cacheEncodedParts(encodePart) : encodePart;
  let path = '';
  for (const segment of template.segments) path = checkUrlLength(`${path}/${renderSegment(segment, renderPart)}`);
  const query: string[] = [];
  let length = path.length;
  for (const pair of template.query) {
    const rendered = renderPair(pair, renderPart);
    if (rendered === undefined) continue;
    query.push(rendered);
    length += rendered.length + 1;
    if (length > maxRequestTargetLength) throw createUrlLengthFailure();
  }
  return { path: path || '/', query };
}

function cacheEncodedParts(encodePart: PartEncoder): PartEncoder {
  const cache = new Map<string, string | undefined>();
  return (part) => {
    if ('secret' in part) return encodePart(part);
    const { argument } = part;
    if (!cache.has(argument)) cache.set(argument, encodePart(part));
    return cache.get(argument);
  };
}

/** Returns a part of a URL unless it is too long by itself. @throws ToolFailure invalid_arguments */
export function checkUrlLength(text: string): string {
  if (text.length > maxRequestTargetLength) throw createUrlLengthFailure();
  return text;
}

function createUrlLengthFailure(): ToolFailure {
  const message = `the arguments produce a URL of more than ${maxRequestTargetLength} characters; send less, or use a tool that sends them in the body`;
  return recordableFailure('invalid_arguments', message);
}

function describePart(part: Exclude<TemplatePart, { text: string }>): string {
  return 'secret' in part ? `the secret ${part.secret}` : part.argument;
}

function getPartNames(part: TemplatePart): string[] {
  return 'text' in part ? [] : [describePart(part)];
}

function renderSegment(parts: readonly TemplatePart[], renderPart: PartEncoder): string {
  let segment = '';
  for (const part of parts) {
    if ('text' in part) {
      segment += part.text;
      continue;
    }
    const text = renderPart(part);
    if (text === undefined) throw createFailure(describePart(part), 'is missing; it is part of the path');
    if (text === '' || text === '.' || text === '..')
      throw createFailure(describePart(part), 'must not be empty, "." or ".."');
    const allowsSlashes = 'argument' in part && part.allowsSlashes === true;
    segment += allowsSlashes ? encodeWithSlashes(part.argument, text) : text;
    if (segment.length > maxRequestTargetLength) throw createUrlLengthFailure();
  }
  // False for nearly every segment, so most need not be split.
  const mayHaveDotSegment = segment.includes('.') || segment.includes('%');
  if (mayHaveDotSegment && segment.split('/').some(isDotSegment))
    throw createFailure(parts.flatMap(getPartNames).join(', '), 'produces a "." or ".." path segment');
  return segment;
}

/**
 * Returns the encoded text of an argument whose slashes separate segments. Some servers decode a path twice, so a
 * segment must not become a different one when it is decoded again.
 * @throws ToolFailure invalid_arguments
 */
function encodeWithSlashes(argument: string, encoded: string): string {
  const text = encoded.replaceAll('%2F', '/');
  for (const segment of text.split('/')) {
    if (segment === '') throw createFailure(argument, 'must not begin or end with a slash, or contain two in a row');
    const decodedSegment = decodeFully(segment);
    if (isDotSegment(decodedSegment)) throw createFailure(argument, 'must not contain a "." or ".." segment');
    if (/[/\\]/.test(decodedSegment)) throw createFailure(argument, 'must not contain a backslash or an encoded slash');
  }
  return text;
}

function renderPair(pair: QueryPair, renderPart: PartEncoder): string | undefined {
  if (!pair.parts) return pair.name;
  let value = '';
  let presentCount = 0;
  const absent: string[] = [];
  for (const part of pair.parts) {
    const text = 'text' in part ? part.text : renderPart(part);
    if (text === undefined) absent.push(...getPartNames(part));
    else if ('argument' in part) presentCount++;
    value = checkUrlLength(value + (text ?? ''));
  }
  if (presentCount === 0 && absent.length > 0) return undefined;
  if (absent.length > 0)
    throw createFailure([...new Set(absent)].join(', '), `is missing; the query value ${pair.name} needs it`);
  return `${pair.name}=${value}`;
}

function createFailure(argument: string, message: string): ToolFailure {
  return recordableFailure('invalid_arguments', `${argument}: ${message}`, [{ path: argument, message }]);
}

/** Returns the template in which the slashes of some arguments separate path segments. */
export function withAllowedSlashes(template: UrlTemplate, names: ReadonlySet<string>): UrlTemplate {
  if (names.size === 0) return template;
  const allowSlashes = (part: TemplatePart) =>
    'argument' in part && names.has(part.argument) ? { ...part, allowsSlashes: true } : part;
  return { ...template, segments: template.segments.map((segment) => segment.map(allowSlashes)) };
}
