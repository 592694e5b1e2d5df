import {
  type Document,
  type DocumentOptions,
  isMap,
  isScalar,
  type Pair,
  type ParseOptions,
  parseDocument as parseYaml,
  type SchemaOptions,
  visit,
  type YAMLMap,
} from 'yaml';
import { isRawNumber, parseJson } from '../../domain/json/json.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { exactNumbers } from '../../domain/json/yaml-numbers.ts';
import { invalid } from '../../errors.ts';
import type { Finding } from '../model.ts';
import { explainForeignFormat } from './foreign-formats.ts';
import { explainPage, findEmbeddedDocument } from './page.ts';
import { stripComments } from './relaxed-json.ts';

/** Bounds of a document. YAML takes about ten times the work of JSON. Nothing real is nested deeper than 60 levels. */
export const documentLimits = {
  jsonBytes: 32 * 1024 * 1024,
  yamlBytes: 8 * 1024 * 1024,
  elements: 3_000_000,
  depth: 200,
  aliases: 10_000,
} as const;

/** The value of a document, and the names that it has twice in one object. */
type Parsed = { value: unknown; findings: Finding[] };

/**
 * The value of a JSON or YAML document. It may stand behind comments, be a text of JSON or Base64, or be inside of a page.
 * @throws AppError invalid when it is none of them, or larger or deeper than allowed
 */
export function parseDocument(text: string): Parsed {
  const trimmed = stripFence(text);
  if (trimmed === '') throw refused('the document is empty; allowed: an API description, a collection or a command');
  if (trimmed.startsWith('<')) {
    const document = findEmbeddedDocument(trimmed);
    if (document === undefined) throw refused(explainForeignFormat(trimmed) ?? explainPage(trimmed));
    return parsePlain(document);
  }
  const parsed = parsePlain(stripLeadingComments(trimmed));
  const inner = findInnerText(parsed.value);
  return inner === undefined ? parsed : parsePlain(inner);
}

