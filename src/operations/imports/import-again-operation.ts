import { z } from 'zod';
import { parseStored } from '../../domain/json/json.ts';
import { AppError, invalid } from '../../errors.ts';
import type { ImportedAgain } from '../../import/again/import-again.ts';
import type { ImportChoices } from '../../import/plan/choices.ts';
import { againShape, mostDocumentCharacters, offeredKinds } from '../../import/plan-outline.ts';
import { findImport, type StoredImport } from '../../store/servers/imports.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { programName } from '../../version.ts';
import { validConfig } from '../check-config.ts';
import { changesText } from '../import-changes.ts';
import { type Context, operation } from '../operation.ts';
import { precheckChange, storeConfig, stored, storedAnswer } from '../servers/store-server.ts';
import { getServer, slugInput, unchangedShape, versionInput } from '../shapes.ts';
import { type NewImport, newImport } from './import-api.ts';
import {
  answersInput,
  choicesText,
  headersInput,
  selectors,
  storedHeaders,
  storeHeaders,
  storeImport,
} from './stored-imports.ts';

const againInput = z.strictObject({
  slug: slugInput,
  mode: z
    .enum(['plan', 'apply'])
    .default('plan')
    .describe('plan stores nothing and returns what would change; apply stores it as one new version.'),
  url: z.string().min(1).max(2048).optional().describe('URL of the description; defaults to that of the last import.'),
  headers: headersInput.optional(),
  document: z.string().min(1).max(mostDocumentCharacters).optional().describe('Text of the description.'),
  add: selectors
    .optional()
    .describe('Operations to add, in the format of include of importApi. By default, new operations are only listed.'),
  take: selectors
    .optional()
    .describe('Keys of the conflicts in which the description wins, or ["*"] for all. In all others, your edit stays.'),
  server: z.string().min(1).max(2048).optional().describe('URL of the API, instead of the one in the description.'),
  answers: answersInput
    .optional()
    .describe('Answers to questions, in addition to those of the last import. Unknown questions are ignored.'),
  offered: z
    .enum(offeredKinds)
    .default('new')
    .describe(
      'Operations without a tool to list: new (added since the last import, or removed by people since) or all.',
    ),
  expected_document: z
    .string()
    .max(100)
    .optional()
    .describe('The document_hash of the plan; fails with a conflict if the description has changed.'),
  expected_version: versionInput,
});

type Input = z.output<typeof againInput>;

const { title, ...changes } = againShape;
const againOutput = {
  mode: z.enum(['plan', 'apply']),
  slug: z.string(),
  title,
  same_document: z.boolean().describe('True if the description is byte for byte the one of the last import.'),
  document_hash: z.string().describe('SHA-256 of the description.'),
  ...changes,
};
type Prepared = ImportedAgain & {
  version: number;
  url: string | undefined;
  choices: ImportChoices;
  next: NewImport;
  isSame: boolean;
};

