import { z } from 'zod';
import { mostDocumentCharacters, offeredKinds, planBounds, reportKinds } from '../../import/plan-outline.ts';
import { slugInput, versionInput } from '../shapes.ts';
import { headersInput } from './stored-imports.ts';

const selectors = z.array(z.string().min(1).max(500)).max(1000);

/** Answers by the names of their questions. */
const answersInput = z
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

export const againInput = z.strictObject({
  slug: slugInput,
  mode: z
    .enum(['plan', 'apply'])
    .default('plan')
    .describe('plan stores nothing and says what would change; apply stores it as one new version.'),
  url: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe('Address of the description; that of the last import when absent.'),
  headers: headersInput.optional(),
  document: z
    .string()
    .min(1)
    .max(mostDocumentCharacters)
    .optional()
    .describe('Text of the description instead of its address.'),
  add: selectors
    .optional()
    .describe('Operations to add, as in include of importApi. New operations are only listed without it.'),
  take: selectors
    .optional()
    .describe('Conflicts in which the document is right, by their key; ["*"]: all. In the others your edit stays.'),
  server: z.string().min(1).max(2048).optional().describe('Address of the API, instead of the one in the description.'),
  answers: answersInput
    .optional()
    .describe(
      'Answers to questions, besides those of the last import. Those that the description does not ask are left out.',
    ),
  offered: z
    .enum(offeredKinds)
    .default('new')
    .describe(
      'Operations without a tool to list: new (not there at the last import, or removed by people since), or all.',
    ),
  expected_document: z
    .string()
    .max(100)
    .optional()
    .describe('document_hash of the plan; a conflict is reported when the description is another one by now.'),
  expected_version: versionInput,
});
