import { recordableFailure, type ToolFailure } from '@toolhost/errors/errors';
import { isRawNumber } from '@toolhost/json/json';
import { isAnyReadAs } from '../http/parameter-names.ts';
import {
  type ArrayFormat,
  encodeReserved,
  encodeText,
  escapeMultipartName,
  formatValue,
  getTextLength,
  hasControlCharacter,
  maxParameters,
  maxRequestTargetLength,
  percentEncode,
  toWireText,
  type WireText,
} from '../http/values.ts';
import type { WireArgument } from './wire-argument.ts';

/** A parameter of a query or a form. The written name and the text are percent-encoded unless the form is multipart. */
export type Parameter = readonly [name: string, text: string, writtenName: string];

/** The parameters of one query or form. */
export type ParameterList = {
  readonly list: Parameter[];
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
  remainingBytes: number;
  remainingNameBytes: number;
};

/** Maximum bytes of a form, without the separators of multipart. */
const maxFormBytes = 4 * 1024 * 1024;
/** Maximum bytes of the names in a form; each name counts once per argument. */
const maxNameBytes = 256 * 1024;
const namesTooLongMessage = `produces names of more than ${maxNameBytes} bytes in total; send fewer or shorter names`;
/** Maximum nesting of objects and arrays, if names show the nesting. */
const maxDepth = 20;

export function createParameterList(
  where: ParameterList['where'],
  arrayFormat: ArrayFormat,
  isEncoded = true,
): ParameterList {
  const remainingBytes = where === 'a URL' ? maxRequestTargetLength : maxFormBytes;
  return {
    list: [],
    where,
    arrayFormat,
    isEncoded,
    names: undefined,
    remainingBytes,
    remainingNameBytes: maxNameBytes,
  };
}

/** Formats the parameters as in a query or a form. A parameter without a name is the whole query. */
export function encodeParameters({ list }: ParameterList): string[] {
  return list.map(([, text, writtenName]) => (writtenName === '' ? text : `${writtenName}=${text}`));
}

/**
 * Adds the parameters of an argument: none for null or undefined, and for an empty array or object.
 * @throws ToolFailure invalid_arguments if they are too many or too long, or could be read as another parameter
 */
export function addParameters(target: ParameterList, argument: WireArgument, value: unknown): void {
  const { wireName, style, name } = argument;
  if (value === null || value === undefined) return;
  target.names = isContainer(value) ? new Map() : undefined;
  if (style === 'querystring')
    addParameter(target, argument, '', typeof value === 'string' ? value : JSON.stringify(value));
  else if (style === 'json') addParameter(target, argument, wireName, JSON.stringify(value));
  else if (!isContainer(value)) addParameter(target, argument, wireName, toWireText(name, value));
  else if (style === undefined) addUnstyled(target, argument, value);
  else if (isSeparated(style)) addParameter(target, argument, wireName, joinEntries(argument, value, target.isEncoded));
  else if (style === 'repeat') addRepeated(target, argument, value);
  else addNested({ target, argument, style }, wireName, value, 0);
  rejectReservedNames(target, argument);
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !isRawNumber(value);
}

/** Adds an argument without a style. */
function addUnstyled(target: ParameterList, argument: WireArgument, value: object): void {
  const { wireName, name } = argument;
  const key = target.arrayFormat === 'brackets' && Array.isArray(value) ? `${wireName}[]` : wireName;
  const isRepeated = Array.isArray(value) && target.arrayFormat !== 'comma';
  for (const item of isRepeated ? value : [value]) addParameter(target, argument, key, toWireText(name, item));
}

function addParameter(target: ParameterList, argument: WireArgument, name: string, text: WireText | undefined): void {
  if (text === undefined) return;
  if (target.list.length >= maxParameters)
    throw createArgumentFailure(
      argument,
      `produces more than ${maxParameters} parameters, the maximum of ${target.where}; send fewer`,
    );
  // This check comes before encoding, which never shortens a text.
  if (name.length + getTextLength(text) > target.remainingBytes)
    throw createArgumentFailure(argument, formatLengthProblem(target.where));
  const writtenName = target.names?.get(name) ?? getWrittenName(target, argument, name);
  const writtenText = target.isEncoded
    ? (argument.allowsReserved ? encodeReserved : encodeText)(text)
    : joinTexts(text);
  target.remainingBytes -= countBytes(writtenName, target) + countBytes(writtenText, target) + 2;
  if (target.remainingBytes < 0) throw createArgumentFailure(argument, formatLengthProblem(target.where));
  target.list.push([name, writtenText, writtenName]);
}

function joinTexts(text: WireText): string {
  return typeof text === 'string' ? text : text.join(',');
}

/**
 * Returns the written form of a new name of an argument.
 * @throws ToolFailure invalid_arguments if all names together are too long
 */
function getWrittenName(target: ParameterList, argument: WireArgument, name: string): string {
  if (name.length > target.remainingNameBytes) throw createArgumentFailure(argument, namesTooLongMessage);
  const encodedName = target.isEncoded ? percentEncode(name) : escapeMultipartName(name);
  target.remainingNameBytes -= countBytes(encodedName, target);
  if (target.remainingNameBytes < 0) throw createArgumentFailure(argument, namesTooLongMessage);
  target.names?.set(name, encodedName);
  return encodedName;
}

