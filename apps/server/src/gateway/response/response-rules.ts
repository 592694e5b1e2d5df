import { type DotPath, parseDotPath } from '@toolhost/errors/dot-path';
import { buildFieldTree, type FieldTree } from '@toolhost/json/response-fields';
import { isSchemaObject, type JsonSchema } from '@toolhost/json-schema/json-schema';
import { getHeader } from '@toolhost/tool-config/http/headers';
import { charactersPerToken } from '@toolhost/tool-config/tokens';
import type { Tool } from '@toolhost/tool-config/tool';
import { compileOutputCheck, type OutputCheck } from '../arguments/validate-arguments.ts';

/** Configuration of how a tool's responses are processed. */
export type ResponseRulesSource = {
  transform: string;
  fields: readonly string[] | undefined;
  /** True if the tool sends a body without `Prefer`, which may explain an empty response. */
  shouldHintPrefer: boolean;
  outputSchema: JsonSchema | undefined;
  /** Names of the response headers that the agent gets. */
  headers: readonly string[];
  /** True if responses have no body (HEAD). */
  isHead: boolean;
  /** True if redirects could be followed, but are not enabled. */
  canFollowRedirects: boolean;
  /** Maximum length of the text that one result contains, in characters. */
  maxCharacters: number | undefined;
};

/** Compiled rules for processing a tool's responses. */
export type ResponseRules = {
  /** Configuration field that a response without a body cannot satisfy. Undefined if any response will do. */
  bodyField: 'response_transform' | 'output_schema' | undefined;
  /** Configuration field that requires JSON, whatever the media type of the response. Undefined if there is none. */
  jsonField: 'response_transform' | 'response_fields' | 'output_schema' | undefined;
  transform: DotPath;
  fields: FieldTree | undefined;
  shouldHintPrefer: boolean;
  /** Checks structured content against the tool's output schema. */
  outputCheck: OutputCheck | undefined;
  headers: readonly string[];
  isHead: boolean;
  canFollowRedirects: boolean;
  maxCharacters: number | undefined;
  /** True if `tools/list` contains the output schema, which requires structured content. */
  isSchemaListed: boolean;
  /** True if structured content contains the headers, because the output schema declares them. */
  declaresHeaders: boolean;
};

/** Property of structured content that contains the response headers. */
export const headersProperty = 'response_headers';

export function compileResponseRules(source: ResponseRulesSource): ResponseRules {
  const { transform, fields, shouldHintPrefer, outputSchema, headers, isHead, canFollowRedirects, maxCharacters } =
    source;
  const declaredProperties = outputSchema?.properties;
  const path = parseDotPath(transform);
  const bodyField = path.length > 0 ? 'response_transform' : outputSchema && 'output_schema';
  return {
    bodyField,
    jsonField: fields && bodyField !== 'response_transform' ? 'response_fields' : bodyField,
    transform: path,
    fields: fields && buildFieldTree(fields.map(parseDotPath)),
    shouldHintPrefer,
    outputCheck: outputSchema && compileOutputCheck(outputSchema),
    headers,
    isHead,
    canFollowRedirects,
    maxCharacters,
    isSchemaListed: outputSchema !== undefined && maxCharacters === undefined,
    declaresHeaders: isSchemaObject(declaredProperties) && Object.hasOwn(declaredProperties, headersProperty),
  };
}

/** Tells the agent not to repeat a change because its response could not be processed. */
export const requestCarriedOut = 'the request itself was carried out';

/** Returns the response configuration of a tool. `maxServerTokens` is the server's limit for all of its tools. */
export function toResponseRulesSource(tool: Tool, maxServerTokens: number | undefined): ResponseRulesSource {
  const maxTokens = tool.max_response_tokens ?? maxServerTokens;
  const isWrite = tool.method === 'POST' || tool.method === 'PATCH';
  return {
    transform: tool.response_transform,
    fields: tool.response_fields,
    shouldHintPrefer: isWrite && getHeader(tool.headers, 'prefer') === undefined,
    outputSchema: tool.output_schema,
    headers: tool.response_headers ?? [],
    isHead: tool.method === 'HEAD',
    canFollowRedirects: (tool.method === 'GET' || tool.method === 'HEAD') && tool.redirects === undefined,
    maxCharacters: maxTokens === undefined ? undefined : maxTokens * charactersPerToken,
  };
}
