import { documentText } from '../../domain/document-text.ts';
import { AppError, type Problem } from '../../errors.ts';
import {
  type AgainChoices,
  type ImportedAgain,
  type ImportedServer,
  mergeImport,
} from '../../import/again/import-again.ts';
import { type Bundle, bundle } from '../../import/bundle.ts';
import { importDocument, type PlannedImport } from '../../import/import-document.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import type { ReportKind } from '../../import/plan-outline.ts';
import { type RuleSource, rulesOf } from '../operation.ts';

type Refused = { refused: string; problems: readonly Problem[] };

/** Planning of an import on a thread. A refusal is an output, because errors lose their class between threads. */
export type ImportJob = {
  input: { document: string | Uint8Array; choices: ImportChoices; report: ReportKind; rules: RuleSource };
  output: { done: PlannedImport } | Refused;
};

/** Reading a document again, and merging it into a server. */
export type ImportAgainJob = {
  input: {
    document: string | Uint8Array;
    choices: ImportChoices;
    imported: ImportedServer;
    again: AgainChoices;
    rules: RuleSource;
  };
  output: { done: ImportedAgain } | Refused;
};

/** One document of a description in several files. */
export type BundleJob = {
  input: {
    document: Uint8Array;
    base: string;
    files: ReadonlyMap<string, { bytes: Uint8Array } | { problem: string }>;
  };
  output: { done: Bundle } | Refused;
};

export function runBundle({ document, base, files }: BundleJob['input']): { output: BundleJob['output'] } {
  const texts = new Map(
    [...files].map(([address, file]) => [address, 'bytes' in file ? { text: documentText(file.bytes) } : file]),
  );
  return outputOf(() => bundle(documentText(document), base, texts));
}

export function runImport(input: ImportJob['input']): { output: ImportJob['output'] } {
  const { document, choices, report, rules } = input;
  return outputOf(() => importDocument(textOf(document), choices, report, rulesOf(rules).urlProblem));
}

export function runImportAgain(input: ImportAgainJob['input']): { output: ImportAgainJob['output'] } {
  const { document, choices, imported, again, rules } = input;
  return outputOf(() => mergeImport(textOf(document), choices, imported, { ...again, ...rulesOf(rules) }));
}

function textOf(document: string | Uint8Array): string {
  if (typeof document === 'string') return document;
  return documentText(document);
}

function outputOf<Done>(work: () => Done): { output: { done: Done } | Refused } {
  try {
    return { output: { done: work() } };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { output: { refused: error.message, problems: error.problems } };
  }
}
