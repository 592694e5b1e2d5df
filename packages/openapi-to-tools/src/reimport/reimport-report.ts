import type { JsonFields } from '../document/lenient.ts';
import type { ImportPlan } from '../plan/plan-import.ts';
import { getGroup } from '../plan/selection.ts';
import { type OfferedKind, planLimits, type ReimportReport } from '../plan-outline.ts';
import { truncateName } from '../tools/texts.ts';
import { type Generated, getOperationDigest } from './generated.ts';
import type { MergedTools, ToolChange, ToolConflict } from './merge-tools.ts';
import type { ChangedField, Conflict, Value } from './merge-values.ts';

const maxListed = 500;
const maxFields = 50;
const maxQuestions = 200;
const maxValueLength = 300;

/** Server fields after a merge, with their changes and the conflicts to decide. */
export type MergedServer = { fields: JsonFields; changes: ChangedField[]; conflicts: Conflict[] };

type Merged = { tools: MergedTools; server: MergedServer; plan: ImportPlan; before: Generated };

export const getConflictKey = ({ tool, path }: Pick<ToolConflict, 'tool' | 'path'>) => `${tool}.${path}`;

export function createReport(
  { tools, server, plan, before }: Merged,
  listedKind: OfferedKind,
): Omit<ReimportReport, 'views'> {
  const conflicts = [
    ...server.conflicts.map((conflict) => ({ ...formatSides(conflict), path: conflict.path, key: conflict.path })),
    ...tools.conflicts.map((conflict) => ({
      ...formatSides(conflict),
      tool: conflict.tool,
      path: conflict.path,
      key: getConflictKey(conflict),
    })),
  ];
  const offered = getOffered(tools, plan, before);
  const reported = listedKind === 'all' ? offered : offered.filter((entry) => entry.new || entry.removed);
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
    server: server.changes.map(formatChange),
    changed: formatToolChanges(tools.changed),
    conflicts: conflicts.slice(0, maxListed),
    edits: formatToolChanges(tools.edits),
    added: tools.added.slice(0, maxListed),
    offered: reported.slice(0, planLimits.report),
    moved: tools.moved
      .slice(0, maxListed)
      .map(({ tool, from, to }) => ({ tool, from: truncateName(from), to: truncateName(to) })),
    gone: tools.gone.slice(0, maxListed),
    questions: plan.questions.filter(({ name }) => name !== 'client_secret').slice(0, maxQuestions),
  };
}

/**
 * Returns the operations without a tool, new ones first. Nothing is new if the last import did not record the known
 * operations.
 */
function getOffered(
  { offered }: MergedTools,
  { all, keys }: ImportPlan,
  { known: knownDigests }: Generated,
): ReimportReport['offered'] {
  const candidateByOperation = new Map(all.map((candidate, index) => [keys[index], candidate]));
  const previousDigests = knownDigests && new Set(knownDigests);
  const entries = offered.map(({ operation, tool, wasRemoved }): ReimportReport['offered'][number] => {
    const candidate = candidateByOperation.get(operation);
    return {
      operation,
      tool: tool.name,
      group: candidate ? truncateName(getGroup(candidate)) : '',
      tokens: candidate?.tokens ?? 0,
      ...(previousDigests &&
        !previousDigests.has(getOperationDigest(operation)) &&
        !wasRemoved && { new: true as const }),
      ...(wasRemoved && { removed: true as const }),
      ...(candidate?.operation.isDeprecated && { deprecated: true as const }),
    };
  });
  return [...entries.filter((entry) => entry.new), ...entries.filter((entry) => !entry.new)];
}

function formatToolChanges(changes: readonly ToolChange[]): ReimportReport['changed'] {
  return changes.slice(0, maxListed).map(({ tool, operation, fields }) => ({
    tool,
    operation,
    fields: fields.slice(0, maxFields).map(formatChange),
  }));
}

function formatSides({ before, yours, theirs }: Conflict) {
  return { ...formatValue('before', before), ...formatValue('yours', yours), ...formatValue('document', theirs) };
}

function formatChange({ path, before, after }: ChangedField): ReimportReport['server'][number] {
  return { path, ...formatValue('before', before), ...formatValue('after', after) };
}

function formatValue<Name extends string>(name: Name, value: Value): { [name in Name]?: string } {
  if (value === undefined) return {};
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return { [name]: text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text } as {
    [name in Name]?: string;
  };
}
