import { useState } from 'react';
import type { JsonObject } from '../../../api-types.ts';
import { parseJson } from '../../../exact-json.ts';
import { asList, asText, isObject } from '../../config.ts';

/** Argument of a tool, prepared for the form. */
export type Argument = {
  name: string;
  type: string;
  text: string;
  isRequired: boolean;
  options: unknown[] | undefined;
  fallback: unknown;
  isTextList: boolean;
};

/** Input text by argument. An argument without input is omitted from the call. */
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
      text: asText(field.description),
      isRequired:
        (isSchema ? asList(schema.required).includes(name) : field.optional !== true) && field.default === undefined,
      options: Array.isArray(field.enum) ? field.enum : field.type === 'boolean' ? [true, false] : undefined,
      fallback: field.default,
      isTextList: field.type === 'array' && isObject(field.items) && field.items.type === 'string',
    }));
}

/**
 * Converts an input to a value. Undefined omits the argument. Text that does not parse stays text, and the service
 * reports why.
 */
function parseInput({ type, options }: Argument, typed: string | string[] | undefined): unknown {
  if (typed === undefined || typed.length === 0) return undefined;
  if (Array.isArray(typed)) return typed;
  if (type === 'string' && !options?.some((option) => typeof option !== 'string')) return typed;
  try {
    return parseJson(typed);
  } catch {
    return typed;
  }
}

/** Converts a recorded value to input text. */
function toInput({ isTextList }: Argument, value: unknown): string | string[] | undefined {
  const isList = isTextList && Array.isArray(value) && value.every((item) => typeof item === 'string');
  return isList ? value : typeof value === 'string' || value === undefined ? value : JSON.stringify(value);
}

const omit = (names: readonly string[]) => (all: JsonObject) =>
  Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name)));

/**
 * Manages the arguments of the form. Recorded arguments stay exactly as they were until the user edits them, including
 * values that input text cannot represent, such as an empty string or list.
 */
export function useArguments(args: readonly Argument[], recorded: JsonObject = {}) {
  const recordedValues = new Map(Object.entries(recorded));
  const [typed, setTyped] = useState<ArgumentInputs>(
    () => new Map(args.map((one) => [one.name, toInput(one, recordedValues.get(one.name))])),
  );
  const [recordedArguments, setRecordedArguments] = useState(recorded);
  const values = args.map((one) => [one.name, parseInput(one, typed.get(one.name))] as const);
  const hidden = Object.keys(recordedArguments).filter((name) => !args.some((one) => one.name === name));
  return {
    typed,
    values: {
      ...Object.fromEntries(values.filter(([, value]) => value !== undefined)),
      ...recordedArguments,
    } as JsonObject,
    /** Arguments of the recorded call that have no field. */
    hidden,
    removeHidden: () => setRecordedArguments(omit(hidden)),
    type(argument: string, value: string | string[] | undefined) {
      setTyped((before) => new Map(before).set(argument, value));
      setRecordedArguments(omit([argument]));
    },
  };
}
