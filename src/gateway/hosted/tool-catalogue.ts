import { argumentsOf } from '../../domain/config/input-schema.ts';
import {
  countTags,
  enabledTools,
  listedTools,
  type Tool,
  type ToolListSource,
  toolDefinition,
} from '../../domain/config/tool.ts';
import type { ToolDefinition } from '../../domain/search/own-tools.ts';
import { indexing, type SearchedTool, type ToolIndex } from '../../domain/search/tool-index.ts';
import { nextTurn } from '../../domain/work/next-turn.ts';

/** The tools of a server in search mode. */
export type ToolCatalogue = {
  /** The enabled tools, in configuration order. */
  tools: readonly Tool[];
  find(name: string): Tool | undefined;
  /** Returns the definition of a tool. */
  define(tool: Tool): ToolDefinition;
  /** Number of tools by tag. */
  tags: ReadonlyMap<string, number>;
  /** Returns true if `tools/list` contains this tool. */
  isListed(name: string): boolean;
  /** Returns the search index. It is built at the first search, in chunks that yield to the event loop. */
  index(): Promise<ToolIndex>;
};

export function createCatalogue(config: ToolListSource): ToolCatalogue {
  const tools = enabledTools(config);
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const listed = new Set(listedTools(config).map(({ name }) => name));
  let index: Promise<ToolIndex> | undefined;
  return {
    tools,
    find: (name) => byName.get(name),
    define: (tool) => toolDefinition(tool, config),
    tags: countTags(tools),
    isListed: (name) => listed.has(name),
    index() {
      index ??= inTurns(indexing(tools.length, (position) => searchedTool(tools[position] as Tool)));
      return index;
    },
  };
}

/** Returns the searchable fields of a tool. Constants are omitted, because callers do not pass them. */
function searchedTool({ name, title, description, method, url, tags = [], input_schema }: Tool): SearchedTool {
  const given = argumentsOf(input_schema).filter(({ wire }) => wire.value === undefined);
  return { name, title, description, method, url, tags, arguments: given.map((argument) => argument.name) };
}

/** Runs a generator to its end, and yields to the event loop at each `yield`. */
async function inTurns<Result>(work: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    await nextTurn();
  }
}
