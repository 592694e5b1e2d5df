/**
 * Converts the schemas of a document to JSON Schema 2020-12 for requests: removes read-only properties, and rewrites
 * `nullable` and the boolean limits of earlier drafts.
 */
import { Validator } from '@cfworker/json-schema';
import { isObject, type Json, type JsonObject, resolvePointer, toList, toObject, toText } from '../json.ts';
import type { Version } from './operations.ts';

export type Check = (value: unknown) => boolean;

export type Schemas = {
  /** Converts a schema of a request. Resolve its references with `resolve`. */
  convert(schema: Json): JsonObject | boolean;
  /** Resolves the reference of a converted schema. */
  resolve(schema: JsonObject | boolean): JsonObject | boolean;
  createCheck(schema: JsonObject | boolean): Check;
};

const childSchemas = ['not', 'if', 'then', 'else', 'contains', 'propertyNames', 'unevaluatedProperties'];
const listsOfSchemas = ['allOf', 'anyOf', 'oneOf', 'prefixItems'];
const mapsOfSchemas = ['patternProperties', 'dependentSchemas'];
const numberLimits = ['minimum', 'maximum', 'multipleOf'];
const counts = ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'];
const types = ['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'];
/** Annotations that the audit reads, under names that validators ignore. */
const annotations = { format: 'x-format', example: 'x-example', default: 'x-default' };

export function createSchemas(document: JsonObject, version: Version): Schemas {
  const definitions: JsonObject = {};
  const names = new Map<string, string>();
  const isDraft2020 = version === '3.1' || version === '3.2';

  const refer = (reference: string): JsonObject | true => {
    const knownName = names.get(reference);
    if (knownName !== undefined) return { $ref: `#/$defs/${knownName}` };
    const target = resolvePointer(document, reference);
    if (target === undefined) return true;
    const name = `d${names.size}`;
    names.set(reference, name);
    definitions[name] = true;
    definitions[name] = convert(target) as Json;
    return { $ref: `#/$defs/${name}` };
  };

  const convert = (schema: Json): JsonObject | boolean => {
    if (typeof schema === 'boolean') return schema;
    if (!isObject(schema)) return true;
    if (typeof schema.$ref === 'string') {
      const target = refer(schema.$ref);
      const { $ref, ...siblings } = schema;
      // OpenAPI 3.0, Reference Object: "any properties added SHALL be ignored".
      if (!isDraft2020 || Object.keys(siblings).length === 0) return target;
      return { allOf: [target, convertKeywords(siblings)] };
    }
    return convertKeywords(schema);
  };

  const convertKeywords = (schema: JsonObject): JsonObject => {
    const converted: JsonObject = {};
    copyAssertions(schema, converted);
    for (const [name, target] of Object.entries(annotations))
      if (name in schema) converted[target] = schema[name] as Json;
    for (const name of ['contentEncoding', 'contentMediaType'])
      if (name in schema) converted[name] = schema[name] as Json;
    for (const name of childSchemas) if (name in schema) converted[name] = convert(schema[name] as Json) as Json;
    for (const name of listsOfSchemas)
      if (Array.isArray(schema[name]) && toList(schema[name]).length > 0)
        // Overlapping alternatives are common, so `oneOf` is treated as `anyOf`.
        append(
          converted,
          name === 'oneOf' ? 'anyOf' : name,
          toList(schema[name]).map((one) => convert(one) as Json),
        );
    for (const name of mapsOfSchemas) if (isObject(schema[name])) converted[name] = convertMap(schema[name]);
    if (isObject(schema.items) || typeof schema.items === 'boolean') converted.items = convert(schema.items) as Json;
    if (isObject(schema.additionalProperties) || typeof schema.additionalProperties === 'boolean')
      converted.additionalProperties = convert(schema.additionalProperties) as Json;
    if (isObject(schema.dependentRequired)) converted.dependentRequired = schema.dependentRequired;
    copyProperties(schema, converted);
    return converted;
  };

  const convertMap = (schemas: JsonObject) => mapValues(schemas, (schema) => convert(schema) as Json);

  const copyProperties = (schema: JsonObject, converted: JsonObject) => {
    const properties = Object.entries(toObject(schema.properties));
    const readOnlyNames = new Set(properties.filter(([, one]) => isReadOnly(one)).map(([name]) => name));
    const sentProperties = properties.filter(([name]) => !readOnlyNames.has(name));
    if (properties.length > 0) converted['x-properties'] = true;
    if (sentProperties.length > 0) converted.properties = convertMap(Object.fromEntries(sentProperties));
    const required = toList(schema.required).filter((name) => typeof name === 'string' && !readOnlyNames.has(name));
    if (required.length > 0) converted.required = required;
  };

  const isReadOnly = (schema: Json): boolean => {
    let found: Json | undefined = schema;
    for (let steps = 0; steps < 10 && isObject(found); steps++) {
      if (found.readOnly === true) return true;
      found = typeof found.$ref === 'string' ? resolvePointer(document, found.$ref) : undefined;
    }
    return false;
  };

  const resolve = (schema: JsonObject | boolean): JsonObject | boolean => {
    let found = schema;
    for (let steps = 0; steps < 20; steps++) {
      if (typeof found === 'boolean' || typeof found.$ref !== 'string') return found;
      found = definitions[found.$ref.slice('#/$defs/'.length)] as JsonObject | boolean;
    }
    return true;
  };

  const createCheck = (schema: JsonObject | boolean): Check =>
    createValidator(typeof schema === 'boolean' ? schema : { ...schema, $defs: collect(schema, definitions) });

  return { convert, resolve, createCheck };
}

