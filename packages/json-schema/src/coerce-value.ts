import { bodyLimits } from '@toolhost/json/body-limits';
import { isRawNumber, parseJson } from '@toolhost/json/json';
import { getBodyProblem, scanJson } from '@toolhost/json/json-scan';
import { indexSchema, isSchemaObject, type JsonSchema, resolveReference } from './json-schema.ts';
import { getKind, type Kind } from './keyword-tests.ts';
import { StepBudget, StepLimitExceeded } from './step-budget.ts';

/** Step budget of a few milliseconds. Larger arguments are not coerced. */
const maxSteps = 50_000;

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
    return new Coercion(schema).coerce(value, schema);
  } catch (error) {
    if (error instanceof StepLimitExceeded) return value;
    throw error;
  }
}

const anyObject: JsonSchema = { type: 'object' };

/**
 * Returns the object that a JSON-RPC client meant, `{}` for no value, or undefined if the value cannot be an object.
 */
export function coerceObject(value: unknown): { [name: string]: unknown } | undefined {
  const coerced = value === undefined || value === null ? {} : coerceValue(value, anyObject);
  return getPlainKind(coerced) === 'object' ? (coerced as { [name: string]: unknown }) : undefined;
}

type JsonObject = { [name: string]: unknown };
type Kinds = ReadonlySet<Kind | 'integer'>;
const allKinds: Kinds = new Set(['null', 'boolean', 'number', 'string', 'array', 'object']);

/** Kind of a JSON text, by its first character. */
const kindsByFirstCharacter: { [character: string]: Kind } = {
  '[': 'array',
  '{': 'object',
  t: 'boolean',
  f: 'boolean',
  n: 'null',
};

class Coercion {
  readonly #root: JsonSchema;
  readonly #steps = new StepBudget(maxSteps);
  readonly #kinds = new Map<JsonSchema, Kinds>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  coerce(original: unknown, schema: unknown): unknown {
    this.#steps.consume(1);
    if (!isSchemaObject(schema)) return original;
    let value = this.#coerceScalar(original, schema);
    for (const subschema of this.#getSubschemas(value, schema)) value = this.coerce(value, subschema);
    if (Array.isArray(value)) return this.#coerceItems(value, schema);
    return getPlainKind(value) === 'object' ? this.#coerceProperties(value as JsonObject, schema) : value;
  }

