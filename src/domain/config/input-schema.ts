import { z } from 'zod';
import { plainNumbers } from '../json/json.ts';
import { unfilledPlaceholders } from '../mistakes/literal-text.ts';
import { unknownRequired } from '../mistakes/required-names.ts';
import { addIssues, type ProblemList, shown } from '../problems/problems.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { checkSchema, depthProblem } from '../schema/schema-rules.ts';
import { type Argument, type ArgumentLocation, argumentLocations } from './sending/argument.ts';
import {
  hasOwnKeyword,
  hasWireKeyword,
  type WireFields,
  wireFields,
  wireKeywords,
  withoutOwnKeywords,
} from './sending/wire-fields.ts';

/** The `input_schema` of a tool: a flat map of argument name to field definition, or a JSON Schema object. */
export type InputSchema = Record<string, unknown>;

export const argumentNamePattern = /^[A-Za-z_][A-Za-z0-9_.\-[\]]{0,63}$/;
export const maxArguments = 100;

const fieldTypes = ['string', 'number', 'integer', 'boolean', 'array', 'object'] as const;

const keywords = {
  type: z.enum(fieldTypes).describe('JSON type of the argument.'),
  description: z.string().max(2000).optional().describe('What the argument means, for the model.'),
  enum: z.array(z.unknown()).min(1).max(500).optional().describe('The only values allowed.'),
  default: z.unknown().optional().describe('Sent when the caller leaves the argument out.'),
  minimum: z.number().optional().describe('Smallest number allowed.'),
  maximum: z.number().optional().describe('Largest number allowed.'),
  minLength: z.int().min(0).optional().describe('Fewest characters allowed.'),
  maxLength: z.int().min(0).optional().describe('Most characters allowed.'),
  pattern: z
    .string()
    .max(1000)
    .optional()
    .describe(
      'Regular expression of ECMAScript that is found in the text; ^ and $ make it the whole text. No look around, no references.',
    ),
  format: z.string().max(50).optional().describe('A hint such as date, uuid or email.'),
  examples: z.array(z.unknown()).max(20).optional().describe('Sample values for the model.'),
  required: z.array(z.string()).max(100).optional().describe('Properties of an object that must be present.'),
};

/** A definition inside another one: of the entries of an array, or of a property of an object. */
const nestedSchema: z.ZodType = z.strictObject({
  ...keywords,
  items: z.lazy(() => nestedSchema.optional()),
  properties: z.lazy(() => z.record(z.string(), nestedSchema).optional()),
});

/** Field definition of spec 2.4, with the optional keywords of JSON Schema that are safe to evaluate for strangers. */
export const fieldSchema = z.strictObject({
  ...keywords,
  items: nestedSchema.optional().describe('Definition of the entries of an array.'),
  properties: z.record(z.string(), nestedSchema).optional().describe('Definitions of the properties of an object.'),
  optional: z.boolean().optional().describe('When true the caller may leave the argument out.'),
  in: z
    .enum(argumentLocations)
    .optional()
    .describe('Where the argument goes, overruling the method: path, query, header or body.'),
  ...wireKeywords,
  'x-mcp-header': z.string().optional().describe('Header suffix under which modern MCP clients mirror this argument.'),
});

type Field = z.infer<typeof fieldSchema>;

/** A JSON Schema says `"type": "object"`; in a flat map every value, also one named `type`, is an object. */
export function isJsonSchemaForm(schema: InputSchema): boolean {
  return typeof schema.type === 'string' || typeof schema.$schema === 'string' || typeof schema.$ref === 'string';
}