export const importAgain = operation({
  name: 'importAgain',
  summary: 'Re-import the API description of a server and keep the edits made since',
  description:
    'First plan: it returns the fields to update, conflicts between your edits and the description, and new and removed operations. Then apply, as one new version; tools whose operation was removed are disabled.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: againInput,
  long: { field: 'document', characters: mostDocumentCharacters },
  output: z.object({
    ...againOutput,
    unchanged: unchangedShape,
    changed_server: z.object(stored.shape).optional().describe('The changed server; only for apply.'),
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
    await storeHeaders(context, await getServer(context, asked.slug), prepared.url, asked.headers);
    if (prepared.isSame) return { ...output, unchanged: true as const };
    const current = await getServer(context, asked.slug);
    if (current.version !== prepared.version) {
      throw new AppError('conflict', 'the server was changed while the description was fetched; re-import again');
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

/** Parses the document and merges it, before the transaction. @throws AppError notFound, invalid */
async function prepare(context: Context, asked: Input): Promise<Prepared> {
  const server = await getServer(context, asked.slug);
  const { imported } = server.config;
  if (!imported) {
    throw invalid([
      { path: 'slug', message: 'this server was not imported; use importApi to create a server from a description' },
    ]);
  }
  const last = await findImport(context.db, server, imported.id);
  const url = asked.document === undefined ? (asked.url ?? last?.documentUrl ?? imported.document) : asked.url;
  if (asked.document === undefined && url === undefined) {
    throw invalid([
      {
        path: 'document',
        message: 'required, because the server was imported from text; provide the new text or a url',
      },
    ]);
  }
  const choices = choicesOf(last, asked, url);
  const again = { add: asked.add ?? [], take: asked.take ?? [], offered: asked.offered };
  const headers = asked.headers ?? (await storedHeaders(context, server, url));
  const result = await context.importing.again(
    {
      text: asked.document,
      url,
      headers,
      choices,
      imported: { config: JSON.stringify(server.config), generated: last?.generated, documentHash: last?.documentHash },
      again,
    },
    context.actor.workspaceId,
  );
  if (asked.expected_document !== undefined && asked.expected_document !== result.documentHash) {
    throw new AppError('conflict', 'the description has changed since the plan; plan again');
  }
  const { counts } = result.report;
  const changes = counts.changed + counts.added + result.report.server.length;
  return {
    ...result,
    version: server.version,
    url,
    choices: { ...choices, answers: result.answers },
    next: newImport(context, url),
    isSame: result.isSameDocument && changes === 0,
  };
}

/** Merges the choices of the last import with those of the request. */
function choicesOf(last: StoredImport | undefined, asked: Input, url: string | undefined): ImportChoices {
  const before = last ? (JSON.parse(last.choices) as ImportChoices) : {};
  return {
    server: asked.server ?? before.server,
    answers: { ...before.answers, ...asked.answers },
    documentUrl: url ?? before.documentUrl,
  };
}

/** Returns the configuration to check and to store. It names the new import. */
async function configOf({ config, next }: Prepared): Promise<object> {
  return { ...((await parseStored(config)) as object), imported: next };
}

async function applied(context: Context, current: StoredServer, prepared: Prepared, expected: number | undefined) {
  const { generated, documentHash, url, choices, next } = prepared;
  const read = { generated, documentHash, documentUrl: url };
  const config = await validConfig(context, await configOf(prepared), current);
  const store = () => storeImport(context, current, next, { ...read, choices: choicesText(choices) });
  return storedAnswer(context, await storeConfig(context, current, config, expected, store));
}

function shownReport({ report, isSameDocument, documentHash }: Prepared) {
  return { ...report, same_document: isSameDocument, document_hash: documentHash };
}

type Said = z.input<z.ZodObject<typeof againOutput>> & { changed_server?: z.input<typeof stored> | undefined };

const mostLines = 60;

/** Formats the changes of a re-import as text for an agent; the structured result contains everything. */
function saidOfImportAgain(output: Said): string {
  const { counts, title, same_document: isSame, changed_server: changed } = output;
  const changes = changesText({ ...counts, changed: counts.changed - counts.gone, server: output.server.length });
  const lines = [
    `${title}: ${changes || 'nothing changes'}; preserved edits: ${counts.edits}, unchanged tools: ${counts.unchanged}, operations without a tool: ${counts.offered}${isSame ? '; the description has not changed since the last import' : ''}.`,
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
    ...output.moved.map(({ tool, from, to }) => `${tool} moves: ${from} → ${to}`),
    ...output.gone.map((tool) => `Removed: ${tool}, which is disabled`),
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
  if (changed) return `Stored as version ${changed.server.version}. Use restoreVersion to undo the change.`;
  if (mode === 'apply') return 'Nothing changes.';
  if (server.length + counts.changed + counts.conflicts + counts.gone + counts.offered === 0)
    return 'Nothing to apply.';
  const take = counts.conflicts > 0 ? ', with take for conflicts in which the description should win' : '';
  const add = counts.offered > 0 ? ', with add for operations that you need' : '';
  return `Next: importAgain with mode "apply", or: ${programName} import-again ${slug} --apply${take}${add}.`;
}
