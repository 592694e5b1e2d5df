import type { z } from 'zod';
import { isKnownKeyword } from '../schema/schema-rules.ts';
import { fieldSchema, type InputSchema, isJsonSchemaForm } from './input-schema.ts';
import { type ServerConfig, serverConfigSchema } from './server-config.ts';

/** Finds the path of something in a value that this version does not know; undefined when it knows all of it. */
type Finder = (value: unknown) => string | undefined;

/** The parts of a Zod declaration that decide which fields and words it knows. */
type Declaration = {
  type: string;
  shape?: Record<string, z.core.$ZodType>;
  element?: z.core.$ZodType;
  valueType?: z.core.$ZodType;
  innerType?: z.core.$ZodType;
  in?: z.core.$ZodType;
  options?: readonly z.core.$ZodType[];
  entries?: Record<string, string>;
  values?: readonly unknown[];
};

const knowsAll: Finder = () => undefined;
const below = (name: string, path: string) => (path.startsWith('[') ? name + path : `${name}.${path}`);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function finderOf(schema: z.core.$ZodType): Finder {
  const declaration = schema._zod.def as unknown as Declaration;
  const { shape, element, valueType, options, entries, values } = declaration;
  switch (declaration.type) {
    case 'object':
      return inObject(new Map(Object.entries(shape ?? {}).map(([name, field]) => [name, finderOf(field)])));
    case 'array':
      return element ? inArray(finderOf(element)) : knowsAll;
    case 'record':
      return valueType ? inRecord(finderOf(valueType)) : knowsAll;
    case 'union':
      return inUnion((options ?? []).map((option) => ({ shape: shapeOf(option), find: finderOf(option) })));
    case 'enum':
      return inWords(new Set(Object.values(entries ?? {})));
    case 'literal':
      return inWords(new Set(values));
    case 'optional':
    case 'default':
      return declaration.innerType ? finderOf(declaration.innerType) : knowsAll;
    case 'pipe':
      return declaration.in ? finderOf(declaration.in) : knowsAll;
    default:
      return knowsAll;
  }
}

function inObject(fields: ReadonlyMap<string, Finder>): Finder {
  return (value) => {
    if (!isObject(value)) return undefined;
    for (const name of Object.keys(value)) {
      const find = fields.get(name);
      if (!find) return name;
      const path = find(value[name]);
      if (path !== undefined) return path === '' ? name : below(name, path);
    }
    return undefined;
  };
}

function inArray(find: Finder): Finder {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    for (const entry of value) {
      const path = find(entry);
      if (path !== undefined) return path === '' ? '[]' : below('[]', path);
    }
    return undefined;
  };
}

function inRecord(find: Finder): Finder {
  if (find === knowsAll) return knowsAll;
  return (value) => {
    if (!isObject(value)) return undefined;
    for (const name of Object.keys(value)) {
      const path = find(value[name]);
      // The names of a record are chosen by a tenant, so they are left out of messages.
      if (path !== undefined) return path === '' ? '*' : below('*', path);
    }
    return undefined;
  };
}

/** Only the options of the value's own shape are asked: an option for lists knows nothing about an object. */
function inUnion(options: readonly { shape: string; find: Finder }[]): Finder {
  return (value) => {
    const shape = Array.isArray(value) ? 'array' : isObject(value) ? 'object' : 'other';
    const paths = options.filter((option) => option.shape === shape).map(({ find }) => find(value));
    return paths.includes(undefined) ? undefined : paths[0];
  };
}

function shapeOf(schema: z.core.$ZodType): string {
  const { type } = schema._zod.def;
  return type === 'array' ? 'array' : type === 'object' || type === 'record' ? 'object' : 'other';
}

/** Words are texts of a fixed set. Anything that is no text is not judged here. */
function inWords(words: ReadonlySet<unknown>): Finder {
  return (value) => (typeof value === 'string' && !words.has(value) ? '' : undefined);
}

const ofField = Object.fromEntries(
  Object.entries(fieldSchema.shape).filter(([keyword]) => !['type', 'items', 'properties'].includes(keyword)),
);

/** Arguments: in both forms of an input schema each has keywords of JSON Schema and of the service. */
function createArgumentFinder(): Finder {
  const fields = new Map(Object.entries(ofField).map(([keyword, schema]) => [keyword, finderOf(schema)]));
  return (definition) => {
    if (!isObject(definition)) return undefined;
    for (const keyword of Object.keys(definition)) {
      const find = fields.get(keyword);
      if (!find && !isKnownKeyword(keyword)) return keyword;
      if (find?.(definition[keyword]) !== undefined) return keyword;
    }
    return undefined;
  };
}

/**
 * Makes the function that finds what a newer version has stored in a configuration and this version does not know: a
 * field, or a word of a fixed set. It gives the path, without names that the tenant chose. The function takes time in
 * proportion to the configuration; making it walks the declarations once.
 */
export function createUnknownFieldFinder(): (config: ServerConfig) => string | undefined {
  const inConfig = finderOf(serverConfigSchema);
  const inArguments = inRecord(createArgumentFinder());
  return (config) => {
    const path = inConfig(config);
    if (path !== undefined) return path;
    for (const { input_schema: schema } of config.tools ?? []) {
      const found = inArguments(argumentsIn(schema));
      if (found !== undefined) return `tools[].input_schema.${found}`;
    }
    return undefined;
  };
}

function argumentsIn(schema: InputSchema | undefined): unknown {
  return schema && isJsonSchemaForm(schema) ? schema.properties : schema;
}
