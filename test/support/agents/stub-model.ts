import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Json } from '../toolhost/toolhost.ts';
import { dialectOf, type Request } from './model-dialects.ts';

type Seen = Request & { headers: IncomingHttpHeaders };

/** A model whose script is the prompt: it calls the tool of each `step`, one after the other. */
export type StubModel = {
  readonly url: string;
  /** What it was sent since the last take, oldest first. */
  take(): Seen[];
  close(): Promise<void>;
};

/** The part of a prompt that makes the model call a tool. */
export function step(tool: string, args: Json = {}): string {
  // Some agents quote or escape what is in a prompt.
  return `[[${tool}:${encodeURIComponent(JSON.stringify(args))}]]`;
}

/** What the model says when every call has its result. */
const lastWord = 'The script has ended.';

const steps = /\[\[(\w+):([^\]]*)\]\]/g;

/** The next call of the script, or the last word. A request without tools, for example for a title, runs no script. */
function decide({ tools, prompt, results }: Request) {
  const [, name, args = ''] = [...prompt.matchAll(steps)][results.length] ?? [];
  if (name === undefined || tools.length === 0) return { text: lastWord };
  const tool = tools.find((offered) => offered.name === name);
  return tool ? { tool, args: decodeURIComponent(args) } : { text: `There is no tool ${name}.` };
}

async function answer(message: IncomingMessage, response: ServerResponse, seen: Seen[]): Promise<void> {
  const dialect = dialectOf(new URL(message.url ?? '', 'http://model').pathname);
  const body = await text(message);
  // Whatever else agents may ask a model's host, they go on without an answer.
  if (!dialect) return void response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
  const request = dialect.read(JSON.parse(body) as Json);
  seen.push({ ...request, headers: message.headers });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of dialect.write(decide(request))) {
    const type = typeof event.type === 'string' ? `event: ${event.type}\n` : '';
    response.write(`${type}data: ${JSON.stringify(event)}\n\n`);
  }
  response.end(dialect.end);
}

export async function startStubModel(): Promise<StubModel> {
  const seen: Seen[] = [];
  const server = createServer((message, response) => {
    answer(message, response, seen).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    take: () => seen.splice(0),
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
