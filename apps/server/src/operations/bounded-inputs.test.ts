import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { z } from 'zod';
import { operationList } from './index.ts';

type Def = { type: string; [field: string]: unknown };

/** Returns the parts of an input schema whose length only the request body limit bounds. */
function findUnbounded(schema: z.ZodType, path: string): string[] {
  const def = schema.def as unknown as Def;
  const visitChild = (child: unknown, name = ''): string[] => findUnbounded(child as z.ZodType, path + name);
  switch (def.type) {
    case 'string':
      return isBounded(schema) || 'format' in def ? [] : [`${path}: a text without max`];
    case 'array':
      return [...(isBounded(schema) ? [] : [`${path}: an array without max`]), ...visitChild(def.element, '[]')];
    case 'object':
      return Object.entries((schema as z.ZodObject).shape).flatMap(([name, child]) => visitChild(child, `.${name}`));
    case 'union':
      return (def.options as z.ZodType[]).flatMap((option) => visitChild(option));
    case 'pipe':
      return visitChild(def.in);
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return visitChild(def.innerType);
    // A recursive schema, such as the schema of any JSON value.
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

/** Checks that a string is bounded by a maximum length or by a pattern without unbounded repetition. */
function isBounded(schema: z.ZodType): boolean {
  const checks = ((schema.def as unknown as Def).checks ?? []) as {
    _zod: { def: { check: string; pattern?: RegExp } };
  }[];
  return checks.some(
    ({ _zod: { def } }) => def.check === 'max_length' || (def.pattern && !/[+*]/.test(def.pattern.source)),
  );
}

/** Inputs that have their own rules. Their CPU budgets are tested in test/budgets. */
const boundedByRules = [
  /^(create|update|replace|check)McpServer\.slug: a text/,
  /McpServer\.authentication(\[\])?\.(header: a text|extra_params: a record)/,
  /^(plan|apply)McpServer\.(config|secrets): a record/,
  /^(planDuplicate|duplicateMcpServer)\.secrets: a record/,
  /McpServer\.(credentials|headers|variables|views): a record/,
  /McpServer\.oauth\.(scopes\[\]: a text|(extra|token)_params: a record)/,
  /McpServer\.tools\[\]\.(name|body): a text/,
  /McpServer\.tools\[\]\.(headers|input_schema|output_schema): a record/,
  /(McpServer\.tools\[\]|^(add|update)Tool)\.body_template: anything/,
  /^(add|update)Tool\.(name|body): a text/,
  /^(add|update)Tool\.(headers|input_schema|output_schema): a record/,
  /^(callTool|previewToolCall)\.arguments: a record/,
  /^(?:re)?importApi\.(answers|headers): a record/,
];

describe('operation inputs', () => {
  it('[find A1] bound every string and array by a maximum and every record by a rule', () => {
    const found = operationList.flatMap((op) => findUnbounded(op.input, op.name));
    assert.deepEqual(
      found.filter((line) => !boundedByRules.some((rule) => rule.test(line))),
      [],
    );
  });
});
