import { z } from 'zod';
import { newId } from '../../domain/ids.ts';
import { parseStored } from '../../domain/json/json.ts';
import { slugProblem } from '../../domain/slug.ts';
import { invalid } from '../../errors.ts';
import type { PlannedImport } from '../../import/import-document.ts';
import { mostDocumentCharacters, planShape, reportKinds } from '../../import/plan-outline.ts';
import type { StoredServer } from '../../store/servers/servers.ts';
import { precheck } from '../check-config.ts';
import { type Context, operation } from '../operation.ts';
import { createServer, saidOf, stored, storedAnswer } from '../servers/store-server.ts';
import { answersInput, choicesText, headersInput, selectors, storeHeaders, storeImport } from './stored-imports.ts';

const importInput = z.strictObject({
  mode: z.enum(['plan', 'create']).default('plan').describe('plan only shows the tools; create makes the server.'),
  url: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe('Address of the description or its Swagger UI; with document its base.'),
  headers: headersInput.optional(),
  document: z
    .string()
    .min(1)
    .max(mostDocumentCharacters)
    .optional()
    .describe('Its text: OpenAPI, Swagger, Postman, Insomnia, Bruno, http, curl, fetch, HAR.'),
  include: selectors
    .optional()
    .describe(
      'Operations to import: tags, operation ids, "METHOD /path" or "/path", with * for any text. Absent: those the plan proposes; ["*"]: all.',
    ),
  exclude: selectors.optional().describe('Operations to leave out, in the same words.'),
  for: z
    .string()
    .min(1)
    .max(500)
    .optional()
    .describe(
      'What agents should do with the server, in English, such as "triage issues"; the proposal is what fits that.',
    ),
  read_only: z.boolean().optional().describe('true imports only operations that read.'),
  deprecated: z.boolean().optional().describe('true imports deprecated operations too.'),
  fields: z
    .boolean()
    .optional()
    .describe('true keeps only the fields of large answers that the report proposes, as response_fields.'),
  server: z.string().min(1).max(2048).optional().describe('Address of the API, instead of the one in the description.'),
  answers: answersInput
    .optional()
    .describe('Answers to the questions of the plan, by name. No secrets except client_secret.'),
  name: z.string().min(1).max(100).optional().describe('Name of the new server; the title of the API when absent.'),
  slug: z.string().min(1).max(100).optional().describe('Slug of the new server; made from its name when absent.'),
  report: z
    .enum(reportKinds)
    .default('none')
    .describe('Operations to list: none, chosen, all, or problems (not whole).'),
});

type Input = z.output<typeof importInput>;

/** An import that a configuration will name. */
export type NewImport = { id: string; document?: string };

export function newImport({ random }: Context, documentUrl: string | undefined): NewImport {
  return { id: newId(random, 'imp'), ...(documentUrl !== undefined && { document: documentUrl }) };
}

const planOutput = { mode: z.enum(['plan', 'create']), ...planShape };

/**
 * A plan, and the import that the new server will name. It is named before the transaction, because the configuration
 * that is stored must be the one that was checked.
 */
type Prepared = { plan: PlannedImport; imported: NewImport };

export const importApi = operation({
  name: 'importApi',
  summary: 'Make a server from an API description',
  description:
    'Reads OpenAPI, Swagger, collections (Postman, Insomnia, Bruno), .http files, curl commands, fetch calls and HAR. First plan: it says how many operations there are by tag, what their tools cost in tokens, and which questions must be answered. Then create, with include for the operations that are wanted and answers for the questions.',
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: importInput,
  long: { field: 'document', characters: mostDocumentCharacters },
  output: z.object({
    ...planOutput,
    created: z.object(stored.shape).optional().describe('The new server, for create.'),
  }),
  async prepare(context, input): Promise<Prepared> {
    return { plan: await planOf(context, input), imported: newImport(context, input.url) };
  },
  async precheck(context, { mode }) {
    return mode === 'create' ? precheck(context, await configOf(context.prepared as Prepared), {}) : undefined;
  },
  async run(context, input) {
    const { plan, imported } = context.prepared as Prepared;
    const output = { mode: input.mode, ...shownPlan(plan) };
    if (input.mode === 'plan') return output;
    const server = await createImported(context, { plan, imported }, input);
    await storeHeaders(context, server, input.url, input.headers);
    return { ...output, created: await storedAnswer(context, { server, isUnchanged: false }) };
  },
  isUnchanged: ({ created }) => created === undefined,
  audit: (_input, { created, title }) => ({
    target: created?.server.slug ?? '',
    detail: { title, tools: created?.server.tool_count, version: created?.server.version },
  }),
  say: saidOfImport,
});

/** Creates the server, which names the import that it is based on. */
async function createImported(context: Context, prepared: Prepared, input: Input): Promise<StoredServer> {
  const { plan, imported } = prepared;
  const read = { generated: plan.generated ?? '', documentHash: plan.documentHash, documentUrl: input.url };
  const choices = choicesText({ server: input.server, answers: input.answers, documentUrl: input.url });
  return createServer(context, await configOf(prepared), (server) =>
    storeImport(context, server, imported, { ...read, choices }),
  );
}

