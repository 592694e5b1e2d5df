import assert from 'node:assert/strict';
import type { ImportChoices } from '@toolhost/openapi-to-tools/plan/choices';
import { checkServerConfig } from '@toolhost/tool-config/server-config';
import { type ImportPlan, planImport } from '../../../packages/openapi-to-tools/src/plan/plan-import.ts';
import { readDescription } from '../../../packages/openapi-to-tools/src/read-description.ts';
import type { ImportedTool } from '../../../packages/openapi-to-tools/src/tools/tool-candidate.ts';
import type { Json } from '../toolhost/toolhost.ts';

/** Returns a small OpenAPI 3.1 document with these paths and fields. */
export function openApi(paths: Json, fields: Json = {}): Json {
  return {
    openapi: '3.1.0',
    info: { title: 'Things', version: '1' },
    servers: [{ url: 'https://api.example.com/v1' }],
    paths,
    ...fields,
  };
}

/** Plans the import of a document, by default with all of its operations. */
export function planDocument(
  document: Json | string,
  choices: ImportChoices = { include: ['*'], deprecated: true },
): ImportPlan {
  return planImport(readDescription(typeof document === 'string' ? document : JSON.stringify(document)), choices);
}

/** Returns the configuration of a plan, and asserts that it passes the configuration check. */
export function getValidConfig(plan: ImportPlan): NonNullable<ImportPlan['config']> {
  const config = plan.config ?? assert.fail(`unanswered: ${JSON.stringify(plan.questions)}`);
  const { problems } = checkServerConfig(config, {
    managementSlug: 'manage',
    urlProblem: () => undefined,
    acceptsFormPost: true,
  });
  assert.deepEqual(problems, []);
  return config;
}

/** Returns the only tool of a document with one operation. */
export function getOnlyTool(document: Json | string): ImportedTool {
  const { tools } = getValidConfig(planDocument(document));
  assert.equal(tools.length, 1);
  return tools[0] as ImportedTool;
}

/** Returns the outcome and notes of each operation of a document. */
export function listOutcomes(document: Json | string): string[] {
  return planDocument(document).all.map(({ operation, outcome, notes }) =>
    [`${operation.method} ${operation.path}: ${outcome}`, ...notes].join('; '),
  );
}
