import { newId } from '@toolhost/credentials/ids';
import { invalidInputError } from '@toolhost/errors/errors';
import { parseStoredJson } from '@toolhost/json/json';
import type { PlannedImport } from '@toolhost/openapi-to-tools/import-document';
import { maxDocumentCharacters, planShape, reportKinds } from '@toolhost/openapi-to-tools/plan-outline';
import type { ImportedDescription } from '@toolhost/tool-config/imports';
import { getSlugProblem } from '@toolhost/tool-config/slug';
import { z } from 'zod';
import type { StoredServer } from '../../store/servers/servers.ts';
import { prepareConfig } from '../check-config.ts';
import { type Context, operation, type Prepared } from '../operation.ts';
import { createServer, createStoredResult, formatStored, storeResultShape } from '../servers/store-server.ts';
import {
  answersInput,
  headersInput,
  selectors,
  serializeChoices,
  storeHeaders,
  storeImport,
} from './stored-imports.ts';

/** Input fields of every import. */
export const importFields = {
  url: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe('URL of the description or its Swagger UI; with document, its base URL.'),
  headers: headersInput.optional(),
  document: z.string().min(1).max(maxDocumentCharacters).optional().describe('Text of the description.'),
  include: selectors
    .optional()
    .describe(
      'Operations to import: tags, operation IDs, "METHOD /path", or "/path", with * for any text; ["*"] for all. Defaults to the proposal of the plan.',
    ),
  exclude: selectors.optional().describe('Operations to leave out, in the same format.'),
  for: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe('Task that agents should do, in English, such as "triage issues"; the proposal fits it.'),
  read_only: z.boolean().optional().describe('If true, imports only read operations.'),
  deprecated: z.boolean().optional().describe('If true, also imports deprecated operations.'),
  fields: z
    .boolean()
    .optional()
    .describe('If true, limits large responses to the response_fields that the report proposes.'),
  server: z.string().min(1).max(2048).optional().describe('URL of the API, instead of the one in the description.'),
  answers: answersInput
    .optional()
    .describe('Answers to the questions of the plan, by name. No secrets except client_secret.'),
  report: z
    .enum(reportKinds)
    .default('none')
    .describe('Operations to list: none, chosen, all, or problems (not fully imported).'),
};

const importInput = z.strictObject({
  mode: z.enum(['plan', 'create']).default('plan').describe('plan only returns the tools; create creates the server.'),
  ...importFields,
  name: z.string().min(1).max(100).optional().describe('Name of the new server; defaults to the title of the API.'),
  slug: z.string().min(1).max(100).optional().describe('Slug of the new server; derived from its name by default.'),
});

type Input = z.output<typeof importInput>;

/** Creates the import that a new configuration refers to. */
export function newImport(
  { random }: Context,
  documentUrl: string | undefined,
  prefix?: string | undefined,
): ImportedDescription {
  return {
    id: newId(random, 'imp'),
    ...(documentUrl !== undefined && { document: documentUrl }),
    ...(prefix !== undefined && { prefix }),
  };
}

const planOutput = { mode: z.enum(['plan', 'create']), ...planShape };

/**
 * Plan, the import that the new server refers to, and its configuration, if it is still to be checked. The ID of the
 * import is assigned before the transaction, because the stored configuration must be the one that was checked.
 */
type PreparedImport = Prepared & { plan: PlannedImport; imported: ImportedDescription; config?: object | undefined };

