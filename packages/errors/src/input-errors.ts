import type { Problem } from './errors.ts';
import { describeValue, type SuggestionBudget, suggestName } from './problems.ts';

/**
 * Detects placeholder text that an author expects to be interpolated but that would be sent literally. A tool with such
 * text could be stored without an error and would then never work, so each occurrence is a problem.
 */

/** Fields of an argument that these rules need. */
type DeclaredArgument = { name: string; required: boolean; fallback: unknown; wire: { value?: unknown } };

type Fields = { [name: string]: unknown };

/** Matches `{id}`, `{+path}`, or `{name=projects/*}`, but not `{{NAME}}`, `{}`, or JSON. */
const bracedPattern = /(?<!\{)\{([?+/&#;.]?)([A-Za-z_][\w.-]*)(\*|=[^{}]*|:\d+)?\}(?!\})/g;
const angledPattern = /<([A-Za-z_]\w*)>/g;

/** Returns the problems with braces in a URL, which may be relative. */
export function findBracesInUrl(url: string, declared: ReadonlySet<string>): string[] {
  const [beforeQuery = '', query = ''] = splitAtFirst(url, '?');
  const [base, path] = splitBaseAndPath(beforeQuery);
  const inHost = [...base.matchAll(bracedPattern)].map(
    ([token, , name = '']) =>
      `\`${token}\` is not allowed in a host; declare ${name} in variables and write {{${name}}}, or write the host itself`,
  );
  const inPath = [...path.matchAll(bracedPattern), ...path.matchAll(angledPattern)].map((match) =>
    createLiteralTokenProblem(match, declared),
  );
  // Some APIs use braces in a query after a name: fields=posts{message}.
  const inQuery = [...query.matchAll(bracedPattern), ...query.matchAll(angledPattern)]
    .filter(({ index }) => !/[\w)}\]]/.test(query[index - 1] ?? ''))
    .map((match) => createLiteralTokenProblem(match, declared));
  return [...new Set([...inHost, ...inPath, ...inQuery])];
}

function createLiteralTokenProblem(match: RegExpExecArray, declared: ReadonlySet<string>): string {
  const token = match[0];
  const name = token.startsWith('<') ? String(match[1]) : String(match[2]);
  const declareHint = declared.has(name) ? '' : ` and declare ${name} in input_schema`;
  const encoded = encodeURIComponent(token);
  return `\`${token}\` would be sent literally; write \`:${name}\`${declareHint} for an argument, {{${name}}} for a variable or a secret, or ${encoded} for the literal characters`;
}

function splitAtFirst(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function splitBaseAndPath(url: string): [string, string] {
  const base = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/]*/.exec(url)?.[0] ?? '';
  return [base, url.slice(base.length)];
}

/** Reports optional arguments that are used in the path. */
export function findOptionalPathArguments(
  declared: readonly DeclaredArgument[],
  inPath: ReadonlySet<string>,
): Problem[] {
  return declared
    .filter(({ name, required, fallback, wire }) => {
      return inPath.has(name) && !required && fallback === undefined && wire.value === undefined;
    })
    .map(({ name }) => ({
      path: `input_schema.${name}`,
      message: `:${name} is part of the path, which needs it in every call; make the argument required, or give it a default`,
    }));
}

/** Reports arguments in header values, which are not interpolated. The paths are header names. */
export function findArgumentsInHeaders(
  headers: Readonly<Record<string, string>>,
  declared: readonly string[],
): Problem[] {
  if (declared.length === 0) return [];
  const names = new Set(declared);
  return Object.entries(headers).flatMap(([header, value]) => {
    const tokens = [...value.matchAll(/(?<![\w:{])(:([A-Za-z_][\w.-]*\w|[A-Za-z_])|\{([A-Za-z_][\w.-]*)\}(?!\}))/g)];
    const headerToken = tokens.find(([, , colon, brace]) => names.has(String(colon ?? brace)));
    if (!headerToken) return [];
    const message = `\`${headerToken[1]}\` would be sent literally, because header values do not interpolate arguments; remove this header and give the argument "in": "header" and "wire_name": ${JSON.stringify(header)}`;
    return [{ path: header, message }];
  });
}

const placeholderPattern = /^\{\{\s*[A-Za-z_]\w*\s*\}\}$/;
const embeddedPlaceholderPattern = /\{\{\s*[A-Za-z_]\w*\s*\}\}/;

/**
 * Reports `{{NAME}}` in fields that are not interpolated. `properties` are the argument definitions; paths are relative
 * to them.
 */
export function findLiteralPlaceholders(properties: Readonly<Fields>): Problem[] {
  return Object.entries(properties).flatMap(([name, definition]) => {
    if (typeof definition !== 'object' || definition === null) return [];
    const { default: fallback, enum: values, wire_name, file_name, media_type } = definition as Fields;
    const literalFields: [string, unknown][] = [
      ['default', fallback],
      ['file_name', file_name],
      ['media_type', media_type],
      ...(Array.isArray(values) ? values.map((value, i): [string, unknown] => [`enum[${i}]`, value]) : []),
    ];
    const problems = literalFields
      .filter(([, text]) => typeof text === 'string' && placeholderPattern.test(text))
      .map(([field, text]) => ({
        path: `${name}.${field}`,
        message: `${describeValue(text)} is not interpolated here and would be sent literally; use a secret or a variable in a constant, "value"`,
      }));
    if (typeof wire_name !== 'string' || !embeddedPlaceholderPattern.test(wire_name)) return problems;
    return [
      ...problems,
      { path: `${name}.wire_name`, message: 'variables and secrets are not interpolated in names; write the name out' },
    ];
  });
}

type Schema = { readonly [keyword: string]: unknown };

/** Keywords that may declare a property elsewhere. */
const indirectKeywords = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas', 'patternProperties'];
const maxDepth = 32;

/**
 * Reports names in `required` that no property declares. Without this check, no call would ever be valid, or the value
 * would be sent nowhere. At the root, every argument must be a property; a nested object may have others unless it
 * forbids them.
 */
export function findUnknownRequired(
  schema: Schema,
  suggestionBudget: SuggestionBudget,
  path = '',
  depth = 0,
): Problem[] {
  const properties = toSchema(schema.properties);
  const names = Object.keys(properties);
  const joinPath = (name: string) => (path ? `${path}.${name}` : name);
  const isClosed = depth === 0 || schema.additionalProperties === false;
  const isComplete = isClosed && !indirectKeywords.some((keyword) => Object.hasOwn(schema, keyword));
  const required = isComplete && Array.isArray(schema.required) ? schema.required : [];
  const problems = required.flatMap((name, index): Problem[] => {
    if (typeof name !== 'string' || Object.hasOwn(properties, name)) return [];
    const advice = suggestName(name, names, suggestionBudget) || '; declare it in properties, or remove it';
    return [
      { path: joinPath(`required[${index}]`), message: `${describeValue(name)} is not a declared property${advice}` },
    ];
  });
  if (depth > maxDepth) return problems;
  const propertyProblems = Object.entries(properties).flatMap(([name, property]) =>
    findUnknownRequired(toSchema(property), suggestionBudget, joinPath(`properties.${name}`), depth + 1),
  );
  const itemProblems =
    schema.items === undefined
      ? []
      : findUnknownRequired(toSchema(schema.items), suggestionBudget, joinPath('items'), depth + 1);
  return [...problems, ...propertyProblems, ...itemProblems];
}

function toSchema(value: unknown): Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {};
}

