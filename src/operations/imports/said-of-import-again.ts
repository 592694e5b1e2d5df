import type { z } from 'zod';
import type { stored } from '../servers/stored-answer.ts';
import type { againOutput } from './again-shapes.ts';

type Said = z.input<z.ZodObject<typeof againOutput>> & { changed_server?: z.input<typeof stored> | undefined };

const mostLines = 60;

/** What importing again changes, as text for an agent; the structured answer has everything. */
export function saidOfImportAgain(output: Said): string {
  const { counts, title, same_document: isSame, changed_server: changed } = output;
  const lines = [
    `${title}: ${counts.changed} tools change, ${counts.conflicts} conflicts, ${counts.edits} edits stay, ${counts.new} new operations, ${counts.gone} gone, ${counts.unchanged} unchanged; ${counts.offered} operations without a tool${isSame ? '; the document is the same as at the last import' : ''}.`,
    ...output.server.map(
      ({ path, before, after }) => `Server: ${path}: ${before ?? 'nothing'} → ${after ?? 'nothing'}`,
    ),
    ...output.changed.map(
      ({ tool, fields }) => `${tool}: ${fields.map(({ path }) => path).join(', ')} follow the document`,
    ),
    ...output.conflicts.map(
      ({ key, yours, document }) => `Conflict ${key}: yours ${yours ?? 'nothing'}; document ${document ?? 'nothing'}`,
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

function nextLine({ mode, counts }: Said, changed: Said['changed_server']): string {
  if (changed) return `Stored as version ${changed.server.version}; restoreVersion undoes it.`;
  if (mode === 'apply') return 'Nothing changes.';
  const take = counts.conflicts > 0 ? ', with take for conflicts in which the document is right' : '';
  const add = counts.offered > 0 ? ', with add for operations that are wanted' : '';
  return `Next: importAgain with mode "apply"${take}${add}.`;
}
