import { z } from 'zod';
import { mostDocumentCharacters, planBounds, reportKinds } from '../../import/plan-outline.ts';
import { importOutcomes } from '../../import/tools/made-tool.ts';
import { headersInput } from './description-headers.ts';

const selectors = z.array(z.string().min(1).max(500)).max(1000);

/** Answers by the names of their questions. */
export const answersInput = z
  .record(z.string().min(1).max(200), z.string().max(4096))
  .refine(
    (answers) => Object.keys(answers).length <= planBounds.entries,
    `allowed: at most ${planBounds.entries} answers`,
  );

export const importInput = z.strictObject({
  mode: z
    .enum(['plan', 'create'])
    .default('plan')
    .describe('plan stores nothing and says what would be made; create makes the server.'),
  url: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe('Address of the description. Together with document only the address that relative servers are below.'),
  headers: headersInput.optional(),
  document: z
    .string()
    .min(1)
    .max(mostDocumentCharacters)
    .optional()
    .describe(
      'Text of the description instead of its address: OpenAPI 3 or Swagger 2 as JSON or YAML, a Postman collection, curl commands or HAR.',
    ),
  include: selectors
    .optional()
    .describe(
      'Operations to import: tags, operation ids, "METHOD /path" or "/path", with * for any text. Absent: the proposal of the plan; ["*"]: all.',
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
    .describe('Operations to list one by one: none, chosen, all, or problems (those that are not whole).'),
});

const count = z.int();

export const planOutput = {
  mode: z.enum(['plan', 'create']),
  title: z.string(),
  format: z.string(),
  operations: z.object({ operations: count, whole: count, loosened: count, partial: count, skipped: count }),
  groups: z
    .array(z.object({ name: z.string(), operations: count, reads: count, skipped: count, tokens: count }))
    .max(planBounds.groups)
    .describe(
      'Operations by their first tag, or by the first word of their path, and what their tools cost in a list.',
    ),
  proposal: z.object({
    include: z.array(z.string()).max(planBounds.groups),
    tools: count,
    tokens: count,
    reason: z.string(),
  }),
  chosen: z.object({ tools: count, tokens: count }),
  questions: z
    .array(
      z.object({
        name: z.string().describe('Key of the answer in answers.'),
        question: z.string(),
        required: z.boolean().describe('Nothing can be created without an answer.'),
        options: z
          .array(z.object({ value: z.string(), meaning: z.string() }))
          .max(planBounds.options)
          .optional(),
        assumed: z.string().optional().describe('What is taken without an answer.'),
      }),
    )
    .max(planBounds.entries),
  secrets: z
    .array(z.object({ name: z.string(), description: z.string() }))
    .max(planBounds.entries)
    .describe('Secrets to set once the server exists.'),
  notes: z.array(z.string()).max(planBounds.notes),
  unmatched: z.array(z.string()).max(planBounds.notes).describe('Entries of include that no operation fits.'),
  findings: z
    .array(z.object({ at: z.string(), message: z.string() }))
    .max(planBounds.findings)
    .describe('What could not be read, with its location.'),
  report: z
    .array(
      z.object({
        operation: z.string(),
        tool: z.string(),
        group: z.string(),
        outcome: z.enum(importOutcomes),
        notes: z
          .array(z.string())
          .max(planBounds.notes)
          .describe('What was loosened, which input is missing, or why it was skipped.'),
        tokens: count,
        chosen: z.boolean(),
        deprecated: z.literal(true).optional(),
        answer: z
          .object({ paths: z.array(z.string()).max(100), tokens: count, kept: count })
          .optional()
          .describe(
            'Of a large answer, by its schema: the fields to keep, and its estimated tokens without and with that.',
          ),
      }),
    )
    .max(planBounds.report),
};