function parsePlain(text: string): Parsed {
  if (!/^[{["]/.test(text)) return parseYamlText(text);
  return parseJsonText(text) ?? parseLenient(text);
}

/** JSON of people has comments and commas that JSON does not have; YAML also begins with a brace at times. */
function parseLenient(text: string): Parsed {
  const plain = text.length > documentLimits.yamlBytes ? undefined : stripComments(text);
  return (plain !== undefined && plain !== text ? parseJsonText(plain) : undefined) ?? parseYamlText(text);
}

/** A text from a page or a chat, without white space around it, and of blocks between fences only what is in them. */
export function stripFence(text: string): string {
  const trimmed = text.replace(/^\ufeff/, '').trimStart();
  if (!/^(?:```|~~~)/.test(trimmed)) return trimmed;
  const fence = trimmed.slice(0, 3);
  const lines = trimmed.split('\n');
  let isInside = false;
  const inside = lines.filter((line) => {
    const isFence = line.trimStart().startsWith(fence);
    if (isFence) isInside = !isInside;
    return isInside && !isFence;
  });
  return inside.join('\n').trim();
}

/** Comments before JSON. */
function stripLeadingComments(text: string): string {
  let at = 0;
  for (;;) {
    while (/\s/.test(text[at] ?? '')) at++;
    const isLine = text.startsWith('//', at) || text[at] === '#';
    if (!isLine && !text.startsWith('/*', at)) break;
    const end = text.indexOf(isLine ? '\n' : '*/', at);
    if (end < 0) return text;
    at = end + (isLine ? 1 : 2);
  }
  return /[{[]/.test(text[at] ?? '') ? text.slice(at) : text;
}

/** A document that is a text of another: as Base64, which springdoc answers behind some converters, or as it is. */
function findInnerText(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const isBase64 = /^[A-Za-z0-9+/_-]{16,}={0,2}$/.test(value);
  const text = (isBase64 ? Buffer.from(value, 'base64').toString('utf8') : value).trimStart();
  return /^(?:\{|(?:openapi|swagger)\s*:)/.test(text) ? text : undefined;
}

/** Undefined when it is not JSON; YAML also begins with a brace at times. */
function parseJsonText(text: string): Parsed | undefined {
  const bytes = Buffer.from(text);
  if (bytes.length > documentLimits.jsonBytes) throw tooLarge(bytes.length, documentLimits.jsonBytes);
  const scan = scanJson(bytes, documentLimits.depth);
  if (!scan) return undefined;
  if (scan.depth > documentLimits.depth) throw tooDeep();
  if (scan.elements > documentLimits.elements) {
    throw refused(`found more than ${documentLimits.elements} values; import a part of the document`);
  }
  const value = parseJson(text);
  const message = 'a name is written twice in one object, such as a path; the last one counts';
  return { value, findings: scan.names > namesIn(value) ? [{ at: 'document', message }] : [] };
}

/** How many names the objects of a JSON value have. */
function namesIn(value: unknown): number {
  let count = 0;
  const waiting = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next !== 'object' || next === null || isRawNumber(next)) continue;
    if (!Array.isArray(next)) count += Object.keys(next).length;
    for (const inner of Object.values(next)) waiting.push(inner);
  }
  return count;
}

/** Dates and bytes of YAML 1.1, which JSON does not have, stay the texts that they are. */
const notJson = new Set(['timestamp', 'binary', 'set', 'omap', 'pairs'].map((tag) => `tag:yaml.org,2002:${tag}`));
const yamlOptions: ParseOptions & DocumentOptions & SchemaOptions = {
  uniqueKeys: false,
  logLevel: 'silent',
  prettyErrors: true,
  merge: true,
  resolveKnownTags: false,
  customTags: (tags) => [exactNumbers, ...tags.filter((tag) => typeof tag === 'string' || !notJson.has(tag.tag))],
};

function parseYamlText(text: string): Parsed {
  if (text.length > documentLimits.yamlBytes) throw tooLarge(text.length, documentLimits.yamlBytes);
  refuseDeepBrackets(text);
  let value: unknown;
  let findings: Finding[];
  try {
    const document = parseYaml(text, yamlOptions);
    const [fault] = document.errors;
    if (fault && /call stack/.test(fault.message)) throw tooDeep();
    if (fault) throw refused(explainForeignFormat(text) ?? `not JSON and not YAML: ${firstLine(fault.message)}`);
    findings = joinedRepeats(document);
    value = document.toJS({ maxAliasCount: documentLimits.aliases });
  } catch (error) {
    if (error instanceof ReferenceError) throw refused('its YAML aliases repeat too much; write them out');
    if (error instanceof RangeError) throw tooDeep();
    throw error;
  }
  if (heightOf(value, documentLimits.depth, new Map()) > documentLimits.depth) throw tooDeep();
  return { value, findings };
}

/** Joins paths that are written twice, each with some of their operations. Of other names the last one counts. */
function joinedRepeats(document: Document): Finding[] {
  const findings: Finding[] = [];
  visit(document, {
    Map(_, map: YAMLMap) {
      const byName = new Map<string, Pair>();
      map.items = map.items.filter((pair) => {
        const name = isScalar(pair.key) ? String(pair.key.value) : undefined;
        const before = name === undefined || name === '<<' ? undefined : byName.get(name);
        if (name !== undefined && !before) byName.set(name, pair);
        if (name === undefined || !before) return true;
        const isPath = name.startsWith('/') && isMap(before.value) && isMap(pair.value);
        const message = `is written twice; ${isPath ? 'what both say is joined' : 'the last one counts'}`;
        findings.push({ at: isPath ? `paths.${name}` : name, message });
        if (isPath) (before.value as YAMLMap).items.push(...(pair.value as YAMLMap).items);
        else before.value = pair.value;
        return false;
      });
    },
  });
  return findings;
}

/** Levels of a value, of which each is measured once however many aliases refer to it. Beyond `most` it is infinite. */
function heightOf(value: unknown, most: number, known: Map<object, number>): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (most <= 0) return Number.POSITIVE_INFINITY;
  const before = known.get(value);
  if (before !== undefined) return before;
  // An alias of a value that surrounds it.
  known.set(value, Number.POSITIVE_INFINITY);
  let height = 0;
  for (const inner of Object.values(value)) height = Math.max(height, heightOf(inner, most - 1, known));
  known.set(value, height + 1);
  return height + 1;
}

/** The YAML parser calls itself for each bracket. */
function refuseDeepBrackets(text: string): void {
  let depth = 0;
  for (const bracket of text.matchAll(/[[\]{}]/g)) {
    if (bracket[0] === '[' || bracket[0] === '{') depth++;
    else depth = Math.max(0, depth - 1);
    if (depth > 10 * documentLimits.depth) throw tooDeep();
  }
}

function firstLine(message: string): string {
  return (message.split('\n')[0] as string).slice(0, 200).replace(/:$/, '');
}

const tooDeep = () => refused(`nested deeper than ${documentLimits.depth} levels`);

function tooLarge(found: number, allowed: number): Error {
  const megabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`;
  return refused(
    `found ${megabytes(found)}; allowed: at most ${megabytes(allowed)}, of YAML ${megabytes(documentLimits.yamlBytes)}`,
  );
}

function refused(message: string) {
  return invalid([{ path: 'document', message }]);
}
