import { findLiteralPlaceholders, findUnknownRequired } from '@toolhost/errors/input-errors';
import { addZodIssues, describeValue, type ProblemList } from '@toolhost/errors/problems';
import { toPlainNumbers } from '@toolhost/json/json';
import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import { checkSchema, findDepthProblem } from '@toolhost/json-schema/schema-rules';
import { z } from 'zod';
import { hasControlCharacter } from './http/values.ts';

/** Serializations of an array or object in a query, form, or header. */
const wireStyles = ['repeat', 'comma', 'brackets', 'indices', 'pipe', 'space', 'deep', 'json', 'querystring'] as const;
export type WireStyle = (typeof wireStyles)[number];

const maxTextLength = 200;

/** Text that is the same in every call, or the argument that supplies it. */
const textOrArgument = z.union([
  z
    .string()
    .min(1)
    .max(maxTextLength)
    .refine((text) => text.isWellFormed() && !hasControlCharacter(text), 'allowed: one line of text'),
  z.strictObject({ argument: z.string().describe('Name of the argument that supplies it.') }),
]);
export type TextOrArgument = z.infer<typeof textOrArgument>;

/**
 * Keywords of an argument that control how it is sent, hidden from agents. They appear in a flat field definition, or
 * next to the standard keywords of a property in the JSON Schema form.
 */
const wireKeywords = {
  wire_name: z
    .string()
    .min(1)
    .max(maxTextLength)
    .refine((name) => name.isWellFormed() && !hasControlCharacter(name) && name === name.trim(), {
      message: 'allowed: visible text without outer spaces',
    })
    .optional()
    .describe('Name that the upstream expects, if it differs from the argument name.'),
  style: z
    .enum(wireStyles)
    .optional()
    .describe(
      'How an array or an object is serialized in a query, form, or header: a=1&a=2 (repeat), a=1,2 (comma), a[]=1 (brackets), a[0]=1 and a[b][c]=1 (indices), a=1|2 (pipe), a=1 2 (space), a[b]=1 (deep), as JSON text (json), or as the whole query string without a name (querystring).',
    ),
  value: z
    .unknown()
    .optional()
    .describe('A constant. It is sent with every call, hidden from agents, and not accepted from them.'),
  allow_slashes: z
    .boolean()
    .optional()
    .describe('true keeps the slashes of a path argument, such as apps/server/src/main.ts, as segment separators.'),
  allow_reserved: z
    .boolean()
    .optional()
    .describe("true keeps : / ? @ ! $ ' ( ) * , ; of a query argument unchanged instead of percent-encoding them."),
  content: z
    .literal('base64')
    .optional()
    .describe(
      'base64: the text (Base64, a data URL, or the URL of a file that a tool returned) is decoded and sent as bytes, as a file of a multipart body or as the whole body.',
    ),
  file_name: textOrArgument
    .optional()
    .describe('File name of a multipart body part, or {"argument": "name"} to read it from another argument.'),
  media_type: textOrArgument
    .optional()
    .describe(
      'Media type of a multipart body part or of the whole body, or {"argument": "name"} to read it from another argument. If several are listed, such as image/png, image/jpeg or image/*, a file uses the type of its data URL, or else the first.',
    ),
};

const wireKeywordNames = Object.keys(wireKeywords) as (keyof typeof wireKeywords)[];
/** Keywords that are specific to Toolhost and hidden from agents. */
const hiddenKeywords = ['in', ...wireKeywordNames];
const wireFields = z.object(wireKeywords);
type WireFields = z.infer<typeof wireFields>;

type Definition = { readonly [keyword: string]: unknown };

/** Returns true if an argument definition has any keyword that controls how it is sent. */
function hasWireKeyword(definition: unknown): definition is Definition {
  return hasAny(definition, wireKeywordNames);
}

/** Returns true if an argument definition has any keyword that is hidden from agents. */
function hasHiddenKeyword(definition: unknown): definition is Definition {
  return hasAny(definition, hiddenKeywords);
}

