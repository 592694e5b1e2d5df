import type { ServerConfig } from '../config/server-config.ts';
import type { Tool } from '../config/tool.ts';
import { indexTools, isReadOnly, toolsOfView, type View, viewToolOf } from '../config/view.ts';

type ViewWarning = { path: string; message: string };

/** Warnings about tools that a view names and does not have, and about a view that has none. */
export function viewWarnings({ tools, views = {} }: Pick<ServerConfig, 'tools' | 'views'>): ViewWarning[] {
  const index = indexTools(tools);
  return Object.entries(views).flatMap(([name, view]) => {
    const isEmpty = toolsOfView(view, index).every(({ tool }) => tool.disabled === true);
    const empty = { path: `views.${name}`, message: 'every tool of the view is disabled; agents see none there' };
    return [...namedInVain(view, `views.${name}`, index.byName), ...(isEmpty ? [empty] : [])];
  });
}

function namedInVain(view: View, at: string, byName: ReadonlyMap<string, Tool>): ViewWarning[] {
  return (view.tools ?? []).flatMap((entry, position) => {
    const { name } = viewToolOf(entry);
    const tool = byName.get(name);
    const message = tool && whyLeftOut(tool, view);
    return message === undefined ? [] : [{ path: `${at}.tools[${position}]`, message }];
  });
}

function whyLeftOut(tool: Tool, { read_only }: View): string | undefined {
  if (tool.disabled) return `the tool "${tool.name}" is disabled, so the view does not have it`;
  if (!read_only || isReadOnly(tool)) return undefined;
  return `the tool "${tool.name}" may change data, so read_only leaves it out; leave its name out too, or set its annotation readOnlyHint`;
}
