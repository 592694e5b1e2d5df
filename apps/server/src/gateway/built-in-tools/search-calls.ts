import { ToolFailure } from '@toolhost/errors/errors';
import {
  createSuggestionBudget,
  describeValue,
  type SuggestionBudget,
  suggestNearest,
} from '@toolhost/errors/problems';
import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import { coerceObject } from '@toolhost/json-schema/coerce-value';
import {
  appendTextBlocks,
  type ContentBlock,
  type ProtocolGeneration,
  type ToolCall,
  type ToolResult,
  toTextResult,
} from '@toolhost/mcp-protocol/mcp';
import { findIgnoredArguments, formatIgnoredArguments } from '@toolhost/tool-config/added-arguments';
import {
  describeInput,
  maxDescribedTools,
  maxResults,
  searchInput,
  searchToolNames,
} from '@toolhost/tool-config/built-in-tools';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import { getAnnotations, type Tool } from '@toolhost/tool-config/tool';
import { formatOmittedArguments } from '../arguments/omitted-arguments.ts';
import { type ArgumentRules, compileArguments, prepareArguments } from '../arguments/prepare-arguments.ts';
import { type CallToolDeps, callTool } from '../call/call-tool.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import type { ToolCatalog } from '../hosted/tool-catalog.ts';
import { createStructuredFromTexts } from '../response/json-response.ts';
import { callBuiltInTool } from './built-in-call.ts';

/**
 * Runs one `tools/call` of a server in search mode. A call through `call_tool` counts in every way as a call of the
 * named tool, including its checks, limits, records, and traces.
 * @throws any error of `callTool`
 */
export async function callInSearchMode(
  server: HostedServer,
  caller: Caller,
  toolCall: ToolCall,
  deps: CallToolDeps,
): Promise<ToolResult> {
  if (toolCall.name !== searchToolNames.call) {
    if (server.getTool(toolCall.name)) return callTool(server, caller, toolCall, deps);
    return callBuiltInTool({ server, caller, toolCall }, deps, () =>
      getBuiltInResult(server.catalog as ToolCatalog, toolCall),
    );
  }
  const innerCall = parseInnerCall(server, toolCall.args);
  if (innerCall instanceof ToolFailure) {
    return callBuiltInTool({ server, caller, toolCall }, deps, () => Promise.reject(innerCall));
  }
  const { addedNames, ...innerToolCall } = innerCall;
  const result = await callTool(server, caller, { ...toolCall, ...innerToolCall }, deps);
  return appendTextBlocks(result, formatIgnoredArguments(addedNames, 'not declared by the tool'));
}

type InnerCall = Pick<ToolCall, 'name' | 'args'> & { addedNames: string[] };

/**
 * Returns the call inside a `call_tool`, and the arguments that a client added next to it. The tool itself checks the
 * inner arguments.
 */
function parseInnerCall(server: HostedServer, callArguments: Arguments): InnerCall | ToolFailure {
  const { name, arguments: innerArguments, ...otherArguments } = callArguments;
  const addedNames = findIgnoredArguments(otherArguments, [], false);
  const unexpectedName = Object.keys(otherArguments).find((argumentName) => !addedNames.includes(argumentName));
  const args = coerceObject(innerArguments);
  if (typeof name !== 'string')
    return toArgumentFailure(`name: found ${describeValue(name)}; allowed: the name of a tool`);
  if (unexpectedName !== undefined)
    return toArgumentFailure(
      `${unexpectedName.slice(0, 100)}: not an argument of call_tool; put the tool's arguments into "arguments"`,
    );
  if (args === undefined)
    return toArgumentFailure(
      `arguments: found ${describeValue(innerArguments)}; allowed: an object with the tool's arguments`,
    );
  if (!server.getTool(name)) {
    return new ToolFailure(
      'invalid_arguments',
      formatUnknownTool(server.catalog as ToolCatalog, name, createSuggestionBudget()),
      [],
      'name: the server has no such tool',
    );
  }
  return { name, args, addedNames };
}

function toArgumentFailure(problem: string): ToolFailure {
  return new ToolFailure('invalid_arguments', `The arguments are invalid: ${problem}`);
}

