import { useState } from 'react';
import type { JsonObject } from '../../../api-types.ts';
import { parseJson } from '../../../exact-json.ts';
import { asText, getValueAt, isObject } from '../../config.ts';
import { hasOneType, isJsonSchema, toFlatMap } from '../../schema.ts';

/** Argument of a tool, or a field of one, prepared for the form. */
export type Argument = {
  name: string;
  /** Path from the argument, joined by dots: `address.city`. */
  path: string;
  type: string;
  description: string;
  isRequired: boolean;
  /** Value that is sent if nothing is entered: null for a required value that may be null. */
  emptyValue: null | undefined;
  options: unknown[] | undefined;
  defaultValue: unknown;
  /** Type of the entries of a list of texts or numbers. */
  itemType: string | undefined;
  /** Fields of an object. */
  fields: Argument[] | undefined;
};

/** Inputs by argument path. An argument without input is omitted from the call. */
export type ArgumentInputs = ReadonlyMap<string, string | string[] | undefined>;

/** Returns the arguments that an `input_schema` of either form declares, without constants and fixed ones. */
export function getArguments(schema: unknown, fixedNames: readonly string[] = []): Argument[] {
  if (!isObject(schema)) return [];
  const args = toArguments(isJsonSchema(schema) ? toFlatMap(schema) : schema, '');
  return args.filter(({ name }) => !fixedNames.includes(name));
}

function toArguments(definitions: JsonObject, prefix: string): Argument[] {
  return Object.entries(definitions)
    .map(([name, definition]) => ({ name, field: isObject(definition) ? definition : {} }))
    .filter(({ field }) => field.value === undefined)
    .map(({ name, field }) => {
      const isNeeded = field.optional !== true && field.default === undefined;
      const fields = field.type === 'object' ? toArguments(toFlatMap(field), `${prefix}${name}.`) : [];
      return {
        name,
        path: prefix + name,
        type: typeof field.type === 'string' && hasOneType(field) ? field.type : 'object',
        description: asText(field.description),
        isRequired: isNeeded && field.nullable !== true,
        emptyValue: isNeeded && field.nullable === true ? null : undefined,
        options: getOptions(field),
        defaultValue: field.default,
        itemType: getItemType(field),
        fields: fields.length > 0 && hasOneType(field) ? fields : undefined,
      };
    });
}

function getOptions({ enum: allowedValues, type }: JsonObject): unknown[] | undefined {
  if (Array.isArray(allowedValues)) return allowedValues;
  return type === 'boolean' ? [true, false] : undefined;
}

function getItemType({ type, items }: JsonObject): string | undefined {
  const itemType = type === 'array' && isObject(items) ? asText(items.type) : '';
  return ['string', 'number', 'integer'].includes(itemType) ? itemType : undefined;
}

/** Converts text to a value. Text that does not parse stays text, and the service reports why. */
function parseText(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

/** Returns the value of an argument. Undefined omits it. */
function getValue(argument: Argument, inputs: ArgumentInputs): unknown {
  const { type, options, itemType, emptyValue, fields, isRequired } = argument;
  if (fields) {
    const entries = fields.map((field) => [field.name, getValue(field, inputs)] as const);
    if (!isRequired && entries.every(([, value]) => value === undefined || value === null)) return emptyValue;
    return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  }
  const input = inputs.get(argument.path);
  if (input === undefined || input.length === 0) return emptyValue;
  if (Array.isArray(input)) return itemType === 'string' ? input : input.map(parseText);
  if (type === 'string' && !options?.some((option) => typeof option !== 'string')) return input;
  return parseText(input);
}

/** Returns the paths of required arguments without a value. Fields of an absent object are not missing. */
export function findMissing(args: readonly Argument[], values: JsonObject): string[] {
  return args.flatMap(({ name, path, fields, isRequired }) => {
    const value = getValueAt(values, [name]);
    if (fields && isObject(value)) return findMissing(fields, value);
    return isRequired && value === undefined ? [path] : [];
  });
}

/** Returns the input texts of a recorded value, by path. */
function toInputs({ path, fields, itemType }: Argument, value: unknown): [string, string | string[] | undefined][] {
  if (fields) return fields.flatMap((field) => toInputs(field, getValueAt(value, [field.name])));
  if (itemType !== undefined && Array.isArray(value) && value.every((item) => typeof item !== 'object'))
    return [[path, value.map(asText)]];
  return [[path, typeof value === 'string' || value === undefined ? value : JSON.stringify(value)]];
}

/** Returns the argument without its fields, as JSON, if they cannot hold the recorded value. */
function toRecorded(argument: Argument, value: unknown): Argument {
  const canHold = ({ fields }: Argument, held: unknown): boolean =>
    held === undefined ||
    !fields ||
    (isObject(held) &&
      Object.entries(held).every(([name, inner]) =>
        fields.some((field) => field.name === name && canHold(field, inner)),
      ));
  return canHold(argument, value) ? argument : { ...argument, fields: undefined };
}

const omit = (names: readonly string[]) => (object: JsonObject) =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

/**
 * Manages the arguments of the form. Recorded arguments stay exactly as they were until the user edits them, including
 * values that input text cannot represent, such as an empty string or list.
 */
export function useArguments(declared: readonly Argument[], recorded: JsonObject = {}) {
  const args = declared.map((argument) => toRecorded(argument, getValueAt(recorded, [argument.name])));
  const [inputs, setInputs] = useState<ArgumentInputs>(
    () => new Map(args.flatMap((argument) => toInputs(argument, getValueAt(recorded, [argument.name])))),
  );
  const [recordedArguments, setRecordedArguments] = useState(recorded);
  const values = args.map((argument) => [argument.name, getValue(argument, inputs)] as const);
  const hiddenNames = Object.keys(recordedArguments).filter((name) => !args.some((argument) => argument.name === name));
  return {
    args,
    inputs,
    values: {
      ...Object.fromEntries(values.filter(([, value]) => value !== undefined)),
      ...recordedArguments,
    } as JsonObject,
    /** Names of the recorded arguments that have no field. */
    hiddenNames,
    removeHidden: () => setRecordedArguments(omit(hiddenNames)),
    /** Sets the input of an argument, or of a field at `path` of it. */
    setInput({ name }: Argument, path: string, value: string | string[] | undefined) {
      setInputs((current) => new Map(current).set(path, value));
      setRecordedArguments(omit([name]));
    },
  };
}
