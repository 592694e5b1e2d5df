import { z } from 'zod';
import {
  type CatalogFacts,
  createSearchToolDefinitions,
  searchToolNames,
  type ToolDefinition,
} from './built-in-tools.ts';
import { isDestructiveMethod, isSafeMethod, maxMethodLength, methodPattern, methods } from './http/headers.ts';
import { toJsonSchema } from './input-schema.ts';
import { deceptiveCharacters } from './invisible-characters.ts';
import { readMoreDefinition, readMoreToolName } from './read-more.ts';

const toolNamePattern = /^[A-Za-z0-9_.-]{1,64}$/;
export const maxTimeoutMs = 20_000;
export const maxUrlLength = 2048;
const maxHeaders = 100;

/** One line of visible text. Names and titles also appear in emails, chats, consent pages, and terminals. */
export function singleLineText(maxLength: number) {
  return z
    .string()
    .trim()
    .min(1)
    .max(maxLength)
    .refine(
      (text) => !deceptiveCharacters.test(text),
      'has a control or invisible character; allowed: visible text on one line',
    );
}

/** Static headers by name. */
export const staticHeaders = z
  .record(z.string(), z.string().max(4096))
  .refine(
    (headers) => Object.keys(headers).length <= maxHeaders,
    `has too many headers; allowed: at most ${maxHeaders}`,
  );

const annotationsSchema = z
  .strictObject({
    title: singleLineText(100).optional(),
    readOnlyHint: z.boolean().optional(),
    destructiveHint: z.boolean().optional(),
    idempotentHint: z.boolean().optional(),
    openWorldHint: z.boolean().optional(),
  })
  .describe('Hints for the client. Absent hints are derived from the method.');

/** Limit at four characters per token. Clients reject or truncate longer results themselves. */
export const maxResponseTokens = z.int().min(200).max(100_000);

/** Selects if agents get the definitions of all tools, or three tools to find, read, and run them. */
export const toolModes = ['list', 'search'] as const;
export type ToolMode = (typeof toolModes)[number];

/** Maximum characters of a tag, and maximum tags of a tool. */
export const maxTagLength = 60;
export const maxTags = 20;

/** Stored values of fields that a configuration omits. */
export const toolDefaults = { headers: {}, input_schema: {}, response_transform: '.', timeout_ms: 10_000 } as const;

/** A tool: one MCP tool and the HTTP request that it sends (spec 2.4). */
export const toolSchema = z.strictObject({
  name: z
    .string()
    .regex(toolNamePattern, 'allowed: 1 to 64 letters, digits, _ . -')
    .describe('Tool name shown to the MCP client, unique within the server.'),
  title: singleLineText(100).optional().describe('Name shown to people.'),
  description: z.string().trim().min(1).max(4000).describe('What the tool does, in natural language, for the model.'),
  method: z
    .string()
    .max(maxMethodLength)
    .regex(methodPattern, `allowed: ${methods.join(', ')}, or another HTTP method except CONNECT and TRACE`)
    .meta({ examples: [...methods] })
    .describe('HTTP method of the upstream request: any token except CONNECT and TRACE.'),
  url: z
    .string()
    .min(1)
    .max(maxUrlLength)
    .describe(
      'Upstream URL, or a path below base_url. The path and query values may contain :param tokens, and {{NAME}} of a secret.',
    ),
  headers: staticHeaders
    .default(toolDefaults.headers)
    .describe('Static headers of every upstream request. A value may contain {{NAME}} of a variable or a secret.'),
  credential: z
    .string()
    .min(1)
    .max(40)
    .optional()
    .describe('Entry of credentials that the request sends instead of authentication; none sends no credential.'),
  input_schema: z
    .record(z.string(), z.unknown())
    .default(toolDefaults.input_schema)
    .describe('Flat map of argument names to field definitions, or a JSON Schema object.'),
  response_transform: z
    .string()
    .max(500)
    .default(toolDefaults.response_transform)
    .describe(
      'Dot path of the value to extract from the JSON response, for example data.results or items.0.name. "." returns everything, and a backslash before a dot makes it part of a name.',
    ),
  timeout_ms: z
    .int()
    .min(1)
    .max(maxTimeoutMs)
    .default(toolDefaults.timeout_ms)
    .describe('Timeout of the whole upstream request, in milliseconds.'),
  annotations: annotationsSchema.optional(),
  output_schema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('JSON Schema (object at its root) of structuredContent.'),
  array_format: z
    .enum(['repeat', 'comma', 'brackets'])
    .optional()
    .describe('Serialization of arrays in a query or form: a=1&a=2 (repeat, the default), a=1,2 or a[]=1&a[]=2.'),
  body: z
    .string()
    .min(1)
    .optional()
    .describe('Body encoding: json (default), form, multipart, or the name of the one argument that is the body.'),
  body_template: z
    .unknown()
    .optional()
    .describe(
      'JSON body that contains arguments. A string ":name" is replaced by the argument value, and :name within a longer string by its text.',
    ),
  response_limit_bytes: z
    .int()
    .min(1)
    .max(10 * 1024 * 1024)
    .optional()
    .describe('Maximum size of the decoded response, in bytes. Defaults to 10 MiB.'),
  max_response_tokens: maxResponseTokens
    .optional()
    .describe('Maximum tokens of one tool result, instead of the server limit.'),
  response_fields: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(100)
    .optional()
    .describe(
      'Keeps only these dot paths of the response, or of each item if it is an array. A number selects one item, and * matches any key.',
    ),
  response_headers: z
    .array(z.string().min(1).max(100))
    .min(1)
    .max(20)
    .optional()
    .describe('Response headers that the agent receives, such as Link, Location, ETag, or X-Total-Count.'),
  redirects: z
    .enum(['follow'])
    .optional()
    .describe(
      'follow: follows up to 3 redirects of a GET or HEAD request, for downloads. Credentials are never sent to another origin. If absent, a redirect is an error that names its target.',
    ),
  tags: z
    .array(singleLineText(maxTagLength))
    .max(maxTags)
    .optional()
    .describe('Groups that the tool belongs to, used for search.'),
  pinned: z
    .boolean()
    .optional()
    .describe('true lists the tool even if tool_mode is search. Use it for the few tools that agents use most.'),
  imported_from: z
    .string()
    .min(1)
    .max(2200)
    .optional()
    .describe('Operation of the API description that the tool was imported from, such as GET /pets/{id}.'),
  disabled: z
    .boolean()
    .optional()
    .describe('true hides the tool from agents, who then cannot call it. It remains in the configuration.'),
});

