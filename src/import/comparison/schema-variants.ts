import { plainNumbers } from '../../domain/json/json.ts';
import { asText, asTexts, entriesOf, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import { discriminatorOf, kindValues, type References } from '../document/references.ts';
import { type JsonType, keywordsOf } from './schema-keywords.ts';

/** Values of one type that a schema allows. A schema is a list of variants: one for each type and alternative. */
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
  free: unknown;
  isClosed: boolean;
  /** Values that a discriminator assigns to its property. */
  kinds: ReadonlyMap<string, readonly string[]>;
  description: string;
  /** References followed to reach this schema; used for nested schemas. */
  trail: readonly string[];
  isRecursive: boolean;
  /** Reason why the schema cannot be read. */
  unreadable: string | undefined;
};

/** Schemas that all apply to one location, and the references followed there. */
type Branch = {
  pieces: readonly JsonFields[];
  followed: readonly string[];
  kinds: ReadonlyMap<string, readonly string[]>;
  unreadable?: string | undefined;
};

type Conditions = { names: Map<string, unknown>; lost: Set<string> };

const nothing: Branch = { pieces: [], followed: [], kinds: new Map() };
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

  variants(raw: unknown, trail: readonly string[]): Variant[] {
    const variants = this.#branches(raw).flatMap((branch) => this.#split(branch, trail));
    const nulls = variants.filter(({ type }) => type === 'null');
    return joinValues([...variants.filter(({ type }) => type !== 'null'), ...nulls.slice(0, 1)]);
  }

  /** Returns true if a schema applies to responses only. */
  isReadOnly(raw: unknown): boolean {
    if (isFields(raw) && raw.readOnly === undefined && raw.$ref === undefined && raw.allOf === undefined) return false;
    return this.#branches(raw).some(({ pieces }) => pieces.some(({ readOnly }) => readOnly === true));
  }

  /** `isInAllOf` means that the schema is inside `allOf`, where a discriminator does not stand for other schemas. */
  #branches(raw: unknown, here: readonly string[] = [], depth = 0, isPart = false): Branch[] {
    if (this.#references.isExhausted) return [{ ...nothing, unreadable: 'references to more than 20,000 schemas' }];
    const { value, references, problem } = this.#references.follow(raw);
    if (problem !== undefined) return [{ ...nothing, unreadable: 'an unresolved reference' }];
    if (!isFields(value)) return [nothing];
    if (references.some((one) => here.includes(one)) || depth > maxDepth)
      // A kind is derived from the schema that encloses it here.
      return [{ ...nothing, followed: references, unreadable: value.discriminator ? undefined : 'recursion' }];
    const inner = [...here, ...references];
    let found: Branch[] = [{ pieces: [value], followed: references, kinds: new Map() }];
    for (const part of listOf(value.allOf)) found = product(found, this.#branches(part, inner, depth + 1, true));
    for (const alternatives of this.#alternatives(value, isPart ? undefined : references.at(-1)))
      found = product(
        found,
        alternatives.flatMap((one) => this.#kind(value, one, inner, depth)),
      );
    return found;
  }

  /** Returns the lists of alternatives of a schema. A schema with a discriminator stands for its kinds. */
  #alternatives(value: JsonFields, own: string | undefined): (readonly unknown[])[] {
    const lists = [value.oneOf, value.anyOf].map(listOf).filter(({ length }) => length > 0);
    const kinds = own === undefined ? [] : this.#references.kindsOf(value, own);
    return kinds.length > 0 ? [...lists, kinds.map(($ref) => ({ $ref }))] : lists;
  }

  #kind(value: JsonFields, alternative: unknown, here: readonly string[], depth: number): Branch[] {
    if (isFields(alternative) && isOnlyNull(alternative)) return [{ ...nothing, pieces: [{ type: 'null' }] }];
    const values = kindValues(value, alternative);
    const kinds = new Map(values.length > 0 ? [[discriminatorOf(value), values]] : []);
    const isSelf = isFields(alternative) && here.at(-1) === alternative.$ref && values.length > 0;
    const branches = isSelf ? [nothing] : this.#branches(alternative, here, depth + 1);
    return branches.map((branch) => ({ ...branch, kinds: new Map([...branch.kinds, ...kinds]) }));
  }

  /** Returns one variant per type of a branch. */
  #split({ pieces, followed, kinds, unreadable }: Branch, above: readonly string[]): Variant[] {
    const types = typesOf(pieces, this.#isExact);
    const contrary = types ? undefined : 'conflicting types';
    const values = valuesOf(pieces);
    const description = pieces.map((piece) => asText(piece.description)).join('\n');
    const base = {
      kinds,
      description,
      trail: [...new Set([...above, ...followed])],
      unreadable: unreadable ?? contrary,
    };
    const isRecursive = followed.some((one) => above.includes(one));
    const known = types ?? ['any' as const];
    const isOne = known.filter((type) => type !== 'null').length === 1;
    return known.flatMap((type): Variant[] => {
      const own = type === 'null' || !values ? undefined : isOne ? values : onlyOf(values, type);
      if (own?.size === 0) return [];
      return [{ ...base, type, values: own, isRecursive, ...this.#parts(pieces, type) }];
    });
  }

  #parts(pieces: readonly JsonFields[], type: JsonType) {
    const isObject = type === 'object';
    const properties = isObject ? joinProperties(pieces.map((piece) => piece.properties)) : new Map<string, unknown>();
    const keywords = keywordsOf(pieces, type);
    const conditions = isObject
      ? this.#conditional(pieces, properties)
      : { names: new Map<string, unknown>(), lost: [] };
    for (const keyword of ['if', 'dependentSchemas', 'dependencies']) if (isObject) keywords.delete(keyword);
    for (const keyword of conditions.lost) keywords.set(keyword, true);
    const items = type === 'array' ? pieces.map((piece) => piece.items).filter((one) => one !== undefined) : [];
    return {
      properties,
      keywords,
      conditional: conditions.names,
      required: new Set(isObject ? pieces.flatMap(({ required }) => asTexts(required)) : []),
      items: items.some(Array.isArray) ? undefined : joinSchemas(items),
      ...(isObject ? otherProperties(pieces, properties) : { free: undefined, isClosed: false }),
    };
  }

  /**
   * Returns the properties that only conditions name, and the keywords of conditions with rules beyond those
   * properties.
   */
  #conditional(pieces: readonly JsonFields[], known: ReadonlyMap<string, unknown>): Conditions {
    const found: Conditions = { names: new Map(), lost: new Set() };
    for (const piece of pieces) {
      for (const schema of [piece.then, piece.else])
        if (piece.if !== undefined && schema !== undefined) this.#addCondition('if', schema, known, found);
      for (const keyword of ['dependentSchemas', 'dependencies'])
        for (const [, schema] of entriesOf(piece[keyword])) this.#addCondition(keyword, schema, known, found);
      for (const { pieces: tests } of piece.if === undefined ? [] : this.#branches(piece.if))
        for (const [name] of tests.flatMap(({ properties }) => entriesOf(properties)))
          if (!known.has(name) && !found.names.has(name)) found.names.set(name, undefined);
    }
    return found;
  }

  #addCondition(keyword: string, schema: unknown, known: ReadonlyMap<string, unknown>, { names, lost }: Conditions) {
    if (!isFields(schema)) lost.add(keyword);
    const branches = this.#branches(schema);
    if (branches.length > 1) lost.add(keyword);
    for (const piece of branches.flatMap((branch) => branch.pieces)) {
      const isRule = piece.additionalProperties === false || asTexts(piece.required).length > 0;
      if (isRule || keywordsOf([piece], 'object').size > 0) lost.add(keyword);
      for (const [name, property] of entriesOf(piece.properties)) {
        if (known.has(name) || names.has(name)) lost.add(keyword);
        const before = names.get(name);
        if (!known.has(name)) names.set(name, before === undefined ? property : { anyOf: [before, property] });
      }
    }
  }
}

