import { z } from 'zod';
import { hasControlCharacter } from '../http/values.ts';
import { plainNumbers } from '../json/json.ts';
import { unfilledPlaceholders, unknownRequired } from '../mistakes.ts';
import { addIssues, type ProblemList, shown } from '../problems.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import { checkSchema, depthProblem } from '../schema/schema-rules.ts';

/** How an array or an object is written in a query, a form or a header. */
const wireStyles = ['repeat', 'comma', 'brackets', 'indices', 'pipe', 'space', 'deep', 'json', 'querystring'] as const;
export type WireStyle = (typeof wireStyles)[number];

const longestText = 200;

/** A text that is the same in every call, or the argument that holds it. */
const textOrArgument = z.union([
  z
    .string()
    .min(1)
    .max(longestText)
    .refine((text) => text.isWellFormed() && !hasControlCharacter(text), 'allowed: one line of text'),
  z.strictObject({ argument: z.string().describe('Name of the argument that holds it.') }),
]);
export type TextOrArgument = z.infer<typeof textOrArgument>;

/**
 * Keywords of an argument that say how it is sent. They stand in a flat field definition or beside the other keywords of
 * a property in the JSON Schema form, and are not shown to agents.
 */
const wireKeywords = {
  wire_name: z
    .string()
    .min(1)
    .max(longestText)
    .refine((name) => name.isWellFormed() && !hasControlCharacter(name) && name === name.trim(), {
      message: 'allowed: visible text without outer spaces',
    })
    .optional()
    .describe('Name that the upstream expects, where it differs from the name of the argument.'),
  style: z
    .enum(wireStyles)
    .optional()
    .describe(
      'How an array or an object is written in a query, a form or a header: a=1&a=2 (repeat), a=1,2 (comma), a[]=1 (brackets), a[0]=1 and a[b][c]=1 (indices), a=1|2 (pipe), a=1 2 (space), a[b]=1 (deep), as JSON text (json), or as all of the query without a name (querystring).',
    ),
  value: z
    .unknown()
    .optional()
    .describe('A constant: it is sent in every call, and is neither shown to agents nor accepted from them.'),
  allow_slashes: z
    .boolean()
    .optional()
    .describe('true keeps the slashes of a path argument, such as src/main.ts, as separators of segments.'),
  allow_reserved: z
    .boolean()
    .optional()
    .describe("true keeps : / ? @ ! $ ' ( ) * , ; of a query argument as they are, instead of percent-encoding them."),
  content: z
    .literal('base64')
    .optional()
    .describe(
      'base64: the text, Base64, a data URL or the address of a file that a tool gave, is decoded and sent as bytes, as a file of a multipart body or as the whole body.',
    ),
  file_name: textOrArgument
    .optional()
    .describe('File name of a part of a multipart body, or {"argument": "name"} to take it from another argument.'),
  media_type: textOrArgument
    .optional()
    .describe(
      'Media type of a part of a multipart body, or of the whole body, or {"argument": "name"} to take it from another argument. Of several, as in image/png, image/jpeg or image/*, a file has that of its data URL, or else the first.',
    ),
};

const wireKeywordNames = Object.keys(wireKeywords) as (keyof typeof wireKeywords)[];
/** All keywords of an argument that are ours, and that agents do not see. */
const ownKeywords = ['in', ...wireKeywordNames];
const wireFields = z.object(wireKeywords);
type WireFields = z.infer<typeof wireFields>;

type Definition = { readonly [keyword: string]: unknown };

/** Whether a definition of an argument has any of these keywords. */
function hasWireKeyword(definition: unknown): definition is Definition {
  return hasAny(definition, wireKeywordNames);
}

/** Whether a definition of an argument has any keyword that agents do not see. */
function hasOwnKeyword(definition: unknown): definition is Definition {
  return hasAny(definition, ownKeywords);
}

function hasAny(definition: unknown, keywords: readonly string[]): boolean {
  return (
    typeof definition === 'object' &&
    definition !== null &&
    keywords.some((keyword) => Object.hasOwn(definition, keyword))
  );
}

/** A definition with such keywords as agents see it. */
function withoutOwnKeywords(definition: Definition): { [keyword: string]: unknown } {
  const shown: { [keyword: string]: unknown } = { ...definition };
  for (const keyword of ownKeywords) delete shown[keyword];
  return definition.content === 'base64' ? { ...shown, description: describedFile(definition.description) } : shown;
}

/** Agents must know that they are asked for Base64, which their own description may say, or for an address. */
function describedFile(description: unknown): string {
  const given = typeof description === 'string' ? description.trim() : '';
  const isSaid = /base64|data url/i.test(given);
  const hint = isSaid
    ? 'The address of a file that a tool gave is taken too.'
    : 'Base64 of the bytes, a data URL, or the address of a file that a tool gave.';
  if (given === '') return hint;
  return `${/[.!?]$/.test(given) ? given : `${given}.`} ${hint}`;
}

const argumentLocations = ['path', 'query', 'header', 'cookie', 'body'] as const;
export type ArgumentLocation = (typeof argumentLocations)[number];

/** One argument of a tool, for building the request. */
export type Argument = {
  name: string;
  required: boolean;
  location: ArgumentLocation | undefined;
  fallback: unknown;
  /** How it is sent; empty for most. `wire.value` is the value of an argument that callers do not give. */
  wire: WireFields;
  /** The declared JSON type, where it is one. */
  type: string | undefined;
  /** Whether it is an object or an array of objects. */
  isNested: boolean;
};

/** The `input_schema` of a tool: a flat map of argument name to field definition, or a JSON Schema object. */
export type InputSchema = Record<string, unknown>;

const argumentNamePattern = /^[A-Za-z_][A-Za-z0-9_.\-[\]]{0,63}$/;
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
  nullable: z.boolean().optional().describe('When true the value may be null, which is then sent.'),
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
    .describe('Where the argument goes, overruling the method: path, query, header, cookie or body.'),
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
  problems.addAll(unknownRequired(schema, problems.guesses));
  ofProperties.addAll(unfilledPlaceholders(properties));
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
    if (field.default !== undefined && !isAllowedValue(field.default, field)) {
      problems.add(() => ({ path: `${name}.default`, message }));
    }
    for (const [index, value] of (field.enum ?? []).entries()) {
      if (!isAllowedValue(value, field)) problems.add(() => ({ path: `${name}.enum[${index}]`, message }));
    }
    if (field.value !== undefined && field.value !== null && !hasType(field.value, field.type)) {
      problems.add(() => ({ path: `${name}.value`, message }));
    }
  }
}

function isAllowedValue(value: unknown, { type, nullable }: Field): boolean {
  return hasType(value, type) || (nullable === true && value === null);
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
      return [name, withNull(hasOwnKeyword(rest) ? withoutOwnKeywords(rest) : rest)];
    }),
  );
  return {
    type: 'object',
    properties,
    ...(required.length > 0 && { required: required.map((argument) => argument.name) }),
    additionalProperties: false,
  };
}

/** Writes `nullable` of a definition, and of those inside it, as JSON Schema does: as a type. */
function withNull({ nullable, ...definition }: Definition): Definition {
  const { type, enum: values, items, properties } = definition;
  return {
    ...definition,
    ...(nullable === true && { type: [type, 'null'] }),
    ...(nullable === true && Array.isArray(values) && { enum: [...new Set([...values, null])] }),
    ...(items !== undefined && { items: withNull(items as Definition) }),
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(properties as object).map(([name, inner]) => [name, withNull(inner)]),
      ),
    }),
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
