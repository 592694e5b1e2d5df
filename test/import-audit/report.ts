/** Counts verdicts by class, and compares the results with the goals. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Verdict } from './audit.ts';
import type { Difference } from './compare.ts';
import type { Loss } from './reader/expected-outcome.ts';

export const goals = { wire: 0.998, outcomes: 0.99 };

/** Maximum share of explained differences that counts as agreement. */
const maxExplained = 0.01;

/** A class of correct differences: after the replacement, the actual request equals the expected one. */
type Explanation = { class: string; pattern: string; replacement: string; citation: string; reason: string };

const explanations = JSON.parse(readFileSync(join(import.meta.dirname, 'explanations.json'), 'utf8')) as Explanation[];

export type ClassCount = { class: string; count: number; example: string };

export type Report = {
  operations: number;
  wire: {
    compared: number;
    same: number;
    explained: number;
    agreement: number;
    undecided: number;
    withoutTool: number;
  };
  outcomes: { same: number; agreement: number };
  classes: ClassCount[];
};

const explain = ({ id, expected, found }: Difference) =>
  explanations.find(
    ({ class: className, pattern, replacement }) =>
      className === id && found.replaceAll(new RegExp(pattern, 'g'), replacement) === expected,
  );

/** Compares the request of a tool with the expected one; undefined if it cannot be decided. */
export function getWireAgreement({ wire }: Verdict): 'same' | 'explained' | 'different' | undefined {
  if (wire === undefined || wire.kind === 'undecided') return undefined;
  if (wire.kind === 'refused') return 'different';
  if (wire.differences.length === 0) return 'same';
  return wire.differences.every(explain) ? 'explained' : 'different';
}

export function makeReport(verdicts: readonly Verdict[]): Report {
  const judged = verdicts.map(getWireAgreement);
  const count = (verdictKind: ReturnType<typeof getWireAgreement>) =>
    judged.filter((one) => one === verdictKind).length;
  const [same, explained] = [count('same'), count('explained')];
  const compared = same + explained + count('different');
  const sameOutcomes = verdicts.filter(({ outcome }) => outcome.expected === outcome.reported).length;
  const withoutTool = verdicts.filter(({ wire }) => wire === undefined).length;
  return {
    operations: verdicts.length,
    wire: {
      ...{ compared, same, explained, withoutTool },
      agreement: compared === 0 ? 1 : (same + Math.min(explained, compared * maxExplained)) / compared,
      undecided: verdicts.length - compared - withoutTool,
    },
    outcomes: { same: sameOutcomes, agreement: verdicts.length === 0 ? 1 : sameOutcomes / verdicts.length },
    classes: countClasses(verdicts),
  };
}

function countClasses(verdicts: readonly Verdict[]): ClassCount[] {
  const classes = new Map<string, ClassCount>();
  const add = (name: string, example: string) => {
    const existing = classes.get(name);
    if (existing) existing.count++;
    else classes.set(name, { class: name, count: 1, example });
  };
  for (const verdict of verdicts)
    for (const [name, example] of listClasses(verdict))
      add(name, `${verdict.document} ${verdict.operation}: ${example}`);
  return [...classes.values()].sort((a, b) => a.class.localeCompare(b.class));
}

function listClasses({ wire, outcome }: Verdict): Map<string, string> {
  const listed = new Map<string, string>();
  if (wire?.kind === 'refused') listed.set('wire refused', wire.reason);
  if (wire?.kind === 'undecided') listed.set('undecided', wire.reason);
  if (wire?.kind === 'compared') {
    for (const one of wire.differences)
      listed.set(
        `wire ${one.id}${explain(one) ? ' (explained)' : ''}`,
        `expected ${one.expected || 'nothing'}, found ${one.found || 'nothing'}`,
      );
    for (const one of wire.doubts ?? [])
      listed.set(`second reader ${one.id}`, `expected ${one.expected || 'nothing'}, found ${one.found || 'nothing'}`);
    if (wire.unable !== undefined)
      listed.set(`judged by the second reader: ${wire.unable.split(':', 1)[0]}`, wire.unable);
  }
  const unnamed = outcome.losses.find((loss) => !isNamed(loss, outcome.notes));
  if (unnamed)
    listed.set(`${unnamed.kind === 'loosened' ? 'rule' : 'input'} without a note`, `${unnamed.at} (${unnamed.what})`);
  if (outcome.otherBodies.length > 0) listed.set('media type without a note', outcome.otherBodies.join(', '));
  if (outcome.expected === outcome.reported) return listed;
  const [loss] = outcome.losses;
  const detail = loss ? `${loss.kind} ${loss.at} (${loss.what})` : `notes: ${outcome.notes.join('; ') || 'none'}`;
  return listed.set(`outcome ${outcome.reported}, judged ${outcome.expected}`, detail);
}

/** Returns true if a note covers the loss. A missing input must be named, but one note may cover several rules. */
function isNamed({ kind, at }: Loss, notes: readonly string[]): boolean {
  if (kind === 'loosened') return notes.length > 0;
  const name = at.split(/[ /]/).at(-1) as string;
  return notes.some((note) => note.includes(name));
}

export const isGoalReached = ({ wire, outcomes }: Report) =>
  wire.agreement >= goals.wire && outcomes.agreement >= goals.outcomes;

const percent = (share: number) => `${(share * 100).toFixed(1)}%`;

export function formatReport(report: Report): string {
  const { operations, wire, outcomes, classes } = report;
  const lines = classes.map(
    (one) => `${String(one.count).padStart(6)}  ${one.class}\n        ${one.example.slice(0, 300)}`,
  );
  return [
    `${operations} operations, of which ${wire.withoutTool} have no tool and ${wire.undecided} cannot be decided.`,
    `Requests that agree on the wire: ${percent(wire.agreement)} of ${wire.compared} (goal ${percent(goals.wire)}), ${wire.explained} of them with an explanation.`,
    `Outcomes that agree: ${percent(outcomes.agreement)} (goal ${percent(goals.outcomes)}).`,
    '',
    ' count  class, and one example',
    ...lines,
    '',
  ].join('\n');
}