/** Executes `search_tools` or `describe_tool`. @throws ToolFailure */
async function getBuiltInResult(catalog: ToolCatalog, { name, args, generation }: ToolCall): Promise<ToolResult> {
  const isSearch = name === searchToolNames.search;
  const preparedArgs = await prepareChecked(isSearch ? rules.search : rules.describe, args);
  const result = isSearch
    ? await createSearchResult(catalog, preparedArgs)
    : createDescribeResult(catalog, preparedArgs, generation);
  return appendTextBlocks(result, formatOmittedArguments(args, preparedArgs));
}

const rules = {
  search: compileArguments(searchInput, searchInput, true),
  describe: compileArguments(describeInput, describeInput, true),
};

function prepareChecked(args: ArgumentRules, rawArgs: Arguments): MaybePromise<Arguments> {
  return prepareArguments({ args }, rawArgs, () => Promise.reject(toArgumentFailure('there are too many values')));
}

type SearchArguments = { query?: string; tag?: string; offset?: number };

/** Returns the result of `search_tools`. @throws ToolFailure invalid_arguments for a tag that no tool has */
async function createSearchResult(catalog: ToolCatalog, args: Arguments): Promise<ToolResult> {
  const { query = '', tag, offset = 0 } = args as SearchArguments;
  const searchedTag = tag === undefined ? undefined : findTag(catalog, tag);
  if (query.trim() === '')
    return toTextResult(
      searchedTag === undefined ? formatOverview(catalog) : formatTagPage(catalog, searchedTag, offset),
      false,
    );
  return toTextResult(await formatSearchPage(catalog, { query, tag: searchedTag, offset }), false);
}

/** Returns a tag as the tools spell it, regardless of case. */
function findTag({ tags }: ToolCatalog, tag: string): string {
  const folded = tag.trim().toLowerCase();
  const tagNames = [...tags.keys()];
  const match = tagNames.find((name) => name.toLowerCase() === folded);
  if (match !== undefined) return match;
  const suggestions = suggestNearest(
    tag,
    tagNames,
    createSuggestionBudget(),
    tags.size === 0 ? '; the tools of this server have no tags' : `; tags: ${formatTags(tags)}`,
  );
  const message = `tag: no tool has the tag ${JSON.stringify(tag.slice(0, 60))}${suggestions}`;
  throw new ToolFailure('invalid_arguments', message, [], 'tag: no tool has this tag');
}

const maxOverviewLength = 4000;

function formatTags(tags: ReadonlyMap<string, number>): string {
  let text = '';
  for (const [tag, count] of tags) {
    if (text.length > maxOverviewLength) return `${text}, …`;
    text += `${text && ', '}${tag} (${count})`;
  }
  return text;
}

function formatOverview({ tools, tags }: ToolCatalog): string {
  const heading = `Pass a query: a few words that describe what the tool should do. This server has ${tools.length} tools.`;
  return tags.size === 0 ? heading : `${heading} Pass a tag to list its tools: ${formatTags(tags)}.`;
}

function formatTagPage({ tools }: ToolCatalog, tag: string, offset: number): string {
  const taggedTools = tools.filter((tool) => tool.tags?.includes(tag));
  const total = taggedTools.length;
  const heading = `${total} tools with the tag ${JSON.stringify(tag)}`;
  return formatPage(taggedTools.slice(offset, offset + maxResults), { offset, total }, heading);
}

type SearchQuery = { query: string; tag: string | undefined; offset: number };

async function formatSearchPage(catalog: ToolCatalog, { query, tag, offset }: SearchQuery): Promise<string> {
  const { tools } = catalog;
  // Loaded at the first search.
  const { searchTools } = await import('@toolhost/tool-search/search-tools');
  const hasTag = (position: number) => tag === undefined || tools[position]?.tags?.includes(tag) === true;
  const { total, best: bestPositions } = searchTools(await catalog.getIndex(), query, offset + maxResults, hasTag);
  const tagText = tag === undefined ? '' : ` among those with the tag ${JSON.stringify(tag)}`;
  if (total === 0)
    return `No tool matches ${JSON.stringify(query)}${tagText}. Use other words, such as the name of the resource and a verb like list, get, create, update, or delete.`;
  const pageTools = bestPositions.slice(offset).map((position) => tools[position] as Tool);
  return formatPage(pageTools, { offset, total }, `${total} of ${tools.length} tools match${tagText}, best first`);
}

