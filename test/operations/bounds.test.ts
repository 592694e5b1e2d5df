import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { operationList, operations } from '@toolhost/server/operations';
import type { z } from 'zod';
import { toOutputSchema } from '../../apps/server/src/operations/describe.ts';
import { startManagementAgent } from '../support/oauth/management-agent.ts';
import { type Reply, startToolhost } from '../support/toolhost/toolhost.ts';

type Schema = { type?: string; maxItems?: number; enum?: unknown[]; items?: Schema; anyOf?: Schema[] } & {
  properties?: Record<string, Schema>;
};

/** Returns the paths of arrays without a maximum length in a schema. */
function findUnboundedLists(schema: Schema, path: string, isPaged: boolean): string[] {
  const { properties = {} } = schema;
  const isUnboundedArray = schema.type === 'array' && schema.maxItems === undefined && !isPaged;
  // A list of distinct enum values is never longer than the enum.
  const isEnumList = schema.items?.enum !== undefined;
  return [
    ...(isUnboundedArray && !isEnumList ? [path] : []),
    ...(schema.items ? findUnboundedLists(schema.items, `${path}[]`, false) : []),
    ...(schema.anyOf ?? []).flatMap((one) => findUnboundedLists(one, path, isPaged)),
    ...Object.entries(properties).flatMap(([name, property]) =>
      findUnboundedLists(property, path === '' ? name : `${path}.${name}`, path === '' && 'next_cursor' in properties),
    ),
  ];
}

type Def = { type: string; [field: string]: unknown };

/** Returns the parts of an input schema whose length only the request body limit bounds. */
function findUnboundedInputs(schema: z.ZodType, path: string): string[] {
  const def = schema.def as unknown as Def;
  const visitChild = (child: unknown, name = ''): string[] => findUnboundedInputs(child as z.ZodType, path + name);
  switch (def.type) {
    case 'string':
      return isBounded(schema) || 'format' in def ? [] : [`${path}: a text without max`];
    case 'array':
      return [...(isBounded(schema) ? [] : [`${path}: an array without max`]), ...visitChild(def.element, '[]')];
    case 'object':
      return Object.entries((schema as z.ZodObject).shape).flatMap(([name, child]) => visitChild(child, `.${name}`));
    case 'union':
      return (def.options as z.ZodType[]).flatMap((option) => visitChild(option));
    case 'pipe':
      return visitChild(def.in);
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
      return visitChild(def.innerType);
    // A recursive schema, such as the schema of any JSON value.
    case 'lazy':
    case 'unknown':
    case 'any':
    case 'custom':
      return [`${path}: anything`];
    case 'record':
      return [`${path}: a record`];
    default:
      return [];
  }
}

/** Checks that a string is bounded by a maximum length or by a pattern without unbounded repetition. */
function isBounded(schema: z.ZodType): boolean {
  type Check = { _zod: { def: { check: string; pattern?: RegExp } } };
  const definitions = (((schema.def as unknown as Def).checks ?? []) as Check[]).map(({ _zod: { def } }) => def);
  return definitions.some(({ check, pattern }) => check === 'max_length' || (pattern && !/[+*]/.test(pattern.source)));
}

/** Inputs that have their own rules. Their CPU budgets are tested in test/budgets. */
const boundedByRules = [
  /^(create|update|replace|check)McpServer\.slug: a text/,
  /McpServer\.authentication(\[\])?\.(header: a text|extra_params: a record)/,
  /^(plan|apply)McpServer\.(config|secrets): a record/,
  /^(planDuplicate|duplicateMcpServer)\.secrets: a record/,
  /McpServer\.(credentials|headers|variables|views): a record/,
  /McpServer\.oauth\.(scopes\[\]: a text|(extra|token)_params: a record|values: a record)/,
  /McpServer\.tools\[\]\.(name|body): a text/,
  /McpServer\.tools\[\]\.(headers|input_schema|output_schema): a record/,
  /(McpServer\.tools\[\]|^(add|update)Tool)\.body_template: anything/,
  /^(add|update)Tool\.(name|body): a text/,
  /^(add|update)Tool\.(headers|input_schema|output_schema): a record/,
  /^(callTool|previewToolCall)\.arguments: a record/,
  /^setOwnValues\.values: a record/,
  /^(?:(?:re)?importApi|addImport)\.(answers|headers): a record/,
];

describe('operation inputs', () => {
  it('[find A1] bound every string and array by a maximum and every record by a rule', () => {
    for (const line of operationList.flatMap((op) => findUnboundedInputs(op.input, op.name)))
      assert.ok(
        boundedByRules.some((rule) => rule.test(line)),
        line,
      );
  });
});

describe('[find A4] operation outputs', () => {
  for (const op of Object.values(operations)) {
    it(`bound every list of ${op.name} by a cursor or a maximum`, () => {
      assert.deepEqual(findUnboundedLists(toOutputSchema(op) as Schema, '', false), []);
    });
  }

  it('take a limit and use the report connection if they have a cursor', () => {
    for (const op of Object.values(operations)) {
      if (!('next_cursor' in op.output.shape)) continue;
      assert.ok('limit' in op.input.shape && 'cursor' in op.input.shape, op.name);
      assert.equal(op.isReport, true, op.name);
    }
  });
});

describe('[find A4] problems in a response', async () => {
  const toolhost = await startToolhost();
  const manager = await startManagementAgent(toolhost, await toolhost.createKey());
  after(() => toolhost.stop());

  const makeNames = (count: number, name: string) => Array.from({ length: count }, (_, i) => `${name}${i}`);
  const document = JSON.stringify({
    ...{ openapi: '3.0.0', info: { title: 'Things', version: '1' }, servers: [{ url: 'https://api.example.com' }] },
    paths: { '/things': { get: { operationId: 'listThings', responses: {} } } },
  });
  const requestKey = (limits: object) =>
    toolhost.rest('POST', '/keys', { body: { name: 'k', scopes: ['call'], ...limits } });
  const answers = Object.fromEntries(makeNames(90, 'q').map((name) => [name, 'x']));
  const getProblems = ({ status, body }: Reply) => {
    assert.equal(status, 400);
    return body.problems as { path: string; message: string }[];
  };

  it('lists the first 20 problems and the number of the others in every operation', async () => {
    const refusals: [Promise<Reply>, number][] = [
      [requestKey({ servers: makeNames(100, 'none-') }), 80],
      [requestKey({ views: makeNames(50, 'none/view-') }), 30],
      [toolhost.rest('POST', '/import', { body: { document, answers } }), 70],
    ];
    for (const [reply, omitted] of refusals) {
      const refused = await reply;
      const problems = getProblems(refused);
      assert.deepEqual([problems.length, problems.at(-1)], [21, { path: '', message: `and ${omitted} more` }]);
      assert.match(String(refused.body.detail), new RegExp(`; and ${omitted} more$`));
    }
  });

  it('lists all problems if there are at most 20', async () => {
    const problems = getProblems(await requestKey({ servers: makeNames(20, 'none-') }));
    assert.deepEqual([problems.length, problems.at(-1)?.path], [20, 'servers[19]']);
  });

  it('lists as few problems for an agent', async () => {
    const { isError, text } = await manager.callTool('importApi', { document, answers });
    const lines = text.split('\n');
    assert.deepEqual([isError, lines.length, lines.at(-1)], [true, 22, '- and 70 more']);
  });
});
