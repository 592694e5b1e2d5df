import type { ImportPlan } from '../../answers.ts';

type Reported = ImportPlan['report'][number];

/** An operation to choose, from a plan or from what importing again offers. */
export type Operation = Pick<Reported, 'operation' | 'tool' | 'group' | 'tokens' | 'deprecated'> &
  Partial<Pick<Reported, 'outcome' | 'notes'>>;
export type PickGroup = { name: string; operations: Operation[] };

/** Operations of which a tool can be made, by their group, in the order of the plan. */
export function groupsOfPlan({ groups, report }: ImportPlan): PickGroup[] {
  return groupsOf(
    report.filter(({ outcome }) => outcome !== 'skipped'),
    groups.map(({ name }) => name),
  );
}

/** Operations by their group; groups without a place in the order come last. */
export function groupsOf(operations: readonly Operation[], order: readonly string[]): PickGroup[] {
  const groups = new Map(order.map((name) => [name, { name, operations: [] as Operation[] }]));
  for (const operation of operations) {
    const group = groups.get(operation.group) ?? { name: operation.group, operations: [] };
    groups.set(operation.group, group);
    group.operations.push(operation);
  }
  return [...groups.values()].filter((group) => group.operations.length > 0);
}

/** The groups with the operations that have all words of a search. */
export function searched(groups: readonly PickGroup[], search: string): PickGroup[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [...groups];
  const fits = ({ operation, tool, group }: Operation) => {
    const text = `${operation} ${tool} ${group}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return groups
    .map(({ name, operations }) => ({ name, operations: operations.filter(fits) }))
    .filter(({ operations }) => operations.length > 0);
}

/** Names of the tools that the plan proposes. */
export function proposedOf(plan: ImportPlan): Set<string> {
  return new Set(plan.report.filter(({ chosen }) => chosen).map(({ tool }) => tool));
}

export function tokensOf(operations: readonly Operation[], chosen: ReadonlySet<string>): number {
  return operations.reduce((sum, { tool, tokens }) => sum + (chosen.has(tool) ? tokens : 0), 0);
}

/** The chosen tools with these added, or without them. */
export function changed(chosen: ReadonlySet<string>, tools: readonly string[], isChosen: boolean): Set<string> {
  const next = new Set(chosen);
  for (const tool of tools) {
    if (isChosen) next.add(tool);
    else next.delete(tool);
  }
  return next;
}

/** The chosen tools as entries of `include`: by their requests, because a tag may have the name of a tool. */
export function selectorsOf(operations: readonly Operation[], chosen: ReadonlySet<string>): string[] {
  return operations
    .filter(({ tool }) => chosen.has(tool))
    .map(({ operation, tool }) => (/[*…]|\(\d+\)$/.test(operation) ? tool : operation));
}