function hasAny(definition: unknown, keywords: readonly string[]): boolean {
  return (
    typeof definition === 'object' &&
    definition !== null &&
    keywords.some((keyword) => Object.hasOwn(definition, keyword))
  );
}

/** Returns a definition without the hidden keywords, as agents see it. */
function removeHiddenKeywords(definition: Definition): { [keyword: string]: unknown } {
  const visible: { [keyword: string]: unknown } = { ...definition };
  for (const keyword of hiddenKeywords) delete visible[keyword];
  return definition.content === 'base64' ? { ...visible, description: describeFile(definition.description) } : visible;
}

/** Tells agents that the argument is Base64 or a URL, unless the description already mentions Base64. */
function describeFile(description: unknown): string {
  const descriptionText = typeof description === 'string' ? description.trim() : '';
  const mentionsBase64 = /base64|data url/i.test(descriptionText);
  const hint = mentionsBase64
    ? 'The URL of a file that a tool returned is accepted too.'
    : 'Base64 of the bytes, a data URL, or the URL of a file that a tool returned.';
  if (descriptionText === '') return hint;
  return `${/[.!?]$/.test(descriptionText) ? descriptionText : `${descriptionText}.`} ${hint}`;
}

const argumentLocations = ['path', 'query', 'header', 'cookie', 'body'] as const;
export type ArgumentLocation = (typeof argumentLocations)[number];

/** An argument of a tool, as needed for building the request. */
export type Argument = {
  name: string;
  required: boolean;
  location: ArgumentLocation | undefined;
  fallback: unknown;
  /** Keywords that control how the argument is sent; usually empty. `wire.value` is the value of a constant. */
  wire: WireFields;
  /** Declared JSON type, if it is a single one. */
  type: string | undefined;
  /** True for an object or an array of objects. */
  isNested: boolean;
};

/** `input_schema` of a tool: a flat map of argument names to field definitions, or a JSON Schema object. */
export type InputSchema = Record<string, unknown>;

const argumentNamePattern = /^[A-Za-z_][A-Za-z0-9_.\-[\]]{0,63}$/;
export const maxArguments = 100;

const fieldTypes = ['string', 'number', 'integer', 'boolean', 'array', 'object'] as const;

const keywords = {
  type: z.enum(fieldTypes).describe('JSON type of the argument.'),
  description: z.string().max(2000).optional().describe('Meaning of the argument, for the model.'),
  enum: z.array(z.unknown()).min(1).max(500).optional().describe('The only values allowed.'),
  default: z.unknown().optional().describe('Sent if the caller omits the argument.'),
  minimum: z.number().optional().describe('Minimum number.'),
  maximum: z.number().optional().describe('Maximum number.'),
  minLength: z.int().min(0).optional().describe('Minimum number of characters.'),
  maxLength: z.int().min(0).optional().describe('Maximum number of characters.'),
  pattern: z
    .string()
    .max(1000)
    .optional()
    .describe(
      'ECMAScript regular expression that must match somewhere in the text. Use ^ and $ to match the whole text. Lookaround and backreferences are not supported.',
    ),
  format: z.string().max(50).optional().describe('A hint such as date, uuid or email.'),
  examples: z.array(z.unknown()).max(20).optional().describe('Sample values for the model.'),
  required: z.array(z.string()).max(100).optional().describe('Properties of an object that must be present.'),
  nullable: z.boolean().optional().describe('If true, the value may be null, and null is sent.'),
};

/** A nested definition: of the entries of an array, or of a property of an object. */
const nestedSchema: z.ZodType = z.strictObject({
  ...keywords,
  items: z.lazy(() => nestedSchema.optional()),
  properties: z.lazy(() => z.record(z.string(), nestedSchema).optional()),
});

/**
 * Field definition (spec 2.4), with the optional JSON Schema keywords that are safe to evaluate for unverified callers.
 */
