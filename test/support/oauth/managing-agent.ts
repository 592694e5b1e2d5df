import assert from 'node:assert/strict';
import { type Schema, Validator } from '@cfworker/json-schema';
import type { Json, TestToolhost } from '../toolhost/toolhost.ts';

export type Tool = { name: string; description: string; inputSchema: Schema; outputSchema: Schema; annotations: Json };
export type Answer = { text: string; isError: boolean; output: Json };

/** An agent at the management server that checks every answer against the listed schema of its tool. */
export type ManagingAgent = {
  tools: ReadonlyMap<string, Tool>;
  manage(name: string, args?: Json, token?: string): Promise<Answer>;
  /** A call that must succeed. */
  done(name: string, args?: Json): Promise<Answer>;
  /** A call that must be refused with this text. */
  refused(name: string, args: Json, why: RegExp): Promise<void>;
};

export async function startManagingAgent(toolhost: TestToolhost, key: string): Promise<ManagingAgent> {
  const { body } = await toolhost.modern('manage', key, 'tools/list');
  const tools = new Map(((body.result as Json).tools as Tool[]).map((tool) => [tool.name, tool]));
  const manage: ManagingAgent['manage'] = async (name, args = {}, token = key) => {
    const result = await toolhost.callTool('manage', token, name, args);
    const output = (result.structuredContent ?? {}) as Json;
    const { valid, errors } = new Validator(tools.get(name)?.outputSchema ?? false, '2020-12', false).validate(output);
    assert.ok(valid || result.isError, JSON.stringify(errors));
    return { text: result.content[0]?.text ?? '', isError: result.isError === true, output };
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