/** Reads the document and plans, before the transaction. @throws AppError */
async function planOf({ importing, actor, rules }: Context, input: Input): Promise<PlannedImport> {
  const { document, url, headers, report, read_only: readOnly, mode: _, ...choices } = input;
  if (document === undefined && url === undefined) {
    throw invalid([
      { path: 'url', message: 'required, unless document is given; allowed: the address of a description' },
    ]);
  }
  const { slug } = choices;
  // Reading and planning may take a minute.
  const problem = slug === undefined ? undefined : slugProblem(slug, rules.managementSlug);
  if (problem !== undefined) throw invalid([{ path: 'slug', message: problem }]);
  const asked = { text: document, url, headers, choices: { ...choices, readOnly, documentUrl: url }, report };
  return importing.plan(asked, actor.workspaceId);
}

/** @throws AppError invalid while a question must be answered, and when nothing or too much was chosen */
async function configOf({
  plan: { config, tooLarge, questions, chosen, unmatched },
  imported,
}: Prepared): Promise<object> {
  if (tooLarge !== undefined) throw invalid([{ path: 'include', message: tooLarge }], 'The server was not created');
  const open = questions.filter(({ required }) => required);
  if (config === undefined) {
    const problems = open.map(({ name, question }) => ({ path: `answers.${name}`, message: `required: ${question}` }));
    throw invalid(problems, 'The server was not created');
  }
  if (chosen.tools === 0) {
    const message = `no operation fits${unmatched.length > 0 ? ` ${unmatched.join(', ')}` : ''}; plan lists the tags and, with report "all", the operations`;
    throw invalid([{ path: 'include', message }], 'The server was not created');
  }
  return { ...((await parseStored(config)) as object), imported };
}

function shownPlan({ config: _, tooLarge: _size, generated: _generated, documentHash: _hash, ...plan }: PlannedImport) {
  return plan;
}

type Said = z.input<z.ZodObject<typeof planOutput>> & { created?: z.input<typeof stored> | undefined };

/** Groups that a text for an agent lists; the structured answer has more. */
const mostGroups = 60;

/** The plan or the new server as text for an agent. */
function saidOfImport(output: Said): string {
  const lines = output.created ? createdLines(output, output.created) : planLines(output);
  return [...lines, ...reportLines(output)].join('\n');
}

function createdLines({ chosen, secrets }: Said, created: z.input<typeof stored>): string[] {
  return [
    saidOf('Created')(created),
    `Imported ${chosen.tools} tools, about ${chosen.tokens} tokens in a list.`,
    ...secrets.map(({ name, description }) => `Secret ${name}: ${description}`),
  ];
}

function planLines({
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
}: Said): string[] {
  const { whole, loosened, partial, skipped } = operations;
  const shown = groups.slice(0, mostGroups);
  return [
    `${title} (${format}): ${operations.operations} operations; ${whole} whole, ${loosened} with a loosened schema, ${partial} without an optional input, ${skipped} skipped.`,
    `Chosen: ${chosen.tools} tools, about ${chosen.tokens} tokens in every conversation.`,
    `Proposal (${proposal.reason}): include ${JSON.stringify(proposal.include)}: ${proposal.tools} tools, ${proposal.tokens} tokens.`,
    'Tags (operations, of which read; tokens):',
    ...shown.map(({ name, operations: all, reads, tokens }) => `- ${name}: ${all}, ${reads}; ${tokens}`),
    ...(groups.length > shown.length ? [`- and ${groups.length - shown.length} more`] : []),
    ...questions.map(({ name, question, required, options, assumed }) =>
      [
        `${required ? 'Must be answered' : 'May be answered'}: answers.${name}: ${question}`,
        ...(options
          ? [
              `options ${options.map(({ value, meaning }) => (meaning === '' ? value : `${value} (${meaning})`)).join('; ')}`,
            ]
          : []),
        ...(assumed === undefined ? [] : [`without an answer ${assumed}`]),
      ].join('; '),
    ),
    ...secrets.map(({ name, description }) => `Secret to set afterwards: ${name} (${description})`),
    ...notes,
    ...unmatched.map((text) => `Nothing fits ${JSON.stringify(text)} of include.`),
    ...findings.slice(0, 10).map(({ at, message }) => `Not read: ${at}: ${message}`),
    'Next: importApi with mode "create" and include.',
  ];
}

function reportLines({ report }: Said): string[] {
  return report.map(
    ({ operation, tool, outcome, notes, tokens, answer }) =>
      `${operation} → ${tool}: ${[outcome, ...notes].join('; ')}; ${tokens} tokens${answer ? `; an answer of about ${answer.tokens} tokens, ${answer.kept} with fields: true` : ''}`,
  );
}
