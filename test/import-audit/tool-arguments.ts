/** Finds the tool argument for a parameter or a body field, based on the tool's public configuration. */
import { isObject, type Json, type JsonObject, toObject, toText } from './json.ts';
import type { Operation, Parameter, ParameterLocation } from './reader/operations.ts';
import type { Value } from './values.ts';

export type Tool = {
  name: string;
  method: string;
  url: string;
  headers: JsonObject;
  /** Encoding of the body, or the name of the argument that is the body. */
  body: string | undefined;
  bodyTemplate: Json | undefined;
  /** Argument definitions as configured. */
  fields: ReadonlyMap<string, JsonObject>;
  /** JSON Schema that agents see. */
  inputSchema: JsonObject;
};

/** Target of an input: an argument, a constant of the tool, or nothing. */
export type Target =
  | { kind: 'argument'; argument: string }
  | { kind: 'constant'; value: Json | undefined }
  | { kind: 'none' };

export type BodyTarget =
  | { kind: 'whole'; argument: string }
  | { kind: 'fields'; targets: ReadonlyMap<string, Target> }
  | { kind: 'none' };

export function readTool(config: JsonObject, listed: JsonObject): Tool {
  const schema = toObject(config.input_schema);
  const isJsonSchema = schema.type === 'object';
  const fields = Object.entries(isJsonSchema ? toObject(schema.properties) : schema);
  return {
    name: toText(config.name),
    method: toText(config.method),
    url: toText(config.url),
    headers: toObject(config.headers),
    body: typeof config.body === 'string' ? config.body : undefined,
    bodyTemplate: config.body_template,
    fields: new Map(fields.map(([name, field]) => [name, toObject(field)])),
    inputSchema: toObject(listed.inputSchema),
  };
}

const none: Target = { kind: 'none' };
const simplify = (name: string) => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');

/** Returns the argument of each parameter. */
export function findParameterTargets(tool: Tool, operation: Operation): Map<Parameter, Target> {
  const byPosition = findPathTargets(tool, operation.template);
  const assigned = new Set<string>();
  const targets = new Map<Parameter, Target>();
  const assign = (parameter: Parameter, target: Target) => {
    targets.set(parameter, target);
    if (target.kind === 'argument') assigned.add(target.argument);
  };
  for (const parameter of operation.parameters)
    assign(
      parameter,
      (parameter.place === 'path' && byPosition.get(parameter.name)) || findByWireName(tool, parameter),
    );
  for (const parameter of operation.parameters) {
    if (targets.get(parameter)?.kind !== 'none') continue;
    const similar = [...tool.fields.keys()].find(
      (name) =>
        !assigned.has(name) &&
        simplify(name) === simplify(parameter.name) &&
        getArgumentLocation(tool, name) === toArgumentLocation(parameter.place),
    );
    if (similar !== undefined) assign(parameter, { kind: 'argument', argument: similar });
  }
  return targets;
}

type ArgumentLocation = 'path' | 'query' | 'header' | 'cookie' | 'body';

const toArgumentLocation = (place: ParameterLocation): ArgumentLocation => (place === 'querystring' ? 'query' : place);

function getArgumentLocation(tool: Tool, argument: string): ArgumentLocation {
  const configured = toText(tool.fields.get(argument)?.in);
  if (configured !== '') return configured as ArgumentLocation;
  const [path = '', query = ''] = tool.url.split('?', 2);
  if (findTokens(path, tool).includes(argument)) return 'path';
  if (findTokens(query, tool).includes(argument)) return 'query';
  if (tool.body === argument) return 'body';
  const hasOwnBody = tool.bodyTemplate !== undefined || (tool.body !== undefined && tool.fields.has(tool.body));
  return hasOwnBody || ['GET', 'HEAD', 'OPTIONS', 'DELETE', 'COPY', 'MOVE'].includes(tool.method) ? 'query' : 'body';
}

/** Returns the arguments that `:name` in a text refers to; the longest name wins. */
function findTokens(text: string, tool: Tool): string[] {
  const names = [...tool.fields.keys()].sort((a, b) => b.length - a.length);
  return [...text.matchAll(/:/g)].flatMap(({ index }) => {
    const name = names.find((one) => text.startsWith(one, index + 1));
    return name === undefined ? [] : [name];
  });
}