/** Returns true if an alternative only allows null. */
function isOnlyNull(schema: JsonFields): boolean {
  return (
    schema.nullable === true && Object.keys(schema).every((name) => /^(?:nullable|description|title|x-.*)$/.test(name))
  );
}

/** Combines every pair of two lists. Beyond the limit, the second list is left out and marked as unreadable. */
function product(first: readonly Branch[], second: readonly Branch[]): Branch[] {
  if (first.length * second.length > maxBranches)
    return first.map((one) => ({ ...one, unreadable: `more than ${maxBranches} alternatives` }));
  return first.flatMap((one) =>
    second.map((other) => ({
      pieces: [...one.pieces, ...other.pieces],
      followed: [...one.followed, ...other.followed],
      kinds: new Map([...one.kinds, ...other.kinds]),
      unreadable: one.unreadable ?? other.unreadable,
    })),
  );
}

/** Returns the types that all schemas allow, or undefined if they conflict. */
function typesOf(pieces: readonly JsonFields[], isExact: boolean): JsonType[] | undefined {
  const declared = pieces.map(declaredTypes).filter((types) => types.length > 0);
  const types = declared.length > 0 ? declared.reduce(sharedTypes) : inferredTypes(pieces, isExact);
  if (types.length === 0) return declared.length > 0 ? undefined : ['any'];
  const isNullable = pieces.some((piece) => piece.nullable === true || piece['x-nullable'] === true);
  return [...new Set([...types, ...(isNullable ? (['null'] as const) : [])])];
}

function sharedTypes(types: readonly JsonType[], others: readonly JsonType[]): JsonType[] {
  return types.flatMap((type): JsonType[] => {
    if (others.includes(type)) return [type];
    if (type === 'number' && others.includes('integer')) return ['integer'];
    return type === 'integer' && others.includes('number') ? ['integer'] : [];
  });
}

