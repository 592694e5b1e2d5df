import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import { getField, isFields, type JsonFields, toEntries, toList, toText, toTexts } from '../document/lenient.ts';
import { getDiscriminatorName, getDiscriminatorValues, type References } from '../document/references.ts';
import { joinSentences, maxFieldText, toPlainText, toVisibleName } from './texts.ts';
import { describeValues, formatExample, getEnum, getLimits, getTypes } from './value-rules.ts';

/** Property names that every client accepts; the Claude API rejects requests with any other. */
export const portableNamePattern = /^[a-zA-Z0-9_.-]{1,64}$/;

/**
 * Maximum number of schemas per tool, of alternatives and properties of one schema, and of properties that a
 * description only names, with the length of their texts in characters.
 */
const schemaLimits = { schemas: 250, alternatives: 8, properties: 60, named: 20, namedText: 60 };
export const maxSchemaDepth = 4;

/** Builds the schemas of one tool. */
export class SchemaBuilder {
  readonly #references: References;
  readonly #maxDepth: number;
  #remainingSchemas = schemaLimits.schemas;

  /** `maxDepth` is the number of object and array levels below an argument; deeper levels are left open. */
  constructor(references: References, maxDepth = maxSchemaDepth) {
    this.#references = references;
    this.#maxDepth = maxDepth;
  }

  /**
   * Returns the schema of an argument: inline, without references, with `items` on every array, and with portable
   * names.
   */
  build(raw: unknown): JsonSchema {
    return this.#buildSimple(raw, [], 0);
  }

  /**
   * Returns a schema with its references, `allOf`, and conditions resolved at the top level only. `isNamed` is false if
   * no property is described, even if some are required. `outer` holds the properties of the schema that this schema is
   * an alternative of.
   */
  flat(raw: unknown, outer?: unknown): { schema: JsonFields; trail: readonly string[]; isNamed: boolean } {
    return this.#flatten(raw, [], outer);
  }

  /** Returns the schema of a property of a schema that `flat` returned. */
  buildInner(raw: unknown, trail: readonly string[]): JsonSchema {
    return this.#buildSimple(raw, trail, 0);
  }

