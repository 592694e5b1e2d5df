import { type DocumentOptions, type ParseOptions, parseDocument as parseYaml, type SchemaOptions } from 'yaml';
import { scanJson } from '../../domain/json/json-scan.ts';
import { invalid } from '../../errors.ts';

/** Bounds of a document. YAML takes about ten times the work of JSON. Nothing real is nested deeper than 60 levels. */
export const documentLimits = {
  jsonBytes: 32 * 1024 * 1024,
  yamlBytes: 8 * 1024 * 1024,
  elements: 3_000_000,
  depth: 200,
  aliases: 10_000,
} as const;

/**
 * The value of a JSON or YAML document.
 * @throws AppError invalid when it is neither, or larger or deeper than allowed
 */
export function parseDocument(text: string): unknown {
  const trimmed = text.replace(/^\ufeff/, '').trimStart();
  if (trimmed === '') throw refused('the document is empty; allowed: an API description, a collection or a command');
  if (/^<(?:!doctype|html|\?xml)/i.test(trimmed)) {
    throw refused('found a web page or XML; allowed: OpenAPI or Swagger as JSON or YAML, often at /openapi.json');
  }
  return /^[{[]/.test(trimmed) ? (parseJsonText(trimmed) ?? parseYamlText(trimmed)) : parseYamlText(trimmed);
}

/** Undefined when it is not JSON; YAML also begins with a brace at times. */
function parseJsonText(text: string): unknown {
  const bytes = Buffer.from(text);
  if (bytes.length > documentLimits.jsonBytes) throw tooLarge(bytes.length, documentLimits.jsonBytes);
  const scan = scanJson(bytes, documentLimits.depth);
  if (!scan) return undefined;
  if (scan.depth > documentLimits.depth) throw tooDeep();
  if (scan.elements > documentLimits.elements) {
    throw refused(`found more than ${documentLimits.elements} values; import a part of the document`);
  }
  return JSON.parse(text) as unknown;
}

/** Dates and bytes of YAML 1.1, which JSON does not have, stay the texts that they are. */
const notJson = new Set(['timestamp', 'binary', 'set', 'omap', 'pairs'].map((tag) => `tag:yaml.org,2002:${tag}`));
const yamlOptions: ParseOptions & DocumentOptions & SchemaOptions = {
  uniqueKeys: false,
  logLevel: 'silent',
  prettyErrors: true,
  merge: true,
  resolveKnownTags: false,
  customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !notJson.has(tag.tag)),
};

function parseYamlText(text: string): unknown {
  if (text.length > documentLimits.yamlBytes) throw tooLarge(text.length, documentLimits.yamlBytes);
  refuseDeepBrackets(text);
  let value: unknown;
  try {
    const document = parseYaml(text, yamlOptions);
    const [fault] = document.errors;
    if (fault && /call stack/.test(fault.message)) throw tooDeep();
    if (fault) throw refused(`not JSON and not YAML: ${firstLine(fault.message)}`);
    value = document.toJS({ maxAliasCount: documentLimits.aliases });
  } catch (error) {
    if (error instanceof ReferenceError) throw refused('its YAML aliases repeat too much; write them out');
    if (error instanceof RangeError) throw tooDeep();
    throw error;
  }
  if (heightOf(value, documentLimits.depth, new Map()) > documentLimits.depth) throw tooDeep();
  return value;
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