  #coerceScalar(value: unknown, schema: JsonSchema): unknown {
    if (typeof value === 'string') return this.#parseText(value, schema);
    const isEmptyList = Array.isArray(value) && value.length === 0;
    const kind = getPlainKind(value);
    if (!isEmptyList && kind !== 'number' && kind !== 'boolean') return value;
    const kinds = this.#getKinds(schema);
    if (isEmptyList) return kinds.has('object') && !kinds.has('array') ? {} : value;
    const acceptsOnlyText = kinds.has('string') && !acceptsKind(kinds, kind) && !kinds.has('integer');
    if (!acceptsOnlyText) return value;
    return isRawNumber(value) ? value.rawJSON : String(value);
  }

  /** Parses the text as JSON if the schema accepts the result's type and no text; otherwise returns the text. */
  #parseText(text: string, schema: JsonSchema): unknown {
    const kinds = this.#getKinds(schema);
    const firstCharacter = text.trimStart()[0] ?? '';
    const kind = kindsByFirstCharacter[firstCharacter] ?? 'number';
    if (kinds.has('string') || !acceptsKind(kinds, kind) || (kind === 'number' && !/[-\d]/.test(firstCharacter)))
      return text;
    // Parsing about four characters costs as much as one step.
    this.#steps.consume(text.length >> 2);
    const scan = scanJson(Buffer.from(text), bodyLimits.depth);
    if (!scan || getBodyProblem(scan, bodyLimits)) return text;
    const value = parseJson(text);
    return kind !== 'number' || kinds.has('number') || Number.isInteger(toPlainNumber(value)) ? value : text;
  }

  /**
   * Returns the schemas that a value must fit besides the keywords of `schema`. Alternatives count only if exactly one
   * of them accepts the value's kind.
   */
  #getSubschemas(value: unknown, schema: JsonSchema): unknown[] {
    const kind = getPlainKind(value);
    const subschemas = [...this.#getReferenced(schema), ...toArray(schema.allOf)];
    for (const alternatives of [toArray(schema.anyOf), toArray(schema.oneOf)]) {
      const fitting = alternatives.filter((alternative) => acceptsKind(this.#getKinds(alternative), kind));
      if (fitting.length === 1) subschemas.push(...fitting);
    }
    return subschemas;
  }

  #coerceItems(list: unknown[], { items, prefixItems }: JsonSchema): unknown[] {
    const prefixSchemas = toArray(prefixItems);
    const coerced = list.map((item, index) => this.coerce(item, prefixSchemas[index] ?? items));
    return coerced.some((item, index) => item !== list[index]) ? coerced : list;
  }

  #coerceProperties(object: JsonObject, schema: JsonSchema): JsonObject {
    const { properties, additionalProperties } = schema;
    const declared = isSchemaObject(properties) ? properties : {};
    const required = new Set(toArray(schema.required));
    const entries = Object.entries(object);
    const coercedEntries: [string, unknown][] = [];
    for (const [name, value] of entries) {
      const inner = Object.hasOwn(declared, name) ? declared[name] : additionalProperties;
      if (value === null && !required.has(name) && !this.#getKinds(inner).has('null')) continue;
      coercedEntries.push([name, this.coerce(value, inner)]);
    }
    const isUnchanged =
      coercedEntries.length === entries.length &&
      coercedEntries.every(([, value], index) => value === entries[index]?.[1]);
    return isUnchanged ? object : Object.fromEntries(coercedEntries);
  }

  /** Returns the kinds of values that a schema may accept. May include kinds that it rejects. */
  #getKinds(schema: unknown): Kinds {
    this.#steps.consume(1);
    if (!isSchemaObject(schema)) return allKinds;
    const cached = this.#kinds.get(schema);
    if (cached) return cached;
    const { type, enum: values, anyOf, oneOf } = schema;
    const constraints: Kinds[] = [...this.#getReferenced(schema), ...toArray(schema.allOf)].map((subschema) =>
      this.#getKinds(subschema),
    );
    if (type !== undefined) constraints.push(new Set([type].flat() as Kind[]));
    if (Array.isArray(values)) constraints.push(new Set(values.map(getPlainKind)));
    if (Object.hasOwn(schema, 'const')) constraints.push(new Set([getPlainKind(schema.const)]));
    for (const alternatives of [anyOf, oneOf]) {
      if (Array.isArray(alternatives))
        constraints.push(new Set(alternatives.flatMap((subschema) => [...this.#getKinds(subschema)])));
    }
    const kinds = constraints.reduce(intersectKinds, allKinds);
    this.#kinds.set(schema, kinds);
    return kinds;
  }

  #getReferenced({ $ref }: JsonSchema): unknown[] {
    if (typeof $ref !== 'string') return [];
    const anchors = $ref.startsWith('#/') ? new Map<string, JsonSchema>() : indexSchema(this.#root)?.anchors;
    return [resolveReference({ root: this.#root, anchors: anchors ?? new Map() }, $ref)];
  }
}

function acceptsKind(kinds: Kinds, kind: Kind): boolean {
  return kinds.has(kind) || (kind === 'number' && kinds.has('integer'));
}

/** Returns the kinds that are in both sets. An integer is also a number. */
function intersectKinds(first: Kinds, second: Kinds): Kinds {
  const isIn = (kinds: Kinds, kind: Kind | 'integer') => kinds.has(kind) || (kind === 'integer' && kinds.has('number'));
  return new Set([
    ...[...first].filter((kind) => isIn(second, kind)),
    ...[...second].filter((kind) => isIn(first, kind)),
  ]);
}

function getPlainKind(value: unknown): Kind {
  return getKind(toPlainNumber(value));
}

function toPlainNumber(value: unknown): unknown {
  return isRawNumber(value) ? Number(value.rawJSON) : value;
}

function toArray(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
