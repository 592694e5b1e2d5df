import { AppError, type Problem } from '@toolhost/errors/errors';
import { decodeDocument } from '@toolhost/json/document-text';
import { bundle } from '@toolhost/openapi-to-tools/bundle';
import { readPageStep } from '@toolhost/openapi-to-tools/document/page';
import { importDocument } from '@toolhost/openapi-to-tools/import-document';
import type { ImportChoices } from '@toolhost/openapi-to-tools/plan/choices';
import type { ReportKind } from '@toolhost/openapi-to-tools/plan-outline';
import { type ImportedServer, mergeImport, type ReimportChoices } from '@toolhost/openapi-to-tools/reimport/reimport';
import { createConfigRules, type RuleSource } from '../operation.ts';

type Refused = { refused: string; problems: readonly Problem[] };

/** Input of every job for a document: the document, the choices, and the rules of the deployment. */
type ImportInput = { document: string | Uint8Array; choices: ImportChoices; rules: RuleSource };

/** Plans an import on a thread. */
export function runImport({ document, choices, report, rules }: ImportInput & { report: ReportKind }) {
  return captureRefusal(() => importDocument(toText(document), choices, report, createConfigRules(rules).urlProblem));
}

/** Parses a document again and merges it into a server. */
export function runReimport({
  document,
  choices,
  imported,
  reimport,
  rules,
}: ImportInput & { imported: ImportedServer; reimport: ReimportChoices }) {
  return captureRefusal(() =>
    mergeImport(toText(document), choices, imported, { ...reimport, ...createConfigRules(rules) }),
  );
}

export type BundleInput = {
  document: Uint8Array;
  base: string;
  files: ReadonlyMap<string, { bytes: Uint8Array } | { problem: string }>;
};

/** Combines a description in several files into one document. */
export function runBundle({ document, base, files }: BundleInput) {
  const filesByUrl = new Map(
    [...files].map(([address, file]) => [address, 'bytes' in file ? { text: decodeDocument(file.bytes) } : file]),
  );
  return captureRefusal(() => bundle(decodeDocument(document), base, filesByUrl));
}

/** Finds the description that a page shows. */
export function runPage({ document, pageUrl }: { document: Uint8Array; pageUrl: string }) {
  return captureRefusal(() => readPageStep(decodeDocument(document), pageUrl));
}

function toText(document: string | Uint8Array): string {
  return typeof document === 'string' ? document : decodeDocument(document);
}

/** Runs a job and returns a refusal as output, because errors lose their class between threads. */
function captureRefusal<Result>(job: () => Result): { output: { done: Result } | Refused } {
  try {
    return { output: { done: job() } };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { output: { refused: error.message, problems: error.problems } };
  }
}
