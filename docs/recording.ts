/**
 * Records an agent session and writes docs/images/agent.svg. Imports the description of a local API, connects Claude
 * Code, and calls the tools. Everything is real except the model, whose choices are scripted below.
 * Usage: node docs/recording.ts
 */
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

/** Description of a small API, as a user's own program would have it. */
function makeDescription(address: string) {
  const id = { name: 'id', in: 'path', required: true, schema: { type: 'integer' } };
  const status = { name: 'status', in: 'query', schema: { type: 'string', enum: ['new', 'sent', 'late'] } };
  const note = { type: 'object', required: ['note'], properties: { note: { type: 'string' } } };
  const responses = { 200: { description: 'Done.' } };
  return {
    openapi: '3.1.0',
    info: { title: 'Orders', version: '1' },
    servers: [{ url: address }],
    paths: {
      '/orders': {
        get: { operationId: 'listOrders', summary: 'List orders', parameters: [status], responses },
      },
      '/orders/{id}/notes': {
        post: {
          operationId: 'addNote',
          summary: 'Add a note to an order',
          parameters: [id],
          requestBody: { required: true, content: { 'application/json': { schema: note } } },
          responses,
        },
      },
    },
  };
}

type Line = { text: string; kind: 'command' | 'output' | 'agent'; pauseS: number };

/** Address that the recording shows instead of the actual one. */
const displayedAddress = 'http://127.0.0.1:8080';

/** Runs the session and returns the terminal lines. */
async function record(): Promise<Line[]> {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-recording-'));
  const world = await startAgentWorld(claudeCode);
  const { upstream } = world;
  upstream.on('GET /orders', () => ({ body: orders.filter(({ status }) => status === 'late') }));
  upstream.on('POST /orders/17/notes', () => ({ status: 201, body: { id: 3, order: 17 } }));
  try {
    const key = await world.toolhost.createKey();
    writeFileSync(join(folder, 'orders.json'), JSON.stringify(makeDescription(upstream.url)));
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
    const shown = calls.flatMap(({ tool, args }, index): Line[] => [
      { text: `● orders › ${tool} ${JSON.stringify(args)}`, kind: 'agent', pauseS: 1.2 },
      { text: `  ${(results[index] ?? '').trim().replace(/\s+/g, ' ')}`, kind: 'output', pauseS: 0.8 },
    ]);
    const lines: Line[] = [
      { text: '$ bin/toolhost import orders.json', kind: 'command', pauseS: 0.5 },
      ...imported.stdout
        .trim()
        .split('\n')
        .map((text): Line => ({ text, kind: 'output', pauseS: 0.15 })),
      {
        text: `$ claude mcp add --transport http orders ${world.toolhost.url}/mcp/orders`,
        kind: 'command',
        pauseS: 1,
      },
      { text: `$ claude -p ${JSON.stringify(question)}`, kind: 'command', pauseS: 1 },
      ...shown,
    ];
    return lines.map((line) => ({ ...line, text: line.text.replaceAll(world.toolhost.url, displayedAddress) }));
  } finally {
    await world.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const colours = { command: '#e6edf3', output: '#8b949e', agent: '#7ee787' };
const columns = 96;

/** Renders a terminal in which the lines appear one by one. Without animations it shows all of them. */
function drawing(lines: readonly Line[]): string {
  let at = 0;
  const rows = lines.map(({ text, kind, pauseS }, index) => {
    at += pauseS;
    const short = text.length > columns ? `${text.slice(0, columns - 1)}…` : text;
    return `<text x="20" y="${40 + index * 20}" fill="${colours[kind]}" style="animation-delay:${at.toFixed(2)}s">${escaped(short)}</text>`;
  });
  const height = 60 + lines.length * 20;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="840" height="${height}" viewBox="0 0 840 ${height}" role="img">
<title>An API is imported, and an agent calls its tools</title>
<style>text{font:13px ui-monospace,Menlo,Consolas,monospace;white-space:pre;animation:appear .01s both}@keyframes appear{from{opacity:0}}@media(prefers-reduced-motion){text{animation:none}}</style>
<rect width="840" height="${height}" rx="8" fill="#0d1117"/>
${rows.join('\n')}
</svg>
`;
}

writeFileSync(join(import.meta.dirname, 'images', 'agent.svg'), drawing(await record()));
