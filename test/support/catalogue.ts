import { inputSchemaOf } from '../../src/operations/describe.ts';
import type { Operation } from '../../src/operations/operation.ts';
import type { Json } from './toolhost/toolhost.ts';

/** The smallest valid input of an operation. */
export function leastInput(op: Operation): Json {
  const { properties, required } = inputSchemaOf(op) as { properties: Record<string, Json>; required?: string[] };
  const least = ({ type, minimum, enum: words }: Json) => {
    if (Array.isArray(words)) return words[0];
    return type === 'integer' ? (minimum ?? 1) : type === 'array' ? [] : type === 'object' ? {} : 'x';
  };
  return Object.fromEntries((required ?? []).map((name) => [name, least(properties[name] ?? {})]));
}

/** The REST request of an operation: the inputs that its path names, and the others as its body. */
export function restRequest(op: Operation, input: Json): { method: string; path: string; body?: Json } {
  const { method, path: template } = op.route;
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(input[name])));
  if (method === 'GET' || method === 'DELETE') return { method, path };
  return {
    method,
    path,
    body: Object.fromEntries(Object.entries(input).filter(([name]) => !template.includes(`{${name}}`))),
  };
}