/** A document of another program that people and agents pass in place of a configuration. */
type ForeignDocument = { [field: string]: unknown };

type DocumentKind = { name: string; matches: (document: ForeignDocument) => boolean; advice: string };

const importAdvice =
  'import it with the operation importApi or the command import FILE, which creates a configuration from the operations that you choose';

const documentKinds: readonly DocumentKind[] = [
  {
    name: 'an OpenAPI document',
    matches: ({ openapi, swagger }) => typeof openapi === 'string' || typeof swagger === 'string',
    advice: importAdvice,
  },
  {
    name: 'a Postman collection',
    matches: ({ info, item, collection }) =>
      (isObject(info) && (Array.isArray(item) || '_postman_id' in info)) ||
      (isObject(collection) && isObject(collection.info) && Array.isArray(collection.item)),
    advice: importAdvice,
  },
  { name: 'a HAR file', matches: ({ log }) => isObject(log) && Array.isArray(log.entries), advice: importAdvice },
  {
    name: 'an MCP client configuration',
    matches: ({ mcpServers, servers, context_servers }) =>
      [mcpServers, context_servers].some(isObject) ||
      (isObject(servers) && Object.values(servers).some(isServerConnection)),
    advice:
      'such a file lists existing MCP servers and cannot be imported; a configuration describes an HTTP API and its tools',
  },
  {
    name: 'the tool list of an MCP server',
    matches: ({ tools }) => Array.isArray(tools) && tools.length > 0 && tools.every(isListedTool),
    advice: 'it does not describe the HTTP requests of the tools; give each tool a method, a url, and its input_schema',
  },
  {
    name: 'the response of getMcpServer',
    matches: ({ server, config }) => isObject(server) && isObject(config) && Array.isArray(config.tools),
    advice: 'send only the value of its config field',
  },
  {
    name: 'a GraphQL introspection result',
    matches: ({ data, __schema }) => isObject(__schema) || (isObject(data) && isObject(data.__schema)),
    advice: 'write one tool per query: method POST, and the query as an argument with a constant "value"',
  },
];

/** Describes a document of another program and says what to do with it. Undefined for any other document. */
export function describeForeignDocument(input: unknown): string | undefined {
  if (typeof input === 'string') return describeForeignText(input);
  if (!isObject(input)) return undefined;
  const documentKind = documentKinds.find(({ matches }) => matches(input));
  return documentKind && formatForeignDocument(documentKind.name, documentKind.advice);
}

/** Does the same for text that is not JSON: a curl command line, or an API description in YAML. */
export function describeForeignText(text: string): string | undefined {
  if (isCurlCommand(text)) return formatForeignDocument('a curl command', importAdvice);
  return /^["']?(?:openapi|swagger)["']?:\s/m.test(text.slice(0, 1000))
    ? formatForeignDocument('an OpenAPI document', importAdvice)
    : undefined;
}

/** Returns true for a curl command line, which people paste where its URL or a name belongs. */
export function isCurlCommand(text: string): boolean {
  return /^\s*(?:\$\s+)?curl(?:\.exe)?\s+\S/.test(text.slice(0, 1000));
}

const formatForeignDocument = (name: string, advice: string) => `this is ${name}, not a configuration; ${advice}`;

function isObject(value: unknown): value is ForeignDocument {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isServerConnection(value: unknown): boolean {
  return isObject(value) && (typeof value.command === 'string' || typeof value.url === 'string');
}

/** Returns true for a tool as `tools/list` returns it (MCP, server/tools). */
function isListedTool(tool: unknown): boolean {
  return isObject(tool) && isObject(tool.inputSchema) && !('url' in tool) && !('method' in tool);
}
