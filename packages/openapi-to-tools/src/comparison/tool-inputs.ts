import { type BodyKind, getBodyKind, getDestinations, getWireName } from '@toolhost/tool-config/destinations';
import { foldHeaderName } from '@toolhost/tool-config/http/parameter-names';
import { createTokenPattern, getArgumentNames, parseTemplateParts } from '@toolhost/tool-config/http/url-template';
import { getArguments, isJsonSchemaForm } from '@toolhost/tool-config/input-schema';
import { getField, isFields, type JsonFields, toText, toTexts } from '../document/lenient.ts';
import type { ImportedTool } from '../tools/tool-candidate.ts';

/** Argument of a tool, or a constant. `wireName` is its name in the request. */
export type ToolInput = {
  wireName: string;
  isRequired: boolean;
  /** Definition of the argument; empty for a constant in the URL or headers. */
  definition: JsonFields;
  /** Value that is always sent. */
  value: unknown;
};

/** Inputs that a tool sends, by location. Headers have folded names. */
export type ToolInputs = {
  /** Path arguments, in order. */
  path: readonly ToolInput[];
  query: ReadonlyMap<string, ToolInput>;
  headers: ReadonlyMap<string, ToolInput>;
  cookies: ReadonlyMap<string, ToolInput>;
  fields: ReadonlyMap<string, ToolInput>;
  /** Argument that is the whole body. */
  wholeBody: ToolInput | undefined;
  /** Arguments whose properties are sent under their own names. */
  spreadArguments: { query: readonly ToolInput[]; body: readonly ToolInput[] };
  bodyKind: BodyKind;
};

export function readToolInputs(tool: ImportedTool): ToolInputs {
  const { input_schema: schema, url } = tool;
  const definitions = isJsonSchemaForm(schema) ? schema.properties : schema;
  const declared = getArguments(schema);
  const [pathTemplate = '', queryTemplate = ''] = url.split('?');
  // A schema without a list of required names requires none.
  const required = new Set(
    isJsonSchemaForm(schema)
      ? toTexts(schema.required)
      : declared.flatMap((argument) => (argument.required ? [argument.name] : [])),
  );
  const names = declared.map(({ name }) => name);
  const findArguments = (template: string) =>
    getArgumentNames(parseTemplateParts(template, createTokenPattern(names, 'y'), []));
  const fields = { ...tool, headers: tool.headers ?? {} };
  const destinations = getDestinations(fields, declared, { inUrl: findArguments(url), inBody: [] });
  const byName = new Map<string, ToolInput>();
  const inputsByLocation = {
    query: new Map<string, ToolInput>(),
    header: new Map<string, ToolInput>(),
    cookie: new Map<string, ToolInput>(),
    body: new Map<string, ToolInput>(),
  };
  const spreadArguments = { query: [] as ToolInput[], body: [] as ToolInput[] };
  for (const argument of declared) {
    const { value, style } = argument.wire;
    const definition = getField(definitions, argument.name);
    const wireName = getWireName(argument);
    const input = {
      ...{ wireName, isRequired: required.has(argument.name) || value !== undefined, value },
      definition: isFields(definition) ? definition : {},
    };
    byName.set(argument.name, input);
    const destination = destinations.get(argument.name);
    if (destination === 'header') inputsByLocation.header.set(foldHeaderName(wireName), input);
    if (destination === 'cookie') inputsByLocation.cookie.set(wireName, input);
    if (destination !== 'query' && destination !== 'body') continue;
    inputsByLocation[destination].set(wireName, input);
    const isOpen = !isFields(input.definition.properties) && input.definition.anyOf === undefined;
    if (style === 'repeat' && argument.type === 'object' && isOpen) spreadArguments[destination].push(input);
  }
  for (const [name, value] of Object.entries(fields.headers))
    inputsByLocation.header.set(foldHeaderName(name), createConstant(name, value));
  for (const pair of queryTemplate.split('&').filter((pairText) => pairText !== '')) {
    const [name = '', valueText = ''] = pair.split('=').map(decode);
    const [argument] = findArguments(pair).map((name) => byName.get(name));
    inputsByLocation.query.set(name, argument ?? createConstant(name, valueText));
  }
  const bodyKind = getBodyKind(fields);
  return {
    path: findArguments(pathTemplate).flatMap((name) => byName.get(name) ?? []),
    query: inputsByLocation.query,
    headers: inputsByLocation.header,
    cookies: inputsByLocation.cookie,
    fields: inputsByLocation.body,
    wholeBody: bodyKind === 'argument' ? byName.get(toText(tool.body)) : undefined,
    spreadArguments,
    bodyKind,
  };
}

function createConstant(wireName: string, value: string): ToolInput {
  return { wireName, isRequired: true, definition: {}, value };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that encodes nothing is kept as is.
    return text;
  }
}
