import type { Tool } from '../../domain/config/tool.ts';
import { type FieldTree, fieldTree } from '../../domain/json/response-fields.ts';
import { type DotPath, parseDotPath } from '../../domain/json/response-transform.ts';
import type { JsonSchema } from '../../domain/schema/json-schema.ts';
import { compileOutputCheck } from '../arguments/validate-arguments.ts';

/** Configuration of a tool for reading its answers. */
export type ReadingSource = {
  transform: string;
  fields: readonly string[] | undefined;
  /** Whether the tool sends a body without `Prefer`, which explains an empty answer. */
  hintPrefer: boolean;
  outputSchema: JsonSchema | undefined;
};

/** Rules for reading the answers of a tool; compiled from its configuration. */
export type Reading = {
  transform: DotPath;
  fields: FieldTree | undefined;
  hintPrefer: boolean;
  /** Checks structured content against the tool's output schema, in at most `mostSteps` steps. */
  fits: ((value: unknown, mostSteps: number) => boolean) | undefined;
};

export function compileReading({ transform, fields, hintPrefer, outputSchema }: ReadingSource): Reading {
  return {
    transform: parseDotPath(transform),
    fields: fields && fieldTree(fields.map(parseDotPath)),
    hintPrefer,
    fits: outputSchema && compileOutputCheck(outputSchema),
  };
}

export function readingSource(tool: Tool): ReadingSource {
  const writes = tool.method === 'POST' || tool.method === 'PATCH';
  return {
    transform: tool.response_transform,
    fields: tool.response_fields,
    hintPrefer: writes && !Object.keys(tool.headers).some((name) => name.toLowerCase() === 'prefer'),
    outputSchema: tool.output_schema,
  };
}
