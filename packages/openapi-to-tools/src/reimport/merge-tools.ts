import {
  type ChangedField,
  type Conflict,
  findChangedFields,
  findPreservedEdits,
  mergeRecords,
  type Value,
} from './merge-values.ts';

/**
 * Tool in its configuration form. `imported_from` is the operation that it was generated from, such as `GET
 * /pets/{id}`.
 */
export type ConfigTool = { name: string; imported_from?: string; disabled?: boolean; [field: string]: Value };

/** Tools by the operation that they were generated from. */
export type ToolsByOperation = ReadonlyMap<string, ConfigTool>;

export type ToolChange = { tool: string; operation: string; fields: ChangedField[] };
export type ToolConflict = Conflict & { tool: string; operation: string };

export type MergedTools = {
  tools: ConfigTool[];
  changed: ToolChange[];
  conflicts: ToolConflict[];
  /** Edits that are preserved without a conflict. `before` is the value in the description. */
  edits: ToolChange[];
  /** Names of tools that were added. */
  added: string[];
  /** Operations without a tool: they did not exist at the last import, or people removed their tool. */
  offered: { operation: string; tool: ConfigTool; wasRemoved: boolean }[];
  /** Tools whose operation has a new method or path. */
  moved: { tool: string; from: string; to: string }[];
  /** Names of tools whose operation was removed from the document and that are disabled for this reason. */
  gone: string[];
  unchanged: number;
};

export type MergeChoices = {
  /** Returns true if the tool of an operation without a tool is to be added. */
  shouldAdd: (operation: string) => boolean;
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
  yours: readonly ConfigTool[],
  before: ToolsByOperation,
  now: ToolsByOperation,
  choices: MergeChoices,
): MergedTools {
  const lists = { tools: [], changed: [], conflicts: [], edits: [], added: [], offered: [], moved: [], gone: [] };
  const merged: MergedTools = { ...lists, unchanged: 0 };
  const results = yours.map((tool) => mergeTool(tool, before, now, { choices, merged }));
  merged.tools.push(...keepNamesUnique(yours, results));
  for (const [index, tool] of merged.tools.entries()) recordChanges(yours[index] as ConfigTool, tool, merged);
  const currentOperations = new Set(merged.tools.map(({ imported_from: operation }) => operation));
  const names = new Set(merged.tools.map(({ name }) => name));
  for (const [operation, tool] of now) {
    if (currentOperations.has(operation)) continue;
    if (!choices.shouldAdd(operation)) {
      merged.offered.push({ operation, tool, wasRemoved: before.has(operation) });
      continue;
    }
    const name = findFreeName(tool.name, names);
    names.add(name);
    merged.tools.push({ ...tool, name });
    merged.added.push(name);
  }
  return merged;
}

type MergeContext = { choices: MergeChoices; merged: MergedTools };

function mergeTool(
  tool: ConfigTool,
  before: ToolsByOperation,
  now: ToolsByOperation,
  { choices, merged }: MergeContext,
): ConfigTool {
  const from = tool.imported_from;
  if (from === undefined) return tool;
  const operation = choices.moves.get(from) ?? from;
  const incoming = now.get(operation);
  if (!incoming) {
    if (tool.disabled !== true) merged.gone.push(tool.name);
    return { ...tool, disabled: true };
  }
  const generatedBefore = before.get(from) ?? {};
  // Callers know a tool by its name, which may be derived from its path.
  const theirs =
    operation === from ? incoming : { ...incoming, name: (generatedBefore as Partial<ConfigTool>).name ?? tool.name };
  if (operation !== from) merged.moved.push({ tool: tool.name, from, to: operation });
  const toToolConflict = (conflict: Conflict): ToolConflict => ({ ...conflict, tool: tool.name, operation });
  const conflicts: ToolConflict[] = [];
  const result = mergeRecords({ before: generatedBefore, yours: tool, theirs }, '', {
    choose: (conflict) => choices.choose(toToolConflict(conflict)),
    onConflict: (conflict) => conflicts.push(toToolConflict(conflict)),
  }) as ConfigTool;
  merged.conflicts.push(...conflicts);
  const fields = findPreservedEdits(theirs, result, conflicts);
  if (fields.length > 0) merged.edits.push({ tool: tool.name, operation, fields });
  return result;
}

function recordChanges(before: ConfigTool, after: ConfigTool, merged: MergedTools): void {
  const fields = findChangedFields(before, after);
  if (fields.length === 0) merged.unchanged++;
  else merged.changed.push({ tool: after.name, operation: after.imported_from ?? '', fields });
}

/**
 * Keeps names unique. If the document gives a tool a name that another tool already has, the tools keep their previous
 * names.
 */
function keepNamesUnique(yours: readonly ConfigTool[], results: readonly ConfigTool[]): ConfigTool[] {
  const rename = (getName: (tool: ConfigTool, index: number) => string) =>
    results.map((tool, index) => ({ ...tool, name: getName(tool, index) }));
  const getOldName = (index: number) => (yours[index] as ConfigTool).name;
  const shared = new Set(findDuplicates(results.map(({ name }) => name)));
  const renamedTools = rename((tool, index) => (shared.has(tool.name) ? getOldName(index) : tool.name));
  return findDuplicates(renamedTools.map(({ name }) => name)).length === 0
    ? renamedTools
    : rename((_, index) => getOldName(index));
}

function findDuplicates(names: readonly string[]): string[] {
  const seenNames = new Set<string>();
  return names.filter((name) => seenNames.size === seenNames.add(name).size);
}

function findFreeName(name: string, usedNames: ReadonlySet<string>): string {
  if (!usedNames.has(name)) return name;
  for (let count = 2; ; count++) {
    const suffix = `_${count}`;
    const candidate = name.slice(0, 64 - suffix.length) + suffix;
    if (!usedNames.has(candidate)) return candidate;
  }
}
