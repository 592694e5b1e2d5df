/** Generates values that match a schema, and records which keywords applied at which position. */
import { isObject, isSameJson, type Json, type JsonObject, toList, toObject } from './json.ts';
import { makePatternText, UnsupportedPattern } from './pattern-text.ts';
import type { Random } from './random.ts';
import type { Check, Schemas } from './reader/schemas.ts';

/** A JSON value in which byte arrays represent file content. */
export type Value = null | boolean | number | string | Uint8Array | Value[] | { [name: string]: Value };

export type Context =
  | 'json'
  | 'path'
  | 'query'
  | 'header'
  | 'cookie'
  | 'form'
  | 'multipart'
  | 'bytes'
  | 'reserved'
  | 'token';

export type Options = {
  random: Random;
  context: Context;
  /** Share of the optional properties to include. */
  share: number;
  /** Index of the alternative to take in each union. */
  variant: number;
};

/** Keywords that applied at each position of a value, by JSON pointer. */
export type Trace = Map<string, JsonObject[]>;

export type GeneratedValue = { value: Value; trace: Trace };

export type ValueMaker = {
  /** Returns undefined if no matching value was found. */
  make(schema: JsonObject | boolean, options: Options): GeneratedValue | undefined;
};

/** Maximum depth of optional properties, and maximum depth of all values. */
const levels = { optional: 9, all: 18 };
const nodeBudget = 400;
const maxAttempts = 6;

const sampleTexts: Record<Context, readonly string[]> = {
  json: ['alpha', 'two words', 'ä "quoted" \\ text', 'a/b?c=d&e#f', '100%'],
  form: ['alpha', 'two words', 'ä&b=c', 'a+b', '50% off'],
  multipart: ['alpha', 'two words', 'ä&b=c', 'a+b'],
  query: ['alpha', 'two words', 'ä&b=c', 'a+b', 'x/y?z#w', '50% off', 'a:b@c'],
  path: ['alpha', 'two words', 'ä-b', 'a/b', '50%', 'a:b@c'],
  header: ['alpha', 'two words', 'a=b; c'],
  cookie: ['alpha', 'beta-1'],
  bytes: ['alpha'],
  // Values without list delimiters.
  token: ['alpha', 'ä&b=c', '50%'],
  // Values without the characters that end a pair (OpenAPI 3.1.1, Parameter Object, `allowReserved`).
  reserved: ['alpha', 'a/b:c', 'x@y!z', "it's;(1)"],
};

const samplesByFormat: Record<string, string> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T10:00:00Z',
  time: '10:00:00Z',
  duration: 'P1D',
  email: 'ada@example.com',
  uuid: '8c5f3c0e-5a8b-4b1e-9a57-0c8a3f6f2d11',
  uri: 'https://example.com/a?b=c',
  url: 'https://example.com/a?b=c',
  'uri-reference': '/a/b',
  ipv4: '192.0.2.7',
  ipv6: '2001:db8::7',
  hostname: 'host.example.com',
  byte: Buffer.from('audit of imports').toString('base64'),
};

export function createValueMaker(schemas: Schemas): ValueMaker {
  const checks = new WeakMap<JsonObject, Check>();
  const isValid = (schema: JsonObject | boolean, value: Value) => {
    if (typeof schema === 'boolean') return schema;
    const check = checks.get(schema) ?? schemas.createCheck(schema);
    checks.set(schema, check);
    return check(toPlain(value));
  };
  return {
    make(schema, options) {
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const share = attempt < maxAttempts - 1 ? options.share : 0;
        const variant = options.variant + Math.max(0, attempt - 2);
        const generated = tryMake(schemas, { ...options, share, variant }, schema);
        if (generated && isValid(schema, generated.value)) return generated;
      }
      return undefined;
    },
  };
}

/** Returns the value as JSON, with strings in place of bytes. */
export function toPlain(value: Value): Json {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1');
  if (Array.isArray(value)) return value.map(toPlain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toPlain(one)]));
}

class NoValue extends Error {}

/** Combination of all schemas that apply to one value. */
type Merged = { facets: JsonObject[]; types: string[]; properties: Map<string, Json[]>; required: Set<string> };

/** A value under construction. */
type BuildState = { schemas: Schemas; options: Options; trace: Trace; nodes: number };

