import type { LongValue } from '../../domain/json/long-value.ts';
import type { AgainChoices, ImportedAgain, ImportedServer } from '../../import/again/import-again.ts';
import type { PlannedImport } from '../../import/import-document.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import type { AgainReport, ReportKind } from '../../import/plan-outline.ts';
import type { Validators } from '../../store/servers/imports.ts';

/** Headers for fetching a description, by their names. */
export type DescriptionHeaders = Readonly<Record<string, string>>;

/** A document to import: its text, or else the address that it is fetched from. */
export type ImportRequest = {
  text: string | LongValue | undefined;
  url: string | undefined;
  /** For fetching it. */
  headers?: DescriptionHeaders | undefined;
  choices: ImportChoices;
  report: ReportKind;
};

/** A document to import again into a server. */
export type AgainRequest = Pick<ImportRequest, 'text' | 'url' | 'headers' | 'choices'> & {
  imported: ImportedServer;
  again: AgainChoices;
};

/** A document to compare with the last import, and what is known of it. */
export type CheckRequest = {
  url: string;
  headers: DescriptionHeaders | undefined;
  choices: ImportChoices;
  imported: ImportedServer;
  known: { documentHash?: string | undefined; validators?: Validators | undefined };
  /** Ends the check when the process stops. */
  signal?: AbortSignal | undefined;
};

/** `report` is missing for a document that is known, or that is the one of the last import. */
export type CheckedDocument = {
  documentHash: string;
  validators: Validators | undefined;
  report?: AgainReport | undefined;
};

/** Fetches the document and its files if need be, and reads it on a thread. @throws AppError invalid, tooLarge, tooMany, unavailable */
export type Importing = {
  plan(request: ImportRequest, workspaceId: string): Promise<PlannedImport>;
  again(request: AgainRequest, workspaceId: string): Promise<ImportedAgain>;
  check(request: CheckRequest, workspaceId: string): Promise<CheckedDocument>;
};
