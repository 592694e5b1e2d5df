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
 * The value of a JSON or YAML document.
 * @throws AppError invalid when it is neither, or larger or deeper than allowed
 */
export function parseDocument(text: string): Parsed {
  const trimmed = text.replace(/^\ufeff/, '').trimStart();
  if (trimmed === '') throw refused('the document is empty; allowed: an API description, a collection or a command');
  if (/^<(?:!doctype|html|\?xml)/i.test(trimmed)) {
    throw refused('found a web page or XML; allowed: OpenAPI or Swagger as JSON or YAML, often at /openapi.json');
  }
  return /^[{[]/.test(trimmed) ? (parseJsonText(trimmed) ?? parseYamlText(trimmed)) : parseYamlText(trimmed);
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
    if (fault) throw refused(`not JSON and not YAML: ${firstLine(fault.message)}`);
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
