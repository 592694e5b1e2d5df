import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, it } from 'node:test';
import { maxModelSteps } from '@toolhost/server/model';
import { maxConcurrentModels } from '../../apps/server/src/operations/quotas/concurrency-limiters.ts';
import { formatStep, startStubModel } from '../support/agents/stub-model.ts';
import { pluck } from '../support/pluck.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const key = 'sk-model-0123456789';
const basePaths = { anthropic: '/v1', openai: '/v1', gemini: '/v1beta' } as const;
type Part = { type: string; text?: string; id?: string; tool?: string; arguments?: string; reads?: boolean };

describe('the playground', async () => {
  const firstWordRead = Promise.withResolvers<void>();
  const requestRejected = Promise.withResolvers<void>();
  const connectionClosed = Promise.withResolvers<boolean>();
  /** A host that fails in the middle of a response, and keeps sending after it was rejected. */
  const respondWithError = async (url: string, response: ServerResponse) => {
    const error = `data: ${JSON.stringify({ error: { message: 'overloaded', type: 'server_error' } })}\n\n`;
    response.writeHead(url.startsWith('/odd') ? 799 : 200, { 'content-type': 'text/event-stream' }).write(error);
    if (url.startsWith('/failing')) response.once('close', () => connectionClosed.resolve(!response.writableFinished));
    await requestRejected.promise;
    response.end(error);
  };
  /** A model that sends its second word when the first was read. */
  const slowModel = createServer(async ({ url }, response) => {
    if (!url?.startsWith('/v1')) return respondWithError(url ?? '', response);
    const chunk = (content: string, end: string | null = null) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: end }] })}\n\n`;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(chunk('One '));
    await firstWordRead.promise;
    response.end(`${chunk('two.', 'stop')}data: [DONE]\n\n`);
  });
  await once(slowModel.listen(0, '127.0.0.1'), 'listening');
  const [model, upstream] = await Promise.all([startStubModel(), startRecordingUpstream()]);
  const slowModelUrl = `http://127.0.0.1:${(slowModel.address() as AddressInfo).port}`;
  const egressPorts = [upstream.port, ...[model.url, slowModelUrl].map((url) => Number(new URL(url).port))];
  const toolhost = await startToolhost({ egressPorts });
  const tool = (name: string, method = 'GET') => {
    const description = `Does ${name} with orders.`;
    return { name, description, method, url: `${upstream.url}/orders`, input_schema: { id: { type: 'string' } } };
  };
  const tools = [tool('read_order'), tool('add_note', 'POST')];
  const views = { reads: { tools: ['read_order'] } };
  await toolhost.createServer({ name: 'Shop', slug: 'shop', description: 'Sells pens.', tools, views });
  await toolhost.rest('PATCH', '/servers/shop', { body: { tools: [...tools, tool('drop_order', 'DELETE')] } });
  after(() => Promise.all([toolhost.stop(), upstream.close(), model.close(), slowModel[Symbol.asyncDispose]()]));

  const createModel = (kind: keyof typeof basePaths, more: Json = {}) => ({
    ...{ kind, url: model.url + basePaths[kind], model: 'stub', key },
    ...more,
  });
  const user = (text: string) => ({ role: 'user', text });
  const askModel = (messages: Json[], more: Json = {}, headers: Record<string, string> = {}) => {
    const body = { model: createModel('anthropic'), messages, ...more };
    return toolhost.rest('POST', '/servers/shop/playground', { body, headers });
  };
  const sayHello = (more: Json = {}) => askModel([user('Hello')], more);
  const manager = await toolhost.createKey();
  /** Sends a question whose response is read while it is written. */
  const fetchAnswer = (body: Json, accept = 'application/jsonl', signal: AbortSignal | null = null) =>
    fetch(`${toolhost.url}/api/v1/servers/shop/playground`, {
      method: 'POST',
      headers: { authorization: `Bearer ${manager}`, 'content-type': 'application/json', accept },
      body: JSON.stringify(body),
      signal,
    });
  const getCall = (body: Json) => (body.parts as Part[]).find(({ type }) => type === 'call') ?? assert.fail();

  for (const kind of ['anthropic', 'openai', 'gemini'] as const) {
    it(`asks a model through the ${kind} API, which reads the result of its call`, async () => {
      const question = user(`What is in it? ${formatStep('read_order', { id: '7' })}`);
      const first = await askModel([question], { model: createModel(kind) });
      assert.equal(first.status, 200, first.text);
      const call = getCall(first.body);
      assert.deepEqual([call.tool, call.arguments, call.reads], ['read_order', '{"id":"7"}', true]);
      const [seen] = model.takeRequests();
      assert.deepEqual(pluck(seen?.tools, 'name').toSorted(), ['add_note', 'drop_order', 'read_order']);
      const sent = seen?.headers['x-api-key'] ?? seen?.headers['x-goog-api-key'] ?? seen?.headers.authorization;
      assert.match(String(sent), new RegExp(`^(Bearer )?${key}$`));
      const results = [{ id: call.id, tool: call.tool, text: '{"id":"7","item":"pen"}' }];
      const conversation = [question, { role: 'model', parts: first.body.parts }, { role: 'tools', results }];
      const last = await askModel(conversation, { model: createModel(kind) });
      assert.deepEqual(pluck(last.body.parts, 'text'), ['The script has ended.'], last.text);
      assert.match(model.takeRequests()[0]?.results[0] ?? '', /pen/);
      assert.equal(typeof last.body.input_tokens, 'number');
      assert.ok(Number(last.body.tools_tokens) > 50);
    });
  }

  it('streams the text while it is written, and sends the complete result in the last line', async () => {
    const { text, headers } = await askModel([user('Hello')], {}, { accept: 'application/jsonl' });
    assert.match(headers.get('content-type') ?? '', /^application\/jsonl/);
    const [first, last, ...more] = text.trim().split('\n');
    assert.deepEqual([first, more], ['{"text":"The script has ended."}', []]);
    assert.equal(JSON.parse(last ?? '').result.finish, 'stop');
    const refused = await askModel([], {}, { accept: 'application/jsonl' });
    assert.deepEqual([refused.status, refused.body.title], [400, 'The request is not valid']);
  });

  it('forwards a word before the model has written the next one', async () => {
    const body = { model: createModel('openai', { url: `${slowModelUrl}/v1` }), messages: [user('Count')] };
    const response = await fetchAnswer(body);
    const lines: string[] = [];
    for await (const streamChunk of response.body ?? assert.fail()) {
      lines.push(String(Buffer.from(streamChunk)));
      firstWordRead.resolve();
    }
    assert.equal(lines[0], '{"text":"One "}\n');
    assert.match(lines.join(''), /\{"text":"two\."\}\n\{"result":/);
  });

  it('gives the model a view, another mode, or an older version, and calls tools there', async () => {
    const getToolNames = async (more: Json) => {
      model.takeRequests();
      const { status, text } = await sayHello(more);
      assert.equal(status, 200, text);
      return pluck(model.takeRequests()[0]?.tools, 'name').toSorted();
    };
    assert.deepEqual(await getToolNames({ view: 'reads' }), ['read_order']);
    assert.deepEqual(await getToolNames({ version: 1 }), ['add_note', 'read_order']);
    assert.deepEqual(await getToolNames({ mode: 'search' }), ['call_tool', 'describe_tool', 'search_tools']);
    const question = user(formatStep('call_tool', { name: 'add_note', arguments: { id: '7' } }));
    assert.equal(getCall((await askModel([question], { mode: 'search' })).body).reads, false);
    const call = (name: string, args: Json, more: Json, as = manager) =>
      toolhost.rest('POST', `/servers/shop/tools/${name}/call`, { body: { arguments: args, ...more }, key: as });
    const found = await call('search_tools', { query: 'note' }, { mode: 'search' });
    assert.match(found.text, /- add_note \(writes\)/);
    upstream.take();
    const { body } = await call('call_tool', { name: 'add_note', arguments: { id: '7' } }, { mode: 'search' });
    assert.equal(upstream.take()[0]?.method, 'POST');
    assert.match(String(body.curl), /orders/);
    const record = await toolhost.rest('GET', `/calls/${body.call_id}`);
    assert.equal((record.body.call as Json).tool, 'add_note');
    const caller = await toolhost.createKey({ scopes: ['call'] });
    assert.equal((await call('read_order', { id: '7' }, { version: 1 }, caller)).status, 403);
    assert.equal((await call('drop_order', { id: '7' }, { version: 1 })).status, 404);
    assert.equal((await call('read_order', { id: '7' }, { version: 9 })).status, 404);
  });

  it('calls only hosts that this deployment allows, and shows no key in errors', async () => {
    const refused = await sayHello({ model: createModel('openai', { url: 'http://127.0.0.1:9/v1' }) });
    assert.match(refused.text, /EGRESS_ALLOW=127\.0\.0\.1:9/);
    upstream.on('POST /v1/chat/completions', ({ headers }) => {
      const error = { message: `no such key: ${headers.authorization}`, code: 'invalid_api_key' };
      return { status: 401, body: { error } };
    });
    const unknown = await sayHello({ model: createModel('openai', { url: `${upstream.url}/v1` }) });
    assert.equal(unknown.status, 400);
    assert.equal(unknown.body.detail, "The model's host responded with HTTP status 401 (invalid_api_key).");
    upstream.on('POST /v1/messages', () => ({ body: 'nothing to see', headers: { 'content-type': 'text/html' } }));
    const odd = await sayHello({ model: createModel('anthropic', { url: `${upstream.url}/v1` }) });
    assert.equal(odd.status, 503, odd.text);
    const withOwnKey = await sayHello({ model: createModel('anthropic', { key: manager }) });
    assert.match(withOwnKey.text, /contains a Toolhost API key or token/);
  });

  it('survives a host that sends data after the end of its response or an invalid status', async () => {
    const failed = await sayHello({ model: createModel('openai', { url: `${slowModelUrl}/failing` }) });
    assert.equal(failed.status, 503, failed.text);
    assert.equal(failed.body.detail, "The model's host ended its response with an error (server_error).");
    requestRejected.resolve();
    const odd = await sayHello({ model: createModel('openai', { url: `${slowModelUrl}/odd` }) });
    assert.equal(odd.status, 503, odd.text);
    assert.equal(await connectionClosed.promise, true);
  });

  it('ends a question after the maximum number of model responses', async () => {
    const turns = Array.from({ length: maxModelSteps }, () => [
      { role: 'model', parts: [{ type: 'call', id: 'c', tool: 'read_order', arguments: '{}' }] },
      { role: 'tools', results: [{ id: 'c', tool: 'read_order', text: 'none' }] },
    ]).flat();
    const { status, text } = await askModel([user('Hello'), ...turns]);
    assert.match(`${status} ${text}`, /^400 .*found 20 model messages after the last user message; allowed: 20/);
    assert.equal((await askModel([user('Hello'), ...turns, user('And now?')])).status, 200);
  });

  it('stops the request when the person disconnects, and limits concurrent models', async () => {
    upstream.on('POST /v1/messages', () => 'hold');
    upstream.take();
    const count = maxConcurrentModels.perTenant / 2;
    const disconnect = new AbortController();
    const body = { model: createModel('anthropic', { url: `${upstream.url}/v1` }), messages: [user('Hello')] };
    const requests = Array.from({ length: count }, (_, index) =>
      fetchAnswer(body, index % 2 === 0 ? 'application/jsonl' : '*/*', disconnect.signal).catch(() => 'left'),
    );
    await upstream.waitForRequest(count);
    const heldRequests = upstream.take();
    assert.equal(toolhost.running.app.runner.concurrencyLimiters.model.getCounts().running, count);
    disconnect.abort();
    assert.deepEqual(await Promise.all(requests), Array(count).fill('left'));
    assert.deepEqual(await Promise.all(pluck(heldRequests, 'closed')), Array(count).fill('aborted'));
  });

  it('stores a workspace model with a sealed key that is never shown', async () => {
    const saved = await toolhost.rest('PUT', '/models/mine', { body: createModel('gemini') });
    assert.equal(saved.status, 200, saved.text);
    const list = await toolhost.rest('GET', '/models');
    const [stored] = list.body.models as Json[];
    assert.deepEqual([stored?.name, stored?.kind, stored?.has_key, stored?.key], ['mine', 'gemini', true, undefined]);
    model.takeRequests();
    const reply = await sayHello({ model: { saved: 'mine' } });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(model.takeRequests()[0]?.headers['x-goog-api-key'], key);
    const { db } = toolhost.running.app.runner;
    for (const table of ['models', 'audit_events'] as const)
      assert.ok(!JSON.stringify(await db.selectFrom(table).selectAll().execute()).includes(key));
    const other = await toolhost.createKey({ workspace: 'wsp_other' });
    assert.equal((await toolhost.rest('GET', '/models', { key: other })).text, '{"models":[]}');
    assert.equal((await toolhost.rest('DELETE', '/models/mine')).status, 200);
    assert.match((await sayHello({ model: { saved: 'mine' } })).text, /no model mine/);
    const both = await sayHello({ model: { saved: 'mine', url: upstream.url } });
    assert.match(both.text, /model\.url: unknown field"/);
  });
});
