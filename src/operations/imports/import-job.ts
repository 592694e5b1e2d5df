import { AppError, type Problem } from '../../errors.ts';
import { importDocument, type PlannedImport, type ReportKind } from '../../import/import-document.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';

/** Planning of an import on a thread. A refusal is an output, because errors lose their class between threads. */
export type ImportJob = {
  input: { text: string; choices: ImportChoices; report: ReportKind };
  output: { plan: PlannedImport } | { refused: string; problems: readonly Problem[] };
};

export function runImport({ text, choices, report }: ImportJob['input']): { output: ImportJob['output'] } {
  try {
    return { output: { plan: importDocument(text, choices, report) } };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { output: { refused: error.message, problems: error.problems } };
  }
}
