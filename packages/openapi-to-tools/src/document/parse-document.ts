import { invalidInputError } from '@toolhost/errors/errors';
import { isRawNumber, parseJson } from '@toolhost/json/json';
import { scanJson } from '@toolhost/json/json-scan';
import { exactNumberTag } from '@toolhost/json/yaml-numbers';
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
import type { Finding } from '../model.ts';
import { explainUnsupportedFormat } from './foreign-formats.ts';
import { explainPage, findEmbeddedDocument } from './page.ts';
import { stripComments } from './relaxed-json.ts';

/**
 * Document limits. Parsing YAML takes about ten times as long as JSON. No real document is nested deeper than 60
 * levels.
 */
export const documentLimits = {
  jsonBytes: 32 * 1024 * 1024,
  yamlBytes: 8 * 1024 * 1024,
  elements: 3_000_000,
  depth: 200,
  aliases: 10_000,
} as const;

/** Value of a document, and findings about duplicate names in one object. */
type Parsed = { value: unknown; findings: Finding[] };

/**
 * Parses a JSON or YAML document. The document may follow comments, be JSON or Base64 text, or be embedded in a page.
 * @throws AppError invalid if it cannot be parsed, or exceeds the size or depth limit
 */
export function parseDocument(text: string): Parsed {
  const trimmed = stripFence(text);
  if (trimmed === '')
    throw createDocumentError('the document is empty; allowed: an API description, a collection, or a command');
  if (trimmed.startsWith('<')) {
    const document = findEmbeddedDocument(trimmed);
    if (document === undefined) throw createDocumentError(explainUnsupportedFormat(trimmed) ?? explainPage(trimmed));
    return parsePlain(document);
  }
  const parsed = parsePlain(stripLeadingComments(trimmed));
  const inner = findNestedDocument(parsed.value);
  return inner === undefined ? parsed : parsePlain(inner);
}

