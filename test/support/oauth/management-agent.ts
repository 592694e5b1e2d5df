import assert from 'node:assert/strict';
import { type Schema, Validator } from '@cfworker/json-schema';
import { operationList } from '@toolhost/server/operations';
import { toOutputSchema } from '../../../apps/server/src/operations/describe.ts';
import type { Json, TestToolhost, ToolCallResult } from '../toolhost/toolhost.ts';

export type Tool = { name: string; description: string; inputSchema: Schema; annotations: Json };
export type ManagementResult = { text: string; isError: boolean; output: Json };

/** An agent at the management server that checks every result against the schema of its operation. */
export type ManagementAgent = {
  tools: ReadonlyMap<string, Tool>;
  callTool(name: string, args?: Json, token?: string): Promise<ManagementResult>;
  /** Makes a call that must succeed. */
  expectSuccess(name: string, args?: Json): Promise<ManagementResult>;
  /** Makes a call that must be refused with this text. */
  expectError(name: string, args: Json, messagePattern: RegExp): Promise<void>;
};

/**
 * Returns the output of a management tool: its structured content if there is any, and otherwise the JSON of its text.
 */
export function getOutput({ content, structuredContent }: ToolCallResult): Json {
  return (structuredContent ?? JSON.parse(content[0]?.text ?? '')) as Json;
}

export async function startManagementAgent(toolhost: TestToolhost, key: string): Promise<ManagementAgent> {
  const { body } = await toolhost.statelessRpc('manage', key, 'tools/list');
  const tools = new Map(((body.result as Json).tools as Tool[]).map((tool) => [tool.name, tool]));
  const callTool: ManagementAgent['callTool'] = async (name, args = {}, token = key) => {
    const result = await toolhost.callTool('manage', token, name, args);
    const isError = result.isError === true;
    const output = isError ? {} : getOutput(result);
    const op = operationList.find((operation) => operation.name === name);
    const { valid, errors } = new Validator((op ? toOutputSchema(op) : false) as Schema, '2020-12', false).validate(
      output,
    );
    assert.ok(valid || isError, JSON.stringify(errors));
    return { text: result.content[0]?.text ?? '', isError, output };
  };
  return {
    tools,
    callTool,
    async expectSuccess(name, args) {
      const result = await callTool(name, args);
      assert.equal(result.isError, false, result.text);
      return result;
    },
    async expectError(name, args, messagePattern) {
      const result = await callTool(name, args);
      assert.equal(result.isError, true);
      assert.match(result.text, messagePattern);
    },
  };
}