/** Returns the definitions that a schema references, directly or indirectly. */
function collect(schema: Json, definitions: JsonObject, reached: JsonObject = {}): JsonObject {
  if (Array.isArray(schema)) for (const one of schema) collect(one, definitions, reached);
  if (!isObject(schema)) return reached;
  for (const [name, value] of Object.entries(schema)) {
    const definition = name === '$ref' && typeof value === 'string' ? value.slice('#/$defs/'.length) : undefined;
    if (definition === undefined) collect(value, definitions, reached);
    else if (!(definition in reached)) {
      reached[definition] = definitions[definition] as Json;
      collect(reached[definition] as Json, definitions, reached);
    }
  }
  return reached;
}

/** Returns a function that checks values against a schema. `format` is only a hint and rejects nothing. */
export function createValidator(schema: JsonObject | boolean): Check {
  const validator = new Validator(toCheckable(schema) as JsonObject | boolean, '2020-12', true);
  return (value) => validator.validate(value).valid;
}

function append(target: JsonObject, name: string, more: Json[]): void {
  if (target[name] === undefined) target[name] = more;
  else target.allOf = [...toList(target.allOf), { [name]: more }];
}

function copyAssertions(schema: JsonObject, converted: JsonObject): void {
  const listed = (Array.isArray(schema.type) ? schema.type : [schema.type]).map((type) =>
    type === 'file' ? 'string' : toText(type),
  );
  const knownTypes = listed.filter((type) => types.includes(type));
  if (schema.type === 'file') converted['x-format'] = 'binary';
  if (knownTypes.length > 0) converted.type = knownTypes.length === 1 ? (knownTypes[0] as string) : knownTypes;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) converted.enum = schema.enum;
  if ('const' in schema) converted.const = schema.const as Json;
  for (const name of numberLimits) if (typeof schema[name] === 'number') converted[name] = schema[name];
  for (const name of counts) if (typeof schema[name] === 'number' && schema[name] >= 0) converted[name] = schema[name];
  for (const [exclusive, limit] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof schema[exclusive] === 'number') converted[exclusive] = schema[exclusive];
    if (schema[exclusive] === true && typeof schema[limit] === 'number') {
      converted[exclusive] = schema[limit];
      delete converted[limit];
    }
  }
  if (schema.uniqueItems === true) converted.uniqueItems = true;
  const pattern = translatePattern(schema.pattern);
  if (pattern !== undefined) converted.pattern = pattern;
  else if (typeof schema.pattern === 'string') converted['x-foreign-pattern'] = schema.pattern;
  if (schema.nullable === true || schema['x-nullable'] === true) addNull(converted);
}

/** OpenAPI 3.0.3: `nullable` applies only if `type` is in the same schema. An `enum` keeps its values. */
function addNull(converted: JsonObject): void {
  if (converted.type !== undefined && !Array.isArray(converted.type)) converted.type = [converted.type, 'null'];
}

/**
 * Translates the anchors of Ruby and Python to ECMAScript; returns undefined for a pattern that ECMAScript cannot
 * express.
 */
function translatePattern(pattern: Json | undefined): string | undefined {
  if (typeof pattern !== 'string') return undefined;
  const translated = withoutNeedlessEscapes(pattern.replaceAll('\\A', '^').replaceAll(/\\[zZ]/g, '$'));
  try {
    new RegExp(translated, 'u');
    return translated;
  } catch {
    return undefined;
  }
}

/** Removes escapes that ECMAScript accepts only without the flag `u`, such as `\:`. They have no effect. */
function withoutNeedlessEscapes(pattern: string): string {
  return pattern.replaceAll(/\\([\s\S])/g, (whole, character: string) => {
    if (character === '-') return '\\x2d';
    return /[\^$\\.*+?()[\]{}|/dDwWsSbBpPuxcfnrtvk0-9]/.test(character) ? whole : character;
  });
}

const mapsOfNames = ['properties', 'patternProperties', 'dependentSchemas', '$defs'];
const isAnnotation = (name: string) =>
  name.startsWith('x-') || ['format', 'default', 'examples', 'title', 'description'].includes(name);

/** Returns a schema for a validator, without annotations and without needless escapes in patterns. */
function toCheckable(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(toCheckable);
  if (!isObject(schema)) return schema;
  const entries = Object.entries(schema).filter(([name]) => !isAnnotation(name));
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (name === 'enum' || name === 'const') return [name, value];
      if (mapsOfNames.includes(name)) return [name, mapValues(toObject(value), toCheckable)];
      return [
        name,
        name === 'pattern' && typeof value === 'string' ? withoutNeedlessEscapes(value) : toCheckable(value),
      ];
    }),
  );
}

const mapValues = (values: JsonObject, change: (value: Json) => Json): JsonObject =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
