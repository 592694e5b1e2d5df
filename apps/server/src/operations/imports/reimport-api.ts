import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { parseStoredJson } from '@toolhost/json/json';
import type { ImportChoices } from '@toolhost/openapi-to-tools/plan/choices';
import { maxDocumentCharacters, offeredKinds, reimportShape } from '@toolhost/openapi-to-tools/plan-outline';
import type { ReimportResult } from '@toolhost/openapi-to-tools/reimport/reimport';
import type { ImportedDescription } from '@toolhost/tool-config/imports';
import { z } from 'zod';
import type { StoredImport } from '../../store/servers/imports.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { programName } from '../../version.ts';
import { prepareConfig, requireValidConfig } from '../check-config.ts';
import { getServer } from '../find-server.ts';
import { formatImportChanges } from '../import-changes.ts';
import { type Context, operation, type Prepared } from '../operation.ts';
import { createStoredResult, storeConfig, storeResultShape } from '../servers/store-server.ts';
import { slugInput, unchangedShape, versionInput } from '../shapes.ts';
import { findDescription } from './check-description.ts';
import { newImport } from './plan-import-request.ts';
import {
  answersInput,
  findHeaders,
  headersInput,
  selectors,
  serializeChoices,
  storeHeaders,
  storeImport,
} from './stored-imports.ts';