  #flatten(raw: unknown, trail: readonly string[], outer?: unknown) {
    const flat = addConditions(flattenSchema(raw, trail, this.#references), this.#references);
    const isNamed = toEntries(flat.schema.properties).length > 0;
    return { schema: this.#addRequired(flat.schema, flat.trail, outer), trail: flat.trail, isNamed };
  }

  /** Adds a property for each required name that neither the object nor an alternative describes. */
  #addRequired(schema: JsonFields, trail: readonly string[], outer: unknown): JsonFields {
    const { properties, additionalProperties: additional } = schema;
    if (!getTypes(schema).types.includes('object')) return schema;
    const isDeclared = (name: string) =>
      [properties, outer].some((source) => isFields(source) && Object.hasOwn(source, name));
    const missing = toTexts(schema.required).filter((name) => !isDeclared(name));
    if (missing.length === 0) return schema;
    const alternatives = [schema.oneOf, schema.anyOf]
      .flatMap(toList)
      .map((alternative) => flattenSchema(alternative, trail, this.#references));
    const isInAlternatives = (name: string) =>
      alternatives.some((entry) => getField(entry.schema.properties, name) !== undefined);
    const added = missing
      .filter((name) => !isInAlternatives(name))
      .map((name) => [name, isFields(additional) ? additional : {}]);
    return { ...schema, properties: { ...(isFields(properties) && properties), ...Object.fromEntries(added) } };
  }

  #buildSimple(raw: unknown, parentTrail: readonly string[], depth: number, outer?: unknown): JsonSchema {
    if (--this.#remainingSchemas < 0) return {};
    const { schema, trail } = this.#flatten(raw, parentTrail, outer);
    const { types, isNullable } = getTypes(schema);
    const description = describe(schema);
    const base: JsonSchema = {
      ...(types.length > 0 && { type: types.length === 1 ? types[0] : types }),
      ...(description !== '' && { description }),
      ...getEnum(schema, types),
      ...getLimits(schema, types),
    };
    const alternatives = [schema.oneOf, schema.anyOf].map(toList).find((list) => list.length > 0) ?? [];
    const inner =
      depth >= this.#maxDepth ? this.#buildOpen(schema, types) : this.#buildInner(schema, types, trail, depth);
    const merged = { ...base, ...inner };
    return makeNullable(this.#addAlternatives(merged, { schema, alternatives }, trail, depth), isNullable);
  }

  /** Builds the last level, which leaves nested values open. */
  #buildOpen(schema: JsonFields, types: readonly string[]): JsonSchema {
    const isCut = isFields(schema.properties) || isFields(schema.items);
    const hint = isCut ? { description: joinSentences([describe(schema), 'Nested fields are not listed here.']) } : {};
    return { ...hint, ...(types.includes('array') && { items: {} }) };
  }

  #buildInner(schema: JsonFields, types: readonly string[], trail: readonly string[], depth: number): JsonSchema {
    const inner: JsonSchema = {};
    if (types.includes('object')) Object.assign(inner, this.#buildObject(schema, trail, depth));
    if (types.includes('array'))
      inner.items = Array.isArray(schema.items) ? {} : this.#buildSimple(schema.items ?? {}, trail, depth + 1);
    return inner;
  }

  #buildObject(schema: JsonFields, trail: readonly string[], depth: number): JsonSchema {
    if (this.#remainingSchemas <= 0) return {};
    const entries = toEntries(schema.properties);
    const writable = entries.filter(([, property]) => !this.#isReadOnly(property, trail));
    const listedEntries = writable
      .filter(([name]) => portableNamePattern.test(name) && name !== '__proto__')
      .slice(0, schemaLimits.properties);
    const omittedEntries = writable.filter((entry) => !listedEntries.includes(entry));
    const properties = Object.fromEntries(
      listedEntries.map(([name, property]) => [name, this.#buildSimple(property, trail, depth + 1)]),
    );
    const required = toTexts(schema.required).filter((name) => Object.hasOwn(properties, name));
    const isComplete = omittedEntries.length === 0;
    return {
      ...(!isComplete && {
        description: joinSentences([describe(schema), this.#describeOmitted(omittedEntries, schema, trail)]),
      }),
      ...(listedEntries.length > 0 && { properties }),
      ...(required.length > 0 && { required: [...new Set(required)] }),
      ...(isComplete && this.#buildOtherProperties(schema, listedEntries.length > 0, trail, depth)),
    };
  }

  /** Returns a sentence with the properties that an object accepts but that have no schema of their own. */
  #describeOmitted(
    omittedEntries: readonly [string, unknown][],
    { required }: JsonFields,
    trail: readonly string[],
  ): string {
    const requiredNames = new Set(toTexts(required));
    const named = omittedEntries.slice(0, schemaLimits.named).map(([name, property]) => {
      const { schema } = this.#flatten(property, trail);
      const types = getTypes(schema).types.join(' or ') || 'any value';
      const text = toPlainText(toText(schema.description), schemaLimits.namedText);
      return `${toVisibleName(name).slice(0, 200)} (${types}${requiredNames.has(name) ? ', required' : ''})${text && `: ${text}`}`;
    });
    return `Also takes ${named.join('; ')}${omittedEntries.length > named.length ? `; and ${omittedEntries.length - named.length} more` : ''}`;
  }

  /** Returns the rules for properties that a schema does not name. */
  #buildOtherProperties(schema: JsonFields, hasNamed: boolean, trail: readonly string[], depth: number): JsonSchema {
    const { additionalProperties: additional, patternProperties } = schema;
    const patterns = toEntries(patternProperties);
    if (patterns.length === 0) {
      if (additional === false) return hasNamed ? { additionalProperties: false } : {};
      return toEntries(additional).length > 0
        ? { additionalProperties: this.#buildSimple(additional, trail, depth + 1) }
        : {};
    }
    const isExact = additional === false && !hasNamed && patterns.length === 1;
    if (additional !== false) return {};
    const [pattern] = patterns.map(([name]) => getLimits({ pattern: name }, ['string']));
    const values = patterns.map(([, value]) => value);
    const value = this.#buildSimple(values.length > 1 ? { anyOf: values } : values[0], trail, depth + 1);
    return {
      ...(isExact && pattern?.pattern !== undefined && { propertyNames: pattern }),
      additionalProperties: value,
    };
  }

  #isReadOnly(property: unknown, trail: readonly string[]): boolean {
    return (
      isFields(property) &&
      (property.readOnly === true ||
        (property.$ref !== undefined && this.#flatten(property, trail).schema.readOnly === true))
    );
  }

  /** Returns true for an alternative that is only `nullable`, which is the type null. */
  #isNull(alternative: unknown, trail: readonly string[]): boolean {
    const { schema } = flattenSchema(alternative, trail, this.#references);
    const { title: _title, description: _description, default: _default, ...rules } = schema;
    return rules.nullable === true && Object.keys(rules).length === 1;
  }

  /** Converts alternatives to `anyOf`, because without its dropped constraints, `oneOf` could match a value twice. */
  #addAlternatives(
    plain: JsonSchema,
    {
      schema: discriminated,
      alternatives: alternativeSchemas,
    }: { schema: JsonFields; alternatives: readonly unknown[] },
    trail: readonly string[],
    depth: number,
  ): JsonSchema {
    if (alternativeSchemas.length === 0) return plain;
    const kinds = alternativeSchemas.map((alternative) => getDiscriminatorValues(discriminated, alternative));
    const base =
      plain.type === 'object' && kinds.every(({ length }) => length > 0)
        ? limitDiscriminator(plain, discriminated, kinds.flat())
        : plain;
    if (alternativeSchemas.length > schemaLimits.alternatives) return base;
    const schemas = alternativeSchemas.map((alternative, index) =>
      this.#isNull(alternative, trail)
        ? { type: 'null' }
        : limitDiscriminator(
            this.#buildSimple(alternative, trail, depth, discriminated.properties),
            discriminated,
            kinds[index] ?? [],
          ),
    );
    const isNullable = schemas.some((schema) => schema.type === 'null');
    const distinctSchemas = removeDuplicates(schemas.filter((schema) => schema.type !== 'null'));
    const [first] = distinctSchemas;
    if (first === undefined || distinctSchemas.every((schema) => Object.keys(schema).length === 0))
      return makeNullable(base, isNullable);
    const { description = first.description, ...baseKeywords } = base;
    const descriptionField = description === undefined ? {} : { description };
    const isJoined = base.properties === undefined || first.properties === undefined;
    if (distinctSchemas.length === 1 && isJoined)
      return makeNullable(orderKeywords({ ...first, ...baseKeywords, ...descriptionField }), isNullable);
    const joinedEnum = mergeEnums(distinctSchemas);
    if (joinedEnum)
      return makeNullable(orderKeywords({ ...joinedEnum, ...baseKeywords, ...descriptionField }), isNullable);
    const { type: _type, ...untyped } = base;
    const isTyped = distinctSchemas.every((schema) => schema.type !== undefined);
    const list = isNullable ? [...distinctSchemas, { type: 'null' }] : distinctSchemas;
    return { ...(isTyped ? untyped : base), anyOf: list };
  }
}

/** Limits the discriminator of a schema to `values`. */
function limitDiscriminator(schema: JsonSchema, discriminated: JsonFields, values: readonly string[]): JsonSchema {
  const name = getDiscriminatorName(discriminated);
  if (schema.type !== 'object' || schema.anyOf !== undefined || values.length === 0 || !portableNamePattern.test(name))
    return schema;
  const properties = (schema.properties ?? {}) as { [name: string]: JsonSchema };
  const declaredProperty = Object.hasOwn(properties, name) ? properties[name] : undefined;
  const listed = Array.isArray(declaredProperty?.enum)
    ? declaredProperty.enum.filter((value) => values.includes(value as string))
    : values;
  if (listed.length === 0 || name === '__proto__') return schema;
  return {
    ...schema,
    properties: { ...properties, [name]: { type: 'string', ...declaredProperty, enum: [...new Set(listed)] } },
    required: [...new Set([...toTexts(schema.required), name])],
  };
}

function describe(schema: JsonFields): string {
  const ownText = toPlainText(toText(schema.description) || getTitle(schema), maxFieldText);
  const text = joinSentences([ownText, describeValues(schema, ownText)]);
  const defaultText = schema.default === undefined || schema.default === null ? '' : formatExample(schema.default);
  if (defaultText !== '' && !text.toLowerCase().includes('default'))
    return joinSentences([text, `Default: ${defaultText}`]);
  const example =
    text.length < 40 && schema.enum === undefined ? formatExample(schema.example ?? toList(schema.examples)[0]) : '';
  return example === '' ? text : joinSentences([text, `Example: ${example}`]);
}

/** Returns the title if it is more than an identifier. */
function getTitle(schema: JsonFields): string {
  const title = toText(schema.title);
  return /\s/.test(title) ? title : '';
}

function makeNullable(schema: JsonSchema, isNullable: boolean): JsonSchema {
  if (!isNullable) return schema;
  if (Array.isArray(schema.anyOf)) {
    const hasNull = schema.anyOf.some((alternative) => (alternative as JsonSchema).type === 'null');
    return hasNull ? schema : { ...schema, anyOf: [...schema.anyOf, { type: 'null' }] };
  }
  if (schema.type === undefined) return schema;
  const types = [schema.type].flat();
  const withNull = types.includes('null') ? schema : { ...schema, type: [...types, 'null'] };
  return Array.isArray(withNull.enum) && !withNull.enum.includes(null)
    ? { ...withNull, enum: [...withNull.enum, null] }
    : withNull;
}

function removeDuplicates(schemas: readonly JsonSchema[]): JsonSchema[] {
  return [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
}

/** Merges alternatives that are all enums into one enum. */
function mergeEnums(schemas: readonly JsonSchema[]): JsonSchema | undefined {
  const [firstSchema] = schemas;
  if (!firstSchema || !schemas.every((schema) => Array.isArray(schema.enum) && schema.type === firstSchema.type))
    return undefined;
  return {
    ...(firstSchema.type !== undefined && { type: firstSchema.type }),
    enum: [...new Set(schemas.flatMap((schema) => schema.enum as unknown[]))],
  };
}

function orderKeywords(schema: JsonSchema): JsonSchema {
  const { type, description, ...otherKeywords } = schema;
  return { ...(type !== undefined && { type }), ...(description !== undefined && { description }), ...otherKeywords };
}

/** Schema without top-level references and `allOf`, the references that were followed, and the conditional schemas. */
type Flat = { schema: JsonFields; trail: readonly string[]; conditional: readonly Conditional[] };

const maxAllOfDepth = 20;

/**
 * Follows a schema's references and merges its `allOf`. `trail` lists the enclosing references; a reference back to one
 * of them results in an empty schema.
 */
function flattenSchema(raw: unknown, trail: readonly string[], references: References, depth = 0): Flat {
  const none = { schema: {}, trail, conditional: [] };
  if (references.isExhausted) return none;
  const { value, references: followed } = references.follow(raw);
  if (!isFields(value)) return none;
  if (followed.some((reference) => trail.includes(reference)) || depth > maxAllOfDepth)
    return { ...none, schema: pickDescription(value) };
  const inner = followed.length > 0 ? [...trail, ...followed] : trail;
  const allOf = toList(value.allOf);
  const conditional = getConditionals(value);
  const { allOf: _, ...ownKeywords } = value;
  return allOf.reduce<Flat>(
    (sum, schema) => {
      const flat = flattenSchema(schema, inner, references, depth + 1);
      return {
        schema: mergeSchemas(sum.schema, flat.schema),
        trail: [...new Set([...sum.trail, ...flat.trail])],
        conditional: [...sum.conditional, ...flat.conditional],
      };
    },
    { schema: addKinds(ownKeywords, followed, references, depth), trail: inner, conditional },
  );
}

/** Schema that applies only to some values. `isTest` is true for the schema of `if`, which decides to which ones. */
type Conditional = { schema: unknown; isTest: boolean };

function getConditionals({
  if: test,
  then,
  else: otherwise,
  dependentSchemas,
  dependencies,
}: JsonFields): Conditional[] {
  const toConditionals = (schemas: readonly unknown[], isTest = false) =>
    schemas.filter(isFields).map((schema) => ({ schema, isTest }));
  const dependent = [dependentSchemas, dependencies].flatMap(toEntries).map(([, schema]) => schema);
  const branches = test === undefined ? [] : [then, otherwise];
  return [...toConditionals([...branches, ...dependent]), ...toConditionals([test], true)];
}

/** Adds the properties of the conditional schemas to a schema. All of them are optional. */
function addConditions(flat: Flat, references: References): Flat {
  const knownProperties = flat.schema.properties;
  const propertiesByName = new Map<string, unknown[]>();
  const trails = new Set(flat.trail);
  const queue = flat.conditional.map((conditional) => ({ ...conditional, trail: flat.trail }));
  // The queue grows during iteration.
  for (const { schema, isTest, trail } of queue) {
    const inner = flattenSchema(schema, trail, references, 1);
    const { required, properties, oneOf, anyOf } = inner.schema;
    const alternatives = [oneOf, anyOf].flatMap(toList).map((alternative) => ({ schema: alternative, isTest }));
    for (const entry of [...inner.conditional, ...alternatives]) queue.push({ ...entry, trail: inner.trail });
    for (const reference of inner.trail) trails.add(reference);
    for (const name of [...toTexts(required), ...toEntries(properties).map(([key]) => key)])
      if (getField(knownProperties, name) === undefined && !propertiesByName.has(name)) propertiesByName.set(name, []);
    for (const [name, property] of isTest ? [] : toEntries(properties)) propertiesByName.get(name)?.push(property);
  }
  const optional = [...propertiesByName].map(([name, schemas]) => [
    name,
    schemas.length > 1 ? { anyOf: schemas } : (schemas[0] ?? {}),
  ]);
  if (optional.length === 0) return flat;
  const properties = { ...(isFields(knownProperties) && knownProperties), ...Object.fromEntries(optional) };
  return { ...flat, schema: { ...flat.schema, properties }, trail: [...trails] };
}

/** Adds the kinds of a schema with a discriminator, the schemas that it stands for, as alternatives. */
function addKinds(schema: JsonFields, followed: readonly string[], references: References, depth: number): JsonFields {
  const ownReference = followed.at(-1);
  const kinds = depth > 0 ? [] : references.getAlternatives(schema, ownReference);
  if (kinds.length === 0) return schema;
  // The schema can be one of its own kinds.
  const itself = {
    type: 'object',
    properties: { [getDiscriminatorName(schema)]: { enum: getDiscriminatorValues(schema, { $ref: ownReference }) } },
  };
  return { ...schema, oneOf: kinds.map(($ref) => ($ref === ownReference ? itself : { $ref })) };
}

function pickDescription({ description, type }: JsonFields): JsonFields {
  return { ...(description !== undefined && { description }), ...(type !== undefined && { type }) };
}

/** Merges two schemas. If both have a keyword that cannot be merged, such as `oneOf`, the first schema wins. */
function mergeSchemas(first: JsonFields, second: JsonFields): JsonFields {
  const properties = mergeProperties(first.properties, second.properties);
  const required = [...new Set([...toList(first.required), ...toList(second.required)])];
  // A closed part of an `allOf` would forbid the properties of the other parts.
  const { additionalProperties: _first, ...merged } = { ...second, ...first };
  const open = [first, second].map((schema) => schema.additionalProperties).find(isFields);
  return {
    ...merged,
    ...(properties && { properties }),
    ...(required.length > 0 && { required }),
    ...(open && { additionalProperties: open }),
    ...(isFields(first.items) && isFields(second.items) && { items: { allOf: [first.items, second.items] } }),
  };
}

function mergeProperties(first: unknown, second: unknown): JsonFields | undefined {
  if (!isFields(first) && !isFields(second)) return undefined;
  const merged = new Map(toEntries(first));
  for (const [name, value] of toEntries(second)) {
    const previous = merged.get(name);
    merged.set(name, previous === undefined ? value : { allOf: [previous, value] });
  }
  return Object.fromEntries(merged);
}
