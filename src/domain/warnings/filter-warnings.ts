import { argumentsOf, toJsonSchema } from '../config/input-schema.ts';
import type { Argument } from '../config/sending/argument.ts';
import { bodyKindOf } from '../config/sending/destinations.ts';
import type { Tool } from '../config/tool.ts';
import { argumentsIn, parseUrlTemplate, type UrlTemplate } from '../http/url-template.ts';
import { shown } from '../problems/problems.ts';
import type { JsonSchema } from '../schema/json-schema.ts';

type Remark = { path: string; message: string };

/** Why a call may have no text for an argument. */
type Gap = 'left out' | 'null';

const remedies: Record<Gap, string> = {
  'left out': 'make the argument required, or give it a default',
  null: 'let the argument have no null in its type',
};

/**
 * Warnings about filters that a call can leave out, where the method changes or deletes: a pair of the URL whose argument
 * is absent is dropped (specification, "Request" 3), and an API without the filter may take everything as meant.
 */
export function filterWarnings(tool: Tool, at: string): Remark[] {
  if (!/^(PUT|PATCH|DELETE)$/.test(tool.method)) return [];
  const declared = argumentsOf(tool.input_schema);
  const { template } = parseUrlTemplate(
    tool.url,
    declared.map(({ name }) => name),
  );
  if (!template) return [];
  const { properties = {} } = toJsonSchema(tool.input_schema);
  const gaps = new Map(declared.map((one) => [one.name, gapOf(one, (properties as JsonSchema)[one.name])]));
  const remarks = template.query.flatMap(({ name, parts = [] }): Remark[] => {
    const names = argumentsIn(parts);
    const first = names[0];
    const gap = first === undefined || names.some((one) => !gaps.get(one)) ? undefined : gaps.get(first);
    if (first === undefined || gap === undefined) return [];
    const message = `may be ${gap}, and then the pair ${shown(name)} of the URL is left out too: one call may change or delete everything there; ${remedies[gap]}`;
    return [{ path: `${at}.input_schema.${first}`, message }];
  });
  if (remarks.length > 0 || !isOnlyNarrowed(tool, template, declared)) return remarks;
  const message =
    'every argument may be left out, and the URL has none: where it is the address of a list, one call may delete all of it; make one of them required';
  return [{ path: `${at}.input_schema`, message }];
}

function gapOf({ required, fallback, wire }: Argument, schema: unknown): Gap | undefined {
  if (wire.value !== undefined) return undefined;
  if (!required && fallback === undefined) return 'left out';
  return takesNull(schema) ? 'null' : undefined;
}

/** Whether a schema says of itself that null fits. One that refers to others is not followed. */
function takesNull(schema: unknown): boolean {
  const { type, enum: values } = (schema ?? {}) as JsonSchema;
  const isListed = !Array.isArray(values) || values.includes(null);
  return Array.isArray(type) && type.includes('null') && isListed;
}

/** Whether a DELETE has arguments for its query and nothing that every call has. */
function isOnlyNarrowed(tool: Tool, { query }: UrlTemplate, declared: readonly Argument[]): boolean {
  if (tool.method !== 'DELETE' || declared.length === 0 || query.length > 0) return false;
  if (bodyKindOf(tool) === 'template' || bodyKindOf(tool) === 'argument') return false;
  return declared.every(({ required, fallback, wire, location }) => {
    const isAbsent = !required && fallback === undefined && wire.value === undefined;
    return isAbsent && (location === undefined || location === 'query');
  });
}
