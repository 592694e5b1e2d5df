import assert from 'node:assert/strict';
import { type Schema, Validator } from '@cfworker/json-schema';
import { toOutputSchema } from '../../../src/operations/describe.ts';
import { operationList } from '../../../src/operations/index.ts';
import type { Json, TestToolhost, ToolReply } from '../toolhost/toolhost.ts';

export type Tool = { name: string; description: string; inputSchema: Schema; annotations: Json };
export type Answer = { text: string; isError: boolean; output: Json };

/** An agent at the management server that checks every result against the schema of its operation. */
export type ManagingAgent = {
  tools: ReadonlyMap<string, Tool>;
  manage(name: string, args?: Json, token?: string): Promise<Answer>;
  /** Makes a call that must succeed. */
  done(name: string, args?: Json): Promise<Answer>;
  /** Makes a call that must be refused with this text. */
  refused(name: string, args: Json, why: RegExp): Promise<void>;
};

/**
 * Returns the output of a management tool: its structured content if there is any, and otherwise the JSON of its text.
 */
export function outputOf({ content, structuredContent }: ToolReply): Json {
  return (structuredContent ?? JSON.parse(content[0]?.text ?? '')) as Json;
}

export async function startManagingAgent(toolhost: TestToolhost, key: string): Promise<ManagingAgent> {
  const { body } = await toolhost.modern('manage', key, 'tools/list');
  const tools = new Map(((body.result as Json).tools as Tool[]).map((tool) => [tool.name, tool]));
  const manage: ManagingAgent['manage'] = async (name, args = {}, token = key) => {
    const result = await toolhost.callTool('manage', token, name, args);
    const isError = result.isError === true;
    const output = isError ? {} : outputOf(result);
    const op = operationList.find((one) => one.name === name);
    const { valid, errors } = new Validator((op ? toOutputSchema(op) : false) as Schema, '2020-12', false).validate(
      output,
    );
    assert.ok(valid || isError, JSON.stringify(errors));
    return { text: result.content[0]?.text ?? '', isError, output };
  };
  return {
    tools,
    manage,
    async done(name, args) {
      const answer = await manage(name, args);
      assert.equal(answer.isError, false, answer.text);
      return answer;
    },
    async refused(name, args, why) {
      const answer = await manage(name, args);
      assert.equal(answer.isError, true);
      assert.match(answer.text, why);
    },
  };
}
