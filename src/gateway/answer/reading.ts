import type { Tool } from '../../domain/config/tool.ts';
import { headerOf } from '../../domain/http/headers.ts';
import { type DotPath, parseDotPath } from '../../domain/json/dot-path.ts';
import { type FieldTree, fieldTree } from '../../domain/json/response-fields.ts';
import { charactersOfToken } from '../../domain/pieces/tokens.ts';
import { isSchemaObject, type JsonSchema } from '../../domain/schema/json-schema.ts';
import { compileOutputCheck, type OutputCheck } from '../arguments/validate-arguments.ts';

/** Configuration of how a tool's responses are processed. */
export type ReadingSource = {
  transform: string;
  fields: readonly string[] | undefined;
  /** True if the tool sends a body without `Prefer`, which may explain an empty response. */
  hintPrefer: boolean;
  outputSchema: JsonSchema | undefined;
  /** Names of the response headers that the agent gets. */
  headers: readonly string[];
  /** True if responses have no body (HEAD). */
  isHead: boolean;
  /** True if redirects could be followed, but are not enabled. */
  mayFollow: boolean;
  /** Maximum length of the text that one result contains, in characters. */
  mostCharacters: number | undefined;
};

/** Compiled rules for processing a tool's responses. */
export type Reading = {
  /** Configuration field that a response without a body cannot satisfy. Undefined if any response will do. */
  wholeField: 'response_transform' | 'output_schema' | undefined;
  /** Configuration field that requires JSON, whatever the media type of the response. Undefined if there is none. */
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
  /** True if `tools/list` contains the output schema, which requires structured content. */
  isAnnounced: boolean;
  /** True if structured content contains the headers, because the output schema declares them. */
  hasHeaderSlot: boolean;
};

/** Property of structured content that contains the response headers. */
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

/** Tells the agent not to repeat a change because its response could not be processed. */
export const carriedOut = 'the request itself was carried out';

/** Returns the response configuration of a tool. `mostTokens` is the server's limit for all of its tools. */
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
