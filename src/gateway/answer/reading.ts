import type { Tool } from '../../domain/config/tool.ts';
import { headerOf } from '../../domain/http/headers.ts';
import { type DotPath, parseDotPath } from '../../domain/json/dot-path.ts';
import { type FieldTree, fieldTree } from '../../domain/json/response-fields.ts';
import { charactersOfToken } from '../../domain/pieces/tokens.ts';
import { isSchemaObject, type JsonSchema } from '../../domain/schema/json-schema.ts';
import { compileOutputCheck, type OutputCheck } from '../arguments/validate-arguments.ts';

/** Configuration of a tool for reading its answers. */
export type ReadingSource = {
  transform: string;
  fields: readonly string[] | undefined;
  /** Whether the tool sends a body without `Prefer`, which explains an empty answer. */
  hintPrefer: boolean;
  outputSchema: JsonSchema | undefined;
  /** Names of the headers that the agent gets. */
  headers: readonly string[];
  /** Whether the answers have no body (HEAD). */
  isHead: boolean;
  /** Whether redirects could be followed, and are not. */
  mayFollow: boolean;
  /** Most characters of text that the agent gets at once. */
  mostCharacters: number | undefined;
};

/** Rules for reading the answers of a tool; compiled from its configuration. */
export type Reading = {
  /** The field of the configuration that an answer without a body cannot satisfy; undefined where any answer will do. */
  wholeField: 'response_transform' | 'output_schema' | undefined;
  /** The field by which an answer is read as JSON, whatever its media type says; undefined without one. */
  jsonField: 'response_transform' | 'response_fields' | 'output_schema' | undefined;
  transform: DotPath;
  fields: FieldTree | undefined;
  hintPrefer: boolean;
  /** Checks structured content against the tool's output schema. */
  output: OutputCheck | undefined;
  headers: readonly string[];
  isHead: boolean;
  mayFollow: boolean;
  mostCharacters: number | undefined;
  /** Whether `tools/list` shows the output schema, which asks for structured content. */
  isAnnounced: boolean;
  /** Whether structured content says the headers: where the output schema declares them. */
  hasHeaderSlot: boolean;
};

/** The property of structured content that holds the headers of the answer. */
export const headersProperty = 'response_headers';

export function compileReading(source: ReadingSource): Reading {
  const { transform, fields, hintPrefer, outputSchema, headers, isHead, mayFollow, mostCharacters } = source;
  const declared = outputSchema?.properties;
  const path = parseDotPath(transform);
  const wholeField = path.length > 0 ? 'response_transform' : outputSchema && 'output_schema';
  return {
    wholeField,
    jsonField: fields && wholeField !== 'response_transform' ? 'response_fields' : wholeField,
    transform: path,
    fields: fields && fieldTree(fields.map(parseDotPath)),
    hintPrefer,
    output: outputSchema && compileOutputCheck(outputSchema),
    headers,
    isHead,
    mayFollow,
    mostCharacters,
    isAnnounced: outputSchema !== undefined && mostCharacters === undefined,
    hasHeaderSlot: isSchemaObject(declared) && Object.hasOwn(declared, headersProperty),
  };
}

/** An agent must not repeat a change because its answer could not be read. */
export const carriedOut = 'the request itself was carried out';

/** `mostTokens` is the limit of the server for all its tools. */
export function readingSource(tool: Tool, mostTokens: number | undefined): ReadingSource {
  const most = tool.max_answer_tokens ?? mostTokens;
  const writes = tool.method === 'POST' || tool.method === 'PATCH';
  return {
    transform: tool.response_transform,
    fields: tool.response_fields,
    hintPrefer: writes && headerOf(tool.headers, 'prefer') === undefined,
    outputSchema: tool.output_schema,
    headers: tool.response_headers ?? [],
    isHead: tool.method === 'HEAD',
    mayFollow: (tool.method === 'GET' || tool.method === 'HEAD') && tool.redirects === undefined,
    mostCharacters: most === undefined ? undefined : most * charactersOfToken,
  };
}