function tryMake(schemas: Schemas, options: Options, schema: JsonObject | boolean): GeneratedValue | undefined {
  const state: BuildState = { schemas, options, trace: new Map(), nodes: 0 };
  try {
    return { value: make(state, schema, '', 0), trace: state.trace };
  } catch (error) {
    if (error instanceof NoValue) return undefined;
    throw error;
  }
}

function make(state: BuildState, schema: Json, pointer: string, level: number): Value {
  if (level > levels.all) throw new NoValue();
  state.nodes++;
  const merged = merge(expand(state, schema, 0));
  state.trace.set(pointer, merged.facets);
  const fixed = merged.facets.find((facet) => 'const' in facet);
  if (fixed) return fixed.const as Value;
  const listed = merged.facets.filter((facet) => Array.isArray(facet.enum)).map((facet) => toList(facet.enum));
  if (listed.length > 0) return pickListed(state, listed, merged.types);
  const type = pickType(state, merged);
  if (type === 'object') return makeObject(state, merged, pointer, level);
  if (type === 'array') return makeArray(state, merged, pointer, level);
  if (type === 'string') return makeString(state, merged, level);
  if (type === 'integer' || type === 'number') return makeNumber(state, merged, type);
  if (type === 'boolean') return state.options.random.chance(0.5);
  return null;
}

/** Returns the schema and all that apply with it. One alternative of each union is chosen. */
function expand(state: BuildState, schema: Json, steps: number): JsonObject[] {
  const resolved = state.schemas.resolve(schema as JsonObject | boolean);
  if (resolved === false || steps > 40) throw new NoValue();
  if (typeof resolved === 'boolean') return [{}];
  const { allOf, anyOf, if: condition, then, else: otherwise, dependentSchemas, ...own } = resolved;
  const { variant } = state.options;
  const facets = [own as JsonObject];
  for (const one of toList(allOf)) facets.push(...expand(state, one, steps + 1));
  const alternatives = toList(anyOf).filter((one) => !isNullOnly(state.schemas.resolve(one as JsonObject)));
  const chosen = alternatives[variant % Math.max(1, alternatives.length)] ?? toList(anyOf)[0];
  if (chosen !== undefined) facets.push(...expand(state, chosen, steps + 1));
  if (condition !== undefined && variant % 2 === 0) {
    facets.push(...expand(state, condition, steps + 1));
    if (then !== undefined) facets.push(...expand(state, then, steps + 1));
  } else if (otherwise !== undefined) facets.push(...expand(state, otherwise, steps + 1));
  for (const one of Object.values(toObject(dependentSchemas))) facets.push(...expand(state, one, steps + 1));
  return facets;
}

function pickListed(state: BuildState, lists: Json[][], allowed: readonly string[]): Value {
  const [first = [], ...others] = lists;
  const common = first
    .filter((value) => others.every((list) => list.some((other) => isSameJson(other, value))))
    .filter((value) => allowed.length === 0 || allowed.some((type) => isOfType(value, type)));
  const nonEmpty = common.filter((value) => value !== null && value !== '');
  if (common.length === 0) throw new NoValue();
  return state.options.random.pick(nonEmpty.length > 0 ? nonEmpty : common) as Value;
}

function pickType(state: BuildState, { types, facets, properties, required }: Merged): string {
  const nonNullTypes = types.filter((type) => type !== 'null');
  if (nonNullTypes.length > 0) return nonNullTypes[state.options.variant % nonNullTypes.length] as string;
  if (types.length > 0) return 'null';
  const has = (...names: string[]) => facets.some((facet) => names.some((name) => name in facet));
  if (properties.size > 0 || required.size > 0 || has('additionalProperties', 'patternProperties', 'x-properties'))
    return 'object';
  if (has('items', 'minItems')) return 'array';
  if (has('minimum', 'maximum', 'multipleOf')) return 'number';
  return 'string';
}

