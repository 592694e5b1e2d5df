import { clientsWithStrictNames, inWords, knownClients, toolNameOfModels } from '../clients/clients.ts';
import { toJsonSchema } from '../config/input-schema.ts';
import type { Tool } from '../config/tool.ts';
import { firstNames } from '../problems.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { Warning } from './warnings.ts';

/** Input schemas that clients and their models reject, according to their issue trackers. */

type Schema = { readonly [keyword: string]: unknown };

/**
 * An incompatibility with known clients. `find` returns the locations in an input schema, such as `properties.a[b]`;
 * the root is "".
 */
type SchemaFault = {
  what: string;
  /** Clients whose whole conversation fails because of one such tool, including the client's other servers. */
  refusedBy: readonly string[];
  /** Clients that continue to work, and how they treat such a tool. */
  spoiltBy?: { clients: readonly string[]; how: string };
  advice: string;
  find: (schema: Schema) => string[];
};

const anthropic = ['Claude', 'Anthropic API'];
const openai = ['ChatGPT', 'OpenAI API'];
const combinators = ['oneOf', 'anyOf', 'allOf', 'not'];
const propertyName = /^[a-zA-Z0-9_.-]{1,64}$/;

export const schemaFaults: readonly SchemaFault[] = [
  {
    what: 'Arguments whose names have characters other than letters, digits, _ . -',
    refusedBy: [...anthropic, 'Claude Code'],
    advice: 'rename the argument and set "wire_name" to the name that the API expects',
    find: ({ properties }) => Object.keys(objectOf(properties)).filter((name) => !propertyName.test(name)),
  },
  {
    what: 'oneOf, anyOf, allOf or not at the root of the schema',
    refusedBy: [...anthropic, ...openai],
    // anthropics/claude-code#95504, openai/codex#42283
    spoiltBy: { clients: ['Claude Code', 'Codex'], how: 'omit the tool or its arguments' },
    advice: 'declare the arguments in properties, and explain in the description which of them belong together',
    find: (schema) => combinators.filter((keyword) => Object.hasOwn(schema, keyword)),
  },
  {
    what: '$ref',
    refusedBy: [],
    // PrefectHQ/fastmcp#2808, google-gemini/gemini-cli#13326. Other clients forward it, and their models resolve it.
    spoiltBy: { clients: ['VS Code', 'Gemini CLI'], how: 'may not resolve it' },
    advice: 'inline the schema where it is used',
    find: (schema) => placesOf(schema, (inner) => typeof inner.$ref === 'string'),
  },
  {
    what: 'Arrays without items',
    // Codex adds items.
    refusedBy: ['VS Code', ...openai],
    advice: 'declare the entries, for example "items": {"type": "string"}',
    find: (schema) =>
      placesOf(schema, ({ type, items, prefixItems }) => {
        return [type].flat().includes('array') && items === undefined && prefixItems === undefined;
      }),
  },
];

const deepest = 40;

/**
 * Returns the locations at which a schema, or a nested one, matches. The work is proportional to the size of the
 * schema.
 */
function placesOf(schema: Schema, fits: (schema: Schema) => boolean, path = '', depth = 0): string[] {
  const own = fits(schema) ? [path] : [];
  if (depth > deepest) return own;
  const below = (name: string) => (path ? `${path}.${name}` : name);
  const inner: [string, unknown][] = [
    ...Object.entries(objectOf(schema.properties)).map(([name, value]): [string, unknown] => [below(name), value]),
    ...Object.entries(objectOf(schema.$defs)).map(([name, value]): [string, unknown] => [
      below(`$defs.${name}`),
      value,
    ]),
    [below('items'), schema.items],
    [below('additionalProperties'), schema.additionalProperties],
    ...combinators.flatMap((keyword) => {
      const schemas = schema[keyword];
      return Array.isArray(schemas)
        ? schemas.map((value, i): [string, unknown] => [below(`${keyword}[${i}]`), value])
        : [];
    }),
  ];
  return [...own, ...inner.flatMap(([at, value]) => (isObject(value) ? placesOf(value, fits, at, depth + 1) : []))];
}

function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const objectOf = (value: unknown): Schema => (isObject(value) ? value : {});

/** Returns warnings about a listed tool that known clients reject or truncate. Each names the clients. */
export function clientWarnings(tool: Tool, at: string, slug: string): Warning[] {
  return [...nameWarnings(tool.name, `${at}.name`, slug), ...schemaWarnings(toJsonSchema(tool.input_schema), at)];
}

function nameWarnings(name: string, path: string, slug: string): Warning[] {
  const remarks: Warning[] = [];
  if (!toolNameOfModels.test(name)) {
    const clients = inWords(clientsWithStrictNames);
    remarks.push({ path, message: `has a dot, which the models of ${clients} reject; use _ instead` });
  }
  for (const { name: client, toolName } of knownClients) {
    const shown = toolName.shown(slug, name);
    const excess = shown.length - toolName.max;
    if (excess <= 0) continue;
    const message = `is ${shown} in ${client}, which allows ${toolName.max} characters; shorten the tool name by ${excess}`;
    remarks.push({ path, message });
  }
  return remarks;
}

function schemaWarnings(schema: JsonSchema, at: string): Warning[] {
  return schemaFaults.flatMap(({ what, refusedBy, spoiltBy, advice, find }) => {
    const found = find(schema);
    if (found.length === 0) return [];
    const where = found.filter((place) => place !== '');
    const named = where.length > 0 ? ` (${firstNames(where)})` : '';
    const refused = refusedBy.length > 0 && `${inWords(refusedBy)} reject the tool`;
    const spoilt = spoiltBy && `${inWords(spoiltBy.clients)} ${spoiltBy.how}`;
    const effect = [refused, spoilt].filter(Boolean).join(', ');
    return [{ path: `${at}.input_schema`, message: `${what}${named}: ${effect}; ${advice}` }];
  });
}
