import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { check, configWith, toolWith } from '../support/configurations.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

const text = { type: 'string' };

describe('warnings about clients, hints and answers', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
  });
  after(() => toolhost.stop());
  const warnings = async (config: Json) => {
    const judged = await check(toolhost, configWith(config));
    assert.deepEqual(judged.problems, []);
    return judged.warnings;
  };
  const ofTool = (fields: Json) => warnings({ tools: [toolWith(fields)] });
  const ofSchema = (schema: Json) => ofTool({ input_schema: schema, method: 'POST' });

  it('[conf 6] names of arguments that Claude refuses, of which constants are none', async () => {
    const sentence = (names: string) =>
      `tools[0].input_schema: Arguments whose names have characters other than letters, digits, _ . - (${names}): Claude, Claude Code and Anthropic API refuse the tool; rename the argument and give the name that the API expects as its "wire_name"`;
    assert.deepEqual(await ofSchema({ 'filter[name]': text, 'a.b-c_d': text }), [sentence('filter[name]')]);
    assert.deepEqual(await ofSchema({ filter_name: { ...text, wire_name: 'filter[name]' } }), []);
    assert.deepEqual(await ofSchema({ 'filter[name]': { ...text, value: 'constant' } }), []);
  });

  it('[conf 6] $ref, combinators at the root and arrays without items, with the clients that refuse them', async () => {
    const at = 'tools[0].input_schema: ';
    const object = (more: Json) => ofSchema({ type: 'object', properties: { a: text }, ...more });
    assert.deepEqual(await object({ properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: text } }), [
      `${at}$ref, which clients do not follow (a): Claude, Claude Code and Anthropic API refuse the tool; write the schema where it is used`,
    ]);
    const root = `${at}oneOf, anyOf, allOf or not at the root of the schema`;
    const advice =
      'Claude, Claude Code, Anthropic API, ChatGPT, Codex and OpenAI API refuse the tool; declare the arguments in properties, and describe in words which of them go together';
    assert.deepEqual(await object({ anyOf: [{ required: ['a'] }] }), [`${root} (anyOf): ${advice}`]);
    assert.deepEqual(await object({ properties: { a: { anyOf: [text, { type: 'null' }] } } }), []);
    const items =
      'VS Code, ChatGPT, Codex and OpenAI API refuse the tool; say what the entries are, for example "items": {"type": "string"}';
    assert.deepEqual(
      await ofSchema({ ids: { type: 'array' }, deep: { type: 'object', properties: { b: { type: 'array' } } } }),
      [`${at}Arrays without items (ids, deep.b): ${items}`],
    );
    assert.deepEqual(await ofSchema({ ids: { type: 'array', items: text } }), []);
  });

  it('[conf 6] names of tools that a client cuts off or its model refuses', async () => {
    const long = 'a'.repeat(56);
    assert.deepEqual(await warnings({ slug: 'things', tools: [toolWith({ name: long })] }), [
      `tools[0].name: is mcp__things__${long} in Claude Code, which takes 64 characters; make the name of the tool shorter by 5`,
      `tools[0].name: is things:${long} in Cursor, which takes 60 characters; make the name of the tool shorter by 3`,
      `tools[0].name: is ${long}_mcp_things in LibreChat, which takes 64 characters; make the name of the tool shorter by 3`,
    ]);
    assert.deepEqual(await ofTool({ name: 'things.get' }), [
      'tools[0].name: has a dot, which the models of Claude Code, Claude, ChatGPT, Codex, OpenAI API and Anthropic API refuse; write _ instead',
    ]);
    const off = [toolWith({ name: 'things.get', input_schema: { 'a[b]': text }, disabled: true }), toolWith()];
    assert.deepEqual(await warnings({ tools: off }), []);
    assert.deepEqual(await warnings({ tools: [toolWith({ name: 'things.get' })], tool_mode: 'search' }), []);
  });

  it('[conf 6] more tools than clients take', async () => {
    const tools = Array.from({ length: 41 }, (_, i) => toolWith({ name: `t${i}` }));
    assert.deepEqual(await warnings({ tools }), [
      'tools: 41 tools: some clients cut off above 40 (Cursor takes 40, VS Code takes 128, Windsurf takes 100, over all their servers); consider several servers, or tool_mode search',
    ]);
  });

  it('[conf 6] hints that the request contradicts', async () => {
    const hints = (method: string, annotations: Json, more: Json = {}) => ofTool({ method, annotations, ...more });
    const [asked, ...others] = await hints('DELETE', { readOnlyHint: true, destructiveHint: false });
    assert.equal(
      asked,
      'tools[0].annotations.readOnlyHint: calls DELETE a reading request, so clients send it without asking the person',
    );
    assert.deepEqual(others, []);
    assert.deepEqual(await hints('POST', { readOnlyHint: true, destructiveHint: true }), [
      'tools[0].annotations.destructiveHint: contradicts readOnlyHint; clients then ignore it, so say false to one of the two',
    ]);
    assert.deepEqual(await hints('GET', { readOnlyHint: false }), [
      'tools[0].annotations.readOnlyHint: says that this GET changes something; a GET whose connection was lost is sent again, so use the method that the API has for changes',
    ]);
    const repeated =
      'tools[0].annotations.idempotentHint: says that this POST may be repeated; without an Idempotency-Key, in headers or as an argument, make sure that the API does nothing twice';
    assert.deepEqual(await hints('POST', { idempotentHint: true }), [repeated]);
    for (const more of [
      { headers: { 'Idempotency-Key': 'fixed' } },
      { input_schema: { key: { ...text, in: 'header', wire_name: 'Idempotency-Key' } } },
      { input_schema: { 'X-Request-Id': { ...text, in: 'header' } } },
    ]) {
      assert.deepEqual(await hints('POST', { idempotentHint: true }, more), [], JSON.stringify(more));
    }
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])
      assert.deepEqual(await hints(method, {}), [], method);
    assert.deepEqual(await hints('POST', { readOnlyHint: true }), []);
    assert.deepEqual(await hints('PUT', { idempotentHint: true }), []);
  });

  it('[conf 6] response_fields that output_schema does not describe, or that leave out what it requires', async () => {
    const output_schema = { type: 'object', properties: { name: text, id: text }, required: ['name'] };
    const judged = (fields: string[], schema: Json = output_schema) =>
      ofTool({ response_fields: fields, output_schema: schema });
    assert.deepEqual(await judged(['nam', 'name.first']), [
      'tools[0].response_fields[0]: output_schema has no property nam, so this matches nothing that it describes; did you mean `name`?',
    ]);
    assert.deepEqual(await judged(['id']), [
      'tools[0].response_fields: leave out name, which output_schema requires, so every answer would be refused; keep it, or take it out of required',
    ]);
    assert.deepEqual(await judged(['name', 'id.x']), []);
    assert.deepEqual(await judged(['anything'], { type: 'object' }), []);
  });

  it('[conf 6] braces in the value of a header', async () => {
    const shell = ['$', '{TOKEN}'].join('');
    for (const [value, found] of [
      ['{TOKEN}', '{TOKEN}'],
      [`Bearer ${shell}`, shell],
    ]) {
      assert.deepEqual(await ofTool({ headers: { 'X-Auth': value } }), [
        `tools[0].headers.X-Auth: \`${found}\` is sent as it stands; write {{TOKEN}} for a variable or a secret`,
      ]);
    }
    const config = { headers: { 'X-Team': '{TEAM}' } };
    assert.deepEqual(await warnings(config), [
      'headers.X-Team: `{TEAM}` is sent as it stands; write {{TEAM}} for a variable or a secret',
    ]);
    assert.deepEqual(await ofTool({ headers: { 'X-Json': '{"a":1}', 'X-Empty': '{}' } }), []);
  });
});
