import { z } from 'zod';
import { withFixedArguments } from './input-schema.ts';
import {
  annotationsOf,
  enabledTools,
  mostTagText,
  singleLineText,
  type Tool,
  type ToolMode,
  toolModes,
} from './tool.ts';

/** Most views of a server, and most tools and tags that one view names. */
export const mostViews = 20;
const mostNamed = 1000;
const mostName = 64;
const mostTagsNamed = 50;

const viewToolSchema = z.strictObject({
  name: z.string().max(mostName).describe('Name of a tool of the server.'),
  title: singleLineText(100).optional().describe('Name shown to people, instead of that of the tool.'),
  description: z
    .string()
    .trim()
    .min(1)
    .max(4000)
    .optional()
    .describe('What the tool does, for the model, instead of the text of the tool.'),
  arguments: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Fixed values of arguments: they are sent in every call, and are neither shown to agents nor accepted.'),
});

/** A view: a part of the tools of a server, with texts of its own, at an address of its own. */
export const viewSchema = z.strictObject({
  title: singleLineText(100).optional().describe('Display name, instead of that of the server.'),
  description: z.string().max(2000).optional().describe('What agents read first, instead of the text of the server.'),
  tools: z
    .array(z.union([z.string(), viewToolSchema]))
    .max(mostNamed)
    .optional()
    .describe('Its tools: names, or objects with a name and what differs in this view.'),
  tags: z
    .array(z.string().min(1).max(mostTagText))
    .max(mostTagsNamed)
    .optional()
    .describe('Every tool with one of these tags is in the view too.'),
  read_only: z
    .boolean()
    .optional()
    .describe('true keeps only tools that read: by their readOnlyHint, or else by their method.'),
  tool_mode: z.enum(toolModes).optional().describe('list (the default) or search, whatever the mode of the server.'),
});

export type View = z.infer<typeof viewSchema>;
export type ViewTool = z.infer<typeof viewToolSchema>;

export const viewFields = Object.keys(viewSchema.shape);
export const viewToolFields = Object.keys(viewToolSchema.shape);

/** A tool that a view has, and what differs there. */
type SelectedTool = { tool: Tool; change: ViewTool | undefined };

/** The tools of a server by their names and by their tags; made once for all of its views. */
export type ToolsByName = { all: readonly Tool[]; byName: ReadonlyMap<string, Tool>; byTag: Map<string, Tool[]> };

export function indexTools(all: readonly Tool[]): ToolsByName {
  const byTag = new Map<string, Tool[]>();
  for (const tool of all) {
    for (const tag of tool.tags ?? []) {
      const same = byTag.get(tag);
      if (same) same.push(tool);
      else byTag.set(tag, [tool]);
    }
  }
  return { all, byName: new Map(all.map((tool) => [tool.name, tool])), byTag };
}

/** What a view says of a tool that it names. */
export function viewToolOf(entry: string | ViewTool): ViewTool {
  return typeof entry === 'string' ? { name: entry } : entry;
}

/** Whether the rule `read_only` keeps a tool. */
export function isReadOnly(tool: Tool): boolean {
  return annotationsOf(tool).readOnlyHint === true;
}

/**
 * The tools of a view, disabled ones too: those that it names in its own order, then those of its tags, or with
 * `read_only` and neither all of them, in the order of the server.
 */
export function toolsOfView(view: View, { all, byName, byTag }: ToolsByName): SelectedTool[] {
  const selected = new Map<string, SelectedTool>();
  const add = (tool: Tool | undefined, change?: ViewTool) => {
    if (!tool || selected.has(tool.name) || (view.read_only && !isReadOnly(tool))) return;
    selected.set(tool.name, { tool, change });
  };
  for (const entry of view.tools ?? []) {
    const change = viewToolOf(entry);
    add(byName.get(change.name), typeof entry === 'string' ? undefined : change);
  }
  if (hasEveryTool(view)) for (const tool of all) add(tool);
  else if (view.tags) {
    const tagged = new Set(view.tags.flatMap((tag) => byTag.get(tag) ?? []));
    if (tagged.size > 0) for (const tool of all) if (tagged.has(tool)) add(tool);
  }
  return [...selected.values()];
}

/** Whether a view names no tools: with `read_only` it then has all that read, and otherwise it is a mistake. */
export function hasEveryTool({ tools, tags }: View): boolean {
  return tools === undefined && tags === undefined;
}

/** A tool as a view has it. One without changes is the same object. */
function toolInView({ tool, change }: SelectedTool): Tool {
  if (!change) return tool;
  const { title, description, arguments: fixed } = change;
  return {
    ...tool,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(fixed && { input_schema: withFixedArguments(tool.input_schema, fixed) }),
  };
}

type Viewed = {
  name: string;
  description?: string | undefined;
  tool_mode?: ToolMode | undefined;
  tools: readonly Tool[];
};

/** The configuration that a server would have if it had only what the view has. Only enabled tools are in it. */
export function viewConfig<Config extends Viewed>(config: Config, view: View) {
  const selected = toolsOfView(view, indexTools(enabledTools(config)));
  return {
    ...config,
    name: view.title ?? config.name,
    description: view.description ?? config.description,
    tool_mode: view.tool_mode,
    tools: selected.map(toolInView),
    views: undefined,
  };
}
