import type { Operation } from '../../apps/server/src/operations/operation.ts';
import type { Json } from './toolhost/toolhost.ts';

function minimalValue(schema: Json): unknown {
  const { type, minimum, minItems, items, enum: enumValues, const: constValue } = schema;
  const [first] = (schema.anyOf ?? schema.oneOf ?? []) as Json[];
  if (first) return minimalValue(first);
  if (constValue !== undefined || Array.isArray(enumValues)) return constValue ?? (enumValues as unknown[])[0];
  if (type === 'array') return minItems === undefined ? [] : [minimalValue(items as Json)];
  return type === 'integer' ? (minimum ?? 1) : type === 'object' ? minimalObject(schema) : 'x';
}

function minimalObject({ properties = {}, required = [] }: Json): Json {
  return Object.fromEntries(
    (required as string[]).map((name) => [name, minimalValue((properties as Json)[name] as Json)]),
  );
}

/** Returns the smallest valid input of an operation. */
export function buildMinimalInput(op: Operation): Json {
  return minimalObject(op.inputSchema());
}

/** Converts an input to its REST request. Inputs that the path names go into the path, the others into the body. */
export function toRestRequest(op: Operation, input: Json): { method: string; path: string; body?: Json } {
  const { method, path: template } = op.route;
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input[name])));
  if (method === 'GET' || method === 'DELETE') return { method, path };
  return {
    method,
    path,
    body: Object.fromEntries(Object.entries(input).filter(([name]) => !template.includes(`{${name}}`))),
  };
}
