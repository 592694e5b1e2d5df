import { z } from 'zod';
import { withFixedArguments } from './input-schema.ts';
import {
  getAnnotations,
  getEnabledTools,
  maxTagLength,
  singleLineText,
  type Tool,
  type ToolMode,
  toolModes,
} from './tool.ts';

/** Maximum views of a server, and maximum tools and tags that one view names. */
export const maxViews = 20;
const maxNamedTools = 1000;
const maxToolNameLength = 64;
const maxNamedTags = 50;

const viewToolSchema = z.strictObject({
  name: z.string().max(maxToolNameLength).describe('Name of a server tool.'),
  title: singleLineText(100).optional().describe('Name shown to people, instead of the tool title.'),
  description: z
    .string()
    .trim()
    .min(1)
    .max(4000)
    .optional()
    .describe('What the tool does, for the model, instead of the tool description.'),
  arguments: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Fixed argument values. They are sent with every call, hidden from agents, and not accepted from them.'),
});

/** A view: a subset of a server's tools with its own texts, at its own URL. */
export const viewSchema = z.strictObject({
  title: singleLineText(100).optional().describe('Display name, instead of the server name.'),
  description: z
    .string()
    .max(2000)
    .optional()
    .describe('Text that agents read first, instead of the server description.'),
  tools: z
    .array(z.union([z.string(), viewToolSchema]))
    .max(maxNamedTools)
    .optional()
    .describe('Tools of the view: names, or objects with a name and the changes in this view.'),
  tags: z
    .array(z.string().min(1).max(maxTagLength))
    .max(maxNamedTags)
    .optional()
    .describe('Includes every tool with one of these tags.'),
  read_only: z
    .boolean()
    .optional()
    .describe('true keeps only tools that read, according to their readOnlyHint or, without one, their method.'),
  tool_mode: z.enum(toolModes).optional().describe('list (default) or search, regardless of the mode of the server.'),
});

export type View = z.infer<typeof viewSchema>;
export type ViewTool = z.infer<typeof viewToolSchema>;

export const viewFields = Object.keys(viewSchema.shape);
export const viewToolFields = Object.keys(viewToolSchema.shape);

/** A tool of a view, and its changes in the view. */
type SelectedTool = { tool: Tool; change: ViewTool | undefined };

/** Tools of a server by name and by tag, indexed once for all its views. */
export type ToolsByName = { all: readonly Tool[]; byName: ReadonlyMap<string, Tool>; byTag: Map<string, Tool[]> };

export function indexTools(tools: readonly Tool[]): ToolsByName {
  const byTag = new Map<string, Tool[]>();
  for (const tool of tools) {
    for (const tag of tool.tags ?? []) {
      const taggedTools = byTag.get(tag);
      if (taggedTools) taggedTools.push(tool);
      else byTag.set(tag, [tool]);
    }
  }
  return { all: tools, byName: new Map(tools.map((tool) => [tool.name, tool])), byTag };
}

/** Returns an entry of a view as an object: the tool's name and its changes in the view. */
export function toViewTool(entry: string | ViewTool): ViewTool {
  return typeof entry === 'string' ? { name: entry } : entry;
}

/** Returns true if `read_only` keeps the tool. */
export function isReadOnly(tool: Tool): boolean {
  return getAnnotations(tool).readOnlyHint === true;
}

/**
 * Returns the tools of a view, including disabled ones. First come the tools that the view names, in its own order,
 * then the tools of its tags, in server order. A view with only `read_only` has all tools that read.
 */
export function selectTools(view: View, { all, byName, byTag }: ToolsByName): SelectedTool[] {
  const selected = new Map<string, SelectedTool>();
  const add = (tool: Tool | undefined, change?: ViewTool) => {
    if (!tool || selected.has(tool.name) || (view.read_only && !isReadOnly(tool))) return;
    selected.set(tool.name, { tool, change });
  };
  for (const entry of view.tools ?? []) {
    const change = toViewTool(entry);
    add(byName.get(change.name), typeof entry === 'string' ? undefined : change);
  }
  if (namesNoTools(view)) for (const tool of all) add(tool);
  else if (view.tags) {
    const tagged = new Set(view.tags.flatMap((tag) => byTag.get(tag) ?? []));
    if (tagged.size > 0) for (const tool of all) if (tagged.has(tool)) add(tool);
  }
  return [...selected.values()];
}

/**
 * Returns true if a view names no tools. With `read_only` it then has all tools that read; otherwise it is a config
 * error.
 */
export function namesNoTools({ tools, tags }: View): boolean {
  return tools === undefined && tags === undefined;
}

/** Returns a tool as the view defines it. A tool without changes is the same object. */
function applyChange({ tool, change }: SelectedTool): Tool {
  if (!change) return tool;
  const { title, description, arguments: fixed } = change;
  return {
    ...tool,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(fixed && { input_schema: withFixedArguments(tool.input_schema, fixed) }),
  };
}

type ViewableConfig = {
  name: string;
  description?: string | undefined;
  tool_mode?: ToolMode | undefined;
  tools: readonly Tool[];
};

/** Returns the configuration that a server would have if it consisted only of the view. Includes only enabled tools. */
export function createViewConfig<Config extends ViewableConfig>(config: Config, view: View) {
  const selected = selectTools(view, indexTools(getEnabledTools(config)));
  return {
    ...config,
    name: view.title ?? config.name,
    description: view.description ?? config.description,
    tool_mode: view.tool_mode,
    tools: selected.map(applyChange),
    views: undefined,
  };
}
