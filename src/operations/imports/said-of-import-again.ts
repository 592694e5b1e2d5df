import type { z } from 'zod';
import { changesText } from '../import-changes.ts';
import type { stored } from '../servers/stored-answer.ts';
import type { againOutput } from './again-shapes.ts';

type Said = z.input<z.ZodObject<typeof againOutput>> & { changed_server?: z.input<typeof stored> | undefined };

const mostLines = 60;

/** What importing again changes, as text for an agent; the structured answer has everything. */
export function saidOfImportAgain(output: Said): string {
  const { counts, title, same_document: isSame, changed_server: changed } = output;
  const changes = changesText({ ...counts, changed: counts.changed - counts.gone, server: output.server.length });
  const lines = [
    `${title}: ${changes || 'nothing changes'}; edits that stay: ${counts.edits}, unchanged tools: ${counts.unchanged}, operations without a tool: ${counts.offered}${isSame ? '; the description is the same as at the last import' : ''}.`,
    ...output.server.map(
      ({ path, before, after }) => `Server: ${path}: ${before ?? 'nothing'} → ${after ?? 'nothing'}`,
    ),
    ...output.changed
      .filter(({ tool }) => !output.gone.includes(tool))
      .map(({ tool, fields }) => `${tool} changes: ${fields.map(({ path }) => path).join(', ')}`),
    ...output.conflicts.map(
      ({ key, yours, document }) =>
        `Conflict ${key}: yours ${yours ?? 'nothing'}; description ${document ?? 'nothing'}`,
    ),
    ...output.gone.map((tool) => `Gone: ${tool}, which is disabled`),
    ...output.views.map((sentence) => `View ${sentence}`),
    ...output.offered.map(
      ({ operation, tokens, new: isNew }) => `${isNew ? 'New' : 'Without a tool'}: ${operation} (${tokens} tokens)`,
    ),
    ...output.added.map((tool) => `Added: ${tool}`),
  ];
  const shown =
    lines.length > mostLines ? [...lines.slice(0, mostLines), `and ${lines.length - mostLines} more`] : lines;
  return [...shown, nextLine(output, changed)].join('\n');
}

function nextLine({ mode, slug, counts, server }: Said, changed: Said['changed_server']): string {
  if (changed) return `Stored as version ${changed.server.version}; restoreVersion undoes it.`;
  if (mode === 'apply') return 'Nothing changes.';
  if (server.length + counts.changed + counts.conflicts + counts.gone + counts.offered === 0)
    return 'Nothing to apply.';
  const take = counts.conflicts > 0 ? ', with take for conflicts in which the description is right' : '';
  const add = counts.offered > 0 ? ', with add for operations that are wanted' : '';
  return `Next: importAgain with mode "apply", or: toolhost import-again ${slug} --apply${take}${add}.`;
}