export const fieldSchema = z.strictObject({
  ...keywords,
  items: nestedSchema.optional().describe('Definition of the entries of an array.'),
  properties: z.record(z.string(), nestedSchema).optional().describe('Definitions of the properties of an object.'),
  optional: z.boolean().optional().describe('If true, the caller may omit the argument.'),
  in: z
    .enum(argumentLocations)
    .optional()
    .describe('Location of the argument, overriding the default of the method: path, query, header, cookie, or body.'),
  ...wireKeywords,
  'x-mcp-header': z
    .string()
    .optional()
    .describe('Suffix of the header in which stateless MCP clients repeat this argument.'),
});

type Field = z.infer<typeof fieldSchema>;

/**
 * Detects the JSON Schema form by `"type": "object"`. In a flat map every value, even one named `type`, is an object.
 */
export function isJsonSchemaForm(schema: InputSchema): boolean {
  return typeof schema.type === 'string' || typeof schema.$schema === 'string' || typeof schema.$ref === 'string';
}

/** Adds all problems of an `input_schema`. Paths are relative to it. */
export function checkInputSchema(exactSchema: InputSchema, problems: ProblemList): void {
  const depthError = findDepthProblem(exactSchema);
  if (depthError) {
    problems.add(() => depthError);
    return;
  }
  // The rules see plain numbers. The stored and sent numbers keep their exact digits.
  const schema = toPlainNumbers(exactSchema) as InputSchema;
  const names = listArgumentNames(schema);
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
      problems.nested((path) => `properties.${path}`),
    );
    return;
  }
  const result = z.record(z.string(), fieldSchema).safeParse(schema);
  checkNames(names, '', problems);
  if (!result.success) {
    addZodIssues(problems, result.error.issues, schema, () => Object.keys(fieldSchema.shape));
    return;
  }
  checkFields(result.data, problems);
  // Problems of the JSON Schema built from a flat map are reported at the path in the flat map.
  const flatMapProblems = problems.nested((path) => path.replace(/^properties\./, ''));
  checkSchema(toJsonSchema(schema), flatMapProblems);
  checkLiterals(toJsonSchema(schema), flatMapProblems, problems, getProperties(schema));
}

/** Checks for required names that do not exist, and for placeholders that would be sent literally. */
function checkLiterals(
  schema: JsonSchema,
  problems: ProblemList,
  propertyProblems: ProblemList,
  properties = getProperties(schema),
): void {
  problems.addAll(findUnknownRequired(schema, problems.suggestionBudget));
  propertyProblems.addAll(findLiteralPlaceholders(properties));
}

