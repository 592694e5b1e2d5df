import { formatFirstNames } from '@toolhost/errors/problems';
import type { JsonSchema } from '@toolhost/json-schema/json-schema';
import { toJsonSchema } from '@toolhost/tool-config/input-schema';
import type { Tool } from '@toolhost/tool-config/tool';
import type { Warning } from '@toolhost/tool-config/warning';
import { clientsWithStrictNames, joinNames, knownClients, modelToolNamePattern } from './clients.ts';

type Schema = { readonly [keyword: string]: unknown };

/**
 * An incompatibility with known clients. `find` returns the locations in an input schema, such as `properties.a[b]`;
 * the root is "".
 */
type SchemaIssue = {
  title: string;
  /** Clients whose whole conversation fails because of one such tool, including the client's other servers. */
  rejectedBy: readonly string[];
  /** Clients that continue to work, and how they treat such a tool. */
  degradedBy?: { clients: readonly string[]; effect: string };
  advice: string;
  find: (schema: Schema) => string[];
};

const anthropic = ['Claude', 'Anthropic API'];
const openai = ['ChatGPT', 'OpenAI API'];
const combinators = ['oneOf', 'anyOf', 'allOf', 'not'];
const propertyName = /^[a-zA-Z0-9_.-]{1,64}$/;

/** Known incompatibilities of input schemas with clients and their models, according to their issue trackers. */
export const schemaIssues: readonly SchemaIssue[] = [
  {
    title: 'Arguments whose names have characters other than letters, digits, _ . -',
    rejectedBy: [...anthropic, 'Claude Code'],
    advice: 'rename the argument and set "wire_name" to the name that the API expects',
    find: ({ properties }) => Object.keys(toObject(properties)).filter((name) => !propertyName.test(name)),
  },
  {
    title: 'oneOf, anyOf, allOf or not at the root of the schema',
    rejectedBy: [...anthropic, ...openai],
    // anthropics/claude-code#95504, openai/codex#42283
    degradedBy: { clients: ['Claude Code', 'Codex'], effect: 'omit the tool or its arguments' },
    advice: 'declare the arguments in properties, and explain in the description which of them belong together',
    find: (schema) => combinators.filter((keyword) => Object.hasOwn(schema, keyword)),
  },
  {
    title: '$ref',
    rejectedBy: [],
    // PrefectHQ/fastmcp#2808, google-gemini/gemini-cli#13326. Other clients forward it, and their models resolve it.
    degradedBy: { clients: ['VS Code', 'Gemini CLI'], effect: 'may not resolve it' },
    advice: 'inline the schema where it is used',
    find: (schema) => findLocations(schema, (inner) => typeof inner.$ref === 'string'),
  },
  {
    title: 'Arrays without items',
    // Codex adds items.
    rejectedBy: ['VS Code', ...openai],
    advice: 'declare the entries, for example "items": {"type": "string"}',
    find: (schema) =>
      findLocations(schema, ({ type, items, prefixItems }) => {
        return [type].flat().includes('array') && items === undefined && prefixItems === undefined;
      }),
  },
];

const maxDepth = 40;

/**
 * Returns the locations at which a schema, or a nested one, matches. The work is proportional to the size of the
 * schema.
 */
function findLocations(schema: Schema, matches: (schema: Schema) => boolean, path = '', depth = 0): string[] {
  const ownLocations = matches(schema) ? [path] : [];
  if (depth > maxDepth) return ownLocations;
  const toInnerPath = (name: string) => (path ? `${path}.${name}` : name);
  const inner: [string, unknown][] = [
    ...Object.entries(toObject(schema.properties)).map(([name, value]): [string, unknown] => [
      toInnerPath(name),
      value,
    ]),
    ...Object.entries(toObject(schema.$defs)).map(([name, value]): [string, unknown] => [
      toInnerPath(`$defs.${name}`),
      value,
    ]),
    [toInnerPath('items'), schema.items],
    [toInnerPath('additionalProperties'), schema.additionalProperties],
    ...combinators.flatMap((keyword) => {
      const schemas = schema[keyword];
      return Array.isArray(schemas)
        ? schemas.map((value, i): [string, unknown] => [toInnerPath(`${keyword}[${i}]`), value])
        : [];
    }),
  ];
  return [
    ...ownLocations,
    ...inner.flatMap(([innerPath, value]) =>
      isObject(value) ? findLocations(value, matches, innerPath, depth + 1) : [],
    ),
  ];
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const toObject = (value: unknown): Schema => (isObject(value) ? value : {});

/** Returns warnings about a listed tool that known clients reject or truncate. Each names the clients. */
export function findClientWarnings(tool: Tool, at: string, slug: string): Warning[] {
  return [
    ...findNameWarnings(tool.name, `${at}.name`, slug),
    ...findSchemaWarnings(toJsonSchema(tool.input_schema), at),
  ];
}

function findNameWarnings(name: string, path: string, slug: string): Warning[] {
  const warnings: Warning[] = [];
  if (!modelToolNamePattern.test(name)) {
    const clients = joinNames(clientsWithStrictNames);
    warnings.push({ path, message: `has a dot, which the models of ${clients} reject; use _ instead` });
  }
  for (const { name: client, toolName } of knownClients) {
    const clientToolName = toolName.format(slug, name);
    const excess = clientToolName.length - toolName.max;
    if (excess <= 0) continue;
    const message = `is ${clientToolName} in ${client}, which allows ${toolName.max} characters; shorten the tool name by ${excess}`;
    warnings.push({ path, message });
  }
  return warnings;
}

function findSchemaWarnings(schema: JsonSchema, at: string): Warning[] {
  return schemaIssues.flatMap(({ title, rejectedBy, degradedBy, advice, find }) => {
    const locations = find(schema);
    if (locations.length === 0) return [];
    const namedLocations = locations.filter((location) => location !== '');
    const suffix = namedLocations.length > 0 ? ` (${formatFirstNames(namedLocations)})` : '';
    const rejected = rejectedBy.length > 0 && `${joinNames(rejectedBy)} reject the tool`;
    const degraded = degradedBy && `${joinNames(degradedBy.clients)} ${degradedBy.effect}`;
    const effect = [rejected, degraded].filter(Boolean).join(', ');
    return [{ path: `${at}.input_schema`, message: `${title}${suffix}: ${effect}; ${advice}` }];
  });
}
