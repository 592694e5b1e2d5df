import { newId } from '../../domain/ids.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import { restartCheck } from '../../store/servers/import-checks.ts';
import { insertImport } from '../../store/servers/imports.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import type { Context } from '../operation.ts';

/** An import that a configuration will name. */
export type NewImport = { id: string; document?: string };

/** The result of reading a document. */
export type ReadDocument = { generated: string; documentHash: string; documentUrl: string | undefined };

export function newImport({ random }: Context, documentUrl: string | undefined): NewImport {
  return { id: newId(random, 'imp'), ...(documentUrl !== undefined && { document: documentUrl }) };
}

/** Stores what a server was imported from. The client secret among the answers is left out. */
export async function storeImport(
  context: Context,
  server: StoredServer,
  { id }: NewImport,
  read: ReadDocument & { choices: string },
): Promise<void> {
  const { generated, documentHash, documentUrl, choices } = read;
  await insertImport(context.db, {
    id,
    workspaceId: server.workspaceId,
    serverId: server.id,
    createdAt: context.now(),
    documentUrl,
    documentHash,
    choices,
    generated,
  });
  await restartCheck(context.db, server, { importId: id, failures: 0 });
}

/** The choices that are needed to read the document again, as JSON without secrets. */
export function choicesText({ server, answers = {}, documentUrl }: ImportChoices): string {
  const kept = Object.entries(answers).filter(([name]) => !/secret/i.test(name));
  return JSON.stringify({ server, documentUrl, answers: Object.fromEntries(kept) });
}
