import type { Problem } from '../errors.ts';
import { didYouMean, type Guesses, shown } from './problems.ts';

/**
 * Text that its author expects to be filled, and that would be sent as it stands. Such a tool is stored without a word
 * and then never works, so each of these is a problem.
 */

/** The part of an argument that these rules need. */
type DeclaredArgument = { name: string; required: boolean; fallback: unknown; wire: { value?: unknown } };

type Fields = { [name: string]: unknown };

/** `{id}`, `{+path}` or `{name=projects/*}`, but not `{{NAME}}`, `{}` or JSON. */
const braces = /(?<!\{)\{([?+/&#;.]?)([A-Za-z_][\w.-]*)(\*|=[^{}]*|:\d+)?\}(?!\})/g;
const angles = /<([A-Za-z_]\w*)>/g;

/** The problems of braces in a URL, which may be relative. */
export function bracesInUrl(url: string, declared: ReadonlySet<string>): string[] {
  const [beforeQuery = '', query = ''] = splitAt(url, '?');
  const [base, path] = baseAndPath(beforeQuery);
  const inHost = [...base.matchAll(braces)].map(
    ([found, , name = '']) =>
      `\`${found}\` cannot stand in a host; declare ${name} in variables and write {{${name}}}, or write the host itself`,
  );
  const inPath = [...path.matchAll(braces), ...path.matchAll(angles)].map((match) => unfilled(match, declared));
  // Some APIs have braces of their own in a query, behind a name: fields=posts{message}.
  const inQuery = [...query.matchAll(braces), ...query.matchAll(angles)]
    .filter(({ index }) => !/[\w)}\]]/.test(query[index - 1] ?? ''))
    .map((match) => unfilled(match, declared));
  return [...new Set([...inHost, ...inPath, ...inQuery])];
}

function unfilled(match: RegExpExecArray, declared: ReadonlySet<string>): string {
  const found = match[0];
  const name = found.startsWith('<') ? String(match[1]) : String(match[2]);
  const declaring = declared.has(name) ? '' : ` and declare ${name} in input_schema`;
  const encoded = encodeURIComponent(found);
  return `\`${found}\` would be sent as it stands; write \`:${name}\`${declaring} for an argument, {{${name}}} for a variable or a secret, or ${encoded} for the characters themselves`;
}

function splitAt(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function baseAndPath(url: string): [string, string] {
  const base = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/]*/.exec(url)?.[0] ?? '';
  return [base, url.slice(base.length)];
}

/** Arguments that stand in the path and may be left out. */
export function optionalInPath(declared: readonly DeclaredArgument[], inPath: ReadonlySet<string>): Problem[] {
  return declared
    .filter(({ name, required, fallback, wire }) => {
      return inPath.has(name) && !required && fallback === undefined && wire.value === undefined;
    })
    .map(({ name }) => ({
      path: `input_schema.${name}`,
      message: `:${name} stands in the path, which needs it in every call; make the argument required, or give it a default`,
    }));
}

/** Arguments in header values, which are sent as they stand. Paths are names of headers. */
export function argumentsInHeaders(headers: Readonly<Record<string, string>>, declared: readonly string[]): Problem[] {
  if (declared.length === 0) return [];
  const names = new Set(declared);
  return Object.entries(headers).flatMap(([header, value]) => {
    const tokens = [...value.matchAll(/(?<![\w:{])(:([A-Za-z_][\w.-]*\w|[A-Za-z_])|\{([A-Za-z_][\w.-]*)\}(?!\}))/g)];
    const found = tokens.find(([, , colon, brace]) => names.has(String(colon ?? brace)));
    if (!found) return [];
    const message = `\`${found[1]}\` would be sent as it stands, because arguments fill no header values; take this header out and give the argument "in": "header" and "wire_name": ${JSON.stringify(header)}`;
    return [{ path: header, message }];
  });
}

const placeholder = /^\{\{\s*[A-Za-z_]\w*\s*\}\}$/;
const inAName = /\{\{\s*[A-Za-z_]\w*\s*\}\}/;

/** `{{NAME}}` where it is not filled. `properties` are the definitions of the arguments; paths are relative to them. */
export function unfilledPlaceholders(properties: Readonly<Fields>): Problem[] {
  return Object.entries(properties).flatMap(([name, definition]) => {
    if (typeof definition !== 'object' || definition === null) return [];
    const { default: fallback, enum: values, wire_name, file_name, media_type } = definition as Fields;
    const whole: [string, unknown][] = [
      ['default', fallback],
      ['file_name', file_name],
      ['media_type', media_type],
      ...(Array.isArray(values) ? values.map((value, i): [string, unknown] => [`enum[${i}]`, value]) : []),
    ];
    const problems = whole
      .filter(([, text]) => typeof text === 'string' && placeholder.test(text))
      .map(([field, text]) => ({
        path: `${name}.${field}`,
        message: `${shown(text)} is not filled here and would be sent as it stands; a secret or a variable may fill a constant, "value"`,
      }));
    if (typeof wire_name !== 'string' || !inAName.test(wire_name)) return problems;
    return [
      ...problems,
      { path: `${name}.wire_name`, message: 'a variable or a secret never fills a name; write it out' },
    ];
  });
}

type Schema = { readonly [keyword: string]: unknown };

/** Keywords by which a property may be declared elsewhere. */
const elsewhere = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'patternProperties'];
const deepest = 32;

