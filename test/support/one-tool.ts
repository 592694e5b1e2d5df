import assert from 'node:assert/strict';
import {
  type Json,
  type StartOptions,
  startToolhost,
  type TestToolhost,
  type ToolCallResult,
} from './toolhost/toolhost.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from './upstreams/recording-upstream.ts';

/** Bearer token of every call. A server without stored credentials forwards it according to its `authentication`. */
export const callerToken = 'caller-token-0123456789';

/** The service, an upstream that records its requests, and servers with one tool called `run`. */
export type OneToolFixture = {
  toolhost: TestToolhost;
  upstream: RecordingUpstream;
  /**
   * Creates a server with the given tool, whose URL is relative to the upstream if it begins with `/` or `?`. Returns
   * the slug.
   */
  createToolServer(tool: Json, server?: Json): Promise<string>;
  call(slug: string, args?: Json): Promise<ToolCallResult>;
  /** Calls with the arguments as JSON text, whose numbers keep their digits. */
  callText(slug: string, args: string): Promise<ToolCallResult>;
  /** Calls the tool and returns the one request that it sent. */
  captureRequest(slug: string, args?: Json): Promise<RecordedRequest>;
  /** Returns the message of a call that was refused before anything was sent. */
  captureRefusal(slug: string, args?: Json): Promise<string>;
  stop(): Promise<void>;
};

export function getResultText(result: ToolCallResult): string {
  return result.content[0]?.text ?? '';
}

/** Returns the text of a result that must be an error. */
export function getErrorText(result: ToolCallResult): string {
  assert.equal(result.isError, true, JSON.stringify(result));
  assert.equal(result.content.length, 1);
  return getResultText(result);
}

export async function startOneTool(options: StartOptions = {}): Promise<OneToolFixture> {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ ...options, egressPorts: [upstream.port, ...(options.egressPorts ?? [])] });
  let servers = 0;

  const call: OneToolFixture['call'] = (slug, args = {}) => toolhost.callTool(slug, callerToken, 'run', args);
  return {
    toolhost,
    upstream,
    async createToolServer(tool, server = {}) {
      const slug = `one-tool-${++servers}`;
      const url = String(tool.url ?? '/v1/things');
      const toolConfig = {
        name: 'run',
        description: 'Runs the one request of this test.',
        method: 'GET',
        ...tool,
        url: /^[/?]/.test(url) ? `${upstream.url}${url}` : url,
      };
      await toolhost.createServer({ name: 'One tool', slug, tools: [toolConfig], ...server });
      return slug;
    },
    call,
    async callText(slug, args) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":${args}}}`;
      const reply = await toolhost.post(slug, body, { token: callerToken });
      return reply.body.result as ToolCallResult;
    },
    async captureRequest(slug, args) {
      upstream.take();
      const result = await call(slug, args);
      assert.notEqual(result.isError, true, getResultText(result));
      const [request, ...more] = upstream.take();
      assert.deepEqual(more, []);
      return request ?? assert.fail('no request was sent');
    },
    async captureRefusal(slug, args) {
      upstream.take();
      const text = getErrorText(await call(slug, args));
      assert.deepEqual(upstream.take(), []);
      return text;
    },
    async stop() {
      await toolhost.stop();
      await upstream.close();
    },
  };
}
