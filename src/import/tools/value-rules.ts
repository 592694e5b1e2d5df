import { numberWithDigits, plainNumbers } from '../../domain/json/json.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import { parsePattern } from '../../domain/schema/pattern-syntax.ts';
import { asText, field, isFields, type JsonFields, listOf } from '../document/lenient.ts';
import { plainText } from './texts.ts';

const mostValues = 100;
const longestValue = 100;
const longestPattern = 100;

/** Type names found in real documents, by JSON Schema type. */
const writtenTypes = {
  string: 'string date datetime date-time uuid text str file binary',
  integer: 'integer int int32 int64 long short',
  number: 'number float double decimal',
  boolean: 'boolean bool',
  array: 'array list',
  object: 'object map dict hash',
  null: 'null',
};
const types: ReadonlyMap<string, string> = new Map(
  Object.entries(writtenTypes).flatMap(([type, names]) => names.split(' ').map((name) => [name, type] as const)),
);

/** Returns the types of a schema in any dialect; missing types are inferred. */
export function typesOf(schema: JsonFields): { types: string[]; isNullable: boolean } {
  const given = [schema.type]
    .flat()
    .flatMap((type) => (typeof type === 'string' ? (types.get(type.toLowerCase()) ?? []) : []));
  const hasNull = given.includes('null');
  const found = [...new Set(given)].filter((type) => type !== 'null');
  const inferred = found.length > 0 || schema.type !== undefined ? found : inferredTypes(schema);
  const values = valuesOf(schema);
  const isOnlyNull = schema.type === undefined && values.length > 0 && values.every((value) => value === null);
  if (inferred.length === 0 && (hasNull || isOnlyNull)) return { types: ['null'], isNullable: false };
  const isNullable = hasNull || schema.nullable === true || schema['x-nullable'] === true;
  return { types: inferred, isNullable };
}

function inferredTypes(schema: JsonFields): string[] {
  const { properties, additionalProperties, patternProperties } = schema;
  if ([properties, additionalProperties, patternProperties].some(isFields)) return ['object'];
  if (schema.items !== undefined) return ['array'];
  const kinds = new Set(
    valuesOf(schema)
      .filter((value) => value !== null)
      .map((value) => typeof plainNumbers(value)),
  );
  const [kind] = kinds;
  if (kinds.size !== 1 || kind === undefined || kind === 'object') return [];
  return [kind];
}

function valuesOf({ const: only, enum: listed }: JsonFields): readonly unknown[] {
  return only === undefined ? listOf(listed) : [only];
}

/**
 * Returns the values that a schema lists, converted to its type. YAML reads `no` or `1.0` as a different type than the
 * schema declares.
 */
export function enumOf(schema: JsonFields, allowed: readonly string[]): JsonSchema {
  const listed = valuesOf(schema);
  if (listed.length === 0) return {};
  const values = listed.filter((value) => value !== null).map((value) => asType(value, allowed));
  if (values.length === 0 || values.includes(undefined)) return {};
  const distinct = [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
  return distinct.length > mostValues ? {} : { enum: distinct };
}

const longestName = 80;
const longestNames = 300;

/**
 * Returns the meanings of the listed values, such as `0 = Off, 1 = On`. Returns an empty text if they only repeat the
 * values.
 */
export function valueNames(schema: JsonFields, text: string): string {
  const plain = (value: unknown) =>
    asText(value)
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}]+/gu, '');
  const named = [...namesBeside(schema), ...namesWithin(schema)]
    .slice(0, mostValues)
    .map(({ value, names }) => {
      const written = names.map(asText).filter((name) => name !== '');
      const parts = [...new Set(written.map((name) => plainText(name, longestName)))];
      return { value: asText(value), name: parts.filter((part) => part !== '').join(': ') };
    })
    .filter(({ value, name }) => value !== '' && name !== '');
  const isSaid = named.every(({ value, name }) => plain(name) === plain(value) || text.includes(name));
  if (isSaid) return '';
  const all = named.map(({ value, name }) => `${value} = ${name}`);
  let kept = all;
  while (kept.join(', ').length > longestNames) kept = kept.slice(0, -1);
  return kept.length > 0 ? `Values: ${kept.join(', ')}${kept.length < all.length ? ', …' : ''}` : '';
}

