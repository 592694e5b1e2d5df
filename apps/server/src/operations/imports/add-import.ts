import { AppError, invalidInputError } from '@toolhost/errors/errors';
import { maxDocumentCharacters, planShape } from '@toolhost/openapi-to-tools/plan-outline';
import {
  formatImportedFrom,
  type ImportedDescription,
  importPrefixPattern,
  importPrefixRule,
  maxImportedDescriptions,
} from '@toolhost/tool-config/imports';
import type { ServerConfig } from '@toolhost/tool-config/server-config';
import { z } from 'zod';
import { requireValidConfig } from '../check-config.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import { createStoredResult, formatStored, storeConfig, storeResultShape } from '../servers/store-server.ts';
import { slugInput, versionInput } from '../shapes.ts';
import {
  formatOperationLines,
  formatPlan,
  importFields,
  type PreparedImport,
  prepareImport,
  toPlanOutput,
} from './plan-import-request.ts';
import { serializeChoices, storeHeaders, storeImport } from './stored-imports.ts';

const addImportInput = z.strictObject({
  slug: slugInput,
  prefix: z
    .string()
    .regex(importPrefixPattern, importPrefixRule)
    .describe('Prefix of the new tools, credentials, variables, and secrets, such as mail.'),
  mode: z.enum(['plan', 'apply']).default('plan').describe('plan stores nothing; apply stores one new version.'),
  ...importFields,
  expected_version: versionInput,
});

type Input = Omit<z.output<typeof addImportInput>, 'mode'>;

export const addImport = operation({
  name: 'addImport',
  summary: 'Add the operations of another API description to a server',
  description:
    'Like importApi, for an existing server. First plan, then apply. Everything that is added gets the prefix, and the tools keep their own base URL and credential.',
  scope: 'manage:write',
  effect: 'write',
  isTool: false,
  input: addImportInput,
  longField: { field: 'document', characters: maxDocumentCharacters },
  output: z.object({
    mode: z.enum(['plan', 'apply']),
    slug: z.string(),
    ...planShape,
    changed_server: z.object(storeResultShape.shape).optional().describe('The changed server; only for apply.'),
  }),
  prepare: (context, { mode, ...input }) => prepareAddition(context, input, mode === 'plan'),
  async run(context, { mode, ...input }) {
    const output = { mode, slug: input.slug, ...toPlanOutput(context.prepared.plan) };
    return mode === 'plan' ? output : { ...output, changed_server: await applyAddition(context, input) };
  },
  isUnchanged: ({ changed_server: changed }) => changed === undefined,
  audit: ({ prefix }, { slug, title, changed_server: changed }) => ({
    target: slug,
    detail: { title, prefix, tools: changed?.server.tool_count, version: changed?.server.version },
  }),
  toAgentText: (output) =>
    [
      ...(output.changed_server
        ? [formatStored('Changed')(output.changed_server), `Added ${output.chosen.tools} tools.`]
        : formatPlan({ ...output, next: 'Next: addImport with mode "apply" and include.' })),
      ...formatOperationLines(output),
    ].join('\n'),
});

/** @throws AppError invalid */
function checkPrefix({ imported = [], credentials = {} }: ServerConfig, prefix: string): void {
  const refuse = (message: string) => {
    throw invalidInputError([{ path: 'prefix', message }]);
  };
  if (imported.some((description) => description.prefix === prefix))
    refuse(`"${prefix}" is the prefix of another import; use reimportApi to update that import`);
  if (Object.hasOwn(credentials, prefix)) refuse(`"${prefix}" is the name of a credential; choose another prefix`);
  if (imported.length >= maxImportedDescriptions)
    refuse(`a server has at most ${maxImportedDescriptions} descriptions; create another server`);
}

type AddedConfig = Pick<ServerConfig, 'variables' | 'credentials' | 'tools'>;

/** Returns the configuration with the parts of a prefixed import. @throws AppError invalid if a name is taken */
function addToConfig(current: ServerConfig, added: AddedConfig, imported: ImportedDescription): object {
  const { prefix } = imported;
  const names = new Set(current.tools.map(({ name }) => name));
  const takenTool = added.tools.find(({ name }) => names.has(name));
  if (takenTool) refuseTaken('tool', takenTool.name);
  const tools = added.tools.map(({ imported_from: key = '', ...tool }) => ({
    ...tool,
    imported_from: formatImportedFrom({ key, prefix }),
  }));
  return {
    ...current,
    ...(added.variables && { variables: addNames(current.variables, added.variables, 'variable') }),
    ...(added.credentials && { credentials: addNames(current.credentials, added.credentials, 'credential') }),
    imported: [...(current.imported ?? []), imported],
    tools: [...current.tools, ...tools],
  };
}

function addNames<Value>(
  current: Record<string, Value> = {},
  added: Record<string, Value>,
  noun: string,
): Record<string, Value> {
  for (const name of Object.keys(added)) if (Object.hasOwn(current, name)) refuseTaken(noun, name);
  return { ...current, ...added };
}

function refuseTaken(noun: string, name: string): never {
  const message = `the server already has a ${noun} "${name}"; choose another prefix, or rename that ${noun}`;
  throw invalidInputError([{ path: 'prefix', message }]);
}

/** Reads a description and adds it to the configuration of a server, before the transaction. @throws AppError */
export async function prepareAddition(
  context: Context,
  { slug, expected_version: _, ...request }: Input,
  isPlan: boolean,
): Promise<PreparedImport> {
  const current = await getServer(context, slug);
  checkPrefix(current.config, request.prefix);
  return prepareImport(context, request, {
    isPlan,
    current,
    merge: (added, imported) => addToConfig(current.config, added as AddedConfig, imported),
  });
}

/** Stores the prepared configuration. @throws AppError conflict if the server was changed in the meantime */
export async function applyAddition(
  context: Context<PreparedImport>,
  { slug, url, prefix, headers, server, answers, expected_version: expected }: Input,
): Promise<z.input<typeof storeResultShape>> {
  const { plan, imported, config: merged, version } = context.prepared;
  const current = await getServer(context, slug);
  if (current.version !== version)
    throw new AppError('conflict', 'the server was changed while the description was read; import again');
  await storeHeaders(context, current, { url, prefix }, headers);
  const config = await requireValidConfig(context, merged, current);
  const all = [...(current.config.imported ?? []), imported];
  const choices = serializeChoices({ server, answers, documentUrl: url });
  const document = { generated: plan.generated ?? '', documentHash: plan.documentHash, documentUrl: url, choices };
  const storeNewImport = () => storeImport(context, current, { imported, all }, document);
  return createStoredResult(context, await storeConfig(context, current, config, expected, storeNewImport));
}
