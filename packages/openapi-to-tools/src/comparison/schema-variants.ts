import { toPlainNumbers } from '@toolhost/json/json';
import { isFields, type JsonFields, toEntries, toList, toText, toTexts } from '../document/lenient.ts';
import { getDiscriminatorName, getDiscriminatorValues, type References } from '../document/references.ts';
import { collectKeywords, type JsonType } from './schema-keywords.ts';

/** Values of one type that a schema allows. A schema has one variant for each type and alternative. */
export type Variant = {
  type: JsonType;
  /** Allowed values, by their text; undefined if any value is allowed. */
  values: ReadonlyMap<string, unknown> | undefined;
  /** Other keywords that constrain values. */
  keywords: ReadonlyMap<string, unknown>;
  properties: ReadonlyMap<string, unknown>;
  /** Properties that only a condition names. An undefined schema means that the condition only tests the property. */
  conditional: ReadonlyMap<string, unknown>;
  required: ReadonlySet<string>;
  items: unknown;
  /** Schema of other properties, if they are allowed. */
  additional: unknown;
  isClosed: boolean;
  /** Values that a discriminator allows for its property, by the name of the property. */
  kinds: ReadonlyMap<string, readonly string[]>;
  description: string;
  /** References followed to reach this schema; used for nested schemas. */
  trail: readonly string[];
  isRecursive: boolean;
  /** Reason why the schema cannot be read. */
  unreadableReason: string | undefined;
};

/** Schemas that all apply to a value, such as the parts of an `allOf`, and the references followed to them. */
type Branch = {
  schemas: readonly JsonFields[];
  followed: readonly string[];
  kinds: ReadonlyMap<string, readonly string[]>;
  unreadableReason?: string | undefined;
};

/** Properties that only conditions name, and the keywords with rules that cannot be compared. */
type Conditions = { names: Map<string, unknown>; lossyKeywords: Set<string> };

const emptyBranch: Branch = { schemas: [], followed: [], kinds: new Map() };
const maxDepth = 20;
const maxBranches = 64;

const typeNames: ReadonlyMap<string, JsonType> = new Map(
  Object.entries({
    string: 'string date datetime date-time uuid text str file binary',
    integer: 'integer int int32 int64 long short',
    number: 'number float double decimal',
    boolean: 'boolean bool',
    array: 'array list',
    object: 'object map dict hash',
    null: 'null',
  }).flatMap(([type, names]) => names.split(' ').map((name) => [name, type as JsonType] as const)),
);

/** Converts the schemas of a document or a tool to variants. */
export class SchemaReader {
  readonly #references: References;
  readonly #isExact: boolean;

  /** `isExact` disables inference of types, as for the schema of a tool. */
  constructor(references: References, isExact = false) {
    this.#references = references;
    this.#isExact = isExact;
  }

  toVariants(raw: unknown, trail: readonly string[]): Variant[] {
    const variants = this.#readBranches(raw).flatMap((branch) => this.#splitByType(branch, trail));
    const nulls = variants.filter(({ type }) => type === 'null');
    return mergeValueLists([...variants.filter(({ type }) => type !== 'null'), ...nulls.slice(0, 1)]);
  }

  /** Returns true if a schema applies to responses only. */
  isReadOnly(raw: unknown): boolean {
    if (isFields(raw) && raw.readOnly === undefined && raw.$ref === undefined && raw.allOf === undefined) return false;
    return this.#readBranches(raw).some(({ schemas }) => schemas.some(({ readOnly }) => readOnly === true));
  }

