/** Lists the differences between two requests, except those that the standards allow. */
import { isSameJson } from './json.ts';
import type { Part, WireRequest } from './wire.ts';

/** A difference; `id` names its class. */
export type Difference = { id: string; expected: string; found: string };

/** Headers that belong to HTTP, the service, or the client library. */
const ownHeaders = new Set([
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'accept', 'accept-encoding', 'accept-language'],
  ...[
    'user-agent',
    'toolhost-hop',
    'traceparent',
    'tracestate',
    'content-type',
    'cookie',
    'sec-fetch-mode',
    'authorization',
  ],
  ...['pragma', 'cache-control', 'priority'],
]);

/** Compares two requests. `credentials` contains the lowercase names that carry credentials, which are not compared. */
export function compareRequests(
  expected: WireRequest,
  found: WireRequest,
  credentials: ReadonlySet<string>,
): Difference[] {
  const differences: Difference[] = [];
  const add = (id: string, wants: string, gets: string) => differences.push({ id, expected: wants, found: gets });
  if (expected.method.toUpperCase() !== found.method.toUpperCase()) add('method', expected.method, found.method);
  const [wanted, got] = [mergeSlashes(expected.path), mergeSlashes(found.path)];
  if (wanted !== got) add(decodeAll(wanted) === decodeAll(got) ? 'path.encoding' : 'path.value', wanted, got);
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
  const [wanted, got] = [byName(expected), byName(found)];
  for (const [name, values] of wanted) {
    const actual = got.get(name);
    const other = [...got.keys()].find((key) => !wanted.has(key) && decodeAll(key) === decodeAll(name));
    if (actual === undefined && other !== undefined) add(`${where}.name-encoding`, name, other);
    else if (actual === undefined) add(`${where}.missing`, `${name}=${values.join(` & ${name}=`)}`, listNames(got));
    else if (values.join('\n') !== actual.join('\n'))
      add(
        `${where}.${nameDifference(values, actual)}`,
        `${name}=${values.join(` & ${name}=`)}`,
        `${name}=${actual.join(` & ${name}=`)}`,
      );
  }
  for (const [name, values] of got)
    if (!wanted.has(name) && ![...wanted.keys()].some((key) => decodeAll(key) === decodeAll(name)))
      add(`${where}.extra`, '', `${name}=${values.join(` & ${name}=`)}`);
}

const listNames = (pairs: Map<string, string[]>) => `only ${[...pairs.keys()].join(', ') || 'nothing'}`;

function nameDifference(expected: readonly string[], found: readonly string[]): string {
  if (expected.length !== found.length) return 'repetition';
  return expected.every((value, at) => decodeAll(value) === decodeAll(found[at] ?? '')) ? 'encoding' : 'value';
}

function compareHeaders(expected: WireRequest, found: WireRequest, credentials: ReadonlySet<string>, add: Add): void {
  const isOwn = (name: string) => ownHeaders.has(name) || credentials.has(name);
  for (const [name, value] of expected.headers) {
    const actual = found.headers.get(name);
    if (isOwn(name) || value === actual) continue;
    if (actual === undefined) add('header.missing', `${name}: ${value}`, '');
    else if (!isSameList(value, actual)) add('header.value', `${name}: ${value}`, `${name}: ${actual}`);
  }
  for (const [name, value] of found.headers)
    if (!isOwn(name) && !expected.headers.has(name)) add('header.extra', '', `${name}: ${value}`);
}

/** Compares header values. RFC 9110, 5.6.1: whitespace around list commas is insignificant. */
const isSameList = (a: string, b: string) => a.replaceAll(/\s*,\s*/g, ',') === b.replaceAll(/\s*,\s*/g, ',');

function compareBodies(expected: WireRequest, found: WireRequest, add: Add): void {
  const [wanted, got] = [expected.body, found.body];
  if (wanted.kind === 'none' || got.kind === 'none') {
    if (wanted.kind !== got.kind) add(wanted.kind === 'none' ? 'body.extra' : 'body.missing', show(wanted), show(got));
    return;
  }
  if (!isTypeOf(found.contentType, expected.contentType))
    add('body.content-type', expected.contentType, found.contentType);
  if (wanted.kind === 'json' && got.kind === 'json') {
    if (!isSameJson(wanted.value, got.value)) add('body.json', show(wanted), show(got));
  } else if (wanted.kind === 'bytes' && got.kind === 'bytes') {
    if (wanted.content !== got.content) add('body.bytes', show(wanted), show(got));
  } else if (wanted.kind === 'form' && got.kind === 'form') comparePairs('form', wanted.pairs, got.pairs, add);
  else if (wanted.kind === 'multipart' && got.kind === 'multipart') compareParts(wanted.parts, got.parts, add);
  else add('body.kind', show(wanted), show(got));
}

/** Returns true for a media type that matches a list of media types and ranges. */
const isTypeOf = (type: string, ranges: string) =>
  ranges.split(',').some((range) => {
    const wanted = (range.split(';', 1)[0] as string).trim().toLowerCase();
    const suffix = /^application\/\*(\+\w+)$/.exec(wanted)?.[1];
    return (
      wanted === type ||
      wanted === '*/*' ||
      (suffix !== undefined && type.endsWith(suffix)) ||
      (wanted.endsWith('/*') && type.startsWith(wanted.slice(0, -1)))
    );
  });

function compareParts(expected: readonly Part[], found: readonly Part[], add: Add): void {
  const left = [...found];
  for (const part of expected) {
    const at = left.findIndex(({ name }) => name === part.name);
    const [got] = at < 0 ? [] : left.splice(at, 1);
    if (!got) {
      add('part.missing', showPart(part), found.map(({ name }) => name).join(', '));
      continue;
    }
    // RFC 7578, 4.4: the default type of a part is text/plain.
    if (!isTypeOf(got.contentType || 'text/plain', part.contentType || 'text/plain'))
      add('part.content-type', showPart(part), showPart(got));
    if (part.hasFileName !== got.hasFileName) add('part.file-name', showPart(part), showPart(got));
    if (part.content !== got.content && !isSameJsonText(part, got)) add('part.content', showPart(part), showPart(got));
  }
  for (const part of left) add('part.extra', '', showPart(part));
}

function isSameJsonText(a: Part, b: Part): boolean {
  try {
    return isSameJson(JSON.parse(a.content), JSON.parse(b.content));
  } catch {
    return false;
  }
}

const showPart = ({ name, hasFileName, contentType, content }: Part) =>
  `${name}${hasFileName ? ' (file)' : ''}: ${contentType || '(no type)'}: ${JSON.stringify(cut(content, 80))}`;

const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length)}…` : text);

function show(body: WireRequest['body']): string {
  if (body.kind === 'json') return cut(JSON.stringify(body.value), 600);
  if (body.kind === 'form') return cut(body.pairs.map((pair) => pair.join('=')).join(' & '), 600);
  if (body.kind === 'multipart') return body.parts.map(showPart).join(' | ');
  return body.kind === 'bytes' ? JSON.stringify(cut(body.content, 200)) : '';
}
