import assert from 'node:assert/strict';
import type { Json, Reply, TestToolhost, ToolCallResult } from './toolhost/toolhost.ts';

/** Returns the tools of a response to `tools/list`. */
export function getTools({ body, text }: Reply): Json[] {
  assert.ok(body.result, text);
  return (body.result as { tools: Json[] }).tools;
}

export function getToolNames(reply: Reply): unknown[] {
  return getTools(reply).map(({ name }) => name);
}

/** Returns the texts of a result, one for each content entry. */
export function getTexts({ content }: ToolCallResult): string[] {
  return content.map(({ text = '' }) => text);
}

/** Changes a server. Fails unless the service accepts the change. */
export async function patchServer(toolhost: TestToolhost, slug: string, body: Json): Promise<void> {
  const { status, text } = await toolhost.rest('PATCH', `/servers/${slug}`, { body });
  assert.equal(status, 200, text);
}

export async function setSecret(toolhost: TestToolhost, slug: string, name: string, value: string): Promise<void> {
  const { status, text } = await toolhost.rest('PUT', `/servers/${slug}/secrets/${name}`, { body: { value } });
  assert.equal(status, 200, text);
}

/** Returns the call records of a server, newest first. */
export async function listCalls(toolhost: TestToolhost, slug: string, query = ''): Promise<Json[]> {
  const { body, text } = await toolhost.rest('GET', `/servers/${slug}/calls${query}`);
  assert.ok(body.calls, text);
  return body.calls as Json[];
}
