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
  /** Whether texts are percent-encoded, so that a comma in one of them differs from one that joins them. */
  readonly isEncoded: boolean;
  /**
   * The names of the argument that is being added, and how they are written; thousands of pairs may share one. Undefined
   * for a single value, which has only the name of its argument.
   */
  names: Map<string, string> | undefined;
  /** How many more bytes it may get, and how many of them may be those of other names. */
  left: number;
  leftForNames: number;
};

/** Most bytes of a form, without what multipart puts between its parts. */
const mostOfForm = 4 * 1024 * 1024;
/** Most bytes of the names of a form, of which each counts once for each argument. */
const mostOfNames = 256 * 1024;
const tooLongNames = `makes names of more than ${mostOfNames} bytes together; send fewer or shorter ones`;
/** How deeply objects and arrays may lie inside one another where names show the nesting. */
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

/** The parameters as a query or a form has them; one without a name is all of the query. */
export function encodedPairs({ list }: Pairs): string[] {
  return list.map(([, text, writtenName]) => (writtenName === '' ? text : `${writtenName}=${text}`));
}

/**
 * Adds the parameters that an argument becomes: none for null or undefined, and for an empty array or object.
 * @throws ToolFailure invalid_arguments when they are too many or too long, or could be read as something else
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

/** An argument without a style. */
function addPlain(to: Pairs, argument: SentArgument, value: object): void {
  const { wireName, name } = argument;
  const key = to.arrayFormat === 'brackets' && Array.isArray(value) ? `${wireName}[]` : wireName;
  const isSplit = Array.isArray(value) && to.arrayFormat !== 'comma';
  for (const item of isSplit ? value : [value]) add(to, argument, key, wireText(name, item));
}

function add(to: Pairs, argument: SentArgument, name: string, text: WireText | undefined): void {
  if (text === undefined) return;
  if (to.list.length >= mostPairs)
    throw refusedArgument(argument, `makes more than ${mostPairs} parameters; ${to.where} has at most as many`);
  // Before anything is encoded, which makes no text shorter.
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

/** A new name of an argument as it is written. @throws ToolFailure invalid_arguments when names are too long together */
function nameOf(to: Pairs, argument: SentArgument, name: string): string {
  if (name.length > to.leftForNames) throw refusedArgument(argument, tooLongNames);
  const written = to.isEncoded ? encode(name) : quotedName(name);
  to.leftForNames -= bytesOf(written, to);
  if (to.leftForNames < 0) throw refusedArgument(argument, tooLongNames);
  to.names?.set(name, written);
  return written;
}

/** What is percent-encoded is ASCII. */
function bytesOf(text: string, { isEncoded }: Pairs): number {
  return isEncoded ? text.length : Buffer.byteLength(text);
}

function tooLong(where: Pairs['where']): string {
  if (where === 'a form') return `makes a form of more than ${mostOfForm} bytes; send less`;
  return `makes a URL of more than ${mostUrlLength} characters; send less, or use a tool that takes it in a body`;
}

const separators = { comma: ',', pipe: '|', space: ' ' } as const;

export function isSeparated(style: string | undefined): style is keyof typeof separators {
  return style !== undefined && Object.hasOwn(separators, style);
}

/**
 * The entries of an array, or the names and values of an object, as one text.
 * @throws ToolFailure invalid_arguments when one of them holds the separator and is not percent-encoded
 */
export function joinedText(argument: SentArgument, value: unknown, isEncoded: boolean): WireText | undefined {
  const style = argument.style as keyof typeof separators;
  const isObject = isContainer(value) && !Array.isArray(value);
  const texts = wireText(argument.name, isObject ? namesAndValues(argument, value) : value);
  if (typeof texts !== 'object' || (style === 'comma' && isEncoded)) return texts;
  const separator = separators[style];
  const found = texts.find((text) => text.includes(separator));
  if (found !== undefined)
    throw refusedArgument(argument, `an entry has ${JSON.stringify(separator)} in it, which separates the entries`);
  return texts.join(separator);
}

/** A value as one text, by a style that makes one. @throws ToolFailure invalid_arguments */
export function styledText(argument: SentArgument, value: unknown): string {
  if (argument.style === 'json') return JSON.stringify(value);
  const text = isSeparated(argument.style) ? joinedText(argument, value, false) : valueText(argument.name, value);
  return typeof text === 'object' ? text.join(',') : (text ?? '');
}

/** In turn, without those that are null. */
function namesAndValues(argument: SentArgument, value: object): unknown[] {
  return Object.entries(value).flatMap(([key, inner]) =>
    inner === null ? [] : [checkedKey(argument, key), leaf(inner)],
  );
}

/** A value inside one text or one parameter: what has entries of its own is written as JSON. */
function leaf(value: unknown): unknown {
  return isContainer(value) ? JSON.stringify(value) : value;
}

/** An array as parameters of the same name; an object as parameters of the names of its properties. */
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

/** The entries of an array that are sent, each with what its name gets. With `deep` texts only repeat their name. */
function marked(items: readonly unknown[], style: Nesting['style']): [mark: string, item: unknown][] {
  const sent = items.filter((item) => item !== null);
  const hasIndices = style === 'indices' || (style === 'deep' && sent.some(isContainer));
  const mark = style === 'brackets' ? '[]' : '';
  return sent.map((item, index) => [hasIndices ? `[${index}]` : mark, item]);
}

/** A property name that cannot be read as two. @throws ToolFailure invalid_arguments */
function checkedKey(argument: SentArgument, key: string): string {
  if (key !== '' && !/[[\]]/.test(key) && !hasControlCharacter(key)) return key;
  throw refusedArgument(argument, 'a property name here must not be empty or have brackets or control characters');
}

/** @throws ToolFailure invalid_arguments when a receiver could read one of the names as that of another parameter */
function refuseReserved({ names }: Pairs, argument: SentArgument): void {
  const { reserved, wireName } = argument;
  if (!reserved || !areReadAs(names ? [...names.keys()] : [wireName], reserved)) return;
  throw refusedArgument(argument, 'a property has the name of another parameter of the request; leave it out');
}

/** A refusal of one argument. `what` goes into the record too, so it holds nothing of a value. */
export function refusedArgument({ name }: { name: string }, what: string): ToolFailure {
  return plainFailure('invalid_arguments', `${name}: ${what}`, [{ path: name, message: what }]);
}
