import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { json } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { tries } from '../sets.ts';
import { echoConfig, mirrors, modernMessage } from '../support/mcp.ts';
import { type Json, startToolhost, type TestToolhost, type ToolReply } from '../support/toolhost/toolhost.ts';
import {
  type RecordedRequest,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

const clients = 50;
const rounds = tries(50);

const kinds = ['modern', 'legacy', 'batch', 'modern, cancelled', 'legacy, cancelled'] as const;

describe('the service with concurrent clients', () => {
  let upstream: RecordingUpstream;
  let toolhost: TestToolhost;
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  before(async () => {
    upstream = await startRecordingUpstream();
    upstream.on('*', (request) => ({ body: seenBy(request), delayMs: request.url.length % 3 }));
    toolhost = await startToolhost({ egress: [upstream.port], env: { CONCURRENT_CALLS: '0' } });
    await toolhost.createServer(echoConfig(upstream.url, { authentication: { type: 'Bearer' } }));
  });
  after(async () => {
    agent.destroy();
    await toolhost.stop();
    await upstream.close();
  });

  /** Caller and argument of a request, as the upstream received them. */
  const seenBy = ({ headers, url }: RecordedRequest) => ({
    who: headers.authorization,
    text: new URL(url, upstream.url).searchParams.get('text'),
  });
  /** Sends one message. Returns the response body, or undefined if the client disconnected right after sending. */
  const ask = async (token: string, message: unknown, headers: Record<string, string>, hangUp: boolean) => {
    const request = http.request(`${toolhost.url}/mcp/echo`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    });
    request.on('error', () => undefined);
    request.end(JSON.stringify(message));
    if (hangUp) {
      await once(request, 'finish');
      request.destroy();
      return undefined;
    }
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    assert.equal(response.statusCode, 200);
    return (await json(response)) as Json | Json[];
  };

  /** Runs one round of a client. Every client uses the same id, 1, for every message. */
  const round = async (client: number, number: number): Promise<number> => {
    const kind = kinds[(client + number) % kinds.length] ?? 'modern';
    const token = `token-${client}`;
    const call = (text: string) => ({ name: 'echo', arguments: { text } });
    const legacy = (text: string) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call(text) });
    const texts = ['a', 'b', 'c'].map((part) => `${client}-${number}-${part}`).slice(0, kind === 'batch' ? 3 : 1);
    const [text = ''] = texts;
    const isModern = kind.startsWith('modern');
    const single = isModern ? modernMessage('tools/call', call(text)) : legacy(text);
    const message = kind === 'batch' ? texts.map(legacy) : single;
    const headers = isModern ? mirrors('tools/call', 'echo') : {};
    const answer = await ask(token, message, headers, kind.endsWith('cancelled'));
    if (answer === undefined) return 0;
    const told = [answer]
      .flat()
      .map(({ id, result }) => ({ id, ...JSON.parse((result as ToolReply).content[0]?.text ?? '') }));
    assert.deepEqual(
      told,
      texts.map((expected) => ({ id: 1, who: `Bearer ${token}`, text: expected })),
    );
    return told.length;
  };

  it(`[sec F1] returns to each of ${clients} clients with equal ids and different tokens only its own results`, async () => {
    const run = async (client: number): Promise<number> => {
      let answers = 0;
      for (let number = 0; number < rounds; number++) answers += await round(client, number);
      return answers;
    };
    const answers = await Promise.all(Array.from({ length: clients }, (_, client) => run(client)));
    assert.equal(
      answers.reduce((sum, count) => sum + count),
      clients * rounds,
    );
    const strangers = upstream.requests
      .map(seenBy)
      .filter(({ who, text }) => who !== `Bearer token-${text?.split('-')[0]}`);
    assert.deepEqual(strangers, []);
    assert.ok(upstream.requests.length >= clients * rounds);
  });
});
