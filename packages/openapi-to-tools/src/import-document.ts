import type { UrlRule } from '@toolhost/tool-config/server-rules';
import { SchemaFinder } from './document/references.ts';
import type { ApiDescription, Finding } from './model.ts';
import type { ImportChoices } from './plan/choices.ts';
import { getSizeProblem, type ImportedConfig, type ImportPlan, planImport } from './plan/plan-import.ts';
import { getGroup } from './plan/selection.ts';
import { type ImportReportLine, type PlanReport, planLimits, type ReportKind } from './plan-outline.ts';
import { readDescription } from './read-description.ts';
import { toGenerated } from './reimport/generated.ts';
import { hashDocument } from './reimport/reimport.ts';
import { proposeResponseFields, type ResponseFields } from './tools/response-fields.ts';
import { truncateName } from './tools/texts.ts';
import type { ImportedTool } from './tools/tool-candidate.ts';

/** Import plan as plain data, including what is stored when the server is created. */
export type PlannedImport = PlanReport & {
  /**
   * Configuration as JSON. Undefined while a required question is unanswered, and if it would exceed the configuration
   * size limit.
   */
  config: string | undefined;
  /** Reason why the configuration is too large. */
  sizeError: string | undefined;
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
  const responseFieldsByTool =
    choices.fields || report !== 'none' ? selectResponseFields(plan, description) : new Map();
  const serverConfig = choices.fields
    ? plan.config && addResponseFields(plan.config, responseFieldsByTool)
    : plan.config;
  const configJson = serverConfig && JSON.stringify(serverConfig);
  const sizeError = configJson && getSizeProblem(configJson);
  const config = sizeError === undefined ? plan.config : undefined;
  return {
    title,
    format,
    operations: counts,
    groups: groups.slice(0, planLimits.groups).map((group) => ({ ...group, name: truncateName(group.name) })),
    proposal,
    chosen: { tools: plan.chosen.length, tokens: plan.tokens },
    ...(plan.config && choices.prefix === undefined && { defaults: getDefaults(plan.config) }),
    questions: questions.slice(0, planLimits.entries),
    secrets: secrets.slice(0, planLimits.entries),
    notes: [...(sizeError === undefined ? [] : [sizeError]), ...notes].slice(0, planLimits.notes),
    unmatched: unmatched.slice(0, planLimits.notes),
    findings: limitFindings(findings),
    report: toReportLines(plan, report, responseFieldsByTool),
    config: config && configJson,
    sizeError,
    generated: config && JSON.stringify(toGenerated(config, plan)),
    documentHash: hashDocument(document),
  };
}

function getDefaults({ slug, base_url }: ImportedConfig): PlanReport['defaults'] {
  return { slug, ...(base_url !== undefined && { base_url }) };
}

type ResponseFieldsByTool = ReadonlyMap<ImportedTool | undefined, ResponseFields>;

/** Returns the fields to select from the large responses of the chosen tools. */
function selectResponseFields({ chosen }: ImportPlan, { root }: ApiDescription): ResponseFieldsByTool {
  const finder = new SchemaFinder(root);
  const entries = chosen
    .slice(0, planLimits.report)
    .map(({ tool, operation }) => [tool, proposeResponseFields(operation.responses.schema, root, finder)] as const);
  return new Map(entries.flatMap(([tool, fields]) => (fields ? [[tool, fields]] : [])));
}

/**
 * Adds `response_fields`. They are not part of the generated values, so a re-import treats them as an edit and leaves
 * them unchanged.
 */
function addResponseFields(config: ImportedConfig, responseFieldsByTool: ResponseFieldsByTool): object {
  const tools = config.tools.map((tool) => {
    const fields = responseFieldsByTool.get(tool);
    return fields ? { ...tool, response_fields: fields.paths } : tool;
  });
  return { ...config, tools };
}

function limitFindings(findings: readonly Finding[]): Finding[] {
  const listed = findings
    .slice(0, planLimits.findings - 1)
    .map(({ at, message }) => ({ at: truncateName(at), message }));
  const omittedCount = findings.length - listed.length;
  return omittedCount > 0 ? [...listed, { at: '', message: `and ${omittedCount} more` }] : listed;
}

function toReportLines(
  { all, chosen }: ImportPlan,
  report: ReportKind,
  responseFieldsByTool: ResponseFieldsByTool,
): ImportReportLine[] {
  if (report === 'none') return [];
  const isChosen = new Set(chosen);
  const reported = all.filter((candidate) => {
    if (report === 'problems') return candidate.outcome !== 'whole';
    return report === 'all' || isChosen.has(candidate);
  });
  return reported.slice(0, planLimits.report).map((candidate) => ({
    operation: truncateName(`${candidate.operation.method} ${candidate.operation.path}`),
    tool: candidate.name,
    group: truncateName(getGroup(candidate)),
    outcome: candidate.outcome,
    notes: candidate.notes.slice(0, planLimits.notes).map(truncateName),
    tokens: candidate.tokens,
    chosen: isChosen.has(candidate),
    ...(candidate.operation.isDeprecated && { deprecated: true as const }),
    ...(responseFieldsByTool.has(candidate.tool) && {
      answer: responseFieldsByTool.get(candidate.tool) as ResponseFields,
    }),
  }));
}
