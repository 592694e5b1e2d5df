import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { json } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { getRunCount } from '../sets.ts';
import { buildEchoConfig, buildStatelessMessage, mirrorHeaders } from '../support/mcp.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import type { RecordedRequest } from '../support/upstreams/recording-upstream.ts';

const clientCount = 50;
const roundCount = getRunCount(50);

const kinds = ['modern', 'legacy', 'batch', 'modern, cancelled', 'legacy, cancelled'] as const;

describe('the service with concurrent clients', () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  after(() => agent.destroy());
  const { toolhost, upstream } = useToolhostWithUpstream({ env: { CONCURRENT_CALLS: '0' } });
  before(async () => {
    upstream.on('*', (request) => ({ body: toCallerAndText(request), delayMs: request.url.length % 3 }));
    await toolhost.createServer(buildEchoConfig(upstream.url, { authentication: { type: 'Bearer' } }));
  });

  /** Caller and argument of a request, as the upstream received them. */
  const toCallerAndText = ({ headers, url }: RecordedRequest) => ({
    who: headers.authorization,
    text: new URL(url, upstream.url).searchParams.get('text'),
  });
  /** Sends one message. Returns the response body, or undefined if the client disconnected right after sending. */
  const send = async (token: string, message: unknown, headers: Record<string, string>, shouldDisconnect: boolean) => {
    const contentHeaders = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
    const options = { agent, method: 'POST', headers: { ...contentHeaders, ...headers } };
    const request = http.request(`${toolhost.url}/mcp/echo`, options);
    request.on('error', () => undefined);
    request.end(JSON.stringify(message));
    if (shouldDisconnect) {
      await once(request, 'finish');
      request.destroy();
      return undefined;
    }
    const [response] = (await once(request, 'response')) as [http.IncomingMessage];
    assert.equal(response.statusCode, 200);
    return (await json(response)) as Json | Json[];
  };

  /** Runs one round of a client. Every client uses the same id, 1, for every message. */
  const runRound = async (client: number, number: number): Promise<number> => {
    const kind = kinds[(client + number) % kinds.length] ?? 'modern';
    const token = `token-${client}`;
    const call = (text: string) => ({ name: 'echo', arguments: { text } });
    const createStatefulMessage = (text: string) => {
      const params = call(text);
      return { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    };
    const texts = ['a', 'b', 'c'].map((part) => `${client}-${number}-${part}`).slice(0, kind === 'batch' ? 3 : 1);
    const [text = ''] = texts;
    const isStateless = kind.startsWith('modern');
    const singleMessage = isStateless ? buildStatelessMessage('tools/call', call(text)) : createStatefulMessage(text);
    const message = kind === 'batch' ? texts.map(createStatefulMessage) : singleMessage;
    const headers = isStateless ? mirrorHeaders('tools/call', 'echo') : {};
    const response = await send(token, message, headers, kind.endsWith('cancelled'));
    if (response === undefined) return 0;
    const results = [response]
      .flat()
      .map(({ id, result }) => ({ id, ...JSON.parse((result as ToolCallResult).content[0]?.text ?? '') }));
    const expected = texts.map((text) => ({ id: 1, who: `Bearer ${token}`, text }));
    assert.deepEqual(results, expected);
    return results.length;
  };

  it(`[sec F1] returns to each of ${clientCount} clients with equal ids and different tokens only its own results`, async () => {
    const run = async (client: number): Promise<number> => {
      let responses = 0;
      for (let number = 0; number < roundCount; number++) responses += await runRound(client, number);
      return responses;
    };
    const answers = await Promise.all(Array.from({ length: clientCount }, (_, client) => run(client)));
    const answerCount = answers.reduce((sum, count) => sum + count);
    assert.equal(answerCount, clientCount * roundCount);
    const mismatches = upstream.requests
      .map(toCallerAndText)
      .filter(({ who, text }) => who !== `Bearer token-${text?.split('-')[0]}`);
    assert.deepEqual(mismatches, []);
    assert.ok(upstream.requests.length >= clientCount * roundCount);
  });
});
