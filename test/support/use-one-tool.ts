import { type OneToolFixture, startOneTool } from './one-tool.ts';
import type { Json } from './toolhost/toolhost.ts';
import type { RecordedRequest } from './upstreams/recording-upstream.ts';
import { useFixture } from './use-fixtures.ts';
import { findToolProblems } from './valid-configs.ts';

type OneTool = OneToolFixture & {
  /** Creates a server with a tool, calls it, and returns the request that it sent. */
  send(tool: Json, args?: Json, server?: Json): Promise<RecordedRequest>;
  /** Creates a server with a tool, calls it, and returns the message of the refusal. */
  getRefusal(tool: Json, args?: Json, server?: Json): Promise<string>;
  /** Returns the problems of a tool with these fields. */
  getProblems(tool: Json, server?: Json): Promise<string[]>;
};

/** Starts a fixture with one tool for the tests of a `describe`. `defaults` are fields of every tool. */
export function useOneTool(defaults: Json = {}): OneTool {
  const oneTool = useFixture(startOneTool);
  return Object.assign(oneTool, {
    send: async (tool: Json, args?: Json, server?: Json) =>
      oneTool.captureRequest(await oneTool.createToolServer({ ...defaults, ...tool }, server), args),
    getRefusal: async (tool: Json, args?: Json, server?: Json) =>
      oneTool.captureRefusal(await oneTool.createToolServer({ ...defaults, ...tool }, server), args),
    getProblems: (tool: Json, server?: Json) => findToolProblems(oneTool.toolhost, { ...defaults, ...tool }, server),
  });
}