/** Returns the number of bytes of a text. Percent-encoded text is ASCII. */
function countBytes(text: string, { isEncoded }: ParameterList): number {
  return isEncoded ? text.length : Buffer.byteLength(text);
}

function formatLengthProblem(where: ParameterList['where']): string {
  if (where === 'a form') return `produces a form of more than ${maxFormBytes} bytes; send less`;
  return `produces a URL of more than ${maxRequestTargetLength} characters; send less, or use a tool that sends it in the body`;
}

const separators = { comma: ',', pipe: '|', space: ' ' } as const;

export function isSeparated(style: string | undefined): style is keyof typeof separators {
  return style !== undefined && Object.hasOwn(separators, style);
}

/**
 * Joins the entries of an array, or the names and values of an object, into one text.
 * @throws ToolFailure invalid_arguments if an entry contains the separator and is not percent-encoded
 */
export function joinEntries(argument: WireArgument, value: unknown, isEncoded: boolean): WireText | undefined {
  const style = argument.style as keyof typeof separators;
  const isObject = isContainer(value) && !Array.isArray(value);
  const texts = toWireText(argument.name, isObject ? getNamesAndValues(argument, value) : value);
  if (typeof texts !== 'object' || (style === 'comma' && isEncoded)) return texts;
  const separator = separators[style];
  const conflict = texts.find((text) => text.includes(separator));
  if (conflict !== undefined)
    throw createArgumentFailure(
      argument,
      `an entry contains ${JSON.stringify(separator)}, which separates the entries`,
    );
  return texts.join(separator);
}

/** Converts a value to one text, for styles that produce one. @throws ToolFailure invalid_arguments */
export function toStyledText(argument: WireArgument, value: unknown): string {
  if (argument.style === 'json') return JSON.stringify(value);
  const text = isSeparated(argument.style) ? joinEntries(argument, value, false) : formatValue(argument.name, value);
  return typeof text === 'object' ? text.join(',') : (text ?? '');
}

/** Returns alternating names and values, without those that are null. */
function getNamesAndValues(argument: WireArgument, value: object): unknown[] {
  return Object.entries(value).flatMap(([key, inner]) =>
    inner === null ? [] : [checkPropertyName(argument, key), toLeafValue(inner)],
  );
}

/** Converts a value that is sent as one text: an object or array becomes JSON. */
function toLeafValue(value: unknown): unknown {
  return isContainer(value) ? JSON.stringify(value) : value;
}

/** Adds an array as parameters with the same name, or an object as parameters named after its properties. */
function addRepeated(target: ParameterList, argument: WireArgument, value: object): void {
  const addEntries = (name: string, item: unknown) => {
    for (const entry of Array.isArray(item) ? item : [item])
      addParameter(target, argument, name, toWireText(argument.name, toLeafValue(entry)));
  };
  if (Array.isArray(value)) addEntries(argument.wireName, value);
  else for (const [key, inner] of Object.entries(value)) addEntries(checkPropertyName(argument, key), inner);
}

type Nesting = { target: ParameterList; argument: WireArgument; style: 'brackets' | 'indices' | 'deep' };

/** Adds the leaves of a value under names such as `a[b][0]`. */
function addNested(nesting: Nesting, name: string, value: unknown, depth: number): void {
  const { target, argument } = nesting;
  if (value === null) return;
  if (!isContainer(value)) {
    addParameter(target, argument, name, toWireText(argument.name, value));
    return;
  }
  if (depth === maxDepth) throw createArgumentFailure(argument, `is nested deeper than ${maxDepth} levels`);
  for (const [suffix, inner] of Array.isArray(value) ? withNameSuffixes(value, nesting.style) : Object.entries(value)) {
    const nameSuffix = Array.isArray(value) ? suffix : `[${checkPropertyName(argument, suffix)}]`;
    addNested(nesting, name + nameSuffix, inner, depth + 1);
  }
}

/**
 * Returns the entries of an array that are sent, each with the suffix of its name. With `deep`, an array of texts only
 * repeats its name.
 */
function withNameSuffixes(items: readonly unknown[], style: Nesting['style']): [mark: string, item: unknown][] {
  const sentItems = items.filter((item) => item !== null);
  const hasIndices = style === 'indices' || (style === 'deep' && sentItems.some(isContainer));
  const suffix = style === 'brackets' ? '[]' : '';
  return sentItems.map((item, index) => [hasIndices ? `[${index}]` : suffix, item]);
}

/** Returns a property name, which must not be readable as two names. @throws ToolFailure invalid_arguments */
function checkPropertyName(argument: WireArgument, key: string): string {
  if (key !== '' && !/[[\]]/.test(key) && !hasControlCharacter(key)) return key;
  throw createArgumentFailure(
    argument,
    'a property name here must not be empty or contain brackets or control characters',
  );
}

/** Rejects names that a receiver could read as another parameter. @throws ToolFailure invalid_arguments */
function rejectReservedNames({ names }: ParameterList, argument: WireArgument): void {
  const { reservedNames, wireName } = argument;
  if (!reservedNames || !isAnyReadAs(names ? [...names.keys()] : [wireName], reservedNames)) return;
  throw createArgumentFailure(argument, 'a property has the name of another parameter of the request; remove it');
}

/** Creates the error for an argument. The call record stores `message`, so it must not contain any part of a value. */
export function createArgumentFailure({ name }: { name: string }, message: string): ToolFailure {
  return recordableFailure('invalid_arguments', `${name}: ${message}`, [{ path: name, message }]);
}