export const importApi = operation({
  name: 'importApi',
  summary: 'Create a server from an API description',
  description:
    'Reads OpenAPI, Swagger, collections (Postman, Insomnia, Bruno), .http files, curl commands, fetch calls, and HAR. First plan: it returns the operations by tag, the tokens of their tools, and the questions to answer. Then create, with include for the operations that you need and answers to the questions.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: importInput,
  longField: { field: 'document', characters: maxDocumentCharacters },
  output: z.object({
    ...planOutput,
    created: z.object(storeResultShape.shape).optional().describe('The new server; only for create.'),
  }),
  async prepare(context, input): Promise<PreparedImport> {
    const { mode, ...request } = input;
    const plan = await readPlan(context, request);
    const imported = newImport(context, input.url);
    if (mode === 'plan') return { version: undefined, plan, imported };
    const config = { ...(await toConfig(plan)), imported: [imported] };
    const prepared = await prepareConfig(context, config, {});
    return { ...prepared, plan, imported, config: prepared.check ? undefined : config };
  },
  async run(context, input) {
    const output = { mode: input.mode, ...toPlanOutput(context.prepared.plan) };
    if (input.mode === 'plan') return output;
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

/** Creates the server, and stores the import that it refers to. */
async function createImported(context: Context<PreparedImport>, input: Input): Promise<StoredServer> {
  const { plan, imported, config } = context.prepared;
  const document = { generated: plan.generated ?? '', documentHash: plan.documentHash, documentUrl: input.url };
  const choices = serializeChoices({ server: input.server, answers: input.answers, documentUrl: input.url });
  return createServer(context, config, (server) =>
    storeImport(context, server, { imported, all: [imported] }, { ...document, choices }),
  );
}

/** Parses the document and plans the import, before the transaction. @throws AppError */
export async function readPlan(
  { importer, actor, rules }: Context,
  input: z.output<z.ZodObject<typeof importFields>> & { slug?: string | undefined; prefix?: string | undefined },
): Promise<PlannedImport> {
  const { document, url, headers, report, read_only: readOnly, ...choices } = input;
  if (document === undefined && url === undefined) {
    throw invalidInputError([
      { path: 'url', message: 'required unless document is present; allowed: the URL of a description' },
    ]);
  }
  const { slug } = choices;
  // Checks the slug first, because parsing and planning may take a minute.
  const problem = slug === undefined ? undefined : getSlugProblem(slug, rules.managementSlug);
  if (problem !== undefined) throw invalidInputError([{ path: 'slug', message: problem }]);
  const request = { text: document, url, headers, choices: { ...choices, readOnly, documentUrl: url }, report };
  return importer.plan(request, actor.workspaceId);
}

/**
 * Returns the configuration to store.
 * @throws AppError invalid if a required question is not answered, or if no operations or too many were chosen
 */
export async function toConfig({ config, sizeError, questions, chosen, unmatched }: PlannedImport): Promise<object> {
  if (sizeError !== undefined) throw invalidInputError([{ path: 'include', message: sizeError }], notImported);
  const openQuestions = questions.filter(({ required }) => required);
  if (config === undefined) {
    const problems = openQuestions.map(({ name, question }) => ({
      path: `answers.${name}`,
      message: `required: ${question}`,
    }));
    throw invalidInputError(problems, notImported);
  }
  if (chosen.tools === 0) {
    const message = `no operation matches${unmatched.length > 0 ? ` ${unmatched.join(', ')}` : ''}; use mode plan to list the tags and, with report "all", the operations`;
    throw invalidInputError([{ path: 'include', message }], notImported);
  }
  return (await parseStoredJson(config)) as object;
}

const notImported = 'Nothing was imported';

export function toPlanOutput({
  config: _,
  sizeError: _size,
  generated: _generated,
  documentHash: _hash,
  ...plan
}: PlannedImport) {
  return plan;
}

type PlanOutput = z.input<z.ZodObject<typeof planShape>> & { next: string };
type ImportOutput = z.input<z.ZodObject<typeof planOutput>> & {
  created?: z.input<typeof storeResultShape> | undefined;
};

/** Maximum number of groups in a text for an agent; the structured result contains more. */
const maxGroups = 60;

/** Formats the plan or the new server as text for an agent. */
function formatImport(output: ImportOutput): string {
  const lines = output.created
    ? formatCreated(output, output.created)
    : formatPlan({ ...output, next: 'Next: importApi with mode "create" and include.' });
  return [...lines, ...formatOperationLines(output)].join('\n');
}

function formatCreated({ chosen, secrets }: ImportOutput, created: z.input<typeof storeResultShape>): string[] {
  return [
    formatStored('Created')(created),
    `Imported ${chosen.tools} tools, about ${chosen.tokens} tokens in a list.`,
    ...secrets.map(({ name, description }) => `Secret ${name}: ${description}`),
  ];
}

export function formatPlan({
  title,
  format,
  operations,
  chosen,
  groups,
  proposal,
  questions,
  secrets,
  notes,
  unmatched,
  findings,
  next,
}: PlanOutput): string[] {
  const { whole, loosened, partial, skipped } = operations;
  const visibleGroups = groups.slice(0, maxGroups);
  return [
    `${title} (${format}): ${operations.operations} operations; ${whole} complete, ${loosened} with a loosened schema, ${partial} without an optional input, ${skipped} skipped.`,
    `Chosen: ${chosen.tools} tools, about ${chosen.tokens} tokens in every conversation.`,
    `Proposal (${proposal.reason}): include ${JSON.stringify(proposal.include)}: ${proposal.tools} tools, ${proposal.tokens} tokens.`,
    'Tags (operations, read operations; tokens):',
    ...visibleGroups.map(({ name, operations: all, reads, tokens }) => `- ${name}: ${all}, ${reads}; ${tokens}`),
    ...(groups.length > visibleGroups.length ? [`- and ${groups.length - visibleGroups.length} more`] : []),
    ...questions.map(({ name, question, required, options, assumed }) =>
      [
        `${required ? 'Required' : 'Optional'} question: answers.${name}: ${question}`,
        ...(options
          ? [
              `options ${options.map(({ value, meaning }) => (meaning === '' ? value : `${value} (${meaning})`)).join('; ')}`,
            ]
          : []),
        ...(assumed === undefined ? [] : [`default ${assumed}`]),
      ].join('; '),
    ),
    ...secrets.map(({ name, description }) => `Secret to set later: ${name} (${description})`),
    ...notes,
    ...unmatched.map((selector) => `No operation matches ${JSON.stringify(selector)} of include.`),
    ...findings.slice(0, 10).map(({ at, message }) => `Not imported: ${at}: ${message}`),
    next,
  ];
}

export function formatOperationLines({ report }: Pick<ImportOutput, 'report'>): string[] {
  return report.map(
    ({ operation, tool, outcome, notes, tokens, answer }) =>
      `${operation} → ${tool}: ${[outcome, ...notes].join('; ')}; ${tokens} tokens${answer ? `; a response of about ${answer.tokens} tokens, ${answer.kept} with fields: true` : ''}`,
  );
}
