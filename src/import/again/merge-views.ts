import { type View, type ViewTool, viewToolOf } from '../../domain/config/view.ts';
import { checkViews, type ViewContext } from '../../domain/config/view-rules.ts';
import { ProblemList } from '../../domain/problems/problems.ts';
import type { JsonFields } from '../document/lenient.ts';
import type { AnyTool } from './merge-tools.ts';

/** A server before and after importing again; its first tools are those from before, in their order. */
export type MergedConfig = { before: JsonFields & { tools: AnyTool[] }; after: JsonFields & { tools: AnyTool[] } };

const mostSentences = 200;

/** The views with the new names of tools that the document renames. */
export function renamedViews({ before, after }: MergedConfig): Record<string, View> | undefined {
  const views = before.views as Record<string, View> | undefined;
  const names = renames({ before, after });
  if (!views || names.size === 0) return views;
  const renamed = (entry: string | ViewTool) => {
    const name = names.get(viewToolOf(entry).name);
    if (name === undefined) return entry;
    return typeof entry === 'string' ? name : { ...entry, name };
  };
  return Object.fromEntries(
    Object.entries(views).map(([name, view]) => [
      name,
      { ...view, ...(view.tools && { tools: view.tools.map(renamed) }) },
    ]),
  );
}

/** What importing again changes in views, one sentence each: tools that are called otherwise, or gone, or no longer fit. */
export function viewSentences(merged: MergedConfig, gone: readonly string[]): string[] {
  const views = merged.before.views as Record<string, View> | undefined;
  if (!views) return [];
  const names = renames(merged);
  const lost = new Set(gone);
  const found = Object.entries(views).flatMap(([view, { tools = [] }]) =>
    tools.flatMap((entry) => {
      const { name } = viewToolOf(entry);
      const now = names.get(name) ?? name;
      if (lost.has(now)) return [`${view}: the tool "${now}" is gone from the document, so the view no longer has it`];
      return now === name ? [] : [`${view}: the tool "${name}" is called "${now}" now`];
    }),
  );
  const problems = new ProblemList();
  checkViews(merged.after as unknown as ViewContext, problems, () => true);
  const refused = problems.all().map(({ path, message }) => `${path}: ${message}; change the view before you apply`);
  return [...refused, ...found].slice(0, mostSentences);
}

function renames({ before, after }: MergedConfig): Map<string, string> {
  return new Map(
    before.tools.flatMap(({ name }, index) => {
      const now = after.tools[index]?.name;
      return now === undefined || now === name ? [] : [[name, now] as const];
    }),
  );
}
