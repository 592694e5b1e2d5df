/** Agent session of the pictures: imports the description of a local API, and calls its tools with Claude Code. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claudeCode } from '../test/support/agents/agent-kinds.ts';
import { startAgentWorld } from '../test/support/agents/agent-world.ts';
import { formatStep } from '../test/support/agents/stub-model.ts';
import { runToolhostCommand } from '../test/support/toolhost/toolhost-command.ts';

const orders = [
  { id: 17, customer: 'Ada', status: 'late' },
  { id: 18, customer: 'Bob', status: 'sent' },
];

/** Describes a small API, as a user's own program would have it. */
export function describeOrders(address: string) {
  const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' } };
  const status = { name: 'status', in: 'query', schema: { type: 'string', enum: ['new', 'sent', 'late'] } };
  const note = { type: 'object', required: ['note'], properties: { note: { type: 'string' } } };
  const order = { type: 'object', required: ['customer'], properties: { customer: { type: 'string' } } };
  const toBody = (schema: object) => ({ required: true, content: { 'application/json': { schema } } });
  const toOperation = (operationId: string, summary: string, more: object = {}) => ({
    operationId,
    summary,
    ...more,
    responses: { 200: { description: 'Done.' } },
  });
  return {
    openapi: '3.1.0',
    info: { title: 'Orders', version: '1' },
    servers: [{ url: address }],
    paths: {
      '/orders': {
        get: toOperation('listOrders', 'List orders', { parameters: [status] }),
        post: toOperation('createOrder', 'Create an order', { requestBody: toBody(order) }),
      },
      '/orders/{id}': {
        get: toOperation('getOrder', 'Get an order', { parameters: [id] }),
        delete: toOperation('cancelOrder', 'Cancel an order', { parameters: [id] }),
      },
      '/orders/{id}/notes': {
        post: toOperation('addNote', 'Add a note to an order', { parameters: [id], requestBody: toBody(note) }),
      },
    },
  };
}

export type Session = {
  question: string;
  calls: { tool: string; args: object; result: string }[];
};

/** Runs the session. Everything is real except the model, whose choices are scripted. */
export async function runOrdersSession(): Promise<Session> {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-recording-'));
  const world = await startAgentWorld(claudeCode);
  const { upstream } = world;
  upstream.on('GET /orders', () => ({ body: orders.filter(({ status }) => status === 'late') }));
  upstream.on('POST /orders/17/notes', () => ({ status: 201, body: { id: 3, order: 17 } }));
  try {
    const key = await world.toolhost.createKey();
    writeFileSync(join(folder, 'orders.json'), JSON.stringify(describeOrders(upstream.url)));
    const imported = await runToolhostCommand(['import', 'orders.json', '--include', '*'], {
      cwd: folder,
      env: { TOOLHOST_URL: world.toolhost.url, TOOLHOST_API_KEY: key },
    });
    if (imported.code !== 0) throw new Error(imported.stderr);
    await world.connect([{ slug: 'orders', key }]);
    const question = 'Which orders are late? Leave a note that we look into it.';
    const calls = [
      { tool: 'list_orders', args: { status: 'late' } },
      { tool: 'add_note', args: { id: 17, note: 'We look into it.' } },
    ];
    const { results } = await world.runPrompt(
      question,
      ...calls.map(({ tool, args }) => formatStep(claudeCode.getToolName('orders', tool), args)),
    );
    if (results.length !== calls.length) throw new Error(`${results.length} of ${calls.length} tools were called`);
    const toLine = (text: string | undefined) => (text ?? '').trim().replace(/\s+/g, ' ');
    return {
      question,
      calls: calls.map((call, index) => ({ ...call, result: toLine(results[index]) })),
    };
  } finally {
    await world.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
