import assert from 'node:assert/strict';
import { type Json, type StartOptions, startToolhost, type TestToolhost, type ToolReply } from './toolhost/toolhost.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from './upstreams/recording-upstream.ts';

/** Bearer token of every call. A server without stored credentials forwards it according to its `authentication`. */
export const callerToken = 'caller-token-0123456789';

/** The service, an upstream that records its requests, and servers with one tool called `run`. */
export type OneTool = {
  toolhost: TestToolhost;
  upstream: RecordingUpstream;
  /**
   * Creates a server with the given tool, whose URL is relative to the upstream if it begins with `/` or `?`. Returns
   * the slug.
   */
  serve(tool: Json, server?: Json): Promise<string>;
  call(slug: string, args?: Json): Promise<ToolReply>;
  /** Calls with the arguments as JSON text, whose numbers keep their digits. */
  callText(slug: string, args: string): Promise<ToolReply>;
  /** Calls the tool and returns the one request that it sent. */
  sent(slug: string, args?: Json): Promise<RecordedRequest>;
  /** Returns the message of a call that was refused before anything was sent. */
  refused(slug: string, args?: Json): Promise<string>;
  stop(): Promise<void>;
};

export function textOf(result: ToolReply): string {
  return result.content[0]?.text ?? '';
}

/** Returns the text of a result that must be an error. */
export function errorOf(result: ToolReply): string {
  assert.equal(result.isError, true, JSON.stringify(result));
  assert.equal(result.content.length, 1);
  return textOf(result);
}

export async function startOneTool(options: StartOptions = {}): Promise<OneTool> {
  const upstream = await startRecordingUpstream();
  const toolhost = await startToolhost({ ...options, egress: [upstream.port, ...(options.egress ?? [])] });
  let servers = 0;

  const call: OneTool['call'] = (slug, args = {}) => toolhost.callTool(slug, callerToken, 'run', args);
  return {
    toolhost,
    upstream,
    async serve(tool, server = {}) {
      const slug = `one-tool-${++servers}`;
      const url = String(tool.url ?? '/v1/things');
      const full = {
        name: 'run',
        description: 'Runs the one request of this test.',
        method: 'GET',
        ...tool,
        url: /^[/?]/.test(url) ? `${upstream.url}${url}` : url,
      };
      await toolhost.createServer({ name: 'One tool', slug, tools: [full], ...server });
      return slug;
    },
    call,
    async callText(slug, args) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":${args}}}`;
      const reply = await toolhost.post(slug, body, { token: callerToken });
      return reply.body.result as ToolReply;
    },
    async sent(slug, args) {
      upstream.take();
      const result = await call(slug, args);
      assert.notEqual(result.isError, true, textOf(result));
      const [request, ...more] = upstream.take();
      assert.deepEqual(more, []);
      return request ?? assert.fail('no request was sent');
    },
    async refused(slug, args) {
      upstream.take();
      const text = errorOf(await call(slug, args));
      assert.deepEqual(upstream.take(), []);
      return text;
    },
    async stop() {
      await toolhost.stop();
      await upstream.close();
    },
  };
}
