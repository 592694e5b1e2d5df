import type { UrlRule } from '../domain/config/server-rules.ts';
import { generatedOf } from './again/generated.ts';
import { documentHash } from './again/import-again.ts';
import { SchemaFinder } from './document/references.ts';
import type { ApiDescription, Finding } from './model.ts';
import type { ImportChoices } from './plan/choices.ts';
import { type ImportedConfig, type ImportPlan, planImport, sizeProblem } from './plan/plan-import.ts';
import { groupOf } from './plan/selection.ts';
import { type ImportLine, type PlanReport, planBounds, type ReportKind } from './plan-outline.ts';
import { readDescription } from './read-description.ts';
import { type AnswerFields, answerFieldsOf } from './tools/answer-fields.ts';
import type { ImportedTool } from './tools/made-tool.ts';
import { listedName } from './tools/texts.ts';

/** Import plan as plain data, including what is stored when the server is created. */
export type PlannedImport = PlanReport & {
  /**
   * Configuration as JSON. Undefined while a required question is unanswered, and if it would exceed the configuration
   * size limit.
   */
  config: string | undefined;
  /** Reason why the configuration is too large. */
  tooLarge: string | undefined;
  /** Generated values, as JSON, for a later re-import. */
  generated: string | undefined;
  documentHash: string;
};

/**
 * Reads a document and plans its import. The largest documents take seconds, so the service runs this on a worker
 * thread.
 * @throws AppError invalid
 */
export function importDocument(
  document: string,
  choices: ImportChoices,
  report: ReportKind,
  urlProblem?: UrlRule,
): PlannedImport {
  const description = readDescription(document);
  const plan = planImport(description, choices, urlProblem);
  const { title, format, counts, groups, proposal, questions, secrets, notes, unmatched, findings } = plan;
  const answers = choices.fields || report !== 'none' ? answersOf(plan, description) : new Map();
  const made = choices.fields ? plan.config && withFields(plan.config, answers) : plan.config;
  const text = made && JSON.stringify(made);
  const tooLarge = text && sizeProblem(text);
  const config = tooLarge === undefined ? plan.config : undefined;
  return {
    title,
    format,
    operations: counts,
    groups: groups.slice(0, planBounds.groups).map((group) => ({ ...group, name: listedName(group.name) })),
    proposal,
    chosen: { tools: plan.chosen.length, tokens: plan.tokens },
    questions: questions.slice(0, planBounds.entries),
    secrets: secrets.slice(0, planBounds.entries),
    notes: [...(tooLarge === undefined ? [] : [tooLarge]), ...notes].slice(0, planBounds.notes),
    unmatched: unmatched.slice(0, planBounds.notes),
    findings: firstFindings(findings),
    report: linesOf(plan, report, answers),
    config: config && text,
    tooLarge,
    generated: config && JSON.stringify(generatedOf(config, plan)),
    documentHash: documentHash(document),
  };
}

type Answers = ReadonlyMap<ImportedTool | undefined, AnswerFields>;

/** Returns the fields to select from the large responses of the chosen tools. */
function answersOf({ chosen }: ImportPlan, { root }: ApiDescription): Answers {
  const finder = new SchemaFinder(root);
  const found = chosen
    .slice(0, planBounds.report)
    .map(({ tool, operation }) => [tool, answerFieldsOf(operation.answers.schema, root, finder)] as const);
  return new Map(found.flatMap(([tool, fields]) => (fields ? [[tool, fields]] : [])));
}

/**
 * Adds `response_fields`. They count as an edit: a re-import leaves them unchanged, and they are not part of the
 * generated values.
 */
function withFields(config: ImportedConfig, answers: Answers): object {
  const tools = config.tools.map((tool) => ({ ...tool, ...responseFields(answers.get(tool)) }));
  return { ...config, tools };
}

const responseFields = (fields: AnswerFields | undefined) => fields && { response_fields: fields.paths };

function firstFindings(findings: readonly Finding[]): Finding[] {
  const shown = findings.slice(0, planBounds.findings - 1).map(({ at, message }) => ({ at: listedName(at), message }));
  const more = findings.length - shown.length;
  return more > 0 ? [...shown, { at: '', message: `and ${more} more` }] : shown;
}

function linesOf({ all, chosen }: ImportPlan, report: ReportKind, answers: Answers): ImportLine[] {
  if (report === 'none') return [];
  const isChosen = new Set(chosen);
  const wanted = all.filter((made) => {
    if (report === 'problems') return made.outcome !== 'whole';
    return report === 'all' || isChosen.has(made);
  });
  return wanted.slice(0, planBounds.report).map((made) => ({
    operation: listedName(`${made.operation.method} ${made.operation.path}`),
    tool: made.name,
    group: listedName(groupOf(made)),
    outcome: made.outcome,
    notes: made.notes.slice(0, planBounds.notes).map(listedName),
    tokens: made.tokens,
    chosen: isChosen.has(made),
    ...(made.operation.isDeprecated && { deprecated: true as const }),
    ...(answers.has(made.tool) && { answer: answers.get(made.tool) as AnswerFields }),
  }));
}