function declaredTypes({ type }: JsonFields): JsonType[] {
  const found = [type]
    .flat()
    .flatMap((one) => (typeof one === 'string' ? (typeNames.get(one.toLowerCase()) ?? []) : []));
  return found.includes('number') ? found.filter((one) => one !== 'integer') : found;
}

function inferredTypes(pieces: readonly JsonFields[], isExact: boolean): JsonType[] {
  const has = (...keywords: string[]) =>
    !isExact && pieces.some((piece) => keywords.some((keyword) => isFields(piece[keyword])));
  if (has('properties', 'additionalProperties', 'patternProperties', 'dependentSchemas')) return ['object'];
  if (has('items') || pieces.some(({ prefixItems }) => Array.isArray(prefixItems))) return ['array'];
  const values = pieces.map(listedValues).find((list) => list !== undefined) ?? [];
  const kinds = [...new Set(values.map(kindOf))];
  // If there are other numbers, integers count as numbers.
  return kinds.includes('number') ? kinds.filter((kind) => kind !== 'integer') : kinds;
}

function kindOf(given: unknown): JsonType {
  const value = plainNumbers(given);
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value as JsonType;
}

function listedValues(piece: JsonFields): readonly unknown[] | undefined {
  if (piece.const !== undefined) return [piece.const];
  return Array.isArray(piece.enum) && piece.enum.length > 0 ? piece.enum : undefined;
}

/**
 * Returns the values that all lists contain, by their text. YAML reads `1.0` or `no` as a different type than intended.
 */
function valuesOf(pieces: readonly JsonFields[]): Map<string, unknown> | undefined {
  let found: Map<string, unknown> | undefined;
  for (const piece of pieces) {
    const list = listedValues(piece)?.filter((value) => value !== null);
    if (!list || list.length === 0) continue;
    const own = new Map(list.map((value) => [textOf(value), value]));
    found = found ? new Map([...found].filter(([text]) => own.has(text))) : own;
  }
  return found;
}

function textOf(value: unknown): string {
  return typeof value === 'object' && value !== null && asText(value) === '' ? JSON.stringify(value) : asText(value);
}

function onlyOf(values: ReadonlyMap<string, unknown>, type: JsonType): Map<string, unknown> {
  const fits = (kind: JsonType) => type === 'any' || kind === type || (type === 'number' && kind === 'integer');
  return new Map([...values].filter(([, value]) => fits(kindOf(value))));
}

/** Merges enums of one type into one list. */
function joinValues(variants: readonly Variant[]): Variant[] {
  const joined: Variant[] = [];
  for (const variant of variants) {
    const isList = (one: Variant) => one.values !== undefined && one.keywords.size === 0 && one.type === variant.type;
    const before = isList(variant) ? joined.findIndex(isList) : -1;
    const known = joined[before];
    if (known === undefined) joined.push(variant);
    else joined[before] = { ...known, values: new Map([...(known.values ?? []), ...(variant.values ?? [])]) };
  }
  return joined;
}

function joinProperties(all: readonly unknown[]): Map<string, unknown> {
  const found = new Map<string, unknown[]>();
  for (const [name, schema] of all.flatMap(entriesOf)) found.set(name, [...(found.get(name) ?? []), schema]);
  return new Map([...found].map(([name, schemas]) => [name, joinSchemas(schemas)]));
}

function joinSchemas(schemas: readonly unknown[]): unknown {
  return schemas.length > 1 ? { allOf: schemas } : schemas[0];
}

/**
 * Returns the rules for unlisted properties. A part of `allOf` that lists only some of the properties is ignored: if it
 * is closed, it would forbid the properties of other parts; if it is open, it adds nothing to them.
 */
function otherProperties(
  pieces: readonly JsonFields[],
  properties: ReadonlyMap<string, unknown>,
): { free: unknown; isClosed: boolean } {
  const whole = pieces.filter((piece) => entriesOf(piece.properties).length === properties.size);
  const schemas = pieces.map(({ additionalProperties }) => additionalProperties).filter(isFields);
  const isOpen = whole.some(({ additionalProperties }) => additionalProperties === true);
  const patterns = pieces.flatMap(({ patternProperties }) => entriesOf(patternProperties).map(([, value]) => value));
  const hasPatterns = patterns.length > 0;
  const isClosed =
    !hasPatterns &&
    (whole.some(({ additionalProperties }) => additionalProperties === false) ||
      pieces.some(({ unevaluatedProperties }) => unevaluatedProperties === false));
  const isFree = hasPatterns || isOpen || (properties.size === 0 && !isClosed);
  const isOfPatterns = hasPatterns && pieces.some(({ additionalProperties }) => additionalProperties === false);
  const ofPatterns = isOfPatterns ? (patterns.length > 1 ? { anyOf: patterns } : patterns[0]) : undefined;
  return { free: schemas[0] ?? ofPatterns ?? (isFree ? true : undefined), isClosed };
}
