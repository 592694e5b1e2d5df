/** Lists the differences between two requests, except those that the standards allow. */
import { isSameJson } from './json.ts';
import type { Part, WireRequest } from './wire.ts';

/** A difference; `id` names its class. */
export type Difference = { id: string; expected: string; found: string };

/** Headers that belong to HTTP, the service, or the client library. */
const ignoredHeaders = new Set([
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'accept', 'accept-encoding', 'accept-language'],
  ...['user-agent', 'toolhost-hop', 'traceparent', 'tracestate', 'content-type', 'cookie', 'sec-fetch-mode'],
  ...['authorization'],
  ...['pragma', 'cache-control', 'priority'],
]);

/** Compares two requests. `credentials` contains the lowercase names that carry credentials, which are not compared. */
export function compareRequests(
  expected: WireRequest,
  found: WireRequest,
  credentials: ReadonlySet<string>,
): Difference[] {
  const differences: Difference[] = [];
  const add = (id: string, expectedText: string, foundText: string) =>
    differences.push({ id, expected: expectedText, found: foundText });
  if (expected.method.toUpperCase() !== found.method.toUpperCase()) add('method', expected.method, found.method);
  const [expectedPath, foundPath] = [mergeSlashes(expected.path), mergeSlashes(found.path)];
  if (expectedPath !== foundPath)
    add(decodeAll(expectedPath) === decodeAll(foundPath) ? 'path.encoding' : 'path.value', expectedPath, foundPath);
  const isCredential = ([name]: readonly [string, string]) => credentials.has(decodeAll(name).toLowerCase());
  comparePairs(
    'query',
    expected.query.filter((pair) => !isCredential(pair)),
    found.query.filter((pair) => !isCredential(pair)),
    add,
  );
  comparePairs(
    'cookie',
    expected.cookies.filter((pair) => !isCredential(pair)),
    found.cookies.filter((pair) => !isCredential(pair)),
    add,
  );
  compareHeaders(expected, found, credentials, add);
  compareBodies(expected, found, add);
  return differences;
}

/** Repeated slashes only come from joining a server URL and a path, because slashes in values are encoded. */
const mergeSlashes = (path: string) => path.replaceAll(/\/{2,}/g, '/');

type Add = (id: string, expected: string, found: string) => void;

