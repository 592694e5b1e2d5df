import { z } from 'zod';

/** Which operations a plan lists: for an agent the sums are often enough. The service reads this file at its start, and loads the import itself only for an import. */
export const reportKinds = ['none', 'chosen', 'all', 'problems'] as const;
export type ReportKind = (typeof reportKinds)[number];

/** Most entries of each list of a plan. */
export const planBounds = { groups: 1000, findings: 101, report: 2000, entries: 100, options: 50, notes: 20 } as const;

/** Which operations without a tool importing again lists: those that are news, or all. */
export const offeredKinds = ['new', 'all'] as const;
export type OfferedKind = (typeof offeredKinds)[number];

/** Largest document that is sent, in characters; one that is fetched may be twice as long. */
export const mostDocumentCharacters = 16 * 1024 * 1024;

export const importOutcomes = ['whole', 'loosened', 'partial', 'skipped'] as const;
export type ImportOutcome = (typeof importOutcomes)[number];

const count = z.int();

/** What a plan says, as operations give it. */
export const planShape = {
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

export type PlanReport = z.output<z.ZodObject<typeof planShape>>;
/** A question of the plan. `required` ones must be answered before a server can be made. */
export type Question = PlanReport['questions'][number];
/** A stored secret that the configuration names, and what it is. */
export type NeededSecret = PlanReport['secrets'][number];
export type Group = PlanReport['groups'][number];
/** A choice of operations that fits the bounds. */
export type Proposal = PlanReport['proposal'];
/** What became of one operation. */
export type ImportLine = PlanReport['report'][number];

const text = z.string().optional();
const fields = z.array(z.object({ path: z.string(), before: text, after: text })).max(50);
const tools = z.array(z.object({ tool: z.string(), operation: z.string(), fields })).max(500);

/** What importing again would change. Lists are cut; the counts are whole. `undefined` is a value that is not there. */
export const againShape = {
  title: z.string(),
  counts: z.object({
    changed: count,
    conflicts: count,
    edits: count.describe('Edited values that stay.'),
    added: count,
    offered: count.describe('Operations without a tool.'),
    new: count.describe('Operations that were not in the description at the last import.'),
    moved: count,
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
  moved: z
    .array(z.object({ tool: z.string(), from: z.string(), to: z.string() }))
    .max(500)
    .describe('Tools whose operation has another method or path now; they follow it and keep their name.'),
  gone: z.array(z.string()).max(500).describe('Tools whose operation is gone from the document; they are disabled.'),
  views: z
    .array(z.string())
    .max(200)
    .describe('What changes in views: tools that they name are called otherwise, are gone, or no longer fit.'),
  questions: z.array(z.object({ name: z.string(), question: z.string(), required: z.boolean() })).max(200),
};

export type AgainReport = z.output<z.ZodObject<typeof againShape>>;
