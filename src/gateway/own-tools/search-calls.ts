import { addedArguments, leftOutText } from '../../domain/added-arguments.ts';
import { annotationsOf, type Tool } from '../../domain/config/tool.ts';
import {
  type ContentBlock,
  type Era,
  type ToolCall,
  type ToolResult,
  textResult,
  withLines,
} from '../../domain/mcp.ts';
import { type Guesses, nearest, newGuesses, shown } from '../../domain/problems.ts';
import type { Arguments } from '../../domain/request/sent-argument.ts';
import { coerceObject } from '../../domain/schema/coerce-value.ts';
import {
  describeInput,
  mostDescribed,
  mostResults,
  searchInput,
  searchToolNames,
} from '../../domain/search/own-tools.ts';
import { searchTools } from '../../domain/search/search-tools.ts';
import type { ToolIndex } from '../../domain/search/tool-index.ts';
import type { MaybePromise } from '../../domain/work/next-turn.ts';
import { ToolFailure } from '../../errors.ts';
import { structuredOfTexts } from '../answer/json-answer.ts';
import { leftOutLines } from '../arguments/left-out.ts';
import { type ArgumentRules, compileArguments, prepareArguments } from '../arguments/prepare-arguments.ts';
import { type CallToolParts, callTool } from '../call/call-tool.ts';
import type { Caller } from '../callers/caller.ts';
import type { HostedServer } from '../hosted/hosted-server.ts';
import type { ToolCatalogue } from '../hosted/tool-catalogue.ts';
import { callOwnTool } from './own-call.ts';

/**
 * Runs one `tools/call` of a server in search mode. A call through `call_tool` counts in every way as a call of the
 * named tool, including its checks, limits, records, and traces.
 * @throws any error of `callTool`
 */
export async function callInSearchMode(
  server: HostedServer,
  caller: Caller,
  asked: ToolCall,
  parts: CallToolParts,
): Promise<ToolResult> {
  if (asked.name !== searchToolNames.call) {
    if (server.tool(asked.name)) return callTool(server, caller, asked, parts);
    return callOwnTool({ server, caller, asked }, parts, () => ownResult(server.catalogue as ToolCatalogue, asked));
  }
  const inner = calledTool(server, asked.args);
  if (inner instanceof ToolFailure) {
    return callOwnTool({ server, caller, asked }, parts, () => Promise.reject(inner));
  }
  const { added, ...named } = inner;
  const result = await callTool(server, caller, { ...asked, ...named }, parts);
  return withLines(result, leftOutText(added, 'not declared by the tool'));
}

type CalledTool = Pick<ToolCall, 'name' | 'args'> & { added: string[] };

/**
 * Returns the call inside a `call_tool`, and the arguments that a client added next to it. The tool itself checks the
 * inner arguments.
 */
function calledTool(server: HostedServer, given: Arguments): CalledTool | ToolFailure {
  const { name, arguments: givenArguments, ...others } = given;
  const added = addedArguments(others, [], false);
  const other = Object.keys(others).find((one) => !added.includes(one));
  const args = coerceObject(givenArguments);
  if (typeof name !== 'string') return misfit(`name: found ${shown(name)}; allowed: the name of a tool`);
  if (other !== undefined)
    return misfit(`${other.slice(0, 100)}: not an argument of call_tool; put the tool's arguments into "arguments"`);
  if (args === undefined)
    return misfit(`arguments: found ${shown(givenArguments)}; allowed: an object with the tool's arguments`);
  if (!server.tool(name)) {
    return new ToolFailure(
      'invalid_arguments',
      unknownToolText(server.catalogue as ToolCatalogue, name, newGuesses()),
      [],
      'name: the server has no such tool',
    );
  }
  return { name, args, added };
}

function misfit(what: string): ToolFailure {
  return new ToolFailure('invalid_arguments', `The arguments are invalid: ${what}`);
}

/** Executes `search_tools` or `describe_tool`. @throws ToolFailure */
async function ownResult(catalogue: ToolCatalogue, { name, args, era }: ToolCall): Promise<ToolResult> {
  const isSearch = name === searchToolNames.search;
  const sent = await checked(isSearch ? rules.search : rules.describe, args);
  const result = isSearch ? await searchResult(catalogue, sent) : describeResult(catalogue, sent, era);
  return withLines(result, leftOutLines(args, sent));
}

const rules = {
  search: compileArguments(searchInput, searchInput, true),
  describe: compileArguments(describeInput, describeInput, true),
};

function checked(args: ArgumentRules, given: Arguments): MaybePromise<Arguments> {
  return prepareArguments({ args }, given, () => Promise.reject(misfit('there are too many values')));
}

type SearchArguments = { query?: string; tag?: string; offset?: number };

/** Returns the result of `search_tools`. @throws ToolFailure invalid_arguments for a tag that no tool has */
async function searchResult(catalogue: ToolCatalogue, args: Arguments): Promise<ToolResult> {
  const { query = '', tag, offset = 0 } = args as SearchArguments;
  const wanted = tag === undefined ? undefined : knownTag(catalogue, tag);
  if (query.trim() === '')
    return textResult(wanted === undefined ? overview(catalogue) : ofTag(catalogue, wanted, offset), false);
  return textResult(found(catalogue, await catalogue.index(), { query, tag: wanted, offset }), false);
}