/** Decodes a query or path; `+` is decoded as a space. */
function decodeAll(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

function comparePairs(where: string, expected: [string, string][], found: [string, string][], add: Add): void {
  const byName = (pairs: [string, string][]) => {
    const values = new Map<string, string[]>();
    for (const [name, value] of pairs) values.set(name, [...(values.get(name) ?? []), value]);
    return values;
  };
  const [expectedValues, foundValues] = [byName(expected), byName(found)];
  for (const [name, values] of expectedValues) {
    const actual = foundValues.get(name);
    const other = [...foundValues.keys()].find((key) => !expectedValues.has(key) && decodeAll(key) === decodeAll(name));
    if (actual === undefined && other !== undefined) add(`${where}.name-encoding`, name, other);
    else if (actual === undefined)
      add(`${where}.missing`, `${name}=${values.join(` & ${name}=`)}`, listNames(foundValues));
    else if (values.join('\n') !== actual.join('\n'))
      add(
        `${where}.${classifyDifference(values, actual)}`,
        `${name}=${values.join(` & ${name}=`)}`,
        `${name}=${actual.join(` & ${name}=`)}`,
      );
  }
  for (const [name, values] of foundValues)
    if (!expectedValues.has(name) && ![...expectedValues.keys()].some((key) => decodeAll(key) === decodeAll(name)))
      add(`${where}.extra`, '', `${name}=${values.join(` & ${name}=`)}`);
}

const listNames = (pairs: Map<string, string[]>) => `only ${[...pairs.keys()].join(', ') || 'nothing'}`;

function classifyDifference(expected: readonly string[], found: readonly string[]): string {
  if (expected.length !== found.length) return 'repetition';
  return expected.every((value, at) => decodeAll(value) === decodeAll(found[at] ?? '')) ? 'encoding' : 'value';
}

function compareHeaders(expected: WireRequest, found: WireRequest, credentials: ReadonlySet<string>, add: Add): void {
  const isIgnored = (name: string) => ignoredHeaders.has(name) || credentials.has(name);
  for (const [name, value] of expected.headers) {
    const actual = found.headers.get(name);
    if (isIgnored(name) || value === actual) continue;
    if (actual === undefined) add('header.missing', `${name}: ${value}`, '');
    else if (!isSameList(value, actual)) add('header.value', `${name}: ${value}`, `${name}: ${actual}`);
  }
  for (const [name, value] of found.headers)
    if (!isIgnored(name) && !expected.headers.has(name)) add('header.extra', '', `${name}: ${value}`);
}

/** Compares header values. RFC 9110, 5.6.1: whitespace around list commas is insignificant. */
const isSameList = (a: string, b: string) => a.replaceAll(/\s*,\s*/g, ',') === b.replaceAll(/\s*,\s*/g, ',');

function compareBodies(expected: WireRequest, found: WireRequest, add: Add): void {
  const [expectedBody, foundBody] = [expected.body, found.body];
  if (expectedBody.kind === 'none' || foundBody.kind === 'none') {
    if (expectedBody.kind !== foundBody.kind)
      add(
        expectedBody.kind === 'none' ? 'body.extra' : 'body.missing',
        formatBody(expectedBody),
        formatBody(foundBody),
      );
    return;
  }
  if (!isTypeOf(found.contentType, expected.contentType))
    add('body.content-type', expected.contentType, found.contentType);
  if (expectedBody.kind === 'json' && foundBody.kind === 'json') {
    if (!isSameJson(expectedBody.value, foundBody.value))
      add('body.json', formatBody(expectedBody), formatBody(foundBody));
  } else if (expectedBody.kind === 'bytes' && foundBody.kind === 'bytes') {
    if (expectedBody.content !== foundBody.content) add('body.bytes', formatBody(expectedBody), formatBody(foundBody));
  } else if (expectedBody.kind === 'form' && foundBody.kind === 'form')
    comparePairs('form', expectedBody.pairs, foundBody.pairs, add);
  else if (expectedBody.kind === 'multipart' && foundBody.kind === 'multipart')
    compareParts(expectedBody.parts, foundBody.parts, add);
  else add('body.kind', formatBody(expectedBody), formatBody(foundBody));
}

/** Returns true for a media type that matches a list of media types and ranges. */
const isTypeOf = (type: string, ranges: string) =>
  ranges.split(',').some((range) => {
    const mediaRange = (range.split(';', 1)[0] as string).trim().toLowerCase();
    const suffix = /^application\/\*(\+\w+)$/.exec(mediaRange)?.[1];
    return (
      mediaRange === type ||
      mediaRange === '*/*' ||
      (suffix !== undefined && type.endsWith(suffix)) ||
      (mediaRange.endsWith('/*') && type.startsWith(mediaRange.slice(0, -1)))
    );
  });

function compareParts(expected: readonly Part[], found: readonly Part[], add: Add): void {
  const unmatched = [...found];
  for (const part of expected) {
    const at = unmatched.findIndex(({ name }) => name === part.name);
    const [foundPart] = at < 0 ? [] : unmatched.splice(at, 1);
    if (!foundPart) {
      add('part.missing', formatPart(part), found.map(({ name }) => name).join(', '));
      continue;
    }
    // RFC 7578, 4.4: the default type of a part is text/plain.
    if (!isTypeOf(foundPart.contentType || 'text/plain', part.contentType || 'text/plain'))
      add('part.content-type', formatPart(part), formatPart(foundPart));
    if (part.hasFileName !== foundPart.hasFileName) add('part.file-name', formatPart(part), formatPart(foundPart));
    if (part.content !== foundPart.content && !isSameJsonText(part, foundPart))
      add('part.content', formatPart(part), formatPart(foundPart));
  }
  for (const part of unmatched) add('part.extra', '', formatPart(part));
}

function isSameJsonText(a: Part, b: Part): boolean {
  try {
    return isSameJson(JSON.parse(a.content), JSON.parse(b.content));
  } catch {
    return false;
  }
}

const formatPart = ({ name, hasFileName, contentType, content }: Part) =>
  `${name}${hasFileName ? ' (file)' : ''}: ${contentType || '(no type)'}: ${JSON.stringify(truncate(content, 80))}`;

const truncate = (text: string, length: number) => (text.length > length ? `${text.slice(0, length)}…` : text);

function formatBody(body: WireRequest['body']): string {
  if (body.kind === 'json') return truncate(JSON.stringify(body.value), 600);
  if (body.kind === 'form') return truncate(body.pairs.map((pair) => pair.join('=')).join(' & '), 600);
  if (body.kind === 'multipart') return body.parts.map(formatPart).join(' | ');
  return body.kind === 'bytes' ? JSON.stringify(truncate(body.content, 200)) : '';
}
