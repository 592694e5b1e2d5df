import { AppError, invalidInputError } from '@toolhost/errors/errors';
import type { PlannedImport } from '@toolhost/openapi-to-tools/import-document';
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
import type { StoredServer } from '../../store/servers/servers.ts';
import { prepareConfig, requireValidConfig } from '../check-config.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation, type Prepared } from '../operation.ts';
import { createStoredResult, formatStored, storeConfig, storeResultShape } from '../servers/store-server.ts';
import { slugInput, versionInput } from '../shapes.ts';
import {
  formatOperationLines,
  formatPlan,
  importFields,
  newImport,
  readPlan,
  toConfig,
  toPlanOutput,
} from './import-api.ts';
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

type Input = z.output<typeof addImportInput>;

/** Plan, the new import, and the configuration with it, if it is still to be checked. */
type PreparedAddition = Prepared & { plan: PlannedImport; imported: ImportedDescription; config?: object | undefined };

export const addImport = operation({
  name: 'addImport',
  summary: 'Add the operations of another API description to a server',
  description:
    'Like importApi, for an existing server. First plan, then apply. Everything that is added gets the prefix, and the tools keep their own base URL and credential.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: addImportInput,
  longField: { field: 'document', characters: maxDocumentCharacters },
  output: z.object({
    mode: z.enum(['plan', 'apply']),
    slug: z.string(),
    ...planShape,
    changed_server: z.object(storeResultShape.shape).optional().describe('The changed server; only for apply.'),
  }),
  async prepare(context, input): Promise<PreparedAddition> {
    const { slug, mode, expected_version: _, ...request } = input;
    const server = await getServer(context, slug);
    checkPrefix(server.config, input.prefix);
    const plan = await readPlan(context, request);
    const imported = newImport(context, input.url, input.prefix);
    if (mode === 'plan') return { version: server.version, plan, imported };
    const config = addToConfig(server.config, (await toConfig(plan)) as AddedConfig, imported);
    const prepared = await prepareConfig(context, config, { current: server });
    return { ...prepared, plan, imported, config: prepared.check ? undefined : config };
  },
  async run(context, input) {
    const { prepared } = context;
    const output = { mode: input.mode, slug: input.slug, ...toPlanOutput(prepared.plan) };
    if (input.mode === 'plan') return output;
    const current = await getServer(context, input.slug);
    if (current.version !== prepared.version)
      throw new AppError('conflict', 'the server was changed while the description was read; import again');
    await storeHeaders(context, current, { url: input.url, prefix: input.prefix }, input.headers);
    return { ...output, changed_server: await store(context, current, input) };
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

async function store(context: Context<PreparedAddition>, current: StoredServer, input: Input) {
  const { plan, imported, config: merged } = context.prepared;
  const config = await requireValidConfig(context, merged, current);
  const all = [...(current.config.imported ?? []), imported];
  const choices = serializeChoices({ server: input.server, answers: input.answers, documentUrl: input.url });
  const document = {
    generated: plan.generated ?? '',
    documentHash: plan.documentHash,
    documentUrl: input.url,
    choices,
  };
  const storeNewImport = () => storeImport(context, current, { imported, all }, document);
  return createStoredResult(
    context,
    await storeConfig(context, current, config, input.expected_version, storeNewImport),
  );
}