/** Returns a tag as the tools spell it, regardless of case. */
function knownTag({ tags }: ToolCatalogue, tag: string): string {
  const folded = tag.trim().toLowerCase();
  const known = [...tags.keys()];
  const same = known.find((name) => name.toLowerCase() === folded);
  if (same !== undefined) return same;
  const near = nearest(
    tag,
    known,
    newGuesses(),
    tags.size === 0 ? '; the tools of this server have no tags' : `; tags: ${listedTags(tags)}`,
  );
  const message = `tag: no tool has the tag ${JSON.stringify(tag.slice(0, 60))}${near}`;
  throw new ToolFailure('invalid_arguments', message, [], 'tag: no tool has this tag');
}

const longestOverview = 4000;

function listedTags(tags: ReadonlyMap<string, number>): string {
  let text = '';
  for (const [tag, count] of tags) {
    if (text.length > longestOverview) return `${text}, …`;
    text += `${text && ', '}${tag} (${count})`;
  }
  return text;
}

function overview({ tools, tags }: ToolCatalogue): string {
  const head = `Pass a query: a few words that describe what the tool should do. This server has ${tools.length} tools.`;
  return tags.size === 0 ? head : `${head} Pass a tag to list its tools: ${listedTags(tags)}.`;
}

function ofTag({ tools }: ToolCatalogue, tag: string, offset: number): string {
  const those = tools.filter((tool) => tool.tags?.includes(tag));
  return page(those, offset, `${those.length} tools with the tag ${JSON.stringify(tag)}`);
}

type Wanted = { query: string; tag: string | undefined; offset: number };

function found({ tools }: ToolCatalogue, index: ToolIndex, { query, tag, offset }: Wanted): string {
  const hasTag = (position: number) => tag === undefined || tools[position]?.tags?.includes(tag) === true;
  const { total, best } = searchTools(index, query, offset + mostResults, hasTag);
  const where = tag === undefined ? '' : ` among those with the tag ${JSON.stringify(tag)}`;
  if (total === 0)
    return `No tool matches ${JSON.stringify(query)}${where}. Use other words, such as the name of the resource and a verb like list, get, create, update, or delete.`;
  const shown = best.slice(offset).map((position) => tools[position] as Tool);
  return pageOf(shown, { offset, total }, `${total} of ${tools.length} tools match${where}, best first`);
}

function page(tools: readonly Tool[], offset: number, head: string): string {
  return pageOf(tools.slice(offset, offset + mostResults), { offset, total: tools.length }, head);
}

function pageOf(shown: readonly Tool[], { offset, total }: { offset: number; total: number }, head: string): string {
  if (shown.length === 0) return `${head}; there are none after ${offset}.`;
  const end = offset + shown.length;
  const more = end < total ? ` More with offset ${end}.` : '';
  const lines = shown.map((tool) => `- ${line(tool)}`);
  return [`${head}:`, ...lines, `Read them with ${searchToolNames.describe} before you call one.${more}`].join('\n');
}

const longestLine = 120;

/** Formats one line about a tool: name, effect, and first sentence. */
function line(tool: Tool): string {
  const { readOnlyHint, destructiveHint } = annotationsOf(tool);
  const effect = readOnlyHint ? 'reads' : destructiveHint ? 'destroys' : 'writes';
  return `${tool.name} (${effect}): ${firstSentence(tool.description)}`;
}

function firstSentence(text: string): string {
  const plain = text.slice(0, 1000).replaceAll(/\s+/g, ' ');
  const end = plain.search(/[.!?](?:\s|$)/);
  const sentence = end > 10 ? plain.slice(0, end + 1) : plain;
  if (sentence.length <= longestLine) return sentence;
  return `${sentence
    .slice(0, longestLine)
    .toWellFormed()
    .replace(/\s+\S*$/, '')} …`;
}

/**
 * Maximum length of the descriptions of several tools, in characters of JSON: about 15,000 tokens. The first one is
 * never omitted.
 */
const longestDescriptions = 60_000;

/** Returns the result of `describe_tool`. It is an error if no tool has one of the names. */
function describeResult(catalogue: ToolCatalogue, args: Arguments, era: Era): ToolResult {
  const names = [...new Set(args.names as string[])].slice(0, mostDescribed);
  const described: string[] = [];
  const notes: string[] = [];
  const left: string[] = [];
  const guesses = newGuesses();
  let length = 0;
  for (const name of names) {
    const tool = catalogue.find(name);
    const text = tool && JSON.stringify({ ...catalogue.define(tool), ...(tool.tags && { tags: tool.tags }) });
    if (text === undefined) notes.push(unknownToolText(catalogue, name, guesses));
    else if (described.length > 0 && length + text.length > longestDescriptions) left.push(name);
    else {
      described.push(text);
      length += text.length;
    }
  }
  if (left.length > 0)
    notes.push(`Omitted, because the result would be too long: ${left.join(', ')}. Request them in another call.`);
  const blocks = [...(described.length > 0 ? [`[${described.join(',\n')}]`] : []), ...notes];
  const content = blocks.map((text): ContentBlock => ({ type: 'text', text }));
  const structured = structuredOfTexts(content, era);
  return { content: JSON.stringify(content), structured, isError: described.length === 0 };
}

/** Formats a sentence about a name that no tool has. */
function unknownToolText(catalogue: ToolCatalogue, name: string, guesses: Guesses): string {
  const names = catalogue.tools.map((tool) => tool.name);
  const near = nearest(name, names, guesses, `; find its name with ${searchToolNames.search}`);
  return `There is no tool ${JSON.stringify(name.slice(0, 100))}${near}`;
}
