import { invalidInputError } from '@toolhost/errors/errors';
import { maxDocumentCharacters, planShape } from '@toolhost/openapi-to-tools/plan-outline';
import { importPrefixPattern, importPrefixRule } from '@toolhost/tool-config/imports';
import { z } from 'zod';
import type { StoredServer } from '../../store/servers/servers.ts';
import { type Context, operation } from '../operation.ts';
import { createServer, createStoredResult, formatStored, storeResultShape } from '../servers/store-server.ts';
import { slugInput } from '../shapes.ts';
import { applyAddition, prepareAddition } from './add-import.ts';
import {
  formatOperationLines,
  formatPlan,
  importFields,
  type PreparedImport,
  prepareImport,
  toPlanOutput,
} from './plan-import-request.ts';
import { serializeChoices, storeHeaders, storeImport } from './stored-imports.ts';

const importInput = z.strictObject({
  mode: z.enum(['plan', 'create']).default('plan').describe('plan only returns the tools; create stores them.'),
  ...importFields,
  name: z.string().min(1).max(100).optional().describe('Name of the new server; defaults to the title of the API.'),
  slug: z.string().min(1).max(100).optional().describe('Slug of the new server; derived from its name by default.'),
  into: slugInput.optional().describe('Server to add the tools to, instead of creating one; requires prefix.'),
  prefix: z
    .string()
    .regex(importPrefixPattern, importPrefixRule)
    .optional()
    .describe('Prefix of all that is added, such as mail.'),
});

type Input = z.output<typeof importInput>;

const planOutput = { mode: z.enum(['plan', 'create']), ...planShape };

export const importApi = operation({
  name: 'importApi',
  summary: 'Create a server from an API description, or add one to a server',
  description:
    'Reads OpenAPI, Swagger, collections (Postman, Insomnia, Bruno), .http files, curl commands, fetch calls, and HAR. First plan: it returns the operations by tag, the tokens of their tools, and the questions to answer. Then create, with include for the operations that you need and answers to the questions.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: importInput,
  longField: { field: 'document', characters: maxDocumentCharacters },
  output: z.object({
    ...planOutput,
    created: z.object(storeResultShape.shape).optional().describe('The new or changed server; only for create.'),
  }),
  async prepare(context, input): Promise<PreparedImport> {
    const { mode, into, prefix, ...request } = input;
    if (into !== undefined || prefix !== undefined) return prepareAddition(context, toAddition(input), mode === 'plan');
    return prepareImport(context, request, {
      isPlan: mode === 'plan',
      merge: (added, imported) => ({ ...added, imported: [imported] }),
    });
  },
  async run(context, input) {
    const output = { mode: input.mode, ...toPlanOutput(context.prepared.plan) };
    if (input.mode === 'plan') return output;
    if (input.into !== undefined) return { ...output, created: await applyAddition(context, toAddition(input)) };
    const server = await createImported(context, input);
    await storeHeaders(context, server, { url: input.url, prefix: undefined }, input.headers);
    return { ...output, created: await createStoredResult(context, { server, isUnchanged: false }) };
  },
  isUnchanged: ({ created }) => created === undefined,
  audit: (_input, { created, title }) => ({
    target: created?.server.slug ?? '',
    detail: { title, tools: created?.server.tool_count, version: created?.server.version },
  }),
  toAgentText: formatImport,
});

/** Returns the input of an import into an existing server. @throws AppError invalid */
function toAddition({ mode: _, into, prefix, name, slug, ...request }: Input) {
  if (into === undefined || prefix === undefined)
    throw invalidInputError([
      { path: into === undefined ? 'into' : 'prefix', message: 'required, because into and prefix belong together' },
    ]);
  if (name === undefined && slug === undefined) return { ...request, slug: into, prefix };
  const message = 'cannot be combined with into, which names an existing server';
  throw invalidInputError([{ path: name === undefined ? 'slug' : 'name', message }]);
}

/** Creates the server, and stores the import that it refers to. */
async function createImported(context: Context<PreparedImport>, input: Input): Promise<StoredServer> {
  const { plan, imported, config } = context.prepared;
  const document = { generated: plan.generated ?? '', documentHash: plan.documentHash, documentUrl: input.url };
  const choices = serializeChoices({ server: input.server, answers: input.answers, documentUrl: input.url });
  return createServer(context, config, (server) =>
    storeImport(context, server, { imported, all: [imported] }, { ...document, choices }),
  );
}

type ImportOutput = z.input<z.ZodObject<typeof planOutput>> & {
  created?: z.input<typeof storeResultShape> | undefined;
};

/** Formats the plan or the new server as text for an agent. */
function formatImport(output: ImportOutput): string {
  const lines = output.created
    ? formatCreated(output, output.created)
    : formatPlan({ ...output, next: 'Next: importApi with mode "create" and include.' });
  return [...lines, ...formatOperationLines(output)].join('\n');
}

function formatCreated({ chosen, secrets }: ImportOutput, created: z.input<typeof storeResultShape>): string[] {
  return [
    formatStored(created.server.version === 1 ? 'Created' : 'Changed')(created),
    `Imported ${chosen.tools} tools, about ${chosen.tokens} tokens in a list.`,
    ...secrets.map(({ name, description }) => `Secret ${name}: ${description}`),
  ];
}
