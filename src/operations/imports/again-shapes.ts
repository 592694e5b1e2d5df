import { z } from 'zod';
import { offeredKinds, planBounds } from '../../import/plan-outline.ts';
import { answersInput, mostDocumentCharacters } from './import-shapes.ts';

const selectors = z.array(z.string().min(1).max(500)).max(1000);
const text = z.string().optional();
const count = z.int();
const fields = z.array(z.object({ path: z.string(), before: text, after: text })).max(50);
const tools = z.array(z.object({ tool: z.string(), operation: z.string(), fields })).max(500);

export const againInput = {
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
};

export const againOutput = {
  mode: z.enum(['plan', 'apply']),
  slug: z.string(),
  title: z.string(),
  same_document: z.boolean().describe('Whether the document is the one of the last import, byte for byte.'),
  document_hash: z.string().describe('SHA-256 of the description.'),
  counts: z.object({
    changed: count,
    conflicts: count,
    edits: count.describe('Edited values that stay.'),
    added: count,
    offered: count.describe('Operations without a tool.'),
    new: count.describe('Operations that were not in the description at the last import.'),
    gone: count,
    unchanged: count,
  }),
  server: z
    .array(z.object({ path: z.string(), before: text, after: text }))
    .max(10)
    .describe('Fields of the server that change.'),
  changed: tools.describe('Tools that change, with the fields that follow the document.'),
  edits: tools.describe('Edits that stay: before is what the description says, after what the server has.'),
  conflicts: z
    .array(
      z.object({
        tool: text,
        path: z.string(),
        key: z.string().describe('Name of the conflict in take.'),
        before: text.describe('As it was imported last.'),
        yours: text,
        document: text,
      }),
    )
    .max(500)
    .describe('Values that were edited and that the document changed differently.'),
  added: z.array(z.string()).max(500),
  offered: z
    .array(
      z.object({
        operation: z.string(),
        tool: z.string(),
        group: z.string(),
        tokens: count,
        new: z.literal(true).optional().describe('It was not there at the last import.'),
        deprecated: z.literal(true).optional(),
        removed: z.literal(true).optional().describe('Its tool was removed since the last import.'),
      }),
    )
    .max(planBounds.report)
    .describe('Operations without a tool; add names those that are wanted.'),
  gone: z.array(z.string()).max(500).describe('Tools whose operation is gone from the document; they are disabled.'),
  views: z
    .array(z.string())
    .max(200)
    .describe('What changes in views: tools that they name are called otherwise, are gone, or no longer fit.'),
  questions: z.array(z.object({ name: z.string(), question: z.string(), required: z.boolean() })).max(200),
};
