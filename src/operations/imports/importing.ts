import type { PlannedImport, ReportKind } from '../../import/import-document.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';

/** A document to import: its text, or else the address that it is fetched from. */
export type ImportRequest = {
  text: string | undefined;
  url: string | undefined;
  choices: ImportChoices;
  report: ReportKind;
};

/** Fetches the document if need be, and plans its import. @throws AppError invalid, tooLarge, tooMany, unavailable */
export type Importing = (request: ImportRequest, workspaceId: string) => Promise<PlannedImport>;