/** Adds everything wrong with an `input_schema`; paths are relative to it. */
export function checkInputSchema(exact: InputSchema, problems: ProblemList): void {
  const tooDeep = depthProblem(exact);
  if (tooDeep) {
    problems.add(() => tooDeep);
    return;
  }
  // The rules see ordinary numbers; the digits that are stored and sent stay.
  const schema = plainNumbers(exact) as InputSchema;
  const names = argumentNames(schema);
  if (names.length > maxArguments) {
    const message = `found ${names.length} arguments; allowed: at most ${maxArguments}`;
    problems.add(() => ({ path: '', message }));
    return;
  }
  if (isJsonSchemaForm(schema)) {
    checkSchema(toJsonSchema(schema), problems);
    checkNames(names, 'properties.', problems);
    checkProperties(schema, problems);
    checkLiterals(
      schema,
      problems,
      problems.within((path) => `properties.${path}`),
    );
    return;
  }
  const result = z.record(z.string(), fieldSchema).safeParse(schema);
  checkNames(names, '', problems);
  if (!result.success) {
    addIssues(problems, result.error.issues, schema, () => Object.keys(fieldSchema.shape));
    return;
  }
  checkFields(result.data, problems);
  // Problems of the JSON Schema made from a flat map are reported at the path in the flat map.
  const inFlatMap = problems.within((path) => path.replace(/^properties\./, ''));
  checkSchema(toJsonSchema(schema), inFlatMap);
  checkLiterals(toJsonSchema(schema), inFlatMap, problems, propertiesOf(schema));
}

/** Names and texts that would have no effect, or be sent as they stand. */
function checkLiterals(
  schema: JsonSchema,
  problems: ProblemList,
  ofProperties: ProblemList,
  properties = propertiesOf(schema),
): void {
  for (const problem of unknownRequired(schema, problems.guesses)) problems.add(() => problem);
  for (const problem of unfilledPlaceholders(properties)) ofProperties.add(() => problem);
}

/** The keywords of the service beside those of JSON Schema. */
function checkProperties(schema: InputSchema, problems: ProblemList): void {
  for (const [name, definition] of Object.entries(propertiesOf(schema))) {
    const location = (definition as { in?: ArgumentLocation } | null)?.in;
    if (location !== undefined && !argumentLocations.includes(location)) {
      const message = `found ${shown(location)}; allowed: ${argumentLocations.join(', ')}`;
      problems.add(() => ({ path: `properties.${name}.in`, message }));
    }
    const wire = hasWireKeyword(definition) ? wireFields.safeParse(definition) : undefined;
    const below = problems.within((path) => `properties.${name}.${path}`);
    if (wire?.success === false) addIssues(below, wire.error.issues, definition);
  }
}

function checkNames(names: readonly string[], prefix: string, problems: ProblemList): void {
  for (const name of names) {
    if (argumentNamePattern.test(name)) continue;
    problems.add(() => ({
      path: `${prefix}${name}`,
      message: 'not an argument name; allowed: a letter or _, then up to 63 letters, digits, _ . - [ ]',
    }));
  }
}

function checkFields(fields: Record<string, Field>, problems: ProblemList): void {
  for (const [name, field] of Object.entries(fields)) {
    const message = `found a value that is not of type ${field.type}`;
    if (field.default !== undefined && !hasType(field.default, field.type)) {
      problems.add(() => ({ path: `${name}.default`, message }));
    }
    for (const [index, value] of (field.enum ?? []).entries()) {
      if (!hasType(value, field.type)) problems.add(() => ({ path: `${name}.enum[${index}]`, message }));
    }
    if (field.value !== undefined && field.value !== null && !hasType(field.value, field.type)) {
      problems.add(() => ({ path: `${name}.value`, message }));
    }
  }
}

