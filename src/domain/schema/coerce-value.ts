import { bodyLimits } from '../json/body-limits.ts';
import { isRawNumber, parseJson } from '../json/json.ts';
import { bodyProblem, scanJson } from '../json/json-scan.ts';
import { Steps, TooMuchWork } from '../work/steps.ts';
import { indexSchema, isSchemaObject, type JsonSchema, resolveReference } from './json-schema.ts';
import { type Kind, kindOf } from './keyword-tests.ts';

/** Step budget of a few milliseconds. Larger arguments are not coerced. */
const mostSteps = 50_000;

/**
 * Converts a value that does not fit its schema to the value that the client probably meant. At every level:
 * - Text becomes the value that it encodes as JSON, if the schema accepts that type and no text.
 * - A number or boolean becomes text, if the schema accepts only text.
 * - An empty list becomes `{}`, if the schema accepts an object and no list. PHP writes both as `[]`.
 * - An optional property that is null is omitted, if its schema does not accept null.
 *
 * Returns the same value if nothing changes or if the value exceeds the step budget.
 */
export function coerceValue(value: unknown, schema: JsonSchema): unknown {
  try {
    return new Coercion(schema).coerced(value, schema);
  } catch (error) {
    if (error instanceof TooMuchWork) return value;
    throw error;
  }
}

const anyObject: JsonSchema = { type: 'object' };

/**
 * Returns the object that a JSON-RPC client meant, `{}` for no value, or undefined if the value cannot be an object.
 */
export function coerceObject(value: unknown): { [name: string]: unknown } | undefined {
  const meant = value === undefined || value === null ? {} : coerceValue(value, anyObject);
  return plainKind(meant) === 'object' ? (meant as { [name: string]: unknown }) : undefined;
}

type JsonObject = { [name: string]: unknown };
type Kinds = ReadonlySet<Kind | 'integer'>;
const everyKind: Kinds = new Set(['null', 'boolean', 'number', 'string', 'array', 'object']);

/** Kind of a JSON text, by its first character. */
const kindOfText: { [first: string]: Kind } = { '[': 'array', '{': 'object', t: 'boolean', f: 'boolean', n: 'null' };

class Coercion {
  readonly #root: JsonSchema;
  readonly #steps = new Steps(mostSteps);
  readonly #kinds = new Map<JsonSchema, Kinds>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  coerced(given: unknown, schema: unknown): unknown {
    this.#steps.take(1);
    if (!isSchemaObject(schema)) return given;
    let value = this.#meant(given, schema);
    for (const part of this.#partsFor(value, schema)) value = this.coerced(value, part);
    if (Array.isArray(value)) return this.#withItems(value, schema);
    return plainKind(value) === 'object' ? this.#withProperties(value as JsonObject, schema) : value;
  }

