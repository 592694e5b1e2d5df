import { plainFailure, type ToolFailure } from '../../errors.ts';
import { areReadAs } from '../http/parameter-names.ts';
import {
  type ArrayFormat,
  encode,
  encodeReserved,
  encodeText,
  hasControlCharacter,
  lengthOf,
  mostPairs,
  mostUrlLength,
  quotedName,
  valueText,
  type WireText,
  wireText,
} from '../http/values.ts';
import { isRawNumber } from '../json/json.ts';
import type { SentArgument } from './sent-argument.ts';

/** A parameter of a query or a form. The written name and the text are percent-encoded unless the form is multipart. */
export type Pair = readonly [name: string, text: string, writtenName: string];

/** The parameters of one query or form. */
export type Pairs = {
  readonly list: Pair[];
  readonly where: 'a URL' | 'a form';
  /** Format of arrays whose argument has no style. */
  readonly arrayFormat: ArrayFormat;
  /** True if texts are percent-encoded, so a comma within a text differs from a comma that joins texts. */
  readonly isEncoded: boolean;
  /**
   * Names of the argument that is being added, and their written form; thousands of pairs may share one. Undefined for
   * a single value, which has only its argument's name.
   */
  names: Map<string, string> | undefined;
  /** Remaining bytes, and remaining bytes for additional names. */
  left: number;
  leftForNames: number;
};

/** Maximum bytes of a form, without the separators of multipart. */
const mostOfForm = 4 * 1024 * 1024;
/** Maximum bytes of the names in a form; each name counts once per argument. */
const mostOfNames = 256 * 1024;
const tooLongNames = `produces names of more than ${mostOfNames} bytes in total; send fewer or shorter names`;
/** Maximum nesting of objects and arrays, if names show the nesting. */
const deepest = 20;

export function pairsOf(where: Pairs['where'], arrayFormat: ArrayFormat, isEncoded = true): Pairs {
  const left = where === 'a URL' ? mostUrlLength : mostOfForm;
  return {
    list: [],
    where,
    arrayFormat,
    isEncoded,
    names: undefined,
    left,
    leftForNames: mostOfNames,
  };
}

/** Formats the parameters as in a query or a form. A parameter without a name is the whole query. */
export function encodedPairs({ list }: Pairs): string[] {
  return list.map(([, text, writtenName]) => (writtenName === '' ? text : `${writtenName}=${text}`));
}

/**
 * Adds the parameters of an argument: none for null or undefined, and for an empty array or object.
 * @throws ToolFailure invalid_arguments if they are too many or too long, or could be read as another parameter
 */
export function addPairs(to: Pairs, argument: SentArgument, value: unknown): void {
  const { wireName, style, name } = argument;
  if (value === null || value === undefined) return;
  to.names = isContainer(value) ? new Map() : undefined;
  if (style === 'querystring') add(to, argument, '', typeof value === 'string' ? value : JSON.stringify(value));
  else if (style === 'json') add(to, argument, wireName, JSON.stringify(value));
  else if (!isContainer(value)) add(to, argument, wireName, wireText(name, value));
  else if (style === undefined) addPlain(to, argument, value);
  else if (isSeparated(style)) add(to, argument, wireName, joinedText(argument, value, to.isEncoded));
  else if (style === 'repeat') addRepeated(to, argument, value);
  else addNested({ to, argument, style }, wireName, value, 0);
  refuseReserved(to, argument);
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !isRawNumber(value);
}

/** Adds an argument without a style. */
function addPlain(to: Pairs, argument: SentArgument, value: object): void {
  const { wireName, name } = argument;
  const key = to.arrayFormat === 'brackets' && Array.isArray(value) ? `${wireName}[]` : wireName;
  const isSplit = Array.isArray(value) && to.arrayFormat !== 'comma';
  for (const item of isSplit ? value : [value]) add(to, argument, key, wireText(name, item));
}

function add(to: Pairs, argument: SentArgument, name: string, text: WireText | undefined): void {
  if (text === undefined) return;
  if (to.list.length >= mostPairs)
    throw refusedArgument(
      argument,
      `produces more than ${mostPairs} parameters, the maximum of ${to.where}; send fewer`,
    );
  // This check comes before encoding, which never shortens a text.
  if (name.length + lengthOf(text) > to.left) throw refusedArgument(argument, tooLong(to.where));
  const writtenName = to.names?.get(name) ?? nameOf(to, argument, name);
  const written = to.isEncoded ? (argument.keepsReserved ? encodeReserved : encodeText)(text) : joined(text);
  to.left -= bytesOf(writtenName, to) + bytesOf(written, to) + 2;
  if (to.left < 0) throw refusedArgument(argument, tooLong(to.where));
  to.list.push([name, written, writtenName]);
}

function joined(text: WireText): string {
  return typeof text === 'string' ? text : text.join(',');
}

/**
 * Returns the written form of a new name of an argument.
 * @throws ToolFailure invalid_arguments if all names together are too long
 */
function nameOf(to: Pairs, argument: SentArgument, name: string): string {
  if (name.length > to.leftForNames) throw refusedArgument(argument, tooLongNames);
  const written = to.isEncoded ? encode(name) : quotedName(name);
  to.leftForNames -= bytesOf(written, to);
  if (to.leftForNames < 0) throw refusedArgument(argument, tooLongNames);
  to.names?.set(name, written);
  return written;
}