/**
 * Names in `required` that no property has, so that no call would ever be valid or the value would be sent nowhere. At
 * the root every argument must be a property; an object inside it may have others, unless it says that it has none.
 */
export function unknownRequired(schema: Schema, guesses: Guesses, path = '', depth = 0): Problem[] {
  const properties = objectOf(schema.properties);
  const names = Object.keys(properties);
  const below = (name: string) => (path ? `${path}.${name}` : name);
  const isClosed = depth === 0 || schema.additionalProperties === false;
  const isWhole = isClosed && !elsewhere.some((keyword) => Object.hasOwn(schema, keyword));
  const required = isWhole && Array.isArray(schema.required) ? schema.required : [];
  const problems = required.flatMap((name, index): Problem[] => {
    if (typeof name !== 'string' || Object.hasOwn(properties, name)) return [];
    const advice = didYouMean(name, names, guesses) || '; declare it in properties, or leave it out';
    return [{ path: below(`required[${index}]`), message: `${shown(name)} names no property${advice}` }];
  });
  if (depth > deepest) return problems;
  const inner = Object.entries(properties).flatMap(([name, property]) =>
    unknownRequired(objectOf(property), guesses, below(`properties.${name}`), depth + 1),
  );
  const ofItems =
    schema.items === undefined ? [] : unknownRequired(objectOf(schema.items), guesses, below('items'), depth + 1);
  return [...problems, ...inner, ...ofItems];
}

function objectOf(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}

/** A document of another program, which people and agents give where a configuration is expected. */
type Document = { [field: string]: unknown };

type Kind = { name: string; isIt: (document: Document) => boolean; advice: string };

const importing =
  'import it with the operation importApi, or with the command import FILE; it creates a configuration of the operations that you choose';

const kinds: readonly Kind[] = [
  {
    name: 'an OpenAPI document',
    isIt: ({ openapi, swagger }) => typeof openapi === 'string' || typeof swagger === 'string',
    advice: importing,
  },
  {
    name: 'a Postman collection',
    isIt: ({ info, item, collection }) =>
      (isObject(info) && (Array.isArray(item) || '_postman_id' in info)) ||
      (isObject(collection) && isObject(collection.info) && Array.isArray(collection.item)),
    advice: importing,
  },
  { name: 'a HAR file', isIt: ({ log }) => isObject(log) && Array.isArray(log.entries), advice: importing },
  {
    name: 'a file that says which servers a client connects to',
    isIt: ({ mcpServers, servers, context_servers }) =>
      [mcpServers, context_servers].some(isObject) || (isObject(servers) && Object.values(servers).some(isConnection)),
    advice:
      'such a file names MCP servers that exist already, so nothing is made of it; a configuration names an HTTP API and its tools',
  },
  {
    name: 'a list of tools as an MCP server gives it',
    isIt: ({ tools }) => Array.isArray(tools) && tools.length > 0 && tools.every(isListed),
    advice:
      'it does not say which HTTP requests the tools make; give each tool a method and a url, and its input_schema',
  },
  {
    name: 'the answer of getMcpServer',
    isIt: ({ server, config }) => isObject(server) && isObject(config) && Array.isArray(config.tools),
    advice: 'send only the value of its field config',
  },
  {
    name: 'the result of a GraphQL introspection',
    isIt: ({ data, __schema }) => isObject(__schema) || (isObject(data) && isObject(data.__schema)),
    advice: 'write a tool for each query: method POST, and the query as an argument with a constant "value"',
  },
];

/** What a document is, when it is one of another program, and what to do with it; undefined otherwise. */
export function foreignDocument(raw: unknown): string | undefined {
  if (typeof raw === 'string') return foreignText(raw);
  if (!isObject(raw)) return undefined;
  const kind = kinds.find(({ isIt }) => isIt(raw));
  return kind && sentence(kind.name, kind.advice);
}

/** The same for text that is not JSON: a command line of curl, or a description in YAML. */
export function foreignText(text: string): string | undefined {
  const start = text.slice(0, 1000);
  if (/^\s*(?:\$\s+)?curl(?:\.exe)?\s+\S/.test(start)) return sentence('a curl command', importing);
  return /^["']?(?:openapi|swagger)["']?:\s/m.test(start) ? sentence('an OpenAPI document', importing) : undefined;
}

const sentence = (name: string, advice: string) => `this is ${name}, not a configuration; ${advice}`;

function isObject(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isConnection(value: unknown): boolean {
  return isObject(value) && (typeof value.command === 'string' || typeof value.url === 'string');
}

/** A tool of `tools/list` (MCP, server/tools). */
function isListed(tool: unknown): boolean {
  return isObject(tool) && isObject(tool.inputSchema) && !('url' in tool) && !('method' in tool);
}
