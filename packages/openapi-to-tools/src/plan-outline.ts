import { z } from 'zod';

/**
 * Operations that a plan can list; `none` if the totals are enough. This file is separate from the importer, which the
 * service loads only for an import.
 */
export const reportKinds = ['none', 'chosen', 'all', 'problems'] as const;
export type ReportKind = (typeof reportKinds)[number];

/** Maximum number of entries in each list of a plan. */
export const planLimits = { groups: 1000, findings: 101, report: 2000, entries: 100, options: 50, notes: 20 } as const;

/** Operations without a tool that a re-import lists: only new ones, or all. */
export const offeredKinds = ['new', 'all'] as const;
export type OfferedKind = (typeof offeredKinds)[number];

/** Maximum size of a document in a request, in characters. A fetched document may be twice as long. */
export const maxDocumentCharacters = 16 * 1024 * 1024;

/** `whole` tools match their operation, `loosened` ones check less, `partial` ones send less; `skipped` has no tool. */
export const importOutcomes = ['whole', 'loosened', 'partial', 'skipped'] as const;
export type ImportOutcome = (typeof importOutcomes)[number];

const count = z.int();

/** Import plan, as returned by operations. */
export const planShape = {
  title: z.string(),
  format: z.string(),
  operations: z.object({ operations: count, whole: count, loosened: count, partial: count, skipped: count }),
  groups: z
    .array(z.object({ name: z.string(), operations: count, reads: count, skipped: count, tokens: count }))
    .max(planLimits.groups)
    .describe(
      'Operations by their first tag or the first word of their path, with the token cost of their tools in tools/list.',
    ),
  proposal: z.object({
    include: z.array(z.string()).max(planLimits.groups),
    tools: count,
    tokens: count,
    reason: z.string(),
  }),
  chosen: z.object({ tools: count, tokens: count }),
  defaults: z
    .object({ slug: z.string(), base_url: z.string().optional() })
    .optional()
    .describe('Slug and base URL of the new server; absent while a required question has no reply.'),
  questions: z
    .array(
      z.object({
        name: z.string().describe('Key for the reply in `answers`.'),
        question: z.string(),
        required: z.boolean().describe('True if the server cannot be created without a reply.'),
        options: z
          .array(z.object({ value: z.string(), meaning: z.string() }))
          .max(planLimits.options)
          .optional(),
        assumed: z.string().optional().describe('Value that is used without a reply.'),
      }),
    )
    .max(planLimits.entries),
  secrets: z
    .array(z.object({ name: z.string(), description: z.string() }))
    .max(planLimits.entries)
    .describe('Secrets to set once the server exists.'),
  notes: z.array(z.string()).max(planLimits.notes),
  unmatched: z.array(z.string()).max(planLimits.notes).describe('Entries of `include` that match no operation.'),
  findings: z
    .array(z.object({ at: z.string(), message: z.string() }))
    .max(planLimits.findings)
    .describe('Parts of the document that could not be read, with their location.'),
  report: z
    .array(
      z.object({
        operation: z.string(),
        tool: z.string(),
        group: z.string(),
        outcome: z.enum(importOutcomes),
        notes: z
          .array(z.string())
          .max(planLimits.notes)
          .describe('Loosened constraints, missing inputs, or the reason why the operation was skipped.'),
        tokens: count,
        chosen: z.boolean(),
        deprecated: z.literal(true).optional(),
        answer: z
          .object({ paths: z.array(z.string()).max(100), tokens: count, kept: count })
          .optional()
          .describe(
            'For a large response: the fields to select, and the estimated tokens of the whole response (`tokens`) and of the selection (`kept`).',
          ),
      }),
    )
    .max(planLimits.report),
};

export type PlanReport = z.output<z.ZodObject<typeof planShape>>;
/** Question of the plan. Required questions must be answered before a server can be created. */
export type Question = PlanReport['questions'][number];
/** Stored secret that the configuration references, with its description. */
export type RequiredSecret = PlanReport['secrets'][number];
export type Group = PlanReport['groups'][number];
/** Selection of operations that fits within the limits. */
export type Proposal = PlanReport['proposal'];
/** Import result of one operation. */
export type ImportReportLine = PlanReport['report'][number];

const optionalText = z.string().optional();
const changedFields = z.array(z.object({ path: z.string(), before: optionalText, after: optionalText })).max(50);
const changedTools = z.array(z.object({ tool: z.string(), operation: z.string(), fields: changedFields })).max(500);

/**
 * Changes that a re-import would make. Lists are truncated; counts are complete. An absent `before` or `after` means
 * that there is no value.
 */
export const reimportShape = {
  title: z.string(),
  counts: z.object({
    changed: count,
    conflicts: count,
    edits: count.describe('Edited values that are preserved.'),
    added: count,
    offered: count.describe('Operations without a tool.'),
    new: count.describe('Operations that the description did not contain at the last import.'),
    moved: count,
    gone: count,
    unchanged: count,
  }),
  server: z
    .array(z.object({ path: z.string(), before: optionalText, after: optionalText }))
    .max(10)
    .describe('Server fields that change.'),
  changed: changedTools.describe('Tools that change, with the fields that are updated from the document.'),
  edits: changedTools.describe(
    'Edits that are preserved: `before` is the value in the description, `after` the value on the server.',
  ),
  conflicts: z
    .array(
      z.object({
        tool: optionalText,
        path: z.string(),
        key: z.string().describe('Name of the conflict in `take`.'),
        before: optionalText.describe('Value at the last import.'),
        yours: optionalText,
        document: optionalText,
      }),
    )
    .max(500)
    .describe('Values that were edited on the server and changed differently in the document.'),
  added: z.array(z.string()).max(500),
  offered: z
    .array(
      z.object({
        operation: z.string(),
        tool: z.string(),
        group: z.string(),
        tokens: count,
        new: z.literal(true).optional().describe('True if the description did not contain it at the last import.'),
        deprecated: z.literal(true).optional(),
        removed: z.literal(true).optional().describe('True if its tool was removed since the last import.'),
      }),
    )
    .max(planLimits.report)
    .describe('Operations without a tool. Name those to import in `add`.'),
  moved: z
    .array(z.object({ tool: z.string(), from: z.string(), to: z.string() }))
    .max(500)
    .describe('Tools whose operation has a new method or path. They follow the operation and keep their name.'),
  gone: z
    .array(z.string())
    .max(500)
    .describe('Tools whose operation was removed from the document. They are disabled.'),
  views: z
    .array(z.string())
    .max(200)
    .describe('Changes in views: their tools are renamed, are removed, or no longer fit.'),
  questions: z.array(z.object({ name: z.string(), question: z.string(), required: z.boolean() })).max(200),
};

export type ReimportReport = z.output<z.ZodObject<typeof reimportShape>>;
