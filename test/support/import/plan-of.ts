import assert from 'node:assert/strict';
import { checkServerConfig } from '../../../src/domain/config/server-config.ts';
import type { ImportChoices } from '../../../src/import/plan/choices.ts';
import { type ImportPlan, planImport } from '../../../src/import/plan/plan-import.ts';
import { readDescription } from '../../../src/import/read-description.ts';
import type { ImportedTool } from '../../../src/import/tools/made-tool.ts';
import type { Json } from '../toolhost/toolhost.ts';

/** A small document of OpenAPI 3.1 with the paths and fields that a test is about. */
export function openApi(paths: Json, fields: Json = {}): Json {
  return {
    openapi: '3.1.0',
    info: { title: 'Things', version: '1' },
    servers: [{ url: 'https://api.example.com/v1' }],
    paths,
    ...fields,
  };
}

/** The plan for a document with all its operations. */
export function planOf(
  document: Json | string,
  choices: ImportChoices = { include: ['*'], deprecated: true },
): ImportPlan {
  return planImport(readDescription(typeof document === 'string' ? document : JSON.stringify(document)), choices);
}

/** The configuration of a plan, which passes the checks of configurations. */
export function configOf(plan: ImportPlan): NonNullable<ImportPlan['config']> {
  const config = plan.config ?? assert.fail(`unanswered: ${JSON.stringify(plan.questions)}`);
  const { problems } = checkServerConfig(config, { managementSlug: 'manage', urlProblem: () => undefined });
  assert.deepEqual(problems, []);
  return config;
}

/** The only tool of a document with one operation. */
export function onlyTool(document: Json | string): ImportedTool {
  const { tools } = configOf(planOf(document));
  assert.equal(tools.length, 1);
  return tools[0] as ImportedTool;
}

/** The outcome and notes of the operations of a document. */
export function outcomesOf(document: Json | string): string[] {
  return planOf(document).all.map(({ operation, outcome, notes }) =>
    [`${operation.method} ${operation.path}: ${outcome}`, ...notes].join('; '),
  );
}
