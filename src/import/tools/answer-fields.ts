import type { FieldUse } from '../../domain/answer-fields/field-use.ts';
import { measureFields } from '../../domain/answer-fields/measure-fields.ts';
import { keptBytes, uselessReason } from '../../domain/answer-fields/propose-fields.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import { asText, entriesOf, field, isFields, listOf } from '../document/lenient.ts';
import { References, type SchemaFinder } from '../document/references.ts';

/**
 * Fields to select from a response, and the estimated tokens of a response with one item: complete (`tokens`), and with
 * only these fields (`kept`).
 */
export type AnswerFields = { paths: string[]; tokens: number; kept: number };

/** Responses with fewer tokens are returned completely. */
const manyTokens = 1000;
/** Maximum number of paths in `response_fields`. */
const mostPaths = 100;
/** Paths that every configuration accepts. */
const plainPath = /^[\w.$-]{1,200}$/;

/**
 * Proposes the fields to select from a large response, based on its schema. Leaves out fields that are probably useless
 * to a model. Of a nested object with its own id, only the identifying fields are selected. Returns undefined if that
 * saves less than half of the response.
 */
export function answerFieldsOf(schema: unknown, root: unknown, finder: SchemaFinder): AnswerFields | undefined {
  const example = exampleOf(schema, { references: new References(root, finder, mostFollowed), depth: 0, name: '' });
  const answer = measureFields(example);
  const tokens = tokensOfLength(answer.bytes);
  if (tokens <= manyTokens || answer.isPartial) return undefined;
  const paths = pathsOf(answer, '', true) ?? [];
  if (paths.length === 0 || paths.length > mostPaths || !paths.every((path) => plainPath.test(path))) return undefined;
  const kept = tokensOfLength(keptBytes(answer, paths));
  return kept > tokens / 2 ? undefined : { paths, tokens, kept };
}

const mostFollowed = 2000;
const deepest = 5;

type At = { references: References; depth: number; name: string };

/** Returns an example response for a schema: every property, and one item in each list. */
function exampleOf(schema: unknown, at: At): unknown {
  const { references, depth, name } = at;
  const { value } = references.follow(schema);
  if (!isFields(value) || references.isExhausted || depth > deepest) return null;
  const inside = (inner: unknown, key = name) => exampleOf(inner, { references, depth: depth + 1, name: key });
  const type = asText([value.type].flat().find((one) => one !== 'null'));
  if (value.items !== undefined) return [inside(value.items)];
  const properties = propertiesOf(value, at);
  if (properties.size > 0)
    return Object.fromEntries([...properties].map(([key, property]) => [key, inside(property, key)]));
  const [alternative] = [value.oneOf, value.anyOf].flatMap(listOf).filter((one) => field(one, 'type') !== 'null');
  if (alternative !== undefined) return inside(alternative);
  if (type === 'integer' || type === 'number') return 12_345;
  if (type === 'boolean') return true;
  if (type === 'object' || type === 'array') return {};
  return textOf(asText(value.format), name);
}

function propertiesOf(schema: unknown, { references, depth, name }: At): Map<string, unknown> {
  const parts = depth < deepest ? listOf(field(schema, 'allOf')) : [];
  const inherited = parts.flatMap((part) => [
    ...propertiesOf(references.follow(part).value, { references, depth: depth + 1, name }),
  ]);
  return new Map([...inherited, ...entriesOf(field(schema, 'properties'))]);
}

function textOf(format: string, name: string): string {
  if (format.startsWith('date')) return '2026-01-31T12:00:00Z'.slice(0, format === 'date' ? 10 : undefined);
  const isUrl = /^ur[il]/.test(format) || /(?:^|_)(?:url|href)$|(?:Url|URL|Href)$/.test(name);
  return isUrl ? 'https://api.example.com/v1/things/12345' : 'a text of some words';
}

/**
 * Returns the paths to select from an object, or undefined for the whole object. An outer object with few fields is an
 * envelope.
 */
function pathsOf(use: FieldUse, prefix: string, isOuter: boolean): string[] | undefined {
  const isEnvelope = isOuter && use.fields.length <= mostOfEnvelope;
  let isWhole = true;
  const paths = use.fields.flatMap((one) => {
    const path = prefix + one.name;
    const isUseless = uselessReason(one, use) !== undefined;
    const isReference = !isEnvelope && hasOwnId(one);
    const isKept = one.isPartial === true;
    const inner = isUseless
      ? []
      : isKept
        ? undefined
        : isReference
          ? tellingPaths(one, path)
          : pathsOf(one, `${path}.`, isEnvelope);
    isWhole &&= inner === undefined;
    return inner ?? [path];
  });
  return isWhole ? undefined : paths;
}

const mostOfEnvelope = 3;

const ownId = /^_?(?:id|uid|uuid|guid|gid|sid|key)$/i;
const telling =
  /^(?:html_url|permalink)$|(?:^|_)(?:id|uid|uuid|guid|gid|sid|key|name|login|title|slug|email|number|code|state|status|type|kind)$|(?:Id|ID|Key|Name|Title|Status|Type|Email)$/;

/** Returns true for a single object (not a list) that can be requested by its id. */
function hasOwnId({ fields, around }: FieldUse): boolean {
  return around === 0 && fields.some(({ name }) => ownId.test(name));
}

function tellingPaths({ fields }: FieldUse, path: string): string[] {
  return fields
    .filter(({ name, fields: inner }) => inner.length === 0 && telling.test(name))
    .map(({ name }) => `${path}.${name}`);
}