function hasType(value: unknown, type: Field['type']): boolean {
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

function propertiesOf(schema: InputSchema): Record<string, unknown> {
  if (!isJsonSchemaForm(schema)) return schema;
  const properties = schema.properties;
  return typeof properties === 'object' && properties !== null ? (properties as Record<string, unknown>) : {};
}

/** The names of the arguments in the order of their declaration, constants included. */
export function argumentNames(schema: InputSchema): string[] {
  return Object.keys(propertiesOf(schema));
}

/** The arguments of a valid schema, constants included. */
export function argumentsOf(schema: InputSchema): Argument[] {
  const required = isJsonSchemaForm(schema) && Array.isArray(schema.required) ? new Set(schema.required) : undefined;
  return Object.entries(propertiesOf(schema)).map(([name, definition]) => {
    const field = (typeof definition === 'object' && definition !== null ? definition : {}) as Partial<Field>;
    return {
      name,
      required: required ? required.has(name) : field.optional !== true,
      location: field.in,
      fallback: field.default,
      wire: hasWireKeyword(field) ? (wireFields.safeParse(field).data ?? noWireFields) : noWireFields,
      type: typeof field.type === 'string' ? field.type : undefined,
      isNested: field.type === 'object' || (field.type === 'array' && isObjectType(field.items)),
    };
  });
}

function isObjectType(items: unknown): boolean {
  return (items as { type?: unknown } | null | undefined)?.type === 'object';
}

/** The arguments that callers do not give, with their values. */
export function constantsOf(schema: InputSchema): { name: string; value: unknown }[] {
  return Object.entries(propertiesOf(schema))
    .filter(([, definition]) => hasWireKeyword(definition) && definition.value !== undefined)
    .map(([name, definition]) => ({ name, value: (definition as { value: unknown }).value }));
}

/** The schema with the result of `change` in place of the values that callers do not give. */
export function withConstants(schema: InputSchema, change: (value: unknown) => unknown): InputSchema {
  const constants = constantsOf(schema);
  if (constants.length === 0) return schema;
  return withFixedArguments(schema, Object.fromEntries(constants.map(({ name, value }) => [name, change(value)])));
}

/** The schema with these values for arguments, which callers then do not give. */
export function withFixedArguments(schema: InputSchema, fixed: Readonly<Record<string, unknown>>): InputSchema {
  const properties = { ...propertiesOf(schema) };
  for (const [name, value] of Object.entries(fixed)) properties[name] = { ...(properties[name] as object), value };
  return isJsonSchemaForm(schema) ? { ...schema, properties } : properties;
}

const noWireFields: WireFields = {};

/** The schema in `tools/list`: without constants, and without the keywords that say how an argument is sent. */
export function toJsonSchema(schema: InputSchema): JsonSchema {
  if (isJsonSchemaForm(schema)) return shownJsonSchema(schema);
  const given = argumentsOf(schema).filter(({ wire }) => wire.value === undefined);
  const required = given.filter((argument) => argument.required && argument.fallback === undefined);
  const properties = Object.fromEntries(
    given.map(({ name }) => {
      const { optional: _optional, ...rest } = schema[name] as Field;
      return [name, hasOwnKeyword(rest) ? withoutOwnKeywords(rest) : rest];
    }),
  );
  return {
    type: 'object',
    properties,
    ...(required.length > 0 && { required: required.map((argument) => argument.name) }),
    additionalProperties: false,
  };
}

/** A schema without any of those keywords stays the same object. */
function shownJsonSchema(schema: InputSchema): JsonSchema {
  const properties = Object.entries(propertiesOf(schema));
  if (!properties.some(([, definition]) => hasOwnKeyword(definition))) return schema as JsonSchema;
  const isGiven = (definition: unknown) => !hasWireKeyword(definition) || definition.value === undefined;
  const given = properties.filter(([, definition]) => isGiven(definition));
  const names = new Set(given.map(([name]) => name));
  const required = Array.isArray(schema.required) ? schema.required : undefined;
  const isKnown = (name: unknown) =>
    names.has(name as string) || !Object.hasOwn(schema.properties as object, name as string);
  return {
    ...schema,
    properties: Object.fromEntries(
      given.map(([name, definition]) => [
        name,
        hasOwnKeyword(definition) ? withoutOwnKeywords(definition) : definition,
      ]),
    ),
    ...(required && { required: required.filter(isKnown) }),
  };
}