function findByWireName(tool: Tool, parameter: Parameter): Target {
  const isSame = (name: string) =>
    parameter.place === 'header' ? name.toLowerCase() === parameter.name.toLowerCase() : name === parameter.name;
  for (const [argument, field] of tool.fields) {
    if (getArgumentLocation(tool, argument) !== toArgumentLocation(parameter.place)) continue;
    if (isSame(toText(field.wire_name) || argument)) return toTarget(argument, field);
  }
  for (const [name, value] of new URLSearchParams(tool.url.split('?', 2)[1] ?? '')) {
    if (parameter.place !== 'query' || name !== parameter.name) continue;
    const [argument] = findTokens(value, tool);
    return argument === undefined ? { kind: 'constant', value } : { kind: 'argument', argument };
  }
  for (const [name, value] of Object.entries(tool.headers))
    if (parameter.place === 'header' && isSame(name)) return { kind: 'constant', value };
  return none;
}

const toTarget = (argument: string, field: JsonObject): Target =>
  'value' in field ? { kind: 'constant', value: field.value } : { kind: 'argument', argument };

/** Returns the arguments of a path by their position in it. */
function findPathTargets(tool: Tool, path: string): Map<string, Target> {
  const template = path.split(/[?#]/, 1)[0] as string;
  const names = [...template.matchAll(/\{([^{}]+)\}/g)].map(([, name]) => name as string);
  const statics = template.split(/\{[^{}]+\}/).map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const found = new RegExp(`${statics.join('(.+?)')}$`).exec(tool.url.split('?', 1)[0] as string);
  const targets = new Map<string, Target>();
  for (const [at, name] of names.entries()) {
    const text = found?.[at + 1];
    if (text === undefined) continue;
    const [argument] = findTokens(text, tool);
    if (argument !== undefined) targets.set(name, toTarget(argument, toObject(tool.fields.get(argument))));
    else if (!isPlaceholder(text)) targets.set(name, { kind: 'constant', value: decodeURIComponent(text) });
  }
  return targets;
}

/** Returns true for a placeholder that was copied from the document instead of a value. */
const isPlaceholder = (text: string) => /^(:|%3A|\{|%7B)/i.test(text);

/** Returns the arguments of a body; `names` are the fields of the body in the document. */
export function findBodyTarget(tool: Tool, names: Iterable<string>): BodyTarget {
  const encodings = ['json', 'form', 'multipart'];
  if (tool.body !== undefined && tool.fields.has(tool.body) && !encodings.includes(tool.body))
    return { kind: 'whole', argument: tool.body };
  if (tool.bodyTemplate !== undefined) return findTemplateTarget(tool, tool.bodyTemplate);
  const targets = new Map<string, Target>();
  for (const [argument, field] of tool.fields) {
    if (getArgumentLocation(tool, argument) !== 'body') continue;
    targets.set(toText(field.wire_name) || argument, toTarget(argument, field));
  }
  if (targets.size === 0) return { kind: 'none' };
  for (const name of names) if (!targets.has(name)) targets.set(name, none);
  return { kind: 'fields', targets };
}

function findTemplateTarget(tool: Tool, template: Json): BodyTarget {
  const getArgument = (value: Json) =>
    typeof value === 'string' && value.startsWith(':') && tool.fields.has(value.slice(1)) ? value.slice(1) : undefined;
  const whole = getArgument(template);
  if (whole !== undefined) return { kind: 'whole', argument: whole };
  const targets = Object.entries(toObject(template)).map(([name, value]): [string, Target] => {
    const argument = getArgument(value);
    return [name, argument === undefined ? { kind: 'constant', value } : { kind: 'argument', argument }];
  });
  return { kind: 'fields', targets: new Map(targets) };
}

/**
 * Returns true for an argument that is a list because of its name: PHP, Rails, and qs parse a name that ends in `[]` as
 * a list, whatever its schema is.
 */
export function isListByName(tool: Tool, argument: string, name: string): boolean {
  const schema = toObject(toObject(tool.inputSchema.properties)[argument]);
  return name.endsWith('[]') && [schema.type].flat().includes('array');
}

/** Returns a value as an agent passes it, with bytes in Base64. */
export function toArgument(value: Value): Json {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) return value.map(toArgument);
  if (!isObject(value)) return value as Json;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, toArgument(one as Value)]));
}
