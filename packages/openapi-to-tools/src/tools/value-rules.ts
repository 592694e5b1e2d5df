import { toExactNumber, toPlainNumbers } from '@toolhost/json/json';
import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import { parsePattern } from '@toolhost/json-schema/pattern-syntax';
import { getField, isFields, type JsonFields, toList, toText } from '../document/lenient.ts';
import { toPlainText } from './texts.ts';

const maxValues = 100;
const maxValueLength = 100;
const maxPatternLength = 100;

/** Type names found in real documents, by JSON Schema type. */
const typeAliases = {
  string: 'string date datetime date-time uuid text str file binary',
  integer: 'integer int int32 int64 long short',
  number: 'number float double decimal',
  boolean: 'boolean bool',
  array: 'array list',
  object: 'object map dict hash',
  null: 'null',
};
const typeByAlias: ReadonlyMap<string, string> = new Map(
  Object.entries(typeAliases).flatMap(([type, names]) => names.split(' ').map((name) => [name, type] as const)),
);

/** Returns the types of a schema in any dialect; missing types are inferred. */
export function getTypes(schema: JsonFields): { types: string[]; isNullable: boolean } {
  const declaredTypes = [schema.type]
    .flat()
    .flatMap((type) => (typeof type === 'string' ? (typeByAlias.get(type.toLowerCase()) ?? []) : []));
  const hasNull = declaredTypes.includes('null');
  const nonNullTypes = [...new Set(declaredTypes)].filter((type) => type !== 'null');
  const effectiveTypes = nonNullTypes.length > 0 || schema.type !== undefined ? nonNullTypes : inferTypes(schema);
  const values = getValues(schema);
  const allowsOnlyNull = schema.type === undefined && values.length > 0 && values.every((value) => value === null);
  if (effectiveTypes.length === 0 && (hasNull || allowsOnlyNull)) return { types: ['null'], isNullable: false };
  const isNullable = hasNull || schema.nullable === true || schema['x-nullable'] === true;
  return { types: effectiveTypes, isNullable };
}

function inferTypes(schema: JsonFields): string[] {
  const { properties, additionalProperties, patternProperties } = schema;
  if ([properties, additionalProperties, patternProperties].some(isFields)) return ['object'];
  if (schema.items !== undefined) return ['array'];
  const kinds = new Set(
    getValues(schema)
      .filter((value) => value !== null)
      .map((value) => typeof toPlainNumbers(value)),
  );
  const [kind] = kinds;
  if (kinds.size !== 1 || kind === undefined || kind === 'object') return [];
  return [kind];
}

function getValues({ const: constValue, enum: listed }: JsonFields): readonly unknown[] {
  return constValue === undefined ? toList(listed) : [constValue];
}

/**
 * Returns the values that a schema lists, converted to its type. YAML reads `no` or `1.0` as a different type than the
 * schema declares.
 */
export function getEnum(schema: JsonFields, allowed: readonly string[]): JsonSchema {
  const listed = getValues(schema);
  if (listed.length === 0) return {};
  const values = listed.filter((value) => value !== null).map((value) => toType(value, allowed));
  if (values.length === 0 || values.includes(undefined)) return {};
  const distinctValues = [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
  return distinctValues.length > maxValues ? {} : { enum: distinctValues };
}

const maxNameLength = 80;
const maxNamesLength = 300;

/**
 * Returns the meanings of the listed values, such as `0 = Off, 1 = On`. Returns an empty text if they only repeat the
 * values.
 */
export function describeValues(schema: JsonFields, text: string): string {
  const normalize = (value: unknown) =>
    toText(value)
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}]+/gu, '');
  const namedValues = [...readExtensionNames(schema), ...readAlternativeNames(schema)]
    .slice(0, maxValues)
    .map(({ value, names }) => {
      const rawNames = names.map(toText).filter((name) => name !== '');
      const distinctNames = [...new Set(rawNames.map((name) => toPlainText(name, maxNameLength)))];
      return { value: toText(value), name: distinctNames.filter((name) => name !== '').join(': ') };
    })
    .filter(({ value, name }) => value !== '' && name !== '');
  const isRedundant = namedValues.every(
    ({ value, name }) => normalize(name) === normalize(value) || text.includes(name),
  );
  if (isRedundant) return '';
  const entries = namedValues.map(({ value, name }) => `${value} = ${name}`);
  let shown = entries;
  while (shown.join(', ').length > maxNamesLength) shown = shown.slice(0, -1);
  return shown.length > 0 ? `Values: ${shown.join(', ')}${shown.length < entries.length ? ', …' : ''}` : '';
}

