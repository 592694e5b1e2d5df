import type { ImportLine, PlannedImport } from '../../import/import-document.ts';
import { table } from '../print/print.ts';

/** A plan for a person at a terminal. */
export function planText(plan: PlannedImport): string {
  const { title, format, operations: counts, groups, chosen, proposal } = plan;
  const rows = groups.map(({ name, operations, reads, skipped, tokens }) => [
    String(operations),
    String(reads),
    String(skipped),
    String(tokens),
    name,
  ]);
  return [
    `${title || 'An API'} (${format})`,
    `${counts.operations} operations: ${counts.whole} whole, ${counts.loosened} with a loosened schema, ${counts.partial} without an optional input, ${counts.skipped} skipped`,
    '',
    table(['OPERATIONS', 'READ', 'SKIPPED', 'TOKENS', 'TAG'], rows),
    '',
    `Chosen: ${chosen.tools} tools, about ${chosen.tokens} tokens in every conversation`,
    `Proposal: ${proposal.reason} (${proposal.tools} tools, ${proposal.tokens} tokens)`,
    ...proposal.include.map((text) => `    --include ${quoted(text)}`),
    ...questionLines(plan),
    ...plan.secrets.map(({ name, description }) => `Secret to set afterwards: ${name} (${description})`),
    ...plan.notes,
    ...importReportLines(plan),
  ].join('\n');
}

export function questionLines({ questions }: PlannedImport): string[] {
  return questions.flatMap(({ name, question, required, options, assumed }) => [
    `${required ? 'Must be answered' : 'May be answered'} with --set ${name}=…: ${question}`,
    ...(options ?? []).map(({ value, meaning }) => `    ${[value, meaning].filter((text) => text !== '').join(': ')}`),
    ...(assumed === undefined ? [] : [`    without an answer: ${assumed}`]),
  ]);
}

/** What did not fit, what could not be read, and the operations that were listed. */
export function importReportLines({ unmatched, findings, report }: PlannedImport): string[] {
  return [
    ...unmatched.map((text) => `Nothing fits --include ${quoted(text)}`),
    ...findings.map(({ at, message }) => (at === '' ? message : `Not read: ${at}: ${message}`)),
    ...report.map(({ operation, tool, outcome, notes, answer }) =>
      [`${operation} → ${tool}: ${outcome}`, ...notes, ...answerTexts(answer)].join('; '),
    ),
  ];
}

function answerTexts(answer: ImportLine['answer']): string[] {
  if (!answer) return [];
  const { paths, tokens, kept } = answer;
  return [`an answer of about ${tokens} tokens, ${kept} with --fields, which keeps ${paths.join(', ')}`];
}

/** The lines at the head of a file with the configuration. */
export function importHead({ title, format, secrets, notes }: PlannedImport, from: string): string[] {
  return [
    `Imported from ${from}: ${title} (${format}).`,
    ...secrets.map(({ name, description }) => `Secret to set: ${name} (${description})`),
    ...notes,
  ];
}

function quoted(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