/** Returns the number of bytes of a text. Percent-encoded text is ASCII. */
function bytesOf(text: string, { isEncoded }: Pairs): number {
  return isEncoded ? text.length : Buffer.byteLength(text);
}

function tooLong(where: Pairs['where']): string {
  if (where === 'a form') return `produces a form of more than ${mostOfForm} bytes; send less`;
  return `produces a URL of more than ${mostUrlLength} characters; send less, or use a tool that sends it in the body`;
}

const separators = { comma: ',', pipe: '|', space: ' ' } as const;

export function isSeparated(style: string | undefined): style is keyof typeof separators {
  return style !== undefined && Object.hasOwn(separators, style);
}

/**
 * Joins the entries of an array, or the names and values of an object, into one text.
 * @throws ToolFailure invalid_arguments if an entry contains the separator and is not percent-encoded
 */
export function joinedText(argument: SentArgument, value: unknown, isEncoded: boolean): WireText | undefined {
  const style = argument.style as keyof typeof separators;
  const isObject = isContainer(value) && !Array.isArray(value);
  const texts = wireText(argument.name, isObject ? namesAndValues(argument, value) : value);
  if (typeof texts !== 'object' || (style === 'comma' && isEncoded)) return texts;
  const separator = separators[style];
  const found = texts.find((text) => text.includes(separator));
  if (found !== undefined)
    throw refusedArgument(argument, `an entry contains ${JSON.stringify(separator)}, which separates the entries`);
  return texts.join(separator);
}

/** Converts a value to one text, for styles that produce one. @throws ToolFailure invalid_arguments */
export function styledText(argument: SentArgument, value: unknown): string {
  if (argument.style === 'json') return JSON.stringify(value);
  const text = isSeparated(argument.style) ? joinedText(argument, value, false) : valueText(argument.name, value);
  return typeof text === 'object' ? text.join(',') : (text ?? '');
}

/** Returns alternating names and values, without those that are null. */
function namesAndValues(argument: SentArgument, value: object): unknown[] {
  return Object.entries(value).flatMap(([key, inner]) =>
    inner === null ? [] : [checkedKey(argument, key), leaf(inner)],
  );
}

/** Converts a value within a text or parameter: a value with entries of its own becomes JSON. */
function leaf(value: unknown): unknown {
  return isContainer(value) ? JSON.stringify(value) : value;
}

/** Adds an array as parameters with the same name, or an object as parameters named after its properties. */
function addRepeated(to: Pairs, argument: SentArgument, value: object): void {
  const addAll = (name: string, item: unknown) => {
    for (const one of Array.isArray(item) ? item : [item]) add(to, argument, name, wireText(argument.name, leaf(one)));
  };
  if (Array.isArray(value)) addAll(argument.wireName, value);
  else for (const [key, inner] of Object.entries(value)) addAll(checkedKey(argument, key), inner);
}

type Nesting = { to: Pairs; argument: SentArgument; style: 'brackets' | 'indices' | 'deep' };

/** Adds the leaves of a value under names such as `a[b][0]`. */
function addNested(nesting: Nesting, name: string, value: unknown, depth: number): void {
  const { to, argument } = nesting;
  if (value === null) return;
  if (!isContainer(value)) {
    add(to, argument, name, wireText(argument.name, value));
    return;
  }
  if (depth === deepest) throw refusedArgument(argument, `is nested deeper than ${deepest} levels`);
  for (const [mark, inner] of Array.isArray(value) ? marked(value, nesting.style) : Object.entries(value)) {
    const step = Array.isArray(value) ? mark : `[${checkedKey(argument, mark)}]`;
    addNested(nesting, name + step, inner, depth + 1);
  }
}

/**
 * Returns the entries of an array that are sent, each with the suffix of its name. With `deep`, an array of texts only
 * repeats its name.
 */
function marked(items: readonly unknown[], style: Nesting['style']): [mark: string, item: unknown][] {
  const sent = items.filter((item) => item !== null);
  const hasIndices = style === 'indices' || (style === 'deep' && sent.some(isContainer));
  const mark = style === 'brackets' ? '[]' : '';
  return sent.map((item, index) => [hasIndices ? `[${index}]` : mark, item]);
}

/** Returns a property name, which must not be readable as two names. @throws ToolFailure invalid_arguments */
function checkedKey(argument: SentArgument, key: string): string {
  if (key !== '' && !/[[\]]/.test(key) && !hasControlCharacter(key)) return key;
  throw refusedArgument(argument, 'a property name here must not be empty or contain brackets or control characters');
}

/** Refuses names that a receiver could read as another parameter. @throws ToolFailure invalid_arguments */
function refuseReserved({ names }: Pairs, argument: SentArgument): void {
  const { reserved, wireName } = argument;
  if (!reserved || !areReadAs(names ? [...names.keys()] : [wireName], reserved)) return;
  throw refusedArgument(argument, 'a property has the name of another parameter of the request; remove it');
}

/** Returns the refusal of an argument. `what` is stored in the call record, so it contains nothing of a value. */
export function refusedArgument({ name }: { name: string }, what: string): ToolFailure {
  return plainFailure('invalid_arguments', `${name}: ${what}`, [{ path: name, message: what }]);
}
