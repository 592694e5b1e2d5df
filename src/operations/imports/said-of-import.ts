import type { z } from 'zod';
import { saidOf, type stored } from '../servers/stored-answer.ts';
import type { planOutput } from './import-shapes.ts';

type Said = z.input<z.ZodObject<typeof planOutput>> & { created?: z.input<typeof stored> | undefined };

/** Groups that a text for an agent lists; the structured answer has more. */
const mostGroups = 60;

/** The plan or the new server as text for an agent. */
export function saidOfImport(output: Said): string {
  const lines = output.created ? createdLines(output, output.created) : planLines(output);
  return [...lines, ...reportLines(output)].join('\n');
}

function createdLines({ chosen, secrets }: Said, created: z.input<typeof stored>): string[] {
  return [
    saidOf('Created')(created),
    `Imported ${chosen.tools} tools, about ${chosen.tokens} tokens in a list.`,
    ...secrets.map(({ name, description }) => `Secret ${name}: ${description}`),
  ];
}

function planLines({
  title,
  format,
  operations,
  chosen,
  groups,
  proposal,
  questions,
  secrets,
  notes,
  unmatched,
  findings,
}: Said): string[] {
  const { whole, loosened, partial, skipped } = operations;
  const shown = groups.slice(0, mostGroups);
  return [
    `${title} (${format}): ${operations.operations} operations; ${whole} whole, ${loosened} with a loosened schema, ${partial} without an optional input, ${skipped} skipped.`,
    `Chosen: ${chosen.tools} tools, about ${chosen.tokens} tokens in every conversation.`,
    `Proposal (${proposal.reason}): include ${JSON.stringify(proposal.include)}${proposal.read_only ? ', read_only true' : ''}: ${proposal.tools} tools, ${proposal.tokens} tokens.`,
    'Tags (operations, of which read; tokens):',
    ...shown.map(({ name, operations: all, reads, tokens }) => `- ${name}: ${all}, ${reads}; ${tokens}`),
    ...(groups.length > shown.length ? [`- and ${groups.length - shown.length} more`] : []),
    ...questions.map(({ name, question, required, options, assumed }) =>
      [
        `${required ? 'Must be answered' : 'May be answered'}: answers.${name}: ${question}`,
        ...(options
          ? [
              `options ${options.map(({ value, meaning }) => (meaning === '' ? value : `${value} (${meaning})`)).join('; ')}`,
            ]
          : []),
        ...(assumed === undefined ? [] : [`without an answer ${assumed}`]),
      ].join('; '),
    ),
    ...secrets.map(({ name, description }) => `Secret to set afterwards: ${name} (${description})`),
    ...notes,
    ...unmatched.map((text) => `Nothing fits ${JSON.stringify(text)} of include.`),
    ...findings.slice(0, 10).map(({ at, message }) => `Not read: ${at}: ${message}`),
    'Next: importApi with mode "create" and include.',
  ];
}

function reportLines({ report }: Said): string[] {
  return report.map(
    ({ operation, tool, outcome, notes, tokens }) =>
      `${operation} → ${tool}: ${[outcome, ...notes].join('; ')}; ${tokens} tokens`,
  );
}
