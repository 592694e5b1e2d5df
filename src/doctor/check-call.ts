import { nearest, newGuesses } from '../domain/problems/did-you-mean.ts';
import { type Fields, objectOf, ok, problem, type Verdict, warning } from './check.ts';
import type { CallToTry } from './examination.ts';
import { type McpSession, post, resultOf, rpcOf } from './session.ts';

const blockTypes = new Set(['text', 'image', 'audio', 'resource', 'resource_link']);
const shownCharacters = 300;

/** Calls one tool and checks the form of its result (MCP 2025-11-25, server/tools). */
export async function checkCall(
  { at, headers }: McpSession,
  tools: readonly Fields[],
  call: CallToTry,
): Promise<Verdict> {
  const tool = tools.find(({ name }) => name === call.tool);
  if (!tool) {
    const names = tools.map(({ name }) => String(name));
    return problem(`There is no such tool${nearest(call.tool, names, newGuesses())}.`, []);
  }
  const isReading = objectOf(tool.annotations).readOnlyHint === true;
  if (!isReading && !(await call.mayChange()))
    return warning('It was not called: it is not marked as read-only (readOnlyHint); --yes calls it all the same.', []);
  const params = { name: call.tool, arguments: call.arguments };
  const page = await post(at, { id: 20, method: 'tools/call', params }, headers);
  const rpc = rpcOf(page);
  if (!rpc || !('result' in rpc || 'error' in rpc))
    return problem(`tools/call is answered with ${page.status} and no JSON-RPC message.`);
  const { code, message } = objectOf(rpc.error);
  if (typeof code === 'number')
    return problem(`tools/call is answered with the JSON-RPC error ${code}: ${visible(message)}`);
  return checkResult(resultOf(rpc), tool);
}

function checkResult(result: Fields, tool: Fields): Verdict {
  const { content, structuredContent, isError } = result;
  if (!Array.isArray(content)) return problem('The result has no content, which clients expect to be a list.');
  const types = content.map((block) => String(objectOf(block).type));
  const unknown = types.find((type) => !blockTypes.has(type));
  if (unknown !== undefined) return problem(`The result has a block of the type ${JSON.stringify(unknown)}.`);
  const text = content.map((block) => objectOf(block).text).find((found) => typeof found === 'string');
  if (isError === true) return warning(`The tool reports a failure: ${visible(text)}`, []);
  if (tool.outputSchema !== undefined && structuredContent === undefined)
    return problem('The tool announces an outputSchema, and its result has no structuredContent; SDKs refuse it.');
  return ok(`The result has ${types.length === 0 ? 'no blocks' : types.join(', ')}: ${visible(text)}`, []);
}

/** The beginning of a text of the server, on one line and without characters that control a terminal. */
function visible(text: unknown): string {
  if (typeof text !== 'string') return '(no text)';
  const line = text.replaceAll(/[\p{C}\s]+/gu, ' ').trim();
  return line.length > shownCharacters ? `${line.slice(0, shownCharacters)}…` : line;
}
