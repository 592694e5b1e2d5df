import type { JsonObject } from '../api-types.ts';
import { asList, isJsonEqual, isObject } from './config.ts';

/** Returns true for a complete JSON Schema, which has a `type`. A flat map of arguments contains only objects. */
export function isJsonSchema(schema: JsonObject): boolean {
  return ['type', '$schema', '$ref'].some((name) => typeof schema[name] === 'string');
}

const isNull = (schema: unknown) => isObject(schema) && schema.type === 'null';

/** Returns a definition with `nullable` in place of a null in its `type`, `anyOf`, or `oneOf`. */
export function withNullable(definition: unknown): JsonObject {
  if (!isObject(definition)) return {};
  const { anyOf, oneOf, ...rest } = definition;
  const branches = asList(anyOf ?? oneOf);
  const branch = branches.find((candidate) => !isNull(candidate));
  if (branches.length === 2 && branches.some(isNull) && isObject(branch) && typeof branch.type === 'string')
    return { ...rest, ...branch, nullable: true };
  const types = asList(rest.type);
  if (types.length !== 2 || !types.includes('null')) return definition;
  return {
    ...definition,
    type: types.find((type) => type !== 'null'),
    ...(Array.isArray(rest.enum) && { enum: rest.enum.filter((value) => value !== null) }),
    nullable: true,
  };
}

function withNullType({ nullable, ...definition }: JsonObject): JsonObject {
  if (nullable !== true) return definition;
  const { type, enum: values } = definition;
  return { ...definition, type: [type, 'null'], ...(Array.isArray(values) && { enum: [...values, null] }) };
}

const toProperties = (schema: JsonObject) => (isObject(schema.properties) ? schema.properties : {});

/** Returns the properties of an object schema as a flat map, in which `optional` replaces the required names. */
export function toFlatMap(schema: JsonObject): { [name: string]: JsonObject } {
  const required = asList(schema.required);
  const entries = Object.entries(toProperties(schema)).map(([name, definition]) => {
    const isOptional = !required.includes(name);
    return [name, { ...withNullable(definition), ...(isOptional && { optional: true }) }] as const;
  });
  return Object.fromEntries(entries);
}

/** Returns an object schema with the properties of a flat map. Definitions that are equal stay as they were written. */
export function withFlatMap(schema: JsonObject, map: JsonObject, hasNullType: boolean): JsonObject {
  const written = toProperties(schema);
  const previous = toFlatMap(schema);
  const convert = (name: string, value: unknown) => {
    if (Object.hasOwn(previous, name) && isJsonEqual(withoutOptional(previous[name]), withoutOptional(value)))
      return written[name];
    return hasNullType && isObject(value) ? withNullType(withoutOptional(value)) : withoutOptional(value);
  };
  const { required: _required, ...rest } = schema;
  const required = Object.keys(map).filter((name) => {
    const value = map[name];
    return !isObject(value) || value.optional !== true;
  });
  return {
    ...rest,
    properties: Object.fromEntries(Object.entries(map).map(([name, value]) => [name, convert(name, value)])),
    ...(required.length > 0 && { required }),
  };
}

function withoutOptional(value: unknown): JsonObject {
  const { optional: _optional, ...definition } = isObject(value) ? value : {};
  return definition;
}

/** Returns true if a definition has one type, so that a form can show it. */
export function hasOneType({ type, ...definition }: JsonObject): boolean {
  return !Array.isArray(type) && !['$ref', 'anyOf', 'oneOf', 'allOf', 'not', 'if'].some((name) => name in definition);
}
