import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import type { ToolDefinition } from '@toolhost/tool-config/built-in-tools';
import { getArguments } from '@toolhost/tool-config/input-schema';
import {
  countTags,
  getEnabledTools,
  getListedTools,
  type Tool,
  type ToolListSource,
  toToolDefinition,
} from '@toolhost/tool-config/tool';
import type { SearchedTool, ToolIndex } from '@toolhost/tool-search/tool-index';

/** The tools of a server in search mode. */
export type ToolCatalog = {
  /** The enabled tools, in configuration order. */
  tools: readonly Tool[];
  find(name: string): Tool | undefined;
  /** Returns the definition of a tool. */
  getDefinition(tool: Tool): ToolDefinition;
  /** Number of tools by tag. */
  tags: ReadonlyMap<string, number>;
  /** Returns true if `tools/list` contains this tool. */
  isListed(name: string): boolean;
  /** Returns the search index. It is built at the first search, in chunks that yield to the event loop. */
  getIndex(): Promise<ToolIndex>;
};

export function createCatalog(config: ToolListSource): ToolCatalog {
  const tools = getEnabledTools(config);
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const listedNames = new Set(getListedTools(config).map(({ name }) => name));
  let indexPromise: Promise<ToolIndex> | undefined;
  return {
    tools,
    find: (name) => byName.get(name),
    getDefinition: (tool) => toToolDefinition(tool, config),
    tags: countTags(tools),
    isListed: (name) => listedNames.has(name),
    getIndex() {
      indexPromise ??= createIndex(tools);
      return indexPromise;
    },
  };
}

async function createIndex(tools: readonly Tool[]): Promise<ToolIndex> {
  // Loaded at the first search.
  const { buildIndex } = await import('@toolhost/tool-search/tool-index');
  return runInChunks(buildIndex(tools.length, (position) => toSearchedTool(tools[position] as Tool)));
}

/** Returns the searchable fields of a tool. Constants are omitted, because callers do not pass them. */
function toSearchedTool({ name, title, description, method, url, tags = [], input_schema }: Tool): SearchedTool {
  const passedArguments = getArguments(input_schema).filter(({ wire }) => wire.value === undefined);
  return { name, title, description, method, url, tags, arguments: passedArguments.map((argument) => argument.name) };
}

/** Runs a generator to its end, and yields to the event loop at each `yield`. */
async function runInChunks<Result>(work: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    await yieldToEventLoop();
  }
}
