import { z } from 'zod';
import { type ImportCheck, watchings } from '../../store/servers/imports.ts';
import { changesText } from '../import-changes.ts';
import { isoTime, time } from '../shapes.ts';

const count = z.int();

/** What is known of the description that a server was imported from. */
export const importState = z.object({
  watch: z.enum(watchings).describe('daily: the service reads the description once a day and compares it.'),
  checked_at: time.optional(),
  next_check_at: time.optional(),
  changed: z
    .boolean()
    .optional()
    .describe('Whether importing again would change or offer anything; absent before the first check.'),
  counts: z
    .object({
      changed: count.describe('Tools that would follow the description.'),
      conflicts: count,
      new: count.describe('Operations that were not there at the last import.'),
      gone: count,
      server: count.describe('Fields of the server that would follow.'),
    })
    .optional()
    .describe('What importing again would change.'),
  error: z.string().optional().describe('Why the last check failed; the counts are those of the check before.'),
});

export function importStateOf(check: ImportCheck): z.input<typeof importState> {
  const { watch, checkedAt, dueAt, counts, error } = check;
  return {
    watch,
    ...(checkedAt !== undefined && { checked_at: isoTime(checkedAt) }),
    ...(dueAt !== undefined && { next_check_at: isoTime(dueAt) }),
    ...(counts && { changed: Object.values(counts).some((number) => number > 0), counts }),
    ...(error !== undefined && { error }),
  };
}

/** The field `imported` of a server in a list; nothing for a server that was not imported. */
export function importedField(check: ImportCheck | undefined): { imported?: z.input<typeof importState> } {
  return check ? { imported: importStateOf(check) } : {};
}

/** The state as text, such as "2 tools change, 1 new operation". */
export function saidOfState({ changed, counts, error, checked_at: checkedAt }: z.input<typeof importState>): string {
  if (error !== undefined) return `The last check failed: ${error}`;
  if (checkedAt === undefined || !counts) return 'Not checked since the last import.';
  if (!changed) return 'Nothing has changed since the last import.';
  return `Changed since the last import: ${changesText(counts)}.`;
}