type NamedValue = { value: unknown; names: unknown[] };

/** Reads generator extensions: a list in the order of the values, or a map from values to names. */
function namesBeside(schema: JsonFields): NamedValue[] {
  const lists = ['x-enum-varnames', 'x-enumNames', 'x-enum-descriptions', 'x-enumDescriptions'].map(
    (name) => schema[name],
  );
  return valuesOf(schema).map((value, at) => ({
    value,
    names: lists.map((list) => (Array.isArray(list) ? list[at] : field(list, asText(value)))),
  }));
}

/** Reads alternatives with one value each, and the Azure extension. */
function namesWithin({ oneOf, anyOf, 'x-ms-enum': azure }: JsonFields): NamedValue[] {
  const alternatives = [oneOf, anyOf].flatMap(listOf).filter(isFields);
  return [
    ...alternatives.flatMap((one) => {
      const [value, ...others] = valuesOf(one);
      return value === undefined || others.length > 0 ? [] : [{ value, names: [one.title, one.description] }];
    }),
    ...listOf(field(azure, 'values')).map((one) => ({
      value: field(one, 'value'),
      names: [field(one, 'name'), field(one, 'description')],
    })),
  ];
}

/** Converts a value to one of the types, or returns undefined. */
function asType(value: unknown, allowed: readonly string[]): unknown {
  if (allowed.length === 0 || allowed.some((type) => hasType(value, type))) return value;
  if (allowed.includes('string') && typeof value !== 'string' && asText(value) !== '') return asText(value);
  const number = typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? asNumber(value) : undefined;
  if (number !== undefined && ['number', 'integer'].some((type) => allowed.includes(type) && hasType(number, type)))
    return number;
  if (allowed.includes('boolean') && (value === 'true' || value === 'false')) return value === 'true';
  return undefined;
}

/** Parses a text as a number. Leading zeros, which JSON does not allow, are dropped. */
function asNumber(text: string): unknown {
  return numberWithDigits(text.replace(/^(-?)0+(?=\d)/, '$1'));
}

function hasType(given: unknown, type: string): boolean {
  const value = plainNumbers(given);
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isFields(value);
  if (type === 'integer') return Number.isInteger(value);
  if (type === 'number') return Number.isFinite(value);
  return typeof value === type;
}

const formats = new Set(
  'date date-time time uuid email uri ipv4 ipv6 byte binary password hostname duration url phone country currency'.split(
    ' ',
  ),
);

/** Returns limits and format. Numbers are limited to safe integers in any case. */
export function limitsOf(schema: JsonFields, allowed: readonly string[]): JsonSchema {
  const limits: JsonSchema = {};
  const format = typeof schema.format === 'string' ? schema.format.toLowerCase() : '';
  if (allowed.includes('string')) {
    if (formats.has(format)) limits.format = format;
    setPattern(limits, schema);
    setCount(limits, schema, 'minLength');
    setCount(limits, schema, 'maxLength');
  }
  if (allowed.includes('integer') || allowed.includes('number')) {
    setRange(limits, schema);
    const step = plainNumbers(schema.multipleOf);
    if (isBound(step) && Number(step) > 0) limits.multipleOf = step;
  }
  if (allowed.includes('array')) {
    setCount(limits, schema, 'minItems');
    setCount(limits, schema, 'maxItems');
  }
  if (allowed.includes('object')) {
    setCount(limits, schema, 'minProperties');
    setCount(limits, schema, 'maxProperties');
  }
  return limits;
}

/** Copies patterns that are short enough for tools/list, run in linear time, and are accepted by clients. */
function setPattern(limits: JsonSchema, { pattern }: JsonFields): void {
  if (typeof pattern !== 'string') return;
  // Surrounding slashes and doubled backslashes are mistakes that would reject every value.
  const isSlip = /^\/.*\/[a-z]*$|\\\\[dwsbDWSB.]/.test(pattern);
  const translated = pattern.length > longestPattern ? pattern : unicodePattern(pattern);
  const read = isSlip || translated.length > longestPattern ? undefined : parsePattern(translated);
  if (read && 'pattern' in read && read.pattern.isUnicode) limits.pattern = translated;
}