const reimportInput = z.strictObject({
  slug: slugInput,
  prefix: z
    .string()
    .max(100)
    .optional()
    .describe('Prefix of the import to repeat, if the server has several; "" for the one without a prefix.'),
  mode: z
    .enum(['plan', 'apply'])
    .default('plan')
    .describe('plan stores nothing and returns what would change; apply stores it as one new version.'),
  url: z.string().min(1).max(2048).optional().describe('URL of the description; defaults to that of the last import.'),
  headers: headersInput.optional(),
  document: z.string().min(1).max(maxDocumentCharacters).optional().describe('Text of the description.'),
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

type Input = z.output<typeof reimportInput>;

const { title, ...changes } = reimportShape;
const reimportOutput = {
  mode: z.enum(['plan', 'apply']),
  slug: z.string(),
  title,
  same_document: z.boolean().describe('True if the description is byte for byte the one of the last import.'),
  document_hash: z.string().describe('SHA-256 of the description.'),
  ...changes,
};
/** Result of the merge. `config` is the new configuration, if it is still to be checked. */
type PreparedReimport = Prepared &
  Omit<ReimportResult, 'config'> & {
    config: object | undefined;
    url: string | undefined;
    choices: ImportChoices;
    imported: ImportedDescription;
    /** Imports of the server with the new one. */
    all: readonly ImportedDescription[];
    isUnchanged: boolean;
  };

export const reimportApi = operation({
  name: 'reimportApi',
  summary: 'Re-import the API description of a server and keep the edits made since',
  description:
    'First plan: it returns the fields to update, conflicts between your edits and the description, and new and removed operations. Then apply, as one new version; tools whose operation was removed are disabled.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: reimportInput,
  longField: { field: 'document', characters: maxDocumentCharacters },
  output: z.object({
    ...reimportOutput,
    unchanged: unchangedShape,
    changed_server: z.object(storeResultShape.shape).optional().describe('The changed server; only for apply.'),
  }),
  prepare,
  async run(context, input) {
    const { prepared } = context;
    const output = { mode: input.mode, slug: input.slug, ...toReportOutput(prepared) };
    if (input.mode === 'plan') return output;
    const { url, imported } = prepared;
    await storeHeaders(context, await getServer(context, input.slug), { url, prefix: imported.prefix }, input.headers);
    if (prepared.isUnchanged) return { ...output, unchanged: true as const };
    const current = await getServer(context, input.slug);
    if (current.version !== prepared.version) {
      throw new AppError('conflict', 'the server was changed while the description was fetched; re-import again');
    }
    return { ...output, changed_server: await applyReimport(context, current, input.expected_version) };
  },
  isUnchanged: ({ changed_server: changed }) => changed === undefined,
  audit: (_input, { slug, counts, changed_server: changed }) => ({
    target: slug,
    detail: { ...counts, version: changed?.server.version },
  }),
  toAgentText: formatReimport,
});

/** Parses the document and merges it, before the transaction. @throws AppError notFound, invalid */
async function prepare(context: Context, input: Input): Promise<PreparedReimport> {
  const server = await getServer(context, input.slug);
  const lastImported = chooseImport(server, input.prefix);
  const { prefix } = lastImported;
  const { lastImport, url: lastUrl } = await findDescription(context.db, server, lastImported);
  const url = input.document === undefined ? (input.url ?? lastUrl) : input.url;
  if (input.document === undefined && url === undefined) {
    throw invalidInputError([
      {
        path: 'document',
        message: 'required, because the server was imported from text; provide the new text or a url',
      },
    ]);
  }
  const choices = { ...mergeChoices(lastImport, input, url), prefix };
  const reimportChoices = { add: input.add ?? [], take: input.take ?? [], offered: input.offered };
  const headers = input.headers ?? (await findHeaders(context, server, { url, prefix }));
  const { config: json, ...result } = await context.importer.reimport(
    {
      text: input.document,
      url,
      headers,
      choices,
      imported: {
        config: JSON.stringify(server.config),
        generated: lastImport?.generated,
        documentHash: lastImport?.documentHash,
      },
      reimport: reimportChoices,
    },
    context.actor.workspaceId,
  );
  if (input.expected_document !== undefined && input.expected_document !== result.documentHash) {
    throw new AppError('conflict', 'the description has changed since the plan; plan again');
  }
  const { counts } = result.report;
  const changes = counts.changed + counts.added + result.report.server.length;
  const imported = newImport(context, url, prefix);
  const all = (server.config.imported ?? []).map((other) => (other.id === lastImported.id ? imported : other));
  const config = input.mode === 'plan' ? undefined : { ...((await parseStoredJson(json)) as object), imported: all };
  const prepared = await prepareConfig(context, config, { current: server });
  return {
    ...result,
    ...prepared,
    config: prepared.check ? undefined : config,
    url,
    choices: { ...choices, answers: result.answers },
    imported,
    all,
    isUnchanged: result.isSameDocument && changes === 0,
  };
}

/** Returns the import to repeat. @throws AppError invalid if the server has none, or several and none was named */
function chooseImport({ config: { imported = [] } }: StoredServer, prefix: string | undefined): ImportedDescription {
  if (imported.length === 0) {
    throw invalidInputError([
      { path: 'slug', message: 'this server was not imported; use importApi to create a server from a description' },
    ]);
  }
  const [only] = imported;
  if (prefix === undefined && only && imported.length === 1) return only;
  const chosen = imported.find((description) => (description.prefix ?? '') === prefix);
  if (chosen) return chosen;
  const allowed = imported.map((description) => JSON.stringify(description.prefix ?? '')).join(', ');
  const found = prefix === undefined ? 'required, because the server has several imports' : 'no import has this prefix';
  throw invalidInputError([{ path: 'prefix', message: `${found}; allowed: ${allowed}` }]);
}

/** Merges the choices of the last import with those of the request. */
function mergeChoices(lastImport: StoredImport | undefined, input: Input, url: string | undefined): ImportChoices {
  const before = lastImport ? (JSON.parse(lastImport.choices) as ImportChoices) : {};
  return {
    server: input.server ?? before.server,
    answers: { ...before.answers, ...input.answers },
    documentUrl: url ?? before.documentUrl,
  };
}

async function applyReimport(context: Context<PreparedReimport>, current: StoredServer, expected: number | undefined) {
  const { generated, documentHash, url, choices, imported, all, config: merged } = context.prepared;
  const document = { generated, documentHash, documentUrl: url };
  const config = await requireValidConfig(context, merged, current);
  const store = () =>
    storeImport(context, current, { imported, all }, { ...document, choices: serializeChoices(choices) });
  return createStoredResult(context, await storeConfig(context, current, config, expected, store));
}

function toReportOutput({ report, isSameDocument, documentHash }: PreparedReimport) {
  return { ...report, same_document: isSameDocument, document_hash: documentHash };
}

type ReimportOutput = z.input<z.ZodObject<typeof reimportOutput>> & {
  changed_server?: z.input<typeof storeResultShape> | undefined;
};

/** Maximum number of lines in a text for an agent. */
const maxLines = 60;

/** Formats the changes of a re-import as text for an agent; the structured result contains everything. */
function formatReimport(output: ReimportOutput): string {
  const { counts, title, same_document: isSameDocument, changed_server: changed } = output;
  const changes = formatImportChanges({
    ...counts,
    changed: counts.changed - counts.gone,
    server: output.server.length,
  });
  const lines = [
    `${title}: ${changes || 'nothing changes'}; preserved edits: ${counts.edits}, unchanged tools: ${counts.unchanged}, operations without a tool: ${counts.offered}${isSameDocument ? '; the description has not changed since the last import' : ''}.`,
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
    ...output.views.map((message) => `View ${message}`),
    ...output.offered.map(
      ({ operation, tokens, new: isNew }) => `${isNew ? 'New' : 'Without a tool'}: ${operation} (${tokens} tokens)`,
    ),
    ...output.added.map((tool) => `Added: ${tool}`),
  ];
  const visibleLines =
    lines.length > maxLines ? [...lines.slice(0, maxLines), `and ${lines.length - maxLines} more`] : lines;
  return [...visibleLines, formatNextStep(output, changed)].join('\n');
}

function formatNextStep(
  { mode, slug, counts, server }: ReimportOutput,
  changed: ReimportOutput['changed_server'],
): string {
  if (changed) return `Stored as version ${changed.server.version}. Use restoreVersion to undo the change.`;
  if (mode === 'apply') return 'Nothing changes.';
  if (server.length + counts.changed + counts.conflicts + counts.gone + counts.offered === 0)
    return 'Nothing to apply.';
  const takeHint = counts.conflicts > 0 ? ', with take for conflicts in which the description should win' : '';
  const addHint = counts.offered > 0 ? ', with add for operations that you need' : '';
  return `Next: reimportApi with mode "apply", or: ${programName} reimport ${slug} --apply${takeHint}${addHint}.`;
}