export type Tool = z.infer<typeof toolSchema>;
export type Annotations = z.infer<typeof annotationsSchema>;

/** Returns the enabled tools in their order. */
export function getEnabledTools(config: { tools: readonly Tool[] }): Tool[] {
  return config.tools.filter((tool) => tool.disabled !== true);
}

/** Returns the hints of a tool. Hints that its owner did not set are derived from the method (RFC 9110, 9.2). */
export function getAnnotations(tool: Pick<Tool, 'method' | 'annotations'>): Annotations {
  const { method } = tool;
  const isSafe = isSafeMethod(method);
  return {
    readOnlyHint: isSafe,
    destructiveHint: isDestructiveMethod(method),
    idempotentHint: isSafe || method === 'PUT' || method === 'DELETE',
    openWorldHint: true,
    ...tool.annotations,
  };
}

/** Fields of a configuration that determine the tools that agents see. */
export type ToolListSource = {
  tools: readonly Tool[];
  tool_mode?: ToolMode | undefined;
  max_response_tokens?: number | undefined;
};

/**
 * Returns a tool as `tools/list` describes it. With a result limit it has no output schema, because a truncated result
 * lacks the structured content that the schema would promise.
 */
export function toToolDefinition(tool: Tool, { max_response_tokens: serverLimit }: ToolListSource): ToolDefinition {
  const isUnlimited = (tool.max_response_tokens ?? serverLimit) === undefined;
  return {
    name: tool.name,
    ...(tool.title !== undefined && { title: tool.title }),
    description: tool.description,
    inputSchema: toJsonSchema(tool.input_schema),
    ...(isUnlimited && tool.output_schema && { outputSchema: tool.output_schema }),
    annotations: getAnnotations(tool),
  };
}

/** Returns the tools that agents see without a search: all tools, or the pinned ones in search mode. */
export function getListedTools(config: ToolListSource): Tool[] {
  const enabled = getEnabledTools(config);
  return config.tool_mode === 'search' ? enabled.filter((tool) => tool.pinned === true) : enabled;
}

/** Returns the result of `tools/list`. */
export function createToolList(config: ToolListSource): ToolDefinition[] {
  return [
    ...(config.tool_mode === 'search' ? createSearchToolDefinitions(getCatalogFacts(getEnabledTools(config))) : []),
    ...getListedTools(config).map((tool) => toToolDefinition(tool, config)),
    ...(hasResponseLimit(config) ? [readMoreDefinition] : []),
  ];
}

/** Returns names that the server's tools cannot have, because built-in tools use them. */
export function getReservedToolNames(config: {
  tools: readonly unknown[];
  tool_mode?: unknown;
  max_response_tokens?: unknown;
}): ReadonlySet<string> {
  return new Set([
    ...(config.tool_mode === 'search' ? Object.values(searchToolNames) : []),
    ...(hasResponseLimit(config) ? [readMoreToolName] : []),
  ]);
}

/** Returns true if the result of any tool is limited. The configuration may be malformed. */
export function hasResponseLimit(config: { tools: readonly unknown[]; max_response_tokens?: unknown }): boolean {
  const hasLimit = (tool: unknown) => (tool as Partial<Tool> | null | undefined)?.max_response_tokens !== undefined;
  return config.max_response_tokens !== undefined || config.tools.some(hasLimit);
}

function getCatalogFacts(tools: readonly Tool[]): CatalogFacts {
  const hints = tools.map(getAnnotations);
  return {
    tools: tools.length,
    tags: countTags(tools),
    hints: {
      isReadOnly: hints.every(({ readOnlyHint }) => readOnlyHint === true),
      // An absent hint means that the tool may be destructive (MCP, server/tools, annotations).
      isDestructive: hints.some(({ readOnlyHint, destructiveHint }) => !readOnlyHint && destructiveHint !== false),
      isIdempotent: hints.every(({ idempotentHint }) => idempotentHint === true),
    },
  };
}

/** Counts the tools of each tag, in tool order. */
export function countTags(tools: readonly Tool[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const tag of tools.flatMap((tool) => tool.tags ?? [])) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return counts;
}
