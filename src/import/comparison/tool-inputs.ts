import { type BodyKind, bodyKindOf, destinationsOf, wireNameOf } from '../../domain/config/destinations.ts';
import { argumentsOf, isJsonSchemaForm } from '../../domain/config/input-schema.ts';
import { foldedHeader } from '../../domain/http/parameter-names.ts';
import { argumentsIn, parseParts, tokenPattern } from '../../domain/http/url-template.ts';
import { asText, asTexts, field, isFields, type JsonFields } from '../document/lenient.ts';
import type { ImportedTool } from '../tools/made-tool.ts';

/** Argument of a tool, or a value that the tool always sends. */
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
  whole: ToolInput | undefined;
  /** Arguments whose properties are sent under their own names. */
  spread: { query: readonly ToolInput[]; body: readonly ToolInput[] };
  bodyKind: BodyKind;
};

export function readToolInputs(tool: ImportedTool): ToolInputs {
  const { input_schema: schema, url } = tool;
  const definitions = isJsonSchemaForm(schema) ? schema.properties : schema;
  const declared = argumentsOf(schema);
  const [path = '', query = ''] = url.split('?');
  // A schema without a list of required names requires none.
  const required = new Set(
    isJsonSchemaForm(schema)
      ? asTexts(schema.required)
      : declared.flatMap((argument) => (argument.required ? [argument.name] : [])),
  );
  const names = declared.map(({ name }) => name);
  const tokensIn = (text: string) => argumentsIn(parseParts(text, tokenPattern(names, 'y'), []));
  const fields = { ...tool, headers: tool.headers ?? {} };
  const destinations = destinationsOf(fields, declared, { inUrl: tokensIn(url), inBody: [] });
  const byName = new Map<string, ToolInput>();
  const found = {
    query: new Map<string, ToolInput>(),
    header: new Map<string, ToolInput>(),
    cookie: new Map<string, ToolInput>(),
    body: new Map<string, ToolInput>(),
  };
  const spread = { query: [] as ToolInput[], body: [] as ToolInput[] };
  for (const argument of declared) {
    const { value, style } = argument.wire;
    const definition = field(definitions, argument.name);
    const wireName = wireNameOf(argument);
    const input = {
      ...{ wireName, isRequired: required.has(argument.name) || value !== undefined, value },
      definition: isFields(definition) ? definition : {},
    };
    byName.set(argument.name, input);
    const destination = destinations.get(argument.name);
    if (destination === 'header') found.header.set(foldedHeader(wireName), input);
    if (destination === 'cookie') found.cookie.set(wireName, input);
    if (destination !== 'query' && destination !== 'body') continue;
    found[destination].set(wireName, input);
    const isOpen = !isFields(input.definition.properties) && input.definition.anyOf === undefined;
    if (style === 'repeat' && argument.type === 'object' && isOpen) spread[destination].push(input);
  }
  for (const [name, value] of Object.entries(fields.headers))
    found.header.set(foldedHeader(name), constant(name, value));
  for (const pair of query.split('&').filter((text) => text !== '')) {
    const [name = '', text = ''] = pair.split('=').map(decoded);
    const [argument] = tokensIn(pair).map((one) => byName.get(one));
    found.query.set(name, argument ?? constant(name, text));
  }
  const bodyKind = bodyKindOf(fields);
  return {
    path: tokensIn(path).flatMap((name) => byName.get(name) ?? []),
    query: found.query,
    headers: found.header,
    cookies: found.cookie,
    fields: found.body,
    whole: bodyKind === 'argument' ? byName.get(asText(tool.body)) : undefined,
    spread,
    bodyKind,
  };
}

function constant(wireName: string, value: string): ToolInput {
  return { wireName, isRequired: true, definition: {}, value };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign that encodes nothing is kept as is.
    return text;
  }
}
