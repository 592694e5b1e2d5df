import {
  type ChangedField,
  type Conflict,
  changedFields,
  keptEdits,
  mergeRecords,
  type Value,
} from './merge-values.ts';

/**
 * Tool in its configuration form. `imported_from` is the operation that it was generated from, such as `GET
 * /pets/{id}`.
 */
export type AnyTool = { name: string; imported_from?: string; disabled?: boolean; [field: string]: Value };

/** Tools by the operation that they were generated from. */
export type ToolsByOperation = ReadonlyMap<string, AnyTool>;

export type ToolChange = { tool: string; operation: string; fields: ChangedField[] };
export type ToolConflict = Conflict & { tool: string; operation: string };

export type MergedTools = {
  tools: AnyTool[];
  changed: ToolChange[];
  conflicts: ToolConflict[];
  /** Edits that are preserved without a conflict. `before` is the value in the description. */
  edits: ToolChange[];
  /** Names of tools that were added. */
  added: string[];
  /** Operations without a tool: they did not exist at the last import, or people removed their tool. */
  offered: { operation: string; tool: AnyTool; wasRemoved: boolean }[];
  /** Tools whose operation has a new method or path. */
  moved: { tool: string; from: string; to: string }[];
  /** Names of tools whose operation was removed from the document and that are disabled for this reason. */
  gone: string[];
  unchanged: number;
};

export type MergeChoices = {
  /** Returns true if the tool of an operation without a tool is to be added. */
  adds: (operation: string) => boolean;
  /** New keys of operations that moved, by their old key. */
  moves: ReadonlyMap<string, string>;
  /** Returns the side that wins a conflict. */
  choose: (conflict: ToolConflict) => 'yours' | 'theirs';
};

/**
 * Merges the tools of a new import into the tools of a server. `before` holds the tools as the last import generated
 * them, `now` as they are generated from the current document. Edits are preserved, unedited fields follow the
 * document, and tools that were not imported stay unchanged.
 */
export function mergeTools(
  yours: readonly AnyTool[],
  before: ToolsByOperation,
  now: ToolsByOperation,
  choices: MergeChoices,
): MergedTools {
  const lists = { tools: [], changed: [], conflicts: [], edits: [], added: [], offered: [], moved: [], gone: [] };
  const merged: MergedTools = { ...lists, unchanged: 0 };
  const results = yours.map((tool) => mergeTool(tool, before, now, { choices, merged }));
  merged.tools.push(...withNamesApart(yours, results));
  for (const [index, tool] of merged.tools.entries()) noteChanges(yours[index] as AnyTool, tool, merged);
  const present = new Set(merged.tools.map(({ imported_from: operation }) => operation));
  const names = new Set(merged.tools.map(({ name }) => name));
  for (const [operation, tool] of now) {
    if (present.has(operation)) continue;
    if (!choices.adds(operation)) {
      merged.offered.push({ operation, tool, wasRemoved: before.has(operation) });
      continue;
    }
    const name = freeName(tool.name, names);
    names.add(name);
    merged.tools.push({ ...tool, name });
    merged.added.push(name);
  }
  return merged;
}

type Into = { choices: MergeChoices; merged: MergedTools };

function mergeTool(tool: AnyTool, before: ToolsByOperation, now: ToolsByOperation, { choices, merged }: Into): AnyTool {
  const from = tool.imported_from;
  if (from === undefined) return tool;
  const operation = choices.moves.get(from) ?? from;
  const found = now.get(operation);
  if (!found) {
    if (tool.disabled !== true) merged.gone.push(tool.name);
    return { ...tool, disabled: true };
  }
  const earlier = before.get(from) ?? {};
  // Callers know a tool by its name, which may be derived from its path.
  const theirs = operation === from ? found : { ...found, name: (earlier as Partial<AnyTool>).name ?? tool.name };
  if (operation !== from) merged.moved.push({ tool: tool.name, from, to: operation });
  const own = (conflict: Conflict): ToolConflict => ({ ...conflict, tool: tool.name, operation });
  const conflicts: ToolConflict[] = [];
  const result = mergeRecords({ before: earlier, yours: tool, theirs }, '', {
    choose: (conflict) => choices.choose(own(conflict)),
    onConflict: (conflict) => conflicts.push(own(conflict)),
  }) as AnyTool;
  merged.conflicts.push(...conflicts);
  const fields = keptEdits(theirs, result, conflicts);
  if (fields.length > 0) merged.edits.push({ tool: tool.name, operation, fields });
  return result;
}

function noteChanges(before: AnyTool, after: AnyTool, merged: MergedTools): void {
  const fields = changedFields(before, after);
  if (fields.length === 0) merged.unchanged++;
  else merged.changed.push({ tool: after.name, operation: after.imported_from ?? '', fields });
}

/**
 * Keeps names unique. If the document gives a tool a name that another tool already has, the tools keep their previous
 * names.
 */
function withNamesApart(yours: readonly AnyTool[], results: readonly AnyTool[]): AnyTool[] {
  const named = (name: (tool: AnyTool, index: number) => string) =>
    results.map((tool, index) => ({ ...tool, name: name(tool, index) }));
  const oldName = (index: number) => (yours[index] as AnyTool).name;
  const shared = new Set(duplicates(results.map(({ name }) => name)));
  const kept = named((tool, index) => (shared.has(tool.name) ? oldName(index) : tool.name));
  return duplicates(kept.map(({ name }) => name)).length === 0 ? kept : named((_, index) => oldName(index));
}

function duplicates(names: readonly string[]): string[] {
  const seen = new Set<string>();
  return names.filter((name) => seen.size === seen.add(name).size);
}

function freeName(name: string, taken: ReadonlySet<string>): string {
  if (!taken.has(name)) return name;
  for (let count = 2; ; count++) {
    const ending = `_${count}`;
    const candidate = name.slice(0, 64 - ending.length) + ending;
    if (!taken.has(candidate)) return candidate;
  }
}