function parsePlain(text: string): Parsed {
  if (!/^[{["]/.test(text)) return parseYamlText(text);
  return parseJsonText(text) ?? parseLenient(text);
}

/**
 * Parses JSON with comments and trailing commas, which people write and the standard does not allow. Falls back to
 * YAML, which can also begin with a brace.
 */
function parseLenient(text: string): Parsed {
  const withoutComments = text.length > documentLimits.yamlBytes ? undefined : stripComments(text);
  return (
    (withoutComments !== undefined && withoutComments !== text ? parseJsonText(withoutComments) : undefined) ??
    parseYamlText(text)
  );
}

/** Trims text copied from a page or a chat. If it has fenced blocks, returns only their content. */
export function stripFence(text: string): string {
  const trimmed = text.replace(/^\ufeff/, '').trimStart();
  if (!/^(?:```|~~~)/.test(trimmed)) return trimmed;
  const fence = trimmed.slice(0, 3);
  const lines = trimmed.split('\n');
  let isInBlock = false;
  const innerLines = lines.filter((line) => {
    const isFence = line.trimStart().startsWith(fence);
    if (isFence) isInBlock = !isInBlock;
    return isInBlock && !isFence;
  });
  return innerLines.join('\n').trim();
}

/** Removes comments before JSON. */
function stripLeadingComments(text: string): string {
  let position = 0;
  for (;;) {
    while (/\s/.test(text[position] ?? '')) position++;
    const isLine = text.startsWith('//', position) || text[position] === '#';
    if (!isLine && !text.startsWith('/*', position)) break;
    const commentEnd = text.indexOf(isLine ? '\n' : '*/', position);
    if (commentEnd < 0) return text;
    position = commentEnd + (isLine ? 1 : 2);
  }
  return /[{[]/.test(text[position] ?? '') ? text.slice(position) : text;
}

/**
 * Returns a document that is encoded as a string in another one: plain, or as Base64, which springdoc returns with some
 * converters.
 */
function findNestedDocument(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const isBase64 = /^[A-Za-z0-9+/_-]{16,}={0,2}$/.test(value);
  const text = (isBase64 ? Buffer.from(value, 'base64').toString('utf8') : value).trimStart();
  return /^(?:\{|(?:openapi|swagger)\s*:)/.test(text) ? text : undefined;
}

/** Parses JSON. Returns undefined for any other text, such as YAML that begins with a brace. */
function parseJsonText(text: string): Parsed | undefined {
  const bytes = Buffer.from(text);
  if (bytes.length > documentLimits.jsonBytes) throw createSizeError(bytes.length, documentLimits.jsonBytes);
  const scan = scanJson(bytes, documentLimits.depth);
  if (!scan) return undefined;
  if (scan.depth > documentLimits.depth) throw createDepthError();
  if (scan.elements > documentLimits.elements) {
    throw createDocumentError(`found more than ${documentLimits.elements} values; import part of the document`);
  }
  const value = parseJson(text);
  const message = 'an object contains the same name twice, such as a path; the last one is used';
  return { value, findings: scan.names > countNames(value) ? [{ at: 'document', message }] : [] };
}

/** Counts the names in all objects of a JSON value. */
function countNames(value: unknown): number {
  let count = 0;
  const queue = [value];
  while (queue.length > 0) {
    const current = queue.pop();
    if (typeof current !== 'object' || current === null || isRawNumber(current)) continue;
    if (!Array.isArray(current)) count += Object.keys(current).length;
    for (const inner of Object.values(current)) queue.push(inner);
  }
  return count;
}

/** YAML 1.1 tags for types that JSON does not have, such as dates and bytes. Their values are kept as text. */
const nonJsonTags = new Set(['timestamp', 'binary', 'set', 'omap', 'pairs'].map((tag) => `tag:yaml.org,2002:${tag}`));
const yamlOptions: ParseOptions & DocumentOptions & SchemaOptions = {
  uniqueKeys: false,
  logLevel: 'silent',
  prettyErrors: true,
  merge: true,
  resolveKnownTags: false,
  customTags: (tags) => [exactNumberTag, ...tags.filter((tag) => typeof tag === 'string' || !nonJsonTags.has(tag.tag))],
};

function parseYamlText(text: string): Parsed {
  if (text.length > documentLimits.yamlBytes) throw createSizeError(text.length, documentLimits.yamlBytes);
  rejectDeepBrackets(text);
  let value: unknown;
  let findings: Finding[];
  try {
    const document = parseYaml(text, yamlOptions);
    const [yamlError] = document.errors;
    if (yamlError && /call stack/.test(yamlError.message)) throw createDepthError();
    if (yamlError)
      throw createDocumentError(
        explainUnsupportedFormat(text) ?? `not JSON and not YAML: ${getFirstLine(yamlError.message)}`,
      );
    findings = mergeDuplicates(document);
    value = document.toJS({ maxAliasCount: documentLimits.aliases });
  } catch (error) {
    if (error instanceof ReferenceError)
      throw createDocumentError('the YAML aliases expand too far; write out their values');
    if (error instanceof RangeError) throw createDepthError();
    throw error;
  }
  if (measureDepth(value, documentLimits.depth, new Map()) > documentLimits.depth) throw createDepthError();
  return { value, findings };
}

/** Merges paths that are written twice with different operations. For other duplicate names, the last one is used. */
function mergeDuplicates(document: Document): Finding[] {
  const findings: Finding[] = [];
  visit(document, {
    Map(_, map: YAMLMap) {
      const byName = new Map<string, Pair>();
      map.items = map.items.filter((pair) => {
        const name = isScalar(pair.key) ? String(pair.key.value) : undefined;
        const previous = name === undefined || name === '<<' ? undefined : byName.get(name);
        if (name !== undefined && !previous) byName.set(name, pair);
        if (name === undefined || !previous) return true;
        const isPath = name.startsWith('/') && isMap(previous.value) && isMap(pair.value);
        const message = `is written twice; ${isPath ? 'both are merged' : 'the last one is used'}`;
        findings.push({ at: isPath ? `paths.${name}` : name, message });
        if (isPath) (previous.value as YAMLMap).items.push(...(pair.value as YAMLMap).items);
        else previous.value = pair.value;
        return false;
      });
    },
  });
  return findings;
}

/**
 * Returns the nesting depth of a value, or infinity if it exceeds `maxDepth`. Measures a value only once, even if many
 * aliases refer to it.
 */
function measureDepth(value: unknown, maxDepth: number, depthByValue: Map<object, number>): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (maxDepth <= 0) return Number.POSITIVE_INFINITY;
  const previous = depthByValue.get(value);
  if (previous !== undefined) return previous;
  // An alias of an enclosing value would be infinitely deep.
  depthByValue.set(value, Number.POSITIVE_INFINITY);
  let depth = 0;
  for (const inner of Object.values(value)) depth = Math.max(depth, measureDepth(inner, maxDepth - 1, depthByValue));
  depthByValue.set(value, depth + 1);
  return depth + 1;
}

/** Rejects deep nesting before parsing, because the YAML parser recurses for each bracket. */
function rejectDeepBrackets(text: string): void {
  let depth = 0;
  for (const bracket of text.matchAll(/[[\]{}]/g)) {
    if (bracket[0] === '[' || bracket[0] === '{') depth++;
    else depth = Math.max(0, depth - 1);
    if (depth > 10 * documentLimits.depth) throw createDepthError();
  }
}

function getFirstLine(message: string): string {
  return (message.split('\n')[0] as string).slice(0, 200).replace(/:$/, '');
}

const createDepthError = () => createDocumentError(`nested deeper than ${documentLimits.depth} levels`);

function createSizeError(foundBytes: number, allowedBytes: number): Error {
  const formatMegabytes = (bytes: number) => `${Math.round(bytes / 1024 / 1024)} MB`;
  return createDocumentError(
    `found ${formatMegabytes(foundBytes)}; allowed: at most ${formatMegabytes(allowedBytes)}, of YAML ${formatMegabytes(documentLimits.yamlBytes)}`,
  );
}

function createDocumentError(message: string) {
  return invalidInputError([{ path: 'document', message }]);
}
