import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import { asText, asTexts, entriesOf, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import { discriminatorOf, kindValues, type References } from '../document/references.ts';
import { joined, mostFieldText, plainText, visibleName } from './texts.ts';
import { enumOf, exampleText, limitsOf, typesOf, valueNames } from './value-rules.ts';

/** Property names that every client accepts; the Claude API rejects requests with any other. */
export const portableName = /^[a-zA-Z0-9_.-]{1,64}$/;

/**
 * Maximum number of schemas per tool, of alternatives and properties that are kept, and of properties that a
 * description only names.
 */
const most = { schemas: 250, alternatives: 8, properties: 60, named: 20, namedText: 60 };
export const deepestSchema = 4;

/** Builds the schemas of one tool. */
export class SchemaMaker {
  readonly #references: References;
  readonly #deepest: number;
  #left = most.schemas;

  /** `maxDepth` is the number of object and array levels below an argument; deeper levels are left open. */
  constructor(references: References, deepest = deepestSchema) {
    this.#references = references;
    this.#deepest = deepest;
  }

  /**
   * Returns the schema of an argument: inline, without references, with `items` on every array, and with portable
   * names.
   */
  simple(raw: unknown): JsonSchema {
    return this.#simple(raw, [], 0);
  }

  /**
   * Returns a schema with its references, `allOf`, and conditions resolved at the top level only. `isNamed` is false if
   * no property is described, even if some are required. `outer` holds the properties of the schema that this schema is
   * an alternative of.
   */
  flat(raw: unknown, outer?: unknown): { schema: JsonFields; trail: readonly string[]; isNamed: boolean } {
    return this.#flat(raw, [], outer);
  }

  /** Returns the schema of a property of a schema that `flat` returned. */
  inner(raw: unknown, trail: readonly string[]): JsonSchema {
    return this.#simple(raw, trail, 0);
  }

  #flat(raw: unknown, trail: readonly string[], outer?: unknown) {
    const flat = withConditions(flatSchema(raw, trail, this.#references), this.#references);
    const isNamed = entriesOf(flat.schema.properties).length > 0;
    return { schema: this.#withRequired(flat.schema, flat.trail, outer), trail: flat.trail, isNamed };
  }

  /** Adds a property for each required name of an object. It allows any type if no alternative describes it. */
  #withRequired(schema: JsonFields, trail: readonly string[], outer: unknown): JsonFields {
    const { properties, additionalProperties: other } = schema;
    if (!typesOf(schema).types.includes('object')) return schema;
    const isOwn = (name: string) => [properties, outer].some((one) => isFields(one) && Object.hasOwn(one, name));
    const missing = asTexts(schema.required).filter((name) => !isOwn(name));
    if (missing.length === 0) return schema;
    const others = [schema.oneOf, schema.anyOf].flatMap(listOf).map((one) => flatSchema(one, trail, this.#references));
    const isOfOther = (name: string) => others.some((one) => field(one.schema.properties, name) !== undefined);
    const added = missing.filter((name) => !isOfOther(name)).map((name) => [name, isFields(other) ? other : {}]);
    return { ...schema, properties: { ...(isFields(properties) && properties), ...Object.fromEntries(added) } };
  }

  #simple(raw: unknown, above: readonly string[], depth: number, outer?: unknown): JsonSchema {
    if (--this.#left < 0) return {};
    const { schema, trail } = this.#flat(raw, above, outer);
    const { types, isNullable } = typesOf(schema);
    const description = describe(schema);
    const base: JsonSchema = {
      ...(types.length > 0 && { type: types.length === 1 ? types[0] : types }),
      ...(description !== '' && { description }),
      ...enumOf(schema, types),
      ...limitsOf(schema, types),
    };
    const alternatives = [schema.oneOf, schema.anyOf].map(listOf).find((list) => list.length > 0) ?? [];
    const inside = depth >= this.#deepest ? this.#cut(schema, types) : this.#inside(schema, types, trail, depth);
    const merged = { ...base, ...inside };
    return nullable(this.#withAlternatives(merged, { schema, alternatives }, trail, depth), isNullable);
  }

  /** Leaves nested values open at the last level. */
  #cut(schema: JsonFields, types: readonly string[]): JsonSchema {
    const isCut = isFields(schema.properties) || isFields(schema.items);
    const said = isCut ? { description: joined([describe(schema), 'Nested fields are not listed here.']) } : {};
    return { ...said, ...(types.includes('array') && { items: {} }) };
  }

  #inside(schema: JsonFields, types: readonly string[], trail: readonly string[], depth: number): JsonSchema {
    const parts: JsonSchema = {};
    if (types.includes('object')) Object.assign(parts, this.#objectParts(schema, trail, depth));
    if (types.includes('array'))
      parts.items = Array.isArray(schema.items) ? {} : this.#simple(schema.items ?? {}, trail, depth + 1);
    return parts;
  }

  #objectParts(schema: JsonFields, trail: readonly string[], depth: number): JsonSchema {
    if (this.#left <= 0) return {};
    const entries = entriesOf(schema.properties);
    const writable = entries.filter(([, property]) => !this.#isReadOnly(property, trail));
    const kept = writable.filter(([name]) => portableName.test(name) && name !== '__proto__').slice(0, most.properties);
    const gone = writable.filter((entry) => !kept.includes(entry));
    const properties = Object.fromEntries(
      kept.map(([name, property]) => [name, this.#simple(property, trail, depth + 1)]),
    );
    const required = asTexts(schema.required).filter((name) => Object.hasOwn(properties, name));
    const isWhole = gone.length === 0;
    return {
      ...(!isWhole && { description: joined([describe(schema), this.#namedOnly(gone, schema, trail)]) }),
      ...(kept.length > 0 && { properties }),
      ...(required.length > 0 && { required: [...new Set(required)] }),
      ...(isWhole && this.#otherProperties(schema, kept.length > 0, trail, depth)),
    };
  }

  /** Returns a sentence with the properties that an object accepts but that have no schema of their own. */
  #namedOnly(gone: readonly [string, unknown][], { required }: JsonFields, trail: readonly string[]): string {
    const needed = new Set(asTexts(required));
    const named = gone.slice(0, most.named).map(([name, property]) => {
      const { schema } = this.#flat(property, trail);
      const types = typesOf(schema).types.join(' or ') || 'any value';
      const text = plainText(asText(schema.description), most.namedText);
      return `${visibleName(name).slice(0, 200)} (${types}${needed.has(name) ? ', required' : ''})${text && `: ${text}`}`;
    });
    return `Also takes ${named.join('; ')}${gone.length > named.length ? `; and ${gone.length - named.length} more` : ''}`;
  }

  /** Returns the rules for properties that a schema does not name. */
  #otherProperties(schema: JsonFields, hasNamed: boolean, trail: readonly string[], depth: number): JsonSchema {
    const { additionalProperties: other, patternProperties } = schema;
    const patterns = entriesOf(patternProperties);
    if (patterns.length === 0) {
      if (other === false) return hasNamed ? { additionalProperties: false } : {};
      return entriesOf(other).length > 0 ? { additionalProperties: this.#simple(other, trail, depth + 1) } : {};
    }
    const isExact = other === false && !hasNamed && patterns.length === 1;
    if (other !== false) return {};
    const [pattern] = patterns.map(([name]) => limitsOf({ pattern: name }, ['string']));
    const values = patterns.map(([, value]) => value);
    const value = this.#simple(values.length > 1 ? { anyOf: values } : values[0], trail, depth + 1);
    return {
      ...(isExact && pattern?.pattern !== undefined && { propertyNames: pattern }),
      additionalProperties: value,
    };
  }

  #isReadOnly(property: unknown, trail: readonly string[]): boolean {
    return (
      isFields(property) &&
      (property.readOnly === true ||
        (property.$ref !== undefined && this.#flat(property, trail).schema.readOnly === true))
    );
  }

  /** Returns true for an alternative that is only `nullable`, which is the type null. */
  #isNull(alternative: unknown, trail: readonly string[]): boolean {
    const { schema } = flatSchema(alternative, trail, this.#references);
    const { title: _title, description: _description, default: _default, ...rules } = schema;
    return rules.nullable === true && Object.keys(rules).length === 1;
  }

  /** Converts alternatives to `anyOf`. After constraints were dropped, a value could match two schemas of `oneOf`. */
  #withAlternatives(
    plain: JsonSchema,
    { schema: of, alternatives: raw }: { schema: JsonFields; alternatives: readonly unknown[] },
    trail: readonly string[],
    depth: number,
  ): JsonSchema {
    if (raw.length === 0) return plain;
    const kinds = raw.map((alternative) => kindValues(of, alternative));
    const base =
      plain.type === 'object' && kinds.every(({ length }) => length > 0) ? ofKind(plain, of, kinds.flat()) : plain;
    if (raw.length > most.alternatives) return base;
    const made = raw.map((alternative, at) =>
      this.#isNull(alternative, trail)
        ? { type: 'null' }
        : ofKind(this.#simple(alternative, trail, depth, of.properties), of, kinds[at] ?? []),
    );
    const isNullable = made.some((schema) => schema.type === 'null');
    const found = distinct(made.filter((schema) => schema.type !== 'null'));
    const [only] = found;
    if (only === undefined || found.every((schema) => Object.keys(schema).length === 0))
      return nullable(base, isNullable);
    const { description = only.description, ...rest } = base;
    const texts = description === undefined ? {} : { description };
    const isJoined = base.properties === undefined || only.properties === undefined;
    if (found.length === 1 && isJoined) return nullable(ordered({ ...only, ...rest, ...texts }), isNullable);
    const joinedEnum = oneEnum(found);
    if (joinedEnum) return nullable(ordered({ ...joinedEnum, ...rest, ...texts }), isNullable);
    const { type: _type, ...untyped } = base;
    const isTyped = found.every((schema) => schema.type !== undefined);
    const list = isNullable ? [...found, { type: 'null' }] : found;
    return { ...(isTyped ? untyped : base), anyOf: list };
  }
}

/** Limits the discriminator of a schema to the given values. */
function ofKind(schema: JsonSchema, of: JsonFields, values: readonly string[]): JsonSchema {
  const name = discriminatorOf(of);
  if (schema.type !== 'object' || schema.anyOf !== undefined || values.length === 0 || !portableName.test(name))
    return schema;
  const properties = (schema.properties ?? {}) as { [name: string]: JsonSchema };
  const before = Object.hasOwn(properties, name) ? properties[name] : undefined;
  const listed = Array.isArray(before?.enum) ? before.enum.filter((value) => values.includes(value as string)) : values;
  if (listed.length === 0 || name === '__proto__') return schema;
  return {
    ...schema,
    properties: { ...properties, [name]: { type: 'string', ...before, enum: [...new Set(listed)] } },
    required: [...new Set([...asTexts(schema.required), name])],
  };
}

function describe(schema: JsonFields): string {
  const said = plainText(asText(schema.description) || titleOf(schema), mostFieldText);
  const text = joined([said, valueNames(schema, said)]);
  const fallback = schema.default === undefined || schema.default === null ? '' : exampleText(schema.default);
  if (fallback !== '' && !text.toLowerCase().includes('default')) return joined([text, `Default: ${fallback}`]);
  const example =
    text.length < 40 && schema.enum === undefined ? exampleText(schema.example ?? listOf(schema.examples)[0]) : '';
  return example === '' ? text : joined([text, `Example: ${example}`]);
}

/** Returns the title if it is more than an identifier. */
function titleOf(schema: JsonFields): string {
  const title = asText(schema.title);
  return /\s/.test(title) ? title : '';
}

function nullable(schema: JsonSchema, isNullable: boolean): JsonSchema {
  if (!isNullable) return schema;
  if (Array.isArray(schema.anyOf)) {
    const has = schema.anyOf.some((alternative) => (alternative as JsonSchema).type === 'null');
    return has ? schema : { ...schema, anyOf: [...schema.anyOf, { type: 'null' }] };
  }
  if (schema.type === undefined) return schema;
  const types = [schema.type].flat();
  const widened = types.includes('null') ? schema : { ...schema, type: [...types, 'null'] };
  return Array.isArray(widened.enum) && !widened.enum.includes(null)
    ? { ...widened, enum: [...widened.enum, null] }
    : widened;
}

function distinct(schemas: readonly JsonSchema[]): JsonSchema[] {
  return [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
}

/** Merges alternatives that are all enums into one enum. */
function oneEnum(schemas: readonly JsonSchema[]): JsonSchema | undefined {
  const [first] = schemas;
  if (!first || !schemas.every((schema) => Array.isArray(schema.enum) && schema.type === first.type)) return undefined;
  return {
    ...(first.type !== undefined && { type: first.type }),
    enum: [...new Set(schemas.flatMap((schema) => schema.enum as unknown[]))],
  };
}

function ordered(schema: JsonSchema): JsonSchema {
  const { type, description, ...rest } = schema;
  return { ...(type !== undefined && { type }), ...(description !== undefined && { description }), ...rest };
}

/** Schema without top-level references and `allOf`, the references that were followed, and the conditional schemas. */
type Flat = { schema: JsonFields; trail: readonly string[]; conditional: readonly Conditional[] };

const deepestAllOf = 20;

/**
 * Follows a schema's references and merges its `allOf`. `trail` lists the enclosing references; a reference back to one
 * of them results in an empty schema.
 */
function flatSchema(raw: unknown, trail: readonly string[], references: References, depth = 0): Flat {
  const none = { schema: {}, trail, conditional: [] };
  if (references.isExhausted) return none;
  const { value, references: followed } = references.follow(raw);
  if (!isFields(value)) return none;
  if (followed.some((reference) => trail.includes(reference)) || depth > deepestAllOf)
    return { ...none, schema: descriptionOf(value) };
  const inner = followed.length > 0 ? [...trail, ...followed] : trail;
  const parts = listOf(value.allOf);
  const conditional = conditionalOf(value);
  const { allOf: _, ...own } = value;
  return parts.reduce<Flat>(
    (sum, part) => {
      const next = flatSchema(part, inner, references, depth + 1);
      return {
        schema: both(sum.schema, next.schema),
        trail: [...new Set([...sum.trail, ...next.trail])],
        conditional: [...sum.conditional, ...next.conditional],
      };
    },
    { schema: withKinds(own, followed, references, depth), trail: inner, conditional },
  );
}

/** Schema that applies to some values only. The schema of `if` decides to which values. */
type Conditional = { schema: unknown; isTest: boolean };

function conditionalOf({ if: test, then, else: otherwise, dependentSchemas, dependencies }: JsonFields): Conditional[] {
  const of = (schemas: readonly unknown[], isTest = false) =>
    schemas.filter(isFields).map((schema) => ({ schema, isTest }));
  const dependent = [dependentSchemas, dependencies].flatMap(entriesOf).map(([, schema]) => schema);
  const branches = test === undefined ? [] : [then, otherwise];
  return [...of([...branches, ...dependent]), ...of([test], true)];
}

/** Adds the properties of the conditional schemas to a schema. All of them are optional. */
function withConditions(flat: Flat, references: References): Flat {
  const known = flat.schema.properties;
  const found = new Map<string, unknown[]>();
  const trails = new Set(flat.trail);
  const waiting = flat.conditional.map((one) => ({ ...one, trail: flat.trail }));
  // The array grows during iteration.
  for (const { schema, isTest, trail } of waiting) {
    const inner = flatSchema(schema, trail, references, 1);
    const { required, properties, oneOf, anyOf } = inner.schema;
    const alternatives = [oneOf, anyOf].flatMap(listOf).map((one) => ({ schema: one, isTest }));
    for (const one of [...inner.conditional, ...alternatives]) waiting.push({ ...one, trail: inner.trail });
    for (const reference of inner.trail) trails.add(reference);
    for (const name of [...asTexts(required), ...entriesOf(properties).map(([one]) => one)])
      if (field(known, name) === undefined && !found.has(name)) found.set(name, []);
    for (const [name, property] of isTest ? [] : entriesOf(properties)) found.get(name)?.push(property);
  }
  const optional = [...found].map(([name, all]) => [name, all.length > 1 ? { anyOf: all } : (all[0] ?? {})]);
  if (optional.length === 0) return flat;
  const properties = { ...(isFields(known) && known), ...Object.fromEntries(optional) };
  return { ...flat, schema: { ...flat.schema, properties }, trail: [...trails] };
}

/** Adds the schemas that a schema with a discriminator stands for as alternatives. */
function withKinds(schema: JsonFields, followed: readonly string[], references: References, depth: number): JsonFields {
  const own = followed.at(-1);
  const kinds = depth > 0 ? [] : references.kindsOf(schema, own);
  if (kinds.length === 0) return schema;
  // The schema can be one of its own kinds.
  const itself = {
    type: 'object',
    properties: { [discriminatorOf(schema)]: { enum: kindValues(schema, { $ref: own }) } },
  };
  return { ...schema, oneOf: kinds.map(($ref) => ($ref === own ? itself : { $ref })) };
}

function descriptionOf({ description, type }: JsonFields): JsonFields {
  return { ...(description !== undefined && { description }), ...(type !== undefined && { type }) };
}

/** Merges two schemas. Keywords of only one schema are kept; of two lists of alternatives, the first one is kept. */
function both(first: JsonFields, second: JsonFields): JsonFields {
  const properties = mergedProperties(first.properties, second.properties);
  const required = [...new Set([...listOf(first.required), ...listOf(second.required)])];
  // A closed part would forbid the properties of the other parts.
  const { additionalProperties: _first, ...rest } = { ...second, ...first };
  const open = [first, second].map((part) => part.additionalProperties).find(isFields);
  return {
    ...rest,
    ...(properties && { properties }),
    ...(required.length > 0 && { required }),
    ...(open && { additionalProperties: open }),
    ...(isFields(first.items) && isFields(second.items) && { items: { allOf: [first.items, second.items] } }),
  };
}

function mergedProperties(first: unknown, second: unknown): JsonFields | undefined {
  if (!isFields(first) && !isFields(second)) return undefined;
  const merged = new Map(entriesOf(first));
  for (const [name, value] of entriesOf(second)) {
    const before = merged.get(name);
    merged.set(name, before === undefined ? value : { allOf: [before, value] });
  }
  return Object.fromEntries(merged);
}
