import type { FieldStats } from '@toolhost/json/field-selection/field-statistics';
import { measureFields } from '@toolhost/json/field-selection/measure-fields';
import { getKeptBytes, getUselessReason } from '@toolhost/json/field-selection/propose-fields';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
import { getField, isFields, toEntries, toList, toText } from '../document/lenient.ts';
import { References, type SchemaFinder } from '../document/references.ts';

/**
 * Fields to select from a response, and the estimated tokens of a response with one item: of the complete response
 * (`tokens`), and of the selected fields (`kept`).
 */
export type ResponseFields = { paths: string[]; tokens: number; kept: number };

/** Responses with fewer tokens are returned completely. */
const minTokens = 1000;
/** Maximum number of paths in `response_fields`. */
const maxPaths = 100;
/** Paths that every configuration accepts. */
const plainPathPattern = /^[\w.$-]{1,200}$/;

/**
 * Proposes the fields to select from a large response, based on its schema. Leaves out fields that are probably useless
 * to a model. Of a nested object with its own id, selects only the identifying fields. Returns undefined if the
 * selection saves less than half of the response.
 */
export function proposeResponseFields(
  schema: unknown,
  root: unknown,
  finder: SchemaFinder,
): ResponseFields | undefined {
  const example = createExample(schema, { references: new References(root, finder, maxFollowed), depth: 0, name: '' });
  const measured = measureFields(example);
  const tokens = estimateTokenCount(measured.bytes);
  if (tokens <= minTokens || measured.isPartial) return undefined;
  const paths = selectPaths(measured, '', true) ?? [];
  if (paths.length === 0 || paths.length > maxPaths || !paths.every((path) => plainPathPattern.test(path)))
    return undefined;
  const keptTokens = estimateTokenCount(getKeptBytes(measured, paths));
  return keptTokens > tokens / 2 ? undefined : { paths, tokens, kept: keptTokens };
}

const maxFollowed = 2000;
const maxDepth = 5;

type ExampleContext = { references: References; depth: number; name: string };

/** Returns an example response for a schema: every property, and one item in each list. */
function createExample(schema: unknown, context: ExampleContext): unknown {
  const { references, depth, name } = context;
  const { value } = references.follow(schema);
  if (!isFields(value) || references.isExhausted || depth > maxDepth) return null;
  const createInner = (inner: unknown, key = name) => createExample(inner, { references, depth: depth + 1, name: key });
  const type = toText([value.type].flat().find((candidate) => candidate !== 'null'));
  if (value.items !== undefined) return [createInner(value.items)];
  const properties = collectProperties(value, context);
  if (properties.size > 0)
    return Object.fromEntries([...properties].map(([key, property]) => [key, createInner(property, key)]));
  const [alternative] = [value.oneOf, value.anyOf]
    .flatMap(toList)
    .filter((candidate) => getField(candidate, 'type') !== 'null');
  if (alternative !== undefined) return createInner(alternative);
  if (type === 'integer' || type === 'number') return 12_345;
  if (type === 'boolean') return true;
  if (type === 'object' || type === 'array') return {};
  return createText(toText(value.format), name);
}

function collectProperties(schema: unknown, { references, depth, name }: ExampleContext): Map<string, unknown> {
  const allOf = depth < maxDepth ? toList(getField(schema, 'allOf')) : [];
  const inherited = allOf.flatMap((schema) => [
    ...collectProperties(references.follow(schema).value, { references, depth: depth + 1, name }),
  ]);
  return new Map([...inherited, ...toEntries(getField(schema, 'properties'))]);
}

function createText(format: string, name: string): string {
  if (format.startsWith('date')) return '2026-01-31T12:00:00Z'.slice(0, format === 'date' ? 10 : undefined);
  const isUrl = /^ur[il]/.test(format) || /(?:^|_)(?:url|href)$|(?:Url|URL|Href)$/.test(name);
  return isUrl ? 'https://api.example.com/v1/things/12345' : 'a text of some words';
}

/**
 * Returns the paths to select from an object, or undefined for the whole object. An outer object with few fields is an
 * envelope.
 */
function selectPaths(fieldStats: FieldStats, prefix: string, isOuter: boolean): string[] | undefined {
  const isEnvelope = isOuter && fieldStats.fields.length <= maxEnvelopeFields;
  let isComplete = true;
  const paths = fieldStats.fields.flatMap((nested) => {
    const path = prefix + nested.name;
    const isUseless = getUselessReason(nested, fieldStats) !== undefined;
    const isReference = !isEnvelope && hasOwnId(nested);
    const isOpaque = nested.isPartial === true;
    const inner = isUseless
      ? []
      : isOpaque
        ? undefined
        : isReference
          ? getIdentifyingPaths(nested, path)
          : selectPaths(nested, `${path}.`, isEnvelope);
    isComplete &&= inner === undefined;
    return inner ?? [path];
  });
  return isComplete ? undefined : paths;
}

const maxEnvelopeFields = 3;

const idPattern = /^_?(?:id|uid|uuid|guid|gid|sid|key)$/i;
const identifyingPattern =
  /^(?:html_url|permalink)$|(?:^|_)(?:id|uid|uuid|guid|gid|sid|key|name|login|title|slug|email|number|code|state|status|type|kind)$|(?:Id|ID|Key|Name|Title|Status|Type|Email)$/;

/** Returns true for a single object (not a list) that can be requested by its id. */
function hasOwnId({ fields, around }: FieldStats): boolean {
  return around === 0 && fields.some(({ name }) => idPattern.test(name));
}

function getIdentifyingPaths({ fields }: FieldStats, path: string): string[] {
  return fields
    .filter(({ name, fields: inner }) => inner.length === 0 && identifyingPattern.test(name))
    .map(({ name }) => `${path}.${name}`);
}
