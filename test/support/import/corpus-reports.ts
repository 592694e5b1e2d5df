import { join } from 'node:path';
import { root } from '../../files.ts';
import type { CorpusFile } from './corpus.ts';
import { planDocument } from './import-plans.ts';

/** Import reports of all corpus descriptions, stored in the repository. */
export const reportsFile = join(root, 'test', 'import', 'corpus-reports.json');

export type CorpusReport = {
  operations: string;
  proposal: string;
  questions: string[];
  /** Number of operations with each note. */
  notes: Record<string, number>;
};

/**
 * Returns the report of an import with every operation. Names in notes are replaced by an ellipsis, so that notes can
 * be counted.
 */
export function createReport({ text }: CorpusFile): CorpusReport {
  const plan = planDocument(text);
  const { operations, whole, loosened, partial, skipped } = plan.counts;
  const notes = new Map<string, number>();
  for (const { outcome, notes: noteTexts, repairs } of plan.all) {
    const lines = [
      ...noteTexts.map((note) => `${outcome}: ${note}`),
      ...repairs.map((repair) => `repaired: ${repair}`),
    ];
    for (const line of lines) {
      const general = line.replaceAll(/"[^"]*"/g, '…');
      notes.set(general, (notes.get(general) ?? 0) + 1);
    }
  }
  for (const { message } of plan.findings) {
    const general = `not read: ${message.replaceAll(/"[^"]*"/g, '…')}`;
    notes.set(general, (notes.get(general) ?? 0) + 1);
  }
  const { tools, tokens, reason } = plan.proposal;
  return {
    operations: `${operations}: ${whole} whole, ${loosened} loosened, ${partial} partial, ${skipped} skipped`,
    proposal: `${tools} tools, ${tokens} of ${plan.tokens} tokens: ${reason}`,
    questions: plan.questions.map(({ name, required }) => (required ? `${name} (required)` : name)),
    notes: Object.fromEntries([...notes].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}
