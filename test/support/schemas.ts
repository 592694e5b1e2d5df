import type { Json } from './toolhost/toolhost.ts';

/** Short forms of schemas, parameters, and bodies, for API descriptions and tools. */
export const text = { type: 'string' };
export const integer = { type: 'integer' };
export const number = { type: 'number' };
export const boolean = { type: 'boolean' };

export const listOf = (items: unknown) => ({ type: 'array', items });

export const object = (properties: Json, required?: string[]) => ({
  type: 'object',
  properties,
  ...(required && { required }),
});

const parameter =
  (location: string) =>
  (name: string, schema: unknown = text, more: Json = {}) => ({ name, in: location, schema, ...more });

export const query = parameter('query');
export const header = parameter('header');
export const cookie = parameter('cookie');
export const inPath = (name: string, schema: unknown = text, more: Json = {}) => ({
  ...parameter('path')(name, schema, more),
  required: true,
});

export const jsonBody = (schema: unknown, required = false) => ({
  ...(required && { required }),
  content: { 'application/json': { schema } },
});