function makeObject(state: BuildState, merged: Merged, pointer: string, level: number): Value {
  const { random, share } = state.options;
  const value: { [name: string]: Value } = {};
  const put = (name: string, schema: Json) => {
    value[name] = make(state, schema, `${pointer}/${escapeToken(name)}`, level + 1);
  };
  for (const [name, propertySchemas] of merged.properties) {
    const isRequired = merged.required.has(name);
    const hasRoom = level < levels.optional && state.nodes < nodeBudget;
    if (!isRequired && !(hasRoom && random.chance(share))) continue;
    try {
      put(name, toAll(propertySchemas));
    } catch (error) {
      if (isRequired || !(error instanceof NoValue)) throw error;
    }
  }
  const free = getFreeKeys(merged.facets);
  for (const name of merged.required) if (!(name in value)) put(name, free.schema ?? true);
  const minimum = Math.max(0, ...merged.facets.map(({ minProperties }) => Number(minProperties ?? 0)));
  if (free.isAllowed && level < levels.optional && random.chance(share)) putFree(state, free, put);
  for (let more = 0; Object.keys(value).length < minimum && more < 20; more++) {
    const absent = [...merged.properties].find(([name]) => !(name in value));
    if (absent) put(absent[0], toAll(absent[1]));
    else put(`key_${more}`, free.schema ?? true);
  }
  return value;
}

function putFree({ options }: BuildState, free: FreeKeys, put: (name: string, schema: Json) => void): void {
  try {
    const name = free.pattern === undefined ? 'extra_key' : makePatternText(free.pattern, options.random);
    put(name, free.schema ?? true);
  } catch (error) {
    if (!(error instanceof NoValue || error instanceof UnsupportedPattern)) throw error;
  }
}

function makeArray(state: BuildState, { facets }: Merged, pointer: string, level: number): Value {
  const { random, context } = state.options;
  const minimum = Math.max(0, ...facets.map(({ minItems }) => Number(minItems ?? 0)));
  const maximum = Math.min(...facets.map(({ maxItems }) => Number(maxItems ?? Number.POSITIVE_INFINITY)));
  const items = facets.filter((facet) => 'items' in facet).map((facet) => facet.items as Json);
  const fixed = toList(facets.find((facet) => Array.isArray(facet.prefixItems))?.prefixItems);
  const targetLength =
    level >= levels.optional + 2 && context === 'json' ? minimum : Math.max(minimum, 1 + random.below(2), fixed.length);
  const isUnique = facets.some((facet) => facet.uniqueItems === true);
  const value: Value[] = [];
  for (let at = 0; at < Math.min(targetLength, maximum, 40); at++) {
    const one = make(state, fixed[at] ?? toAll(items), `${pointer}/${at}`, level + 1);
    const isRepeated = isUnique && value.some((other) => isSameJson(toPlain(other), toPlain(one)));
    if (!isRepeated) value.push(one);
    else if (value.length >= minimum) break;
  }
  return value;
}

function makeString(state: BuildState, { facets }: Merged, level: number): Value {
  const { random, context } = state.options;
  const minimum = Math.max(0, ...facets.map(({ minLength }) => Number(minLength ?? 0)));
  const maximum = Math.min(...facets.map(({ maxLength }) => Number(maxLength ?? Number.POSITIVE_INFINITY)));
  if (isBinary(facets, context, level)) return new TextEncoder().encode(`bytes ${random.below(1000)} \u0000é`);
  const pattern = facets.find((facet) => typeof facet.pattern === 'string')?.pattern;
  if (typeof pattern === 'string') {
    try {
      const generated = makePatternText(pattern, random);
      return generated.length < minimum ? makePatternText(pattern, random, minimum) : generated;
    } catch (error) {
      if (!(error instanceof UnsupportedPattern)) throw error;
      return pickFitting(state, pattern, minimum, maximum);
    }
  }
  const format = facets.find((facet) => typeof facet['x-format'] === 'string')?.['x-format'];
  const isBase64 = facets.some(({ contentEncoding }) => contentEncoding === 'base64');
  const formatSample = isBase64 ? samplesByFormat.byte : samplesByFormat[String(format)];
  const start = formatSample ?? random.pick(sampleTexts[context]);
  return start.padEnd(minimum, 'x').slice(0, maximum);
}

/** Returns a common string that matches a pattern for which no string can be generated. */
function pickFitting(state: BuildState, pattern: string, minimum: number, maximum: number): string {
  const candidates = [...sampleTexts[state.options.context], ...Object.values(samplesByFormat), 'a', '1', '10', 'A1'];
  const fitting = candidates.filter(
    (one) => one.length >= minimum && one.length <= maximum && new RegExp(pattern, 'u').test(one),
  );
  if (fitting.length === 0) throw new NoValue();
  return state.options.random.pick(fitting);
}