  #meant(given: unknown, schema: JsonSchema): unknown {
    if (typeof given === 'string') return this.#valueOf(given, schema);
    const isEmptyList = Array.isArray(given) && given.length === 0;
    const kind = plainKind(given);
    if (!isEmptyList && kind !== 'number' && kind !== 'boolean') return given;
    const kinds = this.#kindsOf(schema);
    if (isEmptyList) return kinds.has('object') && !kinds.has('array') ? {} : given;
    const isOnlyText = kinds.has('string') && !takes(kinds, kind) && !kinds.has('integer');
    if (!isOnlyText) return given;
    return isRawNumber(given) ? given.rawJSON : String(given);
  }

  /** Parses the text as JSON if the schema accepts the result's type and no text; otherwise returns the text. */
  #valueOf(text: string, schema: JsonSchema): unknown {
    const kinds = this.#kindsOf(schema);
    const start = text.trimStart()[0] ?? '';
    const kind = kindOfText[start] ?? 'number';
    if (kinds.has('string') || !takes(kinds, kind) || (kind === 'number' && !/[-\d]/.test(start))) return text;
    // Parsing about four characters costs as much as one step.
    this.#steps.take(text.length >> 2);
    const scan = scanJson(Buffer.from(text), bodyLimits.depth);
    if (!scan || bodyProblem(scan, bodyLimits)) return text;
    const value = parseJson(text);
    return kind !== 'number' || kinds.has('number') || Number.isInteger(plainNumber(value)) ? value : text;
  }

  /**
   * Returns the schemas that a value must fit besides the keywords of `schema`. Alternatives count only if exactly one
   * of them accepts the value's kind.
   */
  #partsFor(value: unknown, schema: JsonSchema): unknown[] {
    const kind = plainKind(value);
    const parts = [...this.#referred(schema), ...listOf(schema.allOf)];
    for (const alternatives of [listOf(schema.anyOf), listOf(schema.oneOf)]) {
      const fitting = alternatives.filter((alternative) => takes(this.#kindsOf(alternative), kind));
      if (fitting.length === 1) parts.push(...fitting);
    }
    return parts;
  }

  #withItems(list: unknown[], { items, prefixItems }: JsonSchema): unknown[] {
    const first = listOf(prefixItems);
    const coerced = list.map((item, index) => this.coerced(item, first[index] ?? items));
    return coerced.some((item, index) => item !== list[index]) ? coerced : list;
  }

  #withProperties(object: JsonObject, schema: JsonSchema): JsonObject {
    const { properties, additionalProperties } = schema;
    const declared = isSchemaObject(properties) ? properties : {};
    const required = new Set(listOf(schema.required));
    const entries = Object.entries(object);
    const kept: [string, unknown][] = [];
    for (const [name, value] of entries) {
      const inner = Object.hasOwn(declared, name) ? declared[name] : additionalProperties;
      if (value === null && !required.has(name) && !this.#kindsOf(inner).has('null')) continue;
      kept.push([name, this.coerced(value, inner)]);
    }
    const isSame = kept.length === entries.length && kept.every(([, value], index) => value === entries[index]?.[1]);
    return isSame ? object : Object.fromEntries(kept);
  }

  /** Returns the kinds of values that a schema may accept. May include kinds that it rejects. */
  #kindsOf(schema: unknown): Kinds {
    this.#steps.take(1);
    if (!isSchemaObject(schema)) return everyKind;
    const known = this.#kinds.get(schema);
    if (known) return known;
    const { type, enum: values, anyOf, oneOf } = schema;
    const sets: Kinds[] = [...this.#referred(schema), ...listOf(schema.allOf)].map((part) => this.#kindsOf(part));
    if (type !== undefined) sets.push(new Set([type].flat() as Kind[]));
    if (Array.isArray(values)) sets.push(new Set(values.map(plainKind)));
    if (Object.hasOwn(schema, 'const')) sets.push(new Set([plainKind(schema.const)]));
    for (const alternatives of [anyOf, oneOf]) {
      if (Array.isArray(alternatives)) sets.push(new Set(alternatives.flatMap((part) => [...this.#kindsOf(part)])));
    }
    const kinds = sets.reduce(both, everyKind);
    this.#kinds.set(schema, kinds);
    return kinds;
  }

  #referred({ $ref }: JsonSchema): unknown[] {
    if (typeof $ref !== 'string') return [];
    const anchors = $ref.startsWith('#/') ? new Map<string, JsonSchema>() : indexSchema(this.#root)?.anchors;
    return [resolveReference({ root: this.#root, anchors: anchors ?? new Map() }, $ref)];
  }
}

function takes(kinds: Kinds, kind: Kind): boolean {
  return kinds.has(kind) || (kind === 'number' && kinds.has('integer'));
}

/** Returns the kinds that are in both sets. An integer is also a number. */
function both(one: Kinds, other: Kinds): Kinds {
  const isIn = (kinds: Kinds, kind: Kind | 'integer') => kinds.has(kind) || (kind === 'integer' && kinds.has('number'));
  return new Set([...[...one].filter((kind) => isIn(other, kind)), ...[...other].filter((kind) => isIn(one, kind))]);
}

function plainKind(value: unknown): Kind {
  return kindOf(plainNumber(value));
}

function plainNumber(value: unknown): unknown {
  return isRawNumber(value) ? Number(value.rawJSON) : value;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
