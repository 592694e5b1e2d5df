import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { operations } from '@toolhost/server/operations';
import { toOutputSchema } from '../../apps/server/src/operations/describe.ts';
import { startManagementAgent } from '../support/oauth/management-agent.ts';
import { type Reply, startToolhost } from '../support/toolhost/toolhost.ts';

type Schema = {
  type?: string;
  maxItems?: number;
  enum?: unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  anyOf?: Schema[];
};

/** Returns the paths of arrays without a maximum length in a schema. */
function findUnbounded(schema: Schema, path: string, isPaged: boolean): string[] {
  const isUnboundedArray = schema.type === 'array' && schema.maxItems === undefined && !isPaged;
  // A list of distinct enum values is never longer than the enum.
  const isEnumList = schema.items?.enum !== undefined;
  return [
    ...(isUnboundedArray && !isEnumList ? [path] : []),
    ...(schema.items ? findUnbounded(schema.items, `${path}[]`, false) : []),
    ...(schema.anyOf ?? []).flatMap((one) => findUnbounded(one, path, isPaged)),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
      findUnbounded(
        property,
        path === '' ? name : `${path}.${name}`,
        path === '' && 'next_cursor' in (schema.properties ?? {}),
      ),
    ),
  ];
}

describe('[find A4] operation outputs', () => {
  for (const op of Object.values(operations)) {
    it(`bound every list of ${op.name} by a cursor or a maximum`, () => {
      assert.deepEqual(findUnbounded(toOutputSchema(op) as Schema, '', false), []);
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
    openapi: '3.0.0',
    info: { title: 'Things', version: '1' },
    servers: [{ url: 'https://api.example.com' }],
    paths: { '/things': { get: { operationId: 'listThings', responses: {} } } },
  });
  const answers = Object.fromEntries(makeNames(90, 'q').map((name) => [name, 'x']));
  const getProblems = ({ status, body }: Reply) => {
    assert.equal(status, 400);
    return body.problems as { path: string; message: string }[];
  };

  it('lists the first 20 problems and the number of the others in every operation', async () => {
    const key = (limits: object) =>
      toolhost.rest('POST', '/keys', { body: { name: 'k', scopes: ['call'], ...limits } });
    const refusals: [Promise<Reply>, number][] = [
      [key({ servers: makeNames(100, 'none-') }), 80],
      [key({ views: makeNames(50, 'none/view-') }), 30],
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
    const servers = makeNames(20, 'none-');
    const problems = getProblems(
      await toolhost.rest('POST', '/keys', { body: { name: 'k', scopes: ['call'], servers } }),
    );
    assert.deepEqual([problems.length, problems.at(-1)?.path], [20, 'servers[19]']);
  });

  it('lists as few problems for an agent', async () => {
    const { isError, text } = await manager.callTool('importApi', { document, answers });
    const lines = text.split('\n');
    assert.deepEqual([isError, lines.length, lines.at(-1)], [true, 22, '- and 70 more']);
  });
});