function makeNumber(state: BuildState, { facets }: Merged, type: string): Value {
  const { random } = state.options;
  const all = (name: string) => facets.map((facet) => facet[name]).filter((limit) => typeof limit === 'number');
  const low = Math.max(
    ...all('minimum'),
    ...all('exclusiveMinimum').map((limit) => limit + (type === 'integer' ? 1 : 0.5)),
  );
  const high = Math.min(
    ...all('maximum'),
    ...all('exclusiveMaximum').map((limit) => limit - (type === 'integer' ? 1 : 0.5)),
  );
  const [step = type === 'integer' ? 1 : 0] = all('multipleOf');
  const from = Number.isFinite(low) ? low : Number.isFinite(high) ? Math.min(1, high) : 1;
  const range = Math.min(Number.isFinite(high) ? high - from : 100, 100);
  const value = from + Math.max(0, Math.floor(random.next() * range));
  const stepped = step > 0 ? Math.ceil(value / step) * step : value;
  const bounded = stepped > high && step > 0 ? Math.floor(high / step) * step : stepped;
  return type === 'number' && step === 0 && range > 1 && random.chance(0.5) && bounded + 0.5 <= from + range
    ? bounded + 0.5
    : bounded;
}

/** Escapes a token of a JSON pointer (RFC 6901). */
export const escapeToken = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

const toAll = (schemas: readonly Json[]): Json =>
  schemas.length === 0 ? true : schemas.length === 1 ? (schemas[0] as Json) : { allOf: [...schemas] };

const isNullOnly = (schema: JsonObject | boolean) =>
  typeof schema === 'object' &&
  (schema.type === 'null' ||
    ('const' in schema && schema.const === null) ||
    (Array.isArray(schema.enum) && schema.enum.every((value) => value === null)));

export function isOfType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isObject(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

function merge(facets: JsonObject[]): Merged {
  let types: string[] | undefined;
  const properties = new Map<string, Json[]>();
  const required = new Set<string>();
  for (const facet of facets) {
    const ownTypes = (Array.isArray(facet.type) ? facet.type : facet.type === undefined ? [] : [facet.type]).map(
      String,
    );
    if (ownTypes.length > 0) types = types === undefined ? ownTypes : intersectTypes(types, ownTypes);
    for (const [name, schema] of Object.entries(toObject(facet.properties)))
      properties.set(name, [...(properties.get(name) ?? []), schema]);
    for (const name of toList(facet.required)) if (typeof name === 'string') required.add(name);
  }
  if (types?.length === 0) throw new NoValue();
  return { facets, types: types ?? [], properties, required };
}

const intersectTypes = (a: readonly string[], b: readonly string[]) =>
  a
    .map((type) =>
      b.includes(type)
        ? type
        : type === 'number' && b.includes('integer')
          ? 'integer'
          : type === 'integer' && b.includes('number')
            ? 'integer'
            : '',
    )
    .filter((type) => type !== '');

/** Additional keys that the document describes but does not name. */
type FreeKeys = { isAllowed: boolean; pattern?: string; schema?: Json };

export function getFreeKeys(facets: readonly JsonObject[]): FreeKeys {
  for (const { patternProperties } of facets) {
    const [first] = Object.entries(toObject(patternProperties));
    if (first) return { isAllowed: true, pattern: first[0], schema: first[1] };
  }
  const declared = facets.map(({ additionalProperties }) => additionalProperties).filter((one) => one !== undefined);
  if (declared.length === 0 || declared.includes(false)) return { isAllowed: false };
  return { isAllowed: true, schema: declared[0] as Json };
}

function isBinary(facets: readonly JsonObject[], context: Context, level: number): boolean {
  if (context === 'bytes') return level === 0;
  if (context !== 'multipart' || level > 2) return false;
  return facets.some(
    (facet) =>
      facet['x-format'] === 'binary' ||
      (typeof facet.contentMediaType === 'string' &&
        facet.contentEncoding === undefined &&
        !facet.contentMediaType.startsWith('text/')),
  );
}
