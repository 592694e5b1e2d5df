import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { check, configWith, toolProblems, toolWith } from '../support/configurations.ts';
import { type OneTool, startOneTool } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

describe('how an argument is sent', () => {
  let one: OneTool;
  before(async () => {
    one = await startOneTool();
  });
  after(() => one.stop());

  /** The input schema of the one tool in `tools/list`. */
  const listed = async (input_schema: Json): Promise<Json> => {
    const slug = await one.serve({ method: 'POST', input_schema });
    const { body } = await one.toolhost.post(
      slug,
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { token: 'caller-token' },
    );
    return (body.result as { tools: { inputSchema: Json }[] }).tools[0]?.inputSchema ?? assert.fail('no tool');
  };
  const problems = (tool: Json) => toolProblems(one.toolhost, { method: 'POST', ...tool });

  it('[conf 1] agents see neither constants nor the keywords for the wire', async () => {
    const started = { type: 'string', description: 'Start.', wire_name: 'StartTime>' };
    const version = { type: 'string', value: '2026-01' };
    const tags = { type: 'array', items: { type: 'string' }, style: 'comma', in: 'query' };
    const shown = {
      type: 'object',
      properties: {
        started: { type: 'string', description: 'Start.' },
        tags: { type: 'array', items: { type: 'string' } },
      },
      required: ['started', 'tags'],
      additionalProperties: false,
    };
    assert.deepEqual(await listed({ started, version, tags }), shown);
    const full = {
      type: 'object',
      properties: { started, version, tags },
      required: ['started', 'version', 'tags'],
      additionalProperties: false,
    };
    assert.deepEqual(await listed(full), shown);
  });

  it('[conf 1] a JSON Schema without these keywords is listed as it was written', async () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string', in: 'query' }, b: { $ref: '#/$defs/b' } },
      required: ['a'],
      $defs: { b: { type: 'integer' } },
    };
    assert.deepEqual(await listed(schema), schema);
  });

  it('[conf 1] keywords of the wrong form are problems in both forms of a schema', async () => {
    const wrong = { type: 'string', wire_name: '', style: 'commas', allow_slashes: 'yes', content: 'base32' };
    const flat = await problems({ input_schema: { a: wrong } });
    assert.equal(flat.length, 4);
    assert.ok(flat.some((line) => line.startsWith('tools[0].input_schema.a.style: found "commas"; allowed: "repeat"')));
    const full = await problems({ input_schema: { type: 'object', properties: { a: wrong } } });
    assert.deepEqual(
      full,
      flat.map((line) => line.replace('input_schema.a', 'input_schema.properties.a')),
    );
    const deeper = { type: 'object', properties: { a: { type: 'object', properties: { b: { wire_name: 'x' } } } } };
    assert.match(String(await problems({ input_schema: deeper })), /this keyword is not supported/);
    assert.deepEqual(await problems({ input_schema: { a: { type: 'string', value: 1 } } }), [
      'tools[0].input_schema.a.value: found a value that is not of type string',
    ]);
  });

  it('[conf 1] [find B5] a name of the upstream that could be taken for the credential is a warning', async () => {
    const authentication = { type: 'QueryParam', query_key: 'api_key' };
    const tool = toolWith({ input_schema: { a: { type: 'string', wire_name: 'Api.Key' } } });
    const { warnings } = await check(one.toolhost, configWith({ tools: [tool], authentication }));
    assert.deepEqual(warnings, [
      'tools[0].input_schema.a: could be taken for the credential in the query, so it is sent only where it is part of a JSON body',
    ]);
  });

  it('[conf 2] a Content-Type of a GET request that has a body is no warning', async () => {
    const headers = { 'Content-Type': 'application/json' };
    const warned = async (fields: Json) =>
      (await check(one.toolhost, configWith({ tools: [toolWith({ headers, ...fields })] }))).warnings;
    assert.equal((await warned({})).length, 1);
    assert.deepEqual(await warned({ body_template: { a: 1 } }), []);
    assert.deepEqual(await warned({ input_schema: { a: { type: 'string', in: 'body' } } }), []);
  });

  it('[conf 1] [find B3] a key of this service is refused in a constant and in a template of the body', async () => {
    const key = await one.toolhost.key();
    const path = 'holds an API key or a token of this service, which is never sent to an upstream; take it out';
    assert.deepEqual(await problems({ input_schema: { a: { type: 'string', value: key } } }), [
      `tools[0].input_schema.a.value: ${path}`,
    ]);
    assert.deepEqual(await problems({ body_template: { deep: [{ a: key }] } }), [
      `tools[0].body_template.deep[0].a: ${path}`,
    ]);
  });
});
