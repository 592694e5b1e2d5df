import type { JsonFields } from '../document/lenient.ts';
import type { Question } from '../plan/choices.ts';
import type { ImportPlan } from '../plan/plan-import.ts';
import { groupOf } from '../plan/selection.ts';
import { type OfferedKind, planBounds } from '../plan-outline.ts';
import type { ChangedField } from './changed-fields.ts';
import { type Generated, operationDigest } from './generated.ts';
import type { MergedTools, ToolChange, ToolConflict } from './merge-tools.ts';
import type { Conflict, Value } from './merge-values.ts';

/** A difference as text; `undefined` is a value that is not there. */
export type ValueChange = { path: string; before?: string; after?: string };

type ReportedTool = { tool: string; operation: string; fields: ValueChange[] };

/** What importing again would change. Lists are cut, see the bounds below; the counts are whole. */
export type AgainReport = {
  title: string;
  isSameDocument: boolean;
  /** Sentences about views. */
  views: string[];
  counts: Record<
    'changed' | 'conflicts' | 'edits' | 'added' | 'offered' | 'new' | 'moved' | 'gone' | 'unchanged',
    number
  >;
  server: ValueChange[];
  changed: ReportedTool[];
  conflicts: { tool?: string; path: string; key: string; before?: string; yours?: string; document?: string }[];
  /** Edits that stay: `before` is the value of the description, `after` the edited one. */
  edits: ReportedTool[];
  added: string[];
  offered: OfferedOperation[];
  moved: { tool: string; from: string; to: string }[];
  gone: string[];
  questions: Question[];
};

type OfferedOperation = {
  operation: string;
  tool: string;
  group: string;
  tokens: number;
  new?: true;
  removed?: true;
  deprecated?: true;
};

const mostListed = 500;
const mostFields = 50;
const mostQuestions = 200;
const longestValue = 300;
const longestName = 200;

/** The fields of the server that a merge gives, with what changed and what is to be decided. */
export type MergedServer = { fields: JsonFields; changes: ChangedField[]; conflicts: Conflict[] };

type Merged = { tools: MergedTools; server: MergedServer; plan: ImportPlan; before: Generated };

export const keyOf = ({ tool, path }: Pick<ToolConflict, 'tool' | 'path'>) => `${tool}.${path}`;

export function reportOf(
  { tools, server, plan, before }: Merged,
  listed: OfferedKind,
): Omit<AgainReport, 'isSameDocument' | 'views'> {
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
      .map(({ tool, from, to }) => ({ tool, from: shortName(from), to: shortName(to) })),
    gone: tools.gone.slice(0, mostListed),
    questions: plan.questions.filter(({ name }) => name !== 'client_secret').slice(0, mostQuestions),
  };
}

/** The operations without a tool, new ones first. Nothing is new where the last import did not note what it knew. */
function offeredOf({ offered }: MergedTools, { all, keys }: ImportPlan, { known }: Generated): OfferedOperation[] {
  const madeBy = new Map(all.map((made, index) => [keys[index], made]));
  const old = known && new Set(known);
  const entries = offered.map(({ operation, tool, wasRemoved }): OfferedOperation => {
    const made = madeBy.get(operation);
    return {
      operation,
      tool: tool.name,
      group: made ? shortName(groupOf(made)) : '',
      tokens: made?.tokens ?? 0,
      ...(old && !old.has(operationDigest(operation)) && !wasRemoved && { new: true as const }),
      ...(wasRemoved && { removed: true as const }),
      ...(made?.operation.isDeprecated && { deprecated: true as const }),
    };
  });
  return [...entries.filter((entry) => entry.new), ...entries.filter((entry) => !entry.new)];
}

function shortName(name: string): string {
  return name.length > longestName ? `${name.slice(0, longestName)}…` : name;
}

function reportedTools(changes: readonly ToolChange[]): ReportedTool[] {
  return changes.slice(0, mostListed).map(({ tool, operation, fields }) => ({
    tool,
    operation,
    fields: fields.slice(0, mostFields).map(changeText),
  }));
}

function sides({ before, yours, theirs }: Conflict) {
  return { ...textOf('before', before), ...textOf('yours', yours), ...textOf('document', theirs) };
}

function changeText({ path, before, after }: ChangedField): ValueChange {
  return { path, ...textOf('before', before), ...textOf('after', after) };
}

function textOf<Name extends string>(name: Name, value: Value): { [name in Name]?: string } {
  if (value === undefined) return {};
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return { [name]: text.length > longestValue ? `${text.slice(0, longestValue)}…` : text } as {
    [name in Name]?: string;
  };
}
