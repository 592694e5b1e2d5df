import { useState } from 'react';
import type { JsonObject } from '../../../api-types.ts';
import { parseJson } from '../../../exact-json.ts';
import { asList, asText, isObject } from '../../config.ts';

/** Argument of a tool, prepared for the form. */
export type Argument = {
  name: string;
  type: string;
  description: string;
  isRequired: boolean;
  options: unknown[] | undefined;
  defaultValue: unknown;
  isTextList: boolean;
};

/** Inputs by argument name. An argument without input is omitted from the call. */
export type ArgumentInputs = ReadonlyMap<string, string | string[] | undefined>;

/** Returns true for a complete JSON Schema, which has a `type`. A flat map of arguments contains only objects. */
export function isJsonSchema(schema: JsonObject): boolean {
  return ['type', '$schema', '$ref'].some((name) => typeof schema[name] === 'string');
}

/** Returns the arguments that an `input_schema` of either form declares, without constants. */
export function getArguments(schema: unknown): Argument[] {
  if (!isObject(schema)) return [];
  const isSchema = isJsonSchema(schema);
  const properties = isSchema ? schema.properties : schema;
  return Object.entries(isObject(properties) ? properties : {})
    .map(([name, definition]) => ({ name, field: isObject(definition) ? definition : {} }))
    .filter(({ field }) => field.value === undefined)
    .map(({ name, field }) => ({
      name,
      type: typeof field.type === 'string' ? field.type : 'object',
      description: asText(field.description),
      isRequired:
        (isSchema ? asList(schema.required).includes(name) : field.optional !== true) && field.default === undefined,
      options: getOptions(field),
      defaultValue: field.default,
      isTextList: field.type === 'array' && isObject(field.items) && field.items.type === 'string',
    }));
}

function getOptions({ enum: allowedValues, type }: JsonObject): unknown[] | undefined {
  if (Array.isArray(allowedValues)) return allowedValues;
  return type === 'boolean' ? [true, false] : undefined;
}

/**
 * Converts an input to a value. Undefined omits the argument. Text that does not parse stays text, and the service
 * reports why.
 */
function parseInput({ type, options }: Argument, input: string | string[] | undefined): unknown {
  if (input === undefined || input.length === 0) return undefined;
  if (Array.isArray(input)) return input;
  if (type === 'string' && !options?.some((option) => typeof option !== 'string')) return input;
  try {
    return parseJson(input);
  } catch {
    return input;
  }
}

/** Converts a recorded value to input text. */
function toInput({ isTextList }: Argument, value: unknown): string | string[] | undefined {
  if (isTextList && Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  return typeof value === 'string' || value === undefined ? value : JSON.stringify(value);
}

const omit = (names: readonly string[]) => (object: JsonObject) =>
  Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

/**
 * Manages the arguments of the form. Recorded arguments stay exactly as they were until the user edits them, including
 * values that input text cannot represent, such as an empty string or list.
 */
export function useArguments(args: readonly Argument[], recorded: JsonObject = {}) {
  const recordedValues = new Map(Object.entries(recorded));
  const [inputs, setInputs] = useState<ArgumentInputs>(
    () => new Map(args.map((argument) => [argument.name, toInput(argument, recordedValues.get(argument.name))])),
  );
  const [recordedArguments, setRecordedArguments] = useState(recorded);
  const values = args.map((argument) => [argument.name, parseInput(argument, inputs.get(argument.name))] as const);
  const hiddenNames = Object.keys(recordedArguments).filter((name) => !args.some((argument) => argument.name === name));
  return {
    inputs,
    values: {
      ...Object.fromEntries(values.filter(([, value]) => value !== undefined)),
      ...recordedArguments,
    } as JsonObject,
    /** Names of the recorded arguments that have no field. */
    hiddenNames,
    removeHidden: () => setRecordedArguments(omit(hiddenNames)),
    setInput(argument: string, value: string | string[] | undefined) {
      setInputs((current) => new Map(current).set(argument, value));
      setRecordedArguments(omit([argument]));
    },
  };
}
