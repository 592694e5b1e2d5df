import type { AgainChoices, ImportedAgain, ImportedServer } from '../../import/again/import-again.ts';
import type { PlannedImport } from '../../import/import-document.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import type { ReportKind } from '../../import/plan-outline.ts';

/** A document to import: its text, or else the address that it is fetched from. */
export type ImportRequest = {
  text: string | undefined;
  url: string | undefined;
  choices: ImportChoices;
  report: ReportKind;
};

/** A document to import again into a server. */
export type AgainRequest = Pick<ImportRequest, 'text' | 'url' | 'choices'> & {
  imported: ImportedServer;
  again: AgainChoices;
};

/** Fetches the document if need be, and reads it on a thread. @throws AppError invalid, tooLarge, tooMany, unavailable */
export type Importing = {
  plan(request: ImportRequest, workspaceId: string): Promise<PlannedImport>;
  again(request: AgainRequest, workspaceId: string): Promise<ImportedAgain>;
};
