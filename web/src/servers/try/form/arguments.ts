import type { JsonObject } from '../../../answers.ts';
import { parseJson } from '../../../exact-json.ts';
import { isObject } from '../../config.ts';

/** One argument of a tool, as the form needs it. */
export type Argument = {
  name: string;
  type: string;
  text: string;
  isRequired: boolean;
  options: unknown[] | undefined;
  fallback: unknown;
  isTextList: boolean;
};

/** The typed texts, by argument; an argument without an entry is left out of the call. */
export type Typed = { [name: string]: string | string[] | undefined };

/** A whole JSON Schema has a `type`; a flat map of arguments only holds objects. */
export function isJsonSchema(schema: JsonObject): boolean {
  return ['type', '$schema', '$ref'].some((name) => typeof schema[name] === 'string');
}

/** The arguments that an `input_schema` declares, in either of its forms, without constants. */
export function argumentsOf(schema: unknown): Argument[] {
  if (!isObject(schema)) return [];
  const isWhole = isJsonSchema(schema);
  const properties = isWhole ? (isObject(schema.properties) ? schema.properties : {}) : schema;
  const required = isWhole && Array.isArray(schema.required) ? schema.required : [];
  const isGiven = ([, field]: [string, unknown]) => !isObject(field) || field.value === undefined;
  return Object.entries(properties)
    .filter(isGiven)
    .map(([name, given]) => {
      const field = isObject(given) ? given : {};
      return {
        name,
        type: typeof field.type === 'string' ? field.type : 'object',
        text: typeof field.description === 'string' ? field.description : '',
        isRequired: (isWhole ? required.includes(name) : field.optional !== true) && field.default === undefined,
        options: Array.isArray(field.enum) ? field.enum : field.type === 'boolean' ? [true, false] : undefined,
        fallback: field.default,
        isTextList: field.type === 'array' && isObject(field.items) && field.items.type === 'string',
      };
    });
}

function typedValue(argument: Argument, typed: string): unknown {
  if (argument.type === 'string' && !argument.options?.some((option) => typeof option !== 'string')) return typed;
  try {
    return parseJson(typed);
  } catch {
    return typed;
  }
}

/** Recorded arguments as texts of the form; those that the form does not have are left out. */
export function typedOf(args: readonly Argument[], recorded: JsonObject): Typed {
  const entries = args.flatMap(({ name, isTextList }) => {
    const value = Object.hasOwn(recorded, name) ? recorded[name] : undefined;
    if (value === undefined) return [];
    const isList = isTextList && Array.isArray(value) && value.every((item) => typeof item === 'string');
    return [[name, isList ? (value as string[]) : typeof value === 'string' ? value : JSON.stringify(value)] as const];
  });
  return Object.fromEntries(entries);
}

/** The typed arguments as values. Text that cannot be read stays text, and the service reports what is allowed. */
export function valuesOf(args: readonly Argument[], typed: Typed): JsonObject {
  const values: JsonObject = {};
  for (const argument of args) {
    const entry = Object.hasOwn(typed, argument.name) ? typed[argument.name] : undefined;
    if (entry === undefined || entry === '' || (Array.isArray(entry) && entry.length === 0)) continue;
    values[argument.name] = Array.isArray(entry) ? entry : typedValue(argument, entry);
  }
  return values;
}