/** Checks the keywords of Toolhost, which appear next to those of JSON Schema. */
function checkProperties(schema: InputSchema, problems: ProblemList): void {
  for (const [name, definition] of Object.entries(getProperties(schema))) {
    const location = (definition as { in?: ArgumentLocation } | null)?.in;
    if (location !== undefined && !argumentLocations.includes(location)) {
      const message = `found ${describeValue(location)}; allowed: ${argumentLocations.join(', ')}`;
      problems.add(() => ({ path: `properties.${name}.in`, message }));
    }
    const wire = hasWireKeyword(definition) ? wireFields.safeParse(definition) : undefined;
    const nestedProblems = problems.nested((path) => `properties.${name}.${path}`);
    if (wire?.success === false) addZodIssues(nestedProblems, wire.error.issues, definition);
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

function getProperties(schema: InputSchema): Record<string, unknown> {
  if (!isJsonSchemaForm(schema)) return schema;
  const properties = schema.properties;
  return typeof properties === 'object' && properties !== null ? (properties as Record<string, unknown>) : {};
}

/** Returns the argument names in declaration order, including constants. */
export function listArgumentNames(schema: InputSchema): string[] {
  return Object.keys(getProperties(schema));
}

/** Returns the arguments of a valid schema, including constants. */
export function getArguments(schema: InputSchema): Argument[] {
  const required = isJsonSchemaForm(schema) && Array.isArray(schema.required) ? new Set(schema.required) : undefined;
  return Object.entries(getProperties(schema)).map(([name, definition]) => {
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

/** Returns the arguments that callers do not supply, with their values. */
export function getConstants(schema: InputSchema): { name: string; value: unknown }[] {
  return Object.entries(getProperties(schema))
    .filter(([, definition]) => hasWireKeyword(definition) && definition.value !== undefined)
    .map(([name, definition]) => ({ name, value: (definition as { value: unknown }).value }));
}

/** Returns the schema with changed constants. */
export function withConstants(schema: InputSchema, change: (value: unknown) => unknown): InputSchema {
  const constants = getConstants(schema);
  if (constants.length === 0) return schema;
  return withFixedArguments(schema, Object.fromEntries(constants.map(({ name, value }) => [name, change(value)])));
}

/** Returns the schema with fixed values for arguments, which callers then do not supply. */
export function withFixedArguments(schema: InputSchema, fixed: Readonly<Record<string, unknown>>): InputSchema {
  const properties = { ...getProperties(schema) };
  for (const [name, value] of Object.entries(fixed)) properties[name] = { ...(properties[name] as object), value };
  return isJsonSchemaForm(schema) ? { ...schema, properties } : properties;
}

const noWireFields: WireFields = {};

/**
 * Returns the schema for `tools/list`, without constants and without the keywords that control how an argument is sent.
 */
export function toJsonSchema(schema: InputSchema): JsonSchema {
  if (isJsonSchemaForm(schema)) return toVisibleJsonSchema(schema);
  const visibleArguments = getArguments(schema).filter(({ wire }) => wire.value === undefined);
  const required = visibleArguments.filter((argument) => argument.required && argument.fallback === undefined);
  const properties = Object.fromEntries(
    visibleArguments.map(({ name }) => {
      const { optional: _optional, ...fieldDefinition } = schema[name] as Field;
      return [
        name,
        convertNullable(hasHiddenKeyword(fieldDefinition) ? removeHiddenKeywords(fieldDefinition) : fieldDefinition),
      ];
    }),
  );
  return {
    type: 'object',
    properties,
    ...(required.length > 0 && { required: required.map((argument) => argument.name) }),
    additionalProperties: false,
  };
}

/** Converts `nullable` in a definition and its nested definitions to a JSON Schema type. */
function convertNullable({ nullable, ...definition }: Definition): Definition {
  const { type, enum: values, items, properties } = definition;
  return {
    ...definition,
    ...(nullable === true && { type: [type, 'null'] }),
    ...(nullable === true && Array.isArray(values) && { enum: [...new Set([...values, null])] }),
    ...(items !== undefined && { items: convertNullable(items as Definition) }),
    ...(properties !== undefined && {
      properties: Object.fromEntries(
        Object.entries(properties as object).map(([name, inner]) => [name, convertNullable(inner)]),
      ),
    }),
  };
}

/** Returns a JSON Schema as agents see it: the same object if it has no hidden keyword. */
function toVisibleJsonSchema(schema: InputSchema): JsonSchema {
  const properties = Object.entries(getProperties(schema));
  if (!properties.some(([, definition]) => hasHiddenKeyword(definition))) return schema as JsonSchema;
  const isVisible = (definition: unknown) => !hasWireKeyword(definition) || definition.value === undefined;
  const visibleProperties = properties.filter(([, definition]) => isVisible(definition));
  const names = new Set(visibleProperties.map(([name]) => name));
  const required = Array.isArray(schema.required) ? schema.required : undefined;
  const isVisibleOrUndeclared = (name: unknown) =>
    names.has(name as string) || !Object.hasOwn(schema.properties as object, name as string);
  return {
    ...schema,
    properties: Object.fromEntries(
      visibleProperties.map(([name, definition]) => [
        name,
        hasHiddenKeyword(definition) ? removeHiddenKeywords(definition) : definition,
      ]),
    ),
    ...(required && { required: required.filter(isVisibleOrUndeclared) }),
  };
}
