import { readMoreDefinition, readMoreName } from '../pieces/read-more.ts';
import type { CatalogueFacts, ToolDefinition } from '../search/own-tools.ts';
import { searchToolDefinitions, searchToolNames } from '../search/own-tools.ts';
import { toJsonSchema } from './input-schema.ts';
import { annotationsOf, enabledTools, type Tool, type ToolMode } from './tool.ts';

/** The part of a configuration that decides which tools agents see. */
export type ToolListSource = {
  tools: readonly Tool[];
  tool_mode?: ToolMode | undefined;
  max_answer_tokens?: number | undefined;
};

/**
 * A tool as `tools/list` describes it. An output schema would promise structured content, which an answer that is cut
 * does not have.
 */
export function toolDefinition(tool: Tool, { max_answer_tokens: most }: ToolListSource): ToolDefinition {
  const isWhole = (tool.max_answer_tokens ?? most) === undefined;
  return {
    name: tool.name,
    ...(tool.title !== undefined && { title: tool.title }),
    description: tool.description,
    inputSchema: toJsonSchema(tool.input_schema),
    ...(isWhole && tool.output_schema && { outputSchema: tool.output_schema }),
    annotations: annotationsOf(tool),
  };
}

/** The tools that agents see without a search: all of them, or in search mode those that are pinned. */
export function listedTools(config: ToolListSource): Tool[] {
  const enabled = enabledTools(config);
  return config.tool_mode === 'search' ? enabled.filter((tool) => tool.pinned === true) : enabled;
}

/** The answer to `tools/list`. */
export function toolList(config: ToolListSource): ToolDefinition[] {
  return [
    ...(config.tool_mode === 'search' ? searchToolDefinitions(factsOf(enabledTools(config))) : []),
    ...listedTools(config).map((tool) => toolDefinition(tool, config)),
    ...(limitsAnswers(config) ? [readMoreDefinition] : []),
  ];
}

/** Names that tools of the server cannot have, because its own tools have them. */
export function reservedToolNames(config: {
  tools: readonly unknown[];
  tool_mode?: unknown;
  max_answer_tokens?: unknown;
}): ReadonlySet<string> {
  return new Set([
    ...(config.tool_mode === 'search' ? Object.values(searchToolNames) : []),
    ...(limitsAnswers(config) ? [readMoreName] : []),
  ]);
}

/** Whether the answers of any tool have a limit; the configuration may be malformed. */
export function limitsAnswers(config: { tools: readonly unknown[]; max_answer_tokens?: unknown }): boolean {
  const hasLimit = (tool: unknown) => (tool as Partial<Tool> | null | undefined)?.max_answer_tokens !== undefined;
  return config.max_answer_tokens !== undefined || config.tools.some(hasLimit);
}

function factsOf(tools: readonly Tool[]): CatalogueFacts {
  const hints = tools.map(annotationsOf);
  return {
    tools: tools.length,
    tags: countTags(tools),
    hints: {
      isReadOnly: hints.every(({ readOnlyHint }) => readOnlyHint === true),
      // A hint that is absent means that the tool may destroy (MCP, server/tools, annotations).
      isDestructive: hints.some(({ readOnlyHint, destructiveHint }) => !readOnlyHint && destructiveHint !== false),
      isIdempotent: hints.every(({ idempotentHint }) => idempotentHint === true),
    },
  };
}

/** How many tools have each tag, in the order of the tools. */
export function countTags(tools: readonly Tool[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const tag of tools.flatMap((tool) => tool.tags ?? [])) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return counts;
}
