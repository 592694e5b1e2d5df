import type { JsonObject } from '../../answers.ts';
import { type Config, isObject, isReadOnly, textOf, viewsOf } from '../config.ts';

/** A view that has a tool, and the names of the arguments that it fixes. */
export type ViewOfTool = { name: string; fixed: string[] };

/** The views of a stored configuration that have this tool, as the service decides it. */
export function viewsOfTool(config: Config, tool: JsonObject): ViewOfTool[] {
  const wanted = textOf(tool.name);
  const ownTags = Array.isArray(tool.tags) ? (tool.tags as unknown[]) : [];
  return Object.entries(viewsOf(config)).flatMap(([name, view]) => {
    if (!isObject(view) || (view.read_only === true && !isReadOnly(tool))) return [];
    const entries = Array.isArray(view.tools) ? (view.tools as unknown[]) : [];
    const entry = entries.find((one) => (isObject(one) ? one.name : one) === wanted);
    const tags = Array.isArray(view.tags) ? (view.tags as unknown[]) : [];
    const hasEvery = view.tools === undefined && view.tags === undefined;
    if (entry === undefined && !hasEvery && !tags.some((tag) => ownTags.includes(tag))) return [];
    const fixed = isObject(entry) && isObject(entry.arguments) ? Object.keys(entry.arguments) : [];
    return [{ name, fixed }];
  });
}
