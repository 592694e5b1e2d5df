import type { JsonFields } from '../document/lenient.ts';
import type { ImportPlan } from '../plan/plan-import.ts';
import { groupOf } from '../plan/selection.ts';
import { type AgainReport, type OfferedKind, planBounds } from '../plan-outline.ts';
import { listedName } from '../tools/texts.ts';
import { type Generated, operationDigest } from './generated.ts';
import type { MergedTools, ToolChange, ToolConflict } from './merge-tools.ts';
import type { ChangedField, Conflict, Value } from './merge-values.ts';

const mostListed = 500;
const mostFields = 50;
const mostQuestions = 200;
const longestValue = 300;

/** Server fields after a merge, with their changes and the conflicts to decide. */
export type MergedServer = { fields: JsonFields; changes: ChangedField[]; conflicts: Conflict[] };

type Merged = { tools: MergedTools; server: MergedServer; plan: ImportPlan; before: Generated };

export const keyOf = ({ tool, path }: Pick<ToolConflict, 'tool' | 'path'>) => `${tool}.${path}`;

export function reportOf({ tools, server, plan, before }: Merged, listed: OfferedKind): Omit<AgainReport, 'views'> {
  const conflicts = [
    ...server.conflicts.map((conflict) => ({ ...sides(conflict), path: conflict.path, key: conflict.path })),
    ...tools.conflicts.map((conflict) => ({
      ...sides(conflict),
      tool: conflict.tool,
      path: conflict.path,
      key: keyOf(conflict),
    })),
  ];
  const offered = offeredOf(tools, plan, before);
  const shown = listed === 'all' ? offered : offered.filter((entry) => entry.new || entry.removed);
  return {
    title: plan.title,
    counts: {
      changed: tools.changed.length,
      conflicts: conflicts.length,
      edits: tools.edits.reduce((sum, { fields }) => sum + fields.length, 0),
      added: tools.added.length,
      offered: offered.length,
      new: offered.filter((entry) => entry.new).length,
      moved: tools.moved.length,
      gone: tools.gone.length,
      unchanged: tools.unchanged,
    },
    server: server.changes.map(changeText),
    changed: reportedTools(tools.changed),
    conflicts: conflicts.slice(0, mostListed),
    edits: reportedTools(tools.edits),
    added: tools.added.slice(0, mostListed),
    offered: shown.slice(0, planBounds.report),
    moved: tools.moved
      .slice(0, mostListed)
      .map(({ tool, from, to }) => ({ tool, from: listedName(from), to: listedName(to) })),
    gone: tools.gone.slice(0, mostListed),
    questions: plan.questions.filter(({ name }) => name !== 'client_secret').slice(0, mostQuestions),
  };
}

/**
 * Returns the operations without a tool, new ones first. Nothing is new if the last import did not record the known
 * operations.
 */
function offeredOf({ offered }: MergedTools, { all, keys }: ImportPlan, { known }: Generated): AgainReport['offered'] {
  const madeBy = new Map(all.map((made, index) => [keys[index], made]));
  const old = known && new Set(known);
  const entries = offered.map(({ operation, tool, wasRemoved }): AgainReport['offered'][number] => {
    const made = madeBy.get(operation);
    return {
      operation,
      tool: tool.name,
      group: made ? listedName(groupOf(made)) : '',
      tokens: made?.tokens ?? 0,
      ...(old && !old.has(operationDigest(operation)) && !wasRemoved && { new: true as const }),
      ...(wasRemoved && { removed: true as const }),
      ...(made?.operation.isDeprecated && { deprecated: true as const }),
    };
  });
  return [...entries.filter((entry) => entry.new), ...entries.filter((entry) => !entry.new)];
}

function reportedTools(changes: readonly ToolChange[]): AgainReport['changed'] {
  return changes.slice(0, mostListed).map(({ tool, operation, fields }) => ({
    tool,
    operation,
    fields: fields.slice(0, mostFields).map(changeText),
  }));
}

function sides({ before, yours, theirs }: Conflict) {
  return { ...textOf('before', before), ...textOf('yours', yours), ...textOf('document', theirs) };
}

function changeText({ path, before, after }: ChangedField): AgainReport['server'][number] {
  return { path, ...textOf('before', before), ...textOf('after', after) };
}

function textOf<Name extends string>(name: Name, value: Value): { [name in Name]?: string } {
  if (value === undefined) return {};
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return { [name]: text.length > longestValue ? `${text.slice(0, longestValue)}…` : text } as {
    [name in Name]?: string;
  };
}
