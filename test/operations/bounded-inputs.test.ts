import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { z } from 'zod';
import { shortLimits } from '../../src/domain/json/body-limits.ts';
import { inputSchemaOf } from '../../src/operations/describe.ts';
import { operationList } from '../../src/operations/index.ts';
import { takesShortInput } from '../../src/operations/run-operation.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

type Def = { type: string; [field: string]: unknown };

/** What in an input could be as long as somebody likes, besides the limit of a posted body. */
function unbounded(schema: z.ZodType, path: string): string[] {
  const def = schema.def as unknown as Def;
  const inner = (child: unknown, name = ''): string[] => unbounded(child as z.ZodType, path + name);
  switch (def.type) {
    case 'string':
      return bounded(schema) || 'format' in def ? [] : [`${path}: a text without max`];
    case 'array':
      return [...(bounded(schema) ? [] : [`${path}: an array without max`]), ...inner(def.element, '[]')];
    case 'object':
      return Object.entries((schema as z.ZodObject).shape).flatMap(([name, child]) => inner(child, `.${name}`));
    case 'union':
      return (def.options as z.ZodType[]).flatMap((option) => inner(option));
    case 'pipe':
      return inner(def.in);
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return inner(def.innerType);
    // A schema that contains itself, such as that of any JSON.
    case 'lazy':
      return [`${path}: anything`];
    case 'record':
      return [`${path}: a record`];
    case 'unknown':
    case 'any':
    case 'custom':
      return [`${path}: anything`];
    default:
      return [];
  }
}

/** A text is bounded by a length, or by a pattern that repeats nothing without end. */
function bounded(schema: z.ZodType): boolean {
  const checks = ((schema.def as unknown as Def).checks ?? []) as {
    _zod: { def: { check: string; pattern?: RegExp } };
  }[];
  return checks.some(
    ({ _zod: { def } }) => def.check === 'max_length' || (def.pattern && !/[+*]/.test(def.pattern.source)),
  );
}

/** What rules of their own bound, each with its price in test/price-of-{schemas,arguments}.test.ts. */
const boundedByRules = [
  /^(create|update|replace|check)McpServer\.slug: a text/,
  /McpServer\.authentication(\[\])?\.(header: a text|extra_params: a record)/,
  /^(plan|apply)McpServer\.(config|secrets): a record/,
  /McpServer\.(headers|variables|views): a record/,
  /McpServer\.oauth\.(scopes\[\]: a text|extra_params: a record)/,
  /McpServer\.tools\[\]\.(name|body): a text/,
  /McpServer\.tools\[\]\.(headers|input_schema|output_schema): a record/,
  /(McpServer\.tools\[\]|^(add|update)Tool)\.body_template: anything/,
  /^(add|update)Tool\.(name|body): a text/,
  /^(add|update)Tool\.(headers|input_schema|output_schema): a record/,
  /^(callTool|previewToolCall)\.arguments: a record/,
  /^import(Api|Again)\.answers: a record/,
];

describe('the inputs of the operations', () => {
  it('[find A1] every text and array has a most, every record a rule', () => {
    const found = operationList.flatMap((op) => unbounded(op.input, op.name));
    assert.deepEqual(
      found.filter((line) => !boundedByRules.some((rule) => rule.test(line))),
      [],
    );
  });

  it('[find A1] the longest input of an operation that takes only a short one is within its limits', () => {
    const short = operationList.filter(takesShortInput);
    assert.ok(short.length > 20);
    for (const op of short) {
      const { bytes, values } = mostOf(inputSchemaOf(op));
      assert.ok(
        bytes < shortLimits.bytes && values < shortLimits.elements,
        `${op.name}: ${bytes} bytes, ${values} values`,
      );
    }
  });
});

/** The length and the number of values of the longest JSON text that a schema allows. */
function mostOf(schema: Json): { bytes: number; values: number } {
  const {
    type,
    properties,
    items,
    maxItems = 0,
    maxLength = 0,
    anyOf,
  } = schema as {
    [keyword: string]: never;
  } & { properties?: { [name: string]: Json }; maxItems?: number; maxLength?: number; items?: Json; anyOf?: Json[] };
  const parts =
    type === 'object'
      ? Object.entries(properties ?? {}).map(([name, inner]) => ({ ...mostOf(inner), name: name.length + 4 }))
      : type === 'array'
        ? Array.from({ length: maxItems }, () => ({ ...mostOf(items ?? {}), name: 1 }))
        : (anyOf ?? []).map((inner) => ({ ...mostOf(inner), name: 0 }));
  const bytes = parts.reduce((sum, part) => sum + part.bytes + part.name, maxLength + 20);
  return { bytes, values: parts.reduce((sum, part) => sum + part.values, 1) };
}
