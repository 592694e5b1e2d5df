import { z } from 'zod';
import { parseStored } from '../../domain/json/json.ts';
import { AppError, invalid } from '../../errors.ts';
import type { ImportedAgain } from '../../import/again/import-again.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import { findImport, type StoredImport } from '../../store/servers/imports.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { type Context, operation } from '../operation.ts';
import { validConfig } from '../servers/check-config.ts';
import { precheckChange, storeConfig } from '../servers/store-server.ts';
import { stored, storedAnswer } from '../servers/stored-answer.ts';
import { getServer, slugInput, unchangedShape, versionInput } from '../shapes.ts';
import { againInput, againOutput } from './again-shapes.ts';
import { mostDocumentCharacters } from './import-shapes.ts';
import { saidOfImportAgain } from './said-of-import-again.ts';
import { choicesText, type NewImport, newImport, storeImport } from './stored-imports.ts';

const input = z.strictObject({ slug: slugInput, ...againInput, expected_version: versionInput });
type Input = z.output<typeof input>;
type Prepared = ImportedAgain & {
  version: number;
  url: string | undefined;
  choices: ImportChoices;
  next: NewImport;
  isSame: boolean;
};

export const importAgain = operation({
  name: 'importAgain',
  summary: 'Import the API description of a server again, and keep the edits made since',
  description:
    'First plan: it says which fields follow the document, where an edit and the document disagree, which operations are new and which are gone. Then apply: edits stay, except those named in take; new operations are added only when add names them; tools whose operation is gone are disabled. The result is one new version, which restoring an older one undoes.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input,
  longText: { field: 'document', characters: mostDocumentCharacters },
  output: z.object({
    ...againOutput,
    unchanged: unchangedShape,
    changed_server: z.object(stored.shape).optional().describe('The server afterwards, for apply.'),
  }),
  prepare,
  async precheck(context, { mode, slug }) {
    if (mode === 'plan') return undefined;
    return precheckChange(context, await getServer(context, slug), await configOf(context.prepared as Prepared));
  },
  async run(context, asked) {
    const prepared = context.prepared as Prepared;
    const output = { mode: asked.mode, slug: asked.slug, ...shownReport(prepared) };
    if (asked.mode === 'plan') return output;
    if (prepared.isSame) return { ...output, unchanged: true as const };
    const current = await getServer(context, asked.slug);
    if (current.version !== prepared.version) {
      throw new AppError('conflict', 'the server was changed while the document was read; import again');
    }
    return { ...output, changed_server: await applied(context, current, prepared, asked.expected_version) };
  },
  isUnchanged: ({ changed_server: changed }) => changed === undefined,
  audit: (_input, { slug, counts, changed_server: changed }) => ({
    target: slug,
    detail: { ...counts, version: changed?.server.version },
  }),
  say: saidOfImportAgain,
});

/** Reads the document and merges, before the transaction. @throws AppError notFound, invalid */
async function prepare(context: Context, asked: Input): Promise<Prepared> {
  const server = await getServer(context, asked.slug);
  const { imported } = server.config;
  if (!imported) {
    throw invalid([
      { path: 'slug', message: 'this server was not imported; importApi makes a server of a description' },
    ]);
  }
  const last = await findImport(context.db, server, imported.id);
  const url = asked.document === undefined ? (asked.url ?? last?.documentUrl ?? imported.document) : asked.url;
  if (asked.document === undefined && url === undefined) {
    throw invalid([
      { path: 'document', message: 'required: the server was imported from a text; give its new text or a url' },
    ]);
  }
  const choices = choicesOf(last, asked, url);
  const again = { add: asked.add ?? [], take: asked.take ?? [], offered: asked.offered };
  const result = await context.importing.again(
    {
      text: asked.document,
      url,
      choices,
      imported: { config: JSON.stringify(server.config), generated: last?.generated, documentHash: last?.documentHash },
      again,
    },
    context.actor.workspaceId,
  );
  if (asked.expected_document !== undefined && asked.expected_document !== result.documentHash) {
    throw new AppError('conflict', 'the description has changed since the plan; plan again');
  }
  const { counts, isSameDocument } = result.report;
  const changes = counts.changed + counts.added + result.report.server.length;
  return {
    ...result,
    version: server.version,
    url,
    choices: { ...choices, answers: result.answers },
    next: newImport(context, url),
    isSame: isSameDocument && changes === 0,
  };
}

/** The choices of the last import, with those that are given now. */
function choicesOf(last: StoredImport | undefined, asked: Input, url: string | undefined): ImportChoices {
  const before = last ? (JSON.parse(last.choices) as ImportChoices) : {};
  return {
    server: asked.server ?? before.server,
    answers: { ...before.answers, ...asked.answers },
    documentUrl: url ?? before.documentUrl,
  };
}

/** The configuration to check and to store; it names the new import. */
async function configOf({ config, next }: Prepared): Promise<object> {
  return { ...((await parseStored(config)) as object), imported: next };
}

async function applied(context: Context, current: StoredServer, prepared: Prepared, expected: number | undefined) {
  const { generated, documentHash, url, choices, next } = prepared;
  const read = { generated, documentHash, documentUrl: url };
  const config = await validConfig(context, await configOf(prepared));
  const store = () => storeImport(context, current, next, { ...read, choices: choicesText(choices) });
  return storedAnswer(context, await storeConfig(context, current, config, expected, store));
}

function shownReport({ report: { isSameDocument, ...report }, documentHash }: Prepared) {
  return { ...report, same_document: isSameDocument, document_hash: documentHash };
}