type NamedValue = { value: unknown; names: unknown[] };

/** Reads generator extensions: a list in the order of the values, or a map from values to names. */
function readExtensionNames(schema: JsonFields): NamedValue[] {
  const lists = ['x-enum-varnames', 'x-enumNames', 'x-enum-descriptions', 'x-enumDescriptions'].map(
    (name) => schema[name],
  );
  return getValues(schema).map((value, index) => ({
    value,
    names: lists.map((list) => (Array.isArray(list) ? list[index] : getField(list, toText(value)))),
  }));
}

/** Reads alternatives with one value each, and the Azure extension. */
function readAlternativeNames({ oneOf, anyOf, 'x-ms-enum': azure }: JsonFields): NamedValue[] {
  const alternatives = [oneOf, anyOf].flatMap(toList).filter(isFields);
  return [
    ...alternatives.flatMap((alternative) => {
      const [value, ...otherValues] = getValues(alternative);
      return value === undefined || otherValues.length > 0
        ? []
        : [{ value, names: [alternative.title, alternative.description] }];
    }),
    ...toList(getField(azure, 'values')).map((entry) => ({
      value: getField(entry, 'value'),
      names: [getField(entry, 'name'), getField(entry, 'description')],
    })),
  ];
}

/** Converts a value to one of the types, or returns undefined. */
function toType(value: unknown, allowed: readonly string[]): unknown {
  if (allowed.length === 0 || allowed.some((type) => hasType(value, type))) return value;
  if (allowed.includes('string') && typeof value !== 'string' && toText(value) !== '') return toText(value);
  const number = typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? parseNumber(value) : undefined;
  if (number !== undefined && ['number', 'integer'].some((type) => allowed.includes(type) && hasType(number, type)))
    return number;
  if (allowed.includes('boolean') && (value === 'true' || value === 'false')) return value === 'true';
  return undefined;
}

/** Parses a text as a number. Leading zeros, which JSON does not allow, are dropped. */
function parseNumber(text: string): unknown {
  return toExactNumber(text.replace(/^(-?)0+(?=\d)/, '$1'));
}

