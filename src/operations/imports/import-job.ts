import { documentText } from '../../domain/document-text.ts';
import { AppError, type Problem } from '../../errors.ts';
import { type AgainChoices, type ImportedServer, mergeImport } from '../../import/again/import-again.ts';
import { bundle } from '../../import/bundle.ts';
import { readPageStep } from '../../import/document/page.ts';
import { importDocument } from '../../import/import-document.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import type { ReportKind } from '../../import/plan-outline.ts';
import { type RuleSource, rulesOf } from '../operation.ts';

type Refused = { refused: string; problems: readonly Problem[] };

/** Input of every job for a document: the document, the choices, and the rules of the deployment. */
type ImportInput = { document: string | Uint8Array; choices: ImportChoices; rules: RuleSource };

/** Plans an import on a thread. */
export function runImport({ document, choices, report, rules }: ImportInput & { report: ReportKind }) {
  return outputOf(() => importDocument(textOf(document), choices, report, rulesOf(rules).urlProblem));
}

/** Parses a document again and merges it into a server. */
export function runImportAgain({
  document,
  choices,
  imported,
  again,
  rules,
}: ImportInput & { imported: ImportedServer; again: AgainChoices }) {
  return outputOf(() => mergeImport(textOf(document), choices, imported, { ...again, ...rulesOf(rules) }));
}

export type BundleInput = {
  document: Uint8Array;
  base: string;
  files: ReadonlyMap<string, { bytes: Uint8Array } | { problem: string }>;
};

/** Combines a description in several files into one document. */
export function runBundle({ document, base, files }: BundleInput) {
  const texts = new Map(
    [...files].map(([address, file]) => [address, 'bytes' in file ? { text: documentText(file.bytes) } : file]),
  );
  return outputOf(() => bundle(documentText(document), base, texts));
}

/** Finds the description that a page shows. */
export function runPage({ document, at }: { document: Uint8Array; at: string }) {
  return outputOf(() => readPageStep(documentText(document), at));
}

function textOf(document: string | Uint8Array): string {
  return typeof document === 'string' ? document : documentText(document);
}

/** Runs a job and returns a refusal as output, because errors lose their class between threads. */
function outputOf<Done>(work: () => Done): { output: { done: Done } | Refused } {
  try {
    return { output: { done: work() } };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { output: { refused: error.message, problems: error.problems } };
  }
}