function formatPage(
  pageTools: readonly Tool[],
  { offset, total }: { offset: number; total: number },
  heading: string,
): string {
  if (pageTools.length === 0) return `${heading}; there are none after ${offset}.`;
  const end = offset + pageTools.length;
  const moreText = end < total ? ` More with offset ${end}.` : '';
  const lines = pageTools.map((tool) => `- ${formatTool(tool)}`);
  return [`${heading}:`, ...lines, `Read them with ${searchToolNames.describe} before you call one.${moreText}`].join(
    '\n',
  );
}

/** Maximum length of the shown sentence, and of the text in which its end is searched, in characters. */
const maxSentenceLength = 120;
const maxSearchedLength = 1000;
/** Minimum length of a sentence. An earlier period probably belongs to an abbreviation. */
const minSentenceLength = 10;

/** Formats one line about a tool: name, effect, and first sentence. */
function formatTool(tool: Tool): string {
  const { readOnlyHint, destructiveHint } = getAnnotations(tool);
  const effect = readOnlyHint ? 'reads' : destructiveHint ? 'destroys' : 'writes';
  return `${tool.name} (${effect}): ${getFirstSentence(tool.description)}`;
}

function getFirstSentence(text: string): string {
  const singleLine = text.slice(0, maxSearchedLength).replaceAll(/\s+/g, ' ');
  const end = singleLine.search(/[.!?](?:\s|$)/);
  const sentence = end > minSentenceLength ? singleLine.slice(0, end + 1) : singleLine;
  if (sentence.length <= maxSentenceLength) return sentence;
  return `${sentence
    .slice(0, maxSentenceLength)
    .toWellFormed()
    .replace(/\s+\S*$/, '')} …`;
}

/**
 * Maximum length of the descriptions of several tools, in characters of JSON: about 15,000 tokens. The first one is
 * never omitted.
 */
const maxDescriptionsLength = 60_000;

/** Returns the result of `describe_tool`. It is an error if no tool has one of the names. */
function createDescribeResult(catalog: ToolCatalog, args: Arguments, generation: ProtocolGeneration): ToolResult {
  const names = [...new Set(args.names as string[])].slice(0, maxDescribedTools);
  const described: string[] = [];
  const notes: string[] = [];
  const omittedNames: string[] = [];
  const suggestionBudget = createSuggestionBudget();
  let length = 0;
  for (const name of names) {
    const tool = catalog.find(name);
    const text = tool && JSON.stringify({ ...catalog.getDefinition(tool), ...(tool.tags && { tags: tool.tags }) });
    if (text === undefined) notes.push(formatUnknownTool(catalog, name, suggestionBudget));
    else if (described.length > 0 && length + text.length > maxDescriptionsLength) omittedNames.push(name);
    else {
      described.push(text);
      length += text.length;
    }
  }
  if (omittedNames.length > 0)
    notes.push(
      `Omitted, because the result would be too long: ${omittedNames.join(', ')}. Request them in another call.`,
    );
  const blocks = [...(described.length > 0 ? [`[${described.join(',\n')}]`] : []), ...notes];
  const content = blocks.map((text): ContentBlock => ({ type: 'text', text }));
  const structured = createStructuredFromTexts(content, generation);
  return { content: JSON.stringify(content), structured, isError: described.length === 0 };
}

/** Formats a sentence about a name that no tool has. */
function formatUnknownTool(catalog: ToolCatalog, name: string, suggestionBudget: SuggestionBudget): string {
  const names = catalog.tools.map((tool) => tool.name);
  const suggestions = suggestNearest(name, names, suggestionBudget, `; find its name with ${searchToolNames.search}`);
  return `There is no tool ${JSON.stringify(name.slice(0, 100))}${suggestions}`;
}