  /** `isInAllOf` means that the schema is inside `allOf`, where a discriminator does not stand for other schemas. */
  #readBranches(raw: unknown, parents: readonly string[] = [], depth = 0, isInAllOf = false): Branch[] {
    if (this.#references.isExhausted)
      return [{ ...emptyBranch, unreadableReason: 'references to more than 20,000 schemas' }];
    const { value, references, problem } = this.#references.follow(raw);
    if (problem !== undefined) return [{ ...emptyBranch, unreadableReason: 'an unresolved reference' }];
    if (!isFields(value)) return [emptyBranch];
    // A kind may extend the schema with the discriminator that led to it, which is no recursion.
    if (references.some((reference) => parents.includes(reference)) || depth > maxDepth)
      return [
        { ...emptyBranch, followed: references, unreadableReason: value.discriminator ? undefined : 'recursion' },
      ];
    const inner = [...parents, ...references];
    let branches: Branch[] = [{ schemas: [value], followed: references, kinds: new Map() }];
    for (const allOfSchema of toList(value.allOf))
      branches = combineBranches(branches, this.#readBranches(allOfSchema, inner, depth + 1, true));
    for (const alternatives of this.#listAlternatives(value, isInAllOf ? undefined : references.at(-1)))
      branches = combineBranches(
        branches,
        alternatives.flatMap((alternative) => this.#readKind(value, alternative, inner, depth)),
      );
    return branches;
  }

  /** Returns the lists of alternatives of a schema. A schema with a discriminator stands for its kinds. */
  #listAlternatives(value: JsonFields, ownReference: string | undefined): (readonly unknown[])[] {
    const lists = [value.oneOf, value.anyOf].map(toList).filter(({ length }) => length > 0);
    const kinds = ownReference === undefined ? [] : this.#references.getAlternatives(value, ownReference);
    return kinds.length > 0 ? [...lists, kinds.map(($ref) => ({ $ref }))] : lists;
  }

  #readKind(value: JsonFields, alternative: unknown, parents: readonly string[], depth: number): Branch[] {
    if (isFields(alternative) && allowsOnlyNull(alternative)) return [{ ...emptyBranch, schemas: [{ type: 'null' }] }];
    const values = getDiscriminatorValues(value, alternative);
    const kinds = new Map(values.length > 0 ? [[getDiscriminatorName(value), values]] : []);
    const isSelf = isFields(alternative) && parents.at(-1) === alternative.$ref && values.length > 0;
    const branches = isSelf ? [emptyBranch] : this.#readBranches(alternative, parents, depth + 1);
    return branches.map((branch) => ({ ...branch, kinds: new Map([...branch.kinds, ...kinds]) }));
  }

  /** Returns one variant per type of a branch. */
  #splitByType({ schemas, followed, kinds, unreadableReason }: Branch, above: readonly string[]): Variant[] {
    const types = getTypes(schemas, this.#isExact);
    const conflict = types ? undefined : 'conflicting types';
    const values = getCommonValues(schemas);
    const description = schemas.map((schema) => toText(schema.description)).join('\n');
    const base = {
      kinds,
      description,
      trail: [...new Set([...above, ...followed])],
      unreadableReason: unreadableReason ?? conflict,
    };
    const isRecursive = followed.some((reference) => above.includes(reference));
    const knownTypes = types ?? ['any' as const];
    const isSingleType = knownTypes.filter((type) => type !== 'null').length === 1;
    return knownTypes.flatMap((type): Variant[] => {
      const typeValues = type === 'null' || !values ? undefined : isSingleType ? values : filterByType(values, type);
      if (typeValues?.size === 0) return [];
      return [{ ...base, type, values: typeValues, isRecursive, ...this.#buildMembers(schemas, type) }];
    });
  }

  #buildMembers(schemas: readonly JsonFields[], type: JsonType) {
    const isObject = type === 'object';
    const properties = isObject
      ? mergeProperties(schemas.map((schema) => schema.properties))
      : new Map<string, unknown>();
    const keywords = collectKeywords(schemas, type);
    const conditions = isObject
      ? this.#readConditions(schemas, properties)
      : { names: new Map<string, unknown>(), lossyKeywords: [] };
    for (const keyword of ['if', 'dependentSchemas', 'dependencies']) if (isObject) keywords.delete(keyword);
    for (const keyword of conditions.lossyKeywords) keywords.set(keyword, true);
    const items = type === 'array' ? schemas.map((schema) => schema.items).filter((items) => items !== undefined) : [];
    return {
      properties,
      keywords,
      conditional: conditions.names,
      required: new Set(isObject ? schemas.flatMap(({ required }) => toTexts(required)) : []),
      items: items.some(Array.isArray) ? undefined : mergeSchemas(items),
      ...(isObject ? getOtherProperties(schemas, properties) : { additional: undefined, isClosed: false }),
    };
  }

  /**
   * Returns the properties that only conditions name, and the keywords of conditions with rules beyond those
   * properties.
   */
  #readConditions(schemas: readonly JsonFields[], knownProperties: ReadonlyMap<string, unknown>): Conditions {
    const conditions: Conditions = { names: new Map(), lossyKeywords: new Set() };
    for (const owner of schemas) {
      for (const schema of [owner.then, owner.else])
        if (owner.if !== undefined && schema !== undefined)
          this.#addCondition('if', schema, knownProperties, conditions);
      for (const keyword of ['dependentSchemas', 'dependencies'])
        for (const [, schema] of toEntries(owner[keyword]))
          this.#addCondition(keyword, schema, knownProperties, conditions);
      for (const { schemas: tests } of owner.if === undefined ? [] : this.#readBranches(owner.if))
        for (const [name] of tests.flatMap(({ properties }) => toEntries(properties)))
          if (!knownProperties.has(name) && !conditions.names.has(name)) conditions.names.set(name, undefined);
    }
    return conditions;
  }

  #addCondition(
    keyword: string,
    schema: unknown,
    knownProperties: ReadonlyMap<string, unknown>,
    { names, lossyKeywords }: Conditions,
  ) {
    if (!isFields(schema)) lossyKeywords.add(keyword);
    const branches = this.#readBranches(schema);
    if (branches.length > 1) lossyKeywords.add(keyword);
    for (const branchSchema of branches.flatMap((branch) => branch.schemas)) {
      const isRule = branchSchema.additionalProperties === false || toTexts(branchSchema.required).length > 0;
      if (isRule || collectKeywords([branchSchema], 'object').size > 0) lossyKeywords.add(keyword);
      for (const [name, property] of toEntries(branchSchema.properties)) {
        if (knownProperties.has(name) || names.has(name)) lossyKeywords.add(keyword);
        const previousSchema = names.get(name);
        if (!knownProperties.has(name))
          names.set(name, previousSchema === undefined ? property : { anyOf: [previousSchema, property] });
      }
    }
  }
}

/** Returns true if an alternative only allows null. */
function allowsOnlyNull(schema: JsonFields): boolean {
  return (
    schema.nullable === true && Object.keys(schema).every((name) => /^(?:nullable|description|title|x-.*)$/.test(name))
  );
}

/** Combines every pair of two lists. Beyond the limit, the second list is left out and marked as unreadable. */
function combineBranches(firstBranches: readonly Branch[], secondBranches: readonly Branch[]): Branch[] {
  if (firstBranches.length * secondBranches.length > maxBranches)
    return firstBranches.map((branch) => ({ ...branch, unreadableReason: `more than ${maxBranches} alternatives` }));
  return firstBranches.flatMap((firstBranch) =>
    secondBranches.map((secondBranch) => ({
      schemas: [...firstBranch.schemas, ...secondBranch.schemas],
      followed: [...firstBranch.followed, ...secondBranch.followed],
      kinds: new Map([...firstBranch.kinds, ...secondBranch.kinds]),
      unreadableReason: firstBranch.unreadableReason ?? secondBranch.unreadableReason,
    })),
  );
}

/** Returns the types that all schemas allow, or undefined if they conflict. */
function getTypes(schemas: readonly JsonFields[], isExact: boolean): JsonType[] | undefined {
  const declared = schemas.map(getDeclaredTypes).filter((types) => types.length > 0);
  const types = declared.length > 0 ? declared.reduce(intersectTypes) : inferTypes(schemas, isExact);
  if (types.length === 0) return declared.length > 0 ? undefined : ['any'];
  const isNullable = schemas.some((schema) => schema.nullable === true || schema['x-nullable'] === true);
  return [...new Set([...types, ...(isNullable ? (['null'] as const) : [])])];
}

function intersectTypes(types: readonly JsonType[], otherTypes: readonly JsonType[]): JsonType[] {
  return types.flatMap((type): JsonType[] => {
    if (otherTypes.includes(type)) return [type];
    if (type === 'number' && otherTypes.includes('integer')) return ['integer'];
    return type === 'integer' && otherTypes.includes('number') ? ['integer'] : [];
  });
}

function getDeclaredTypes({ type }: JsonFields): JsonType[] {
  const declared = [type]
    .flat()
    .flatMap((type) => (typeof type === 'string' ? (typeNames.get(type.toLowerCase()) ?? []) : []));
  return declared.includes('number') ? declared.filter((type) => type !== 'integer') : declared;
}

function inferTypes(schemas: readonly JsonFields[], isExact: boolean): JsonType[] {
  const hasKeyword = (...keywords: string[]) =>
    !isExact && schemas.some((schema) => keywords.some((keyword) => isFields(schema[keyword])));
  if (hasKeyword('properties', 'additionalProperties', 'patternProperties', 'dependentSchemas')) return ['object'];
  if (hasKeyword('items') || schemas.some(({ prefixItems }) => Array.isArray(prefixItems))) return ['array'];
  const values = schemas.map(getListedValues).find((list) => list !== undefined) ?? [];
  const kinds = [...new Set(values.map(getType))];
  // If there are other numbers, integers count as numbers.
  return kinds.includes('number') ? kinds.filter((kind) => kind !== 'integer') : kinds;
}

function getType(rawValue: unknown): JsonType {
  const value = toPlainNumbers(rawValue);
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value as JsonType;
}

function getListedValues(schema: JsonFields): readonly unknown[] | undefined {
  if (schema.const !== undefined) return [schema.const];
  return Array.isArray(schema.enum) && schema.enum.length > 0 ? schema.enum : undefined;
}

/**
 * Returns the values that all lists contain, by their text. YAML reads `1.0` or `no` as a different type than intended.
 */
function getCommonValues(schemas: readonly JsonFields[]): Map<string, unknown> | undefined {
  let commonValues: Map<string, unknown> | undefined;
  for (const schema of schemas) {
    const list = getListedValues(schema)?.filter((value) => value !== null);
    if (!list || list.length === 0) continue;
    const ownValues = new Map(list.map((value) => [formatValue(value), value]));
    commonValues = commonValues
      ? new Map([...commonValues].filter(([valueText]) => ownValues.has(valueText)))
      : ownValues;
  }
  return commonValues;
}

function formatValue(value: unknown): string {
  return typeof value === 'object' && value !== null && toText(value) === '' ? JSON.stringify(value) : toText(value);
}

function filterByType(values: ReadonlyMap<string, unknown>, type: JsonType): Map<string, unknown> {
  const isMatch = (valueType: JsonType) =>
    type === 'any' || valueType === type || (type === 'number' && valueType === 'integer');
  return new Map([...values].filter(([, value]) => isMatch(getType(value))));
}

/** Merges enums of one type into one list. */
function mergeValueLists(variants: readonly Variant[]): Variant[] {
  const merged: Variant[] = [];
  for (const variant of variants) {
    const isMergeable = (candidate: Variant) =>
      candidate.values !== undefined && candidate.keywords.size === 0 && candidate.type === variant.type;
    const index = isMergeable(variant) ? merged.findIndex(isMergeable) : -1;
    const previous = merged[index];
    if (previous === undefined) merged.push(variant);
    else merged[index] = { ...previous, values: new Map([...(previous.values ?? []), ...(variant.values ?? [])]) };
  }
  return merged;
}

function mergeProperties(all: readonly unknown[]): Map<string, unknown> {
  const schemasByName = new Map<string, unknown[]>();
  for (const [name, schema] of all.flatMap(toEntries))
    schemasByName.set(name, [...(schemasByName.get(name) ?? []), schema]);
  return new Map([...schemasByName].map(([name, schemas]) => [name, mergeSchemas(schemas)]));
}

function mergeSchemas(schemas: readonly unknown[]): unknown {
  return schemas.length > 1 ? { allOf: schemas } : schemas[0];
}

/**
 * Returns the rules for unlisted properties. A part of `allOf` that lists only some of the properties is ignored: if it
 * is closed, it would forbid the properties of other parts; if it is open, it adds nothing to them.
 */
function getOtherProperties(
  schemas: readonly JsonFields[],
  properties: ReadonlyMap<string, unknown>,
): { additional: unknown; isClosed: boolean } {
  const complete = schemas.filter((schema) => toEntries(schema.properties).length === properties.size);
  const additionalSchemas = schemas.map(({ additionalProperties }) => additionalProperties).filter(isFields);
  const isOpen = complete.some(({ additionalProperties }) => additionalProperties === true);
  const patterns = schemas.flatMap(({ patternProperties }) => toEntries(patternProperties).map(([, value]) => value));
  const hasPatterns = patterns.length > 0;
  const isClosed =
    !hasPatterns &&
    (complete.some(({ additionalProperties }) => additionalProperties === false) ||
      schemas.some(({ unevaluatedProperties }) => unevaluatedProperties === false));
  const isFree = hasPatterns || isOpen || (properties.size === 0 && !isClosed);
  const hasOnlyPatterns = hasPatterns && schemas.some(({ additionalProperties }) => additionalProperties === false);
  const patternSchema = hasOnlyPatterns ? (patterns.length > 1 ? { anyOf: patterns } : patterns[0]) : undefined;
  return { additional: additionalSchemas[0] ?? patternSchema ?? (isFree ? true : undefined), isClosed };
}
