import type { Answered, Fault, Step } from './foreign-mcp-server.ts';

/** Replaces the response to one step. */
export const at =
  (step: Step, change: (usual: Answered, asked: Parameters<Fault>[0]) => Answered | undefined): Fault =>
  (asked, usual) =>
    asked.step === step ? change(usual, asked) : undefined;

/** Replaces fields of the JSON response to one step. */
export const fields = (step: Step, change: { [name: string]: unknown }) =>
  at(step, (usual) => ({ ...usual, body: { ...(usual.body as object), ...change } }));

/** Replaces the response to one MCP method, after the request was authorized. */
export const method = (name: string, change: (usual: Answered) => Answered) =>
  at('mcp', (usual, { message }) => (message.method === name && usual.status < 300 ? change(usual) : undefined));

export const result = (name: string, value: unknown) =>
  method(name, (usual) => ({ ...usual, body: { ...(usual.body as object), result: value } }));
