import type { JsonSchema } from '@toolhost/json-schema/json-schema';

/** Names of the tools that a server in search mode lists instead of its own tools. */
export const searchToolNames = { search: 'search_tools', describe: 'describe_tool', call: 'call_tool' } as const;

/** Maximum number of results of one search, and of tools of one description request. */
export const maxResults = 10;
export const maxDescribedTools = 10;
const maxQueryLength = 500;

/** Facts about the tools of a server that agents learn before they search. */
export type CatalogFacts = {
  tools: number;
  /** Number of tools by tag, in tool order. */
  tags: ReadonlyMap<string, number>;
  /** `isReadOnly` and `isIdempotent` apply to every tool, `isDestructive` to at least one. */
  hints: { isReadOnly: boolean; isDestructive: boolean; isIdempotent: boolean };
};

/** A tool as `tools/list` describes it. */
export type ToolDefinition = {
  name: string;
  title?: string;
  description: string;
  inputSchema: JsonSchema;
  outputSchema?: JsonSchema;
  annotations: object;
};

const readOnlyAnnotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };

export const searchInput: JsonSchema = {
  type: 'object',
  properties: {
    query: {
      type: 'string',
      maxLength: maxQueryLength,
      description: 'What the tool should do, in a few English words, or part of its name.',
    },
    tag: {
      type: 'string',
      maxLength: 100,
      description: 'Only tools with this tag. Without a query, all tools with this tag.',
    },
    offset: { type: 'integer', minimum: 0, description: 'Number of results to skip, for the next ten.' },
  },
  additionalProperties: false,
};

export const describeInput: JsonSchema = {
  type: 'object',
  properties: {
    names: {
      type: 'array',
      items: { type: 'string' },
      minItems: 1,
      maxItems: maxDescribedTools,
      description: 'Tool names, as returned by search_tools.',
    },
  },
  required: ['names'],
  additionalProperties: false,
};

const callInput: JsonSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'Name of the tool.' },
    arguments: { type: 'object', description: 'Arguments of the tool, valid for the inputSchema from describe_tool.' },
  },
  required: ['name'],
  additionalProperties: false,
};

/** Returns the definitions of the three search tools, written for a model that has never seen the server. */
export function createSearchToolDefinitions({ tools, tags, hints }: CatalogFacts): ToolDefinition[] {
  const { search, describe, call } = searchToolNames;
  const count = tools === 1 ? '1 tool' : `${tools} tools`;
  return [
    {
      name: search,
      title: 'Search tools',
      description: `Finds tools by what they do. This server has ${count}, which are not listed. Search here first, read the arguments of matching tools with ${describe}, then run one with ${call}. Returns the best ${maxResults}, one line each.${formatTags(tags)}`,
      inputSchema: searchInput,
      annotations: readOnlyAnnotations,
    },
    {
      name: describe,
      title: 'Describe tools',
      description: `Returns the description, the input schema, and the annotations of up to ${maxDescribedTools} tools that ${search} has found.`,
      inputSchema: describeInput,
      annotations: readOnlyAnnotations,
    },
    {
      name: call,
      title: 'Call a tool',
      description: `Runs a tool that ${search} has found. Read its arguments with ${describe} first. The annotations there tell if it only reads or may change or destroy data.`,
      inputSchema: callInput,
      annotations: {
        readOnlyHint: hints.isReadOnly,
        destructiveHint: hints.isDestructive,
        idempotentHint: hints.isIdempotent,
        openWorldHint: true,
      },
    },
  ];
}

/** Maximum number of tags in a description, and of their characters. */
const maxTagsShown = 40;
const maxTagsLength = 1000;

function formatTags(tags: ReadonlyMap<string, number>): string {
  if (tags.size === 0) return '';
  const formattedTags: string[] = [];
  let length = 0;
  for (const [tag, count] of [...tags].sort(([, a], [, b]) => b - a)) {
    length += tag.length + 8;
    if (formattedTags.length === maxTagsShown || length > maxTagsLength) break;
    formattedTags.push(`${tag} (${count})`);
  }
  const omittedCount = tags.size - formattedTags.length;
  const omittedNote = omittedCount > 0 ? ` and ${omittedCount} more, which a search without query and tag lists` : '';
  return ` Tags, with the number of tools: ${formattedTags.join(', ')}${omittedNote}.`;
}

/** Sentences for the instructions of a server in search mode. */
export const searchInstructions = `The tools of this server are not listed. Find them with ${searchToolNames.search}, read them with ${searchToolNames.describe}, and run them with ${searchToolNames.call}.`;