const posixClasses: ReadonlyMap<string, string> = new Map(
  Object.entries({
    alpha: 'a-zA-Z',
    digit: '0-9',
    alnum: 'a-zA-Z0-9',
    upper: 'A-Z',
    lower: 'a-z',
    space: String.raw`\s`,
    word: String.raw`\w`,
    xdigit: 'A-Fa-f0-9',
    blank: String.raw` \t`,
    punct: '!-\\/:-@\\[-`{-~',
  }),
);

const classPart = /\[:\w+:\]|\\[pP]\{[^}]*\}|\\[pP][A-Z]|\\.|./gsu;
const patternPart = /\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\[pP][A-Z]|\\.|\{\d*(?:,\d*)?\}|\(\?P<|./gsu;

/**
 * Converts a Ruby, Python, Go, or PCRE pattern, or one with unnecessary escapes, to ECMAScript with the u flag (JSON
 * Schema 2020-12, 6.4). Syntax without a counterpart is kept and makes the pattern invalid.
 */
function unicodePattern(pattern: string): string {
  const parts = [...pattern.matchAll(patternPart)].map(([part]) => part);
  // In ECMAScript, a class inside a class ends early, so a bracket after it is not a literal character.
  const isNested = parts.some((part) => part.length > 2 && /^\[.*(?<!\\)\[(?!:\w+:\])/s.test(part));
  const made = parts.map((part) => {
    if (part === String.raw`\A`) return '^';
    if (part === String.raw`\z` || part === String.raw`\Z`) return '$';
    if (part === '(?P<') return '(?<';
    if (part.startsWith('{,') && part.length > 3) return `{0${part.slice(1)}`;
    if (part.startsWith('[') && part.length > 1) return unicodeClass(part.slice(1, -1));
    if ('{}]'.includes(part) || part === '{}' || part === '{,}')
      return isNested ? part : part.replaceAll(/[{}\]]/g, '\\$&');
    return unicodeEscape(part, String.raw`^$\.*+?()[]{}|/`);
  });
  return made.join('');
}

/** Converts a character class. A hyphen next to a set such as `\w` is literal. */
function unicodeClass(inside: string): string {
  const [, not = '', given = ''] = /^(\^?)(.*)$/s.exec(inside) ?? [];
  const parts = [...given.matchAll(classPart)].map(([part]) => part);
  const isSet = (part: string | undefined) => part !== undefined && /^\\[dDwWsSpP]|^\[:/.test(part);
  const made = parts.map((part, at) => {
    if (part === '-' && at > 0 && at < parts.length - 1 && (isSet(parts[at - 1]) || isSet(parts[at + 1])))
      return String.raw`\-`;
    if (part === ']') return String.raw`\]`;
    return posixClasses.get(/^\[:(\w+):\]$/.exec(part)?.[1] ?? '') ?? unicodeEscape(part, String.raw`^$\.*+?()[]{}|/-`);
  });
  return `[${not}${made.join('')}]`;
}

/**
 * Returns an escape that the u flag allows. Letters and digits have their own rules; other characters need an escape
 * only if they are listed.
 */
function unicodeEscape(part: string, escaped: string): string {
  if (!part.startsWith('\\')) return part;
  const character = part.slice(1);
  if (/^[pP][A-Z]$/.test(character)) return `\\${character[0]}{${character[1]}}`;
  return escaped.includes(character) || /^[A-Za-z0-9]/.test(character) ? part : character;
}

function setCount(limits: JsonSchema, schema: JsonFields, keyword: string): void {
  const value = plainNumbers(schema[keyword]);
  if (Number.isSafeInteger(value) && Number(value) >= 0) limits[keyword] = value;
}

/** Copies numeric ranges. OpenAPI 3.0 and Swagger 2 write `exclusiveMinimum` as a flag next to `minimum`. */
function setRange(limits: JsonSchema, schema: JsonFields): void {
  for (const [keyword, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    const value = plainNumbers(schema[keyword]);
    const bound = plainNumbers(schema[exclusive]);
    if (isBound(value)) limits[bound === true ? exclusive : keyword] = value;
    else if (isBound(bound)) limits[exclusive] = bound;
  }
}

function isBound(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

/** Formats a short value for a description. Returns an empty text for missing and long values. */
export function exampleText(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length <= longestValue && !/[\n{<]/.test(text) && listOf(value).length <= 5 ? text : '';
}