function hasType(input: unknown, type: string): boolean {
  const value = toPlainNumbers(input);
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

/** Returns the limits and the format of a schema. Leaves out limits beyond the safe integers, which every number meets. */
export function getLimits(schema: JsonFields, allowed: readonly string[]): JsonSchema {
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
    const step = toPlainNumbers(schema.multipleOf);
    if (isSafeBound(step) && Number(step) > 0) limits.multipleOf = step;
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
  const isMistake = /^\/.*\/[a-z]*$|\\\\[dwsbDWSB.]/.test(pattern);
  const translated = pattern.length > maxPatternLength ? pattern : toUnicodePattern(pattern);
  const parsed = isMistake || translated.length > maxPatternLength ? undefined : parsePattern(translated);
  if (parsed && 'pattern' in parsed && parsed.pattern.isUnicode) limits.pattern = translated;
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

/** Match the next token of a pattern, and of the members of a character class. */
const classTokenPattern = /\[:\w+:\]|\\[pP]\{[^}]*\}|\\[pP][A-Z]|\\.|./gsu;
const patternTokenPattern =
  /\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\\[pP]\{[^}]*\}|\\[pP][A-Z]|\\.|\{\d*(?:,\d*)?\}|\(\?P<|./gsu;

/**
 * Converts a Ruby, Python, Go, or PCRE pattern to ECMAScript with the u flag, which forbids unnecessary escapes (JSON
 * Schema 2020-12, 6.4). Syntax without a counterpart stays unchanged and makes the pattern invalid.
 */
function toUnicodePattern(pattern: string): string {
  const tokens = [...pattern.matchAll(patternTokenPattern)].map(([token]) => token);
  // In ECMAScript, a class inside a class ends early, so a bracket after it is not a literal character.
  const isNested = tokens.some((token) => token.length > 2 && /^\[.*(?<!\\)\[(?!:\w+:\])/s.test(token));
  const converted = tokens.map((token) => {
    if (token === String.raw`\A`) return '^';
    if (token === String.raw`\z` || token === String.raw`\Z`) return '$';
    if (token === '(?P<') return '(?<';
    if (token.startsWith('{,') && token.length > 3) return `{0${token.slice(1)}`;
    if (token.startsWith('[') && token.length > 1) return toUnicodeClass(token.slice(1, -1));
    if ('{}]'.includes(token) || token === '{}' || token === '{,}')
      return isNested ? token : token.replaceAll(/[{}\]]/g, '\\$&');
    return toUnicodeEscape(token, String.raw`^$\.*+?()[]{}|/`);
  });
  return converted.join('');
}

/** Converts a character class. A hyphen next to a set such as `\w` is literal. */
function toUnicodeClass(classBody: string): string {
  const [, negation = '', members = ''] = /^(\^?)(.*)$/s.exec(classBody) ?? [];
  const tokens = [...members.matchAll(classTokenPattern)].map(([token]) => token);
  const isSet = (token: string | undefined) => token !== undefined && /^\\[dDwWsSpP]|^\[:/.test(token);
  const converted = tokens.map((token, i) => {
    if (token === '-' && i > 0 && i < tokens.length - 1 && (isSet(tokens[i - 1]) || isSet(tokens[i + 1])))
      return String.raw`\-`;
    if (token === ']') return String.raw`\]`;
    return (
      posixClasses.get(/^\[:(\w+):\]$/.exec(token)?.[1] ?? '') ?? toUnicodeEscape(token, String.raw`^$\.*+?()[]{}|/-`)
    );
  });
  return `[${negation}${converted.join('')}]`;
}

/**
 * Returns an escape that the u flag allows. Letters and digits have their own rules; other characters need an escape
 * only if they are listed.
 */
function toUnicodeEscape(token: string, escaped: string): string {
  if (!token.startsWith('\\')) return token;
  const character = token.slice(1);
  if (/^[pP][A-Z]$/.test(character)) return `\\${character[0]}{${character[1]}}`;
  return escaped.includes(character) || /^[A-Za-z0-9]/.test(character) ? token : character;
}

function setCount(limits: JsonSchema, schema: JsonFields, keyword: string): void {
  const value = toPlainNumbers(schema[keyword]);
  if (Number.isSafeInteger(value) && Number(value) >= 0) limits[keyword] = value;
}

/** Copies numeric ranges. OpenAPI 3.0 and Swagger 2 write `exclusiveMinimum` as a flag next to `minimum`. */
function setRange(limits: JsonSchema, schema: JsonFields): void {
  for (const [keyword, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    const value = toPlainNumbers(schema[keyword]);
    const bound = toPlainNumbers(schema[exclusive]);
    if (isSafeBound(value)) limits[bound === true ? exclusive : keyword] = value;
    else if (isSafeBound(bound)) limits[exclusive] = bound;
  }
}

function isSafeBound(value: unknown): boolean {
  return typeof value === 'number' && Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

/** Formats a short value for a description. Returns an empty text for missing and long values. */
export function formatExample(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length <= maxValueLength && !/[\n{<]/.test(text) && toList(value).length <= 5 ? text : '';
}
