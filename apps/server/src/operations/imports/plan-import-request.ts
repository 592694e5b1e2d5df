import { newId } from '@toolhost/credentials/ids';
import { invalidInputError } from '@toolhost/errors/errors';
import { parseStoredJson } from '@toolhost/json/json';
import type { PlannedImport } from '@toolhost/openapi-to-tools/import-document';
import { maxDocumentCharacters, type planShape, reportKinds } from '@toolhost/openapi-to-tools/plan-outline';
import type { ImportedDescription } from '@toolhost/tool-config/imports';
import { getSlugProblem } from '@toolhost/tool-config/slug';
import { z } from 'zod';
import type { StoredServer } from '../../store/servers/servers.ts';
import { prepareConfig } from '../check-config.ts';
import type { Context, Prepared } from '../operation.ts';
import { answersInput, headersInput, selectors } from './stored-imports.ts';

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

/**
 * Plan, the new import, and the configuration that refers to it, if it is still to be checked. The ID of the import is
 * assigned before the transaction, because the stored configuration must be the one that was checked.
 */
export type PreparedImport = Prepared & {
  plan: PlannedImport;
  imported: ImportedDescription;
  config?: object | undefined;
};

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

type ImportRequest = z.output<z.ZodObject<typeof importFields>> & {
  slug?: string | undefined;
  prefix?: string | undefined;
};

/** Import into `current`, or into a new server. `merge` returns the configuration with the imported parts. */
type ImportTarget = {
  isPlan: boolean;
  current?: StoredServer;
  merge: (added: object, imported: ImportedDescription) => object;
};

/** Plans an import and checks the resulting configuration, before the transaction. @throws AppError */
export async function prepareImport(
  context: Context,
  request: ImportRequest,
  { isPlan, merge, ...target }: ImportTarget,
): Promise<PreparedImport> {
  const plan = await readPlan(context, request);
  const imported = newImport(context, request.url, request.prefix);
  if (isPlan) return { version: target.current?.version, plan, imported };
  const config = merge(await toConfig(plan), imported);
  const prepared = await prepareConfig(context, config, target);
  return { ...prepared, plan, imported, config: prepared.check ? undefined : config };
}

/** Parses the document and plans the import. @throws AppError */
async function readPlan({ importer, actor, rules }: Context, input: ImportRequest): Promise<PlannedImport> {
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
async function toConfig({ config, sizeError, questions, chosen, unmatched }: PlannedImport): Promise<object> {
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
/** Maximum number of groups in a text for an agent; the structured result contains more. */
const maxGroups = 60;

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

export function formatOperationLines({ report }: Pick<PlanOutput, 'report'>): string[] {
  return report.map(
    ({ operation, tool, outcome, notes, tokens, answer }) =>
      `${operation} → ${tool}: ${[outcome, ...notes].join('; ')}; ${tokens} tokens${answer ? `; a response of about ${answer.tokens} tokens, ${answer.kept} with fields: true` : ''}`,
  );
}
