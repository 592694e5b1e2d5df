import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Json } from '../toolhost/toolhost.ts';
import { type Decision, dialectOf, type OfferedTool, type Request } from './model-dialects.ts';

type Seen = Request & { headers: IncomingHttpHeaders; body: string };

/** A model whose script is the prompt. It calls the tool of each `step` in sequence, and those of a `turn` together. */
export type StubModel = {
  readonly url: string;
  /** Returns the requests since the last call, oldest first. */
  take(): Seen[];
  close(): Promise<void>;
};

/** Formats the part of a prompt that makes the model call a tool. */
export function step(tool: string, args: Json = {}): string {
  // Encoded, because some agents quote or escape the prompt.
  return `[[${tool}:${encodeURIComponent(JSON.stringify(args))}]]`;
}

/** Formats the part of a prompt that makes the model call several tools in one turn. */
export function turn(...calls: readonly string[]): string {
  return calls.join('&');
}

/** Text of the model after all calls have their results. */
const lastWord = 'The script has ended.';

const steps = /\[\[(\w+):([^\]]*)\]\](&(?:amp;)?)?/g;

/** Argument that Gemini CLI adds to every tool, for calls that wait for earlier calls of the turn. */
const waiting = 'wait_for_previous';

/**
 * Returns the calls of the script's next turn, or the last text. A request without tools, such as for a title, runs no
 * script.
 */
function decide({ tools, prompt, results }: Request): Decision {
  const rest = tools.length === 0 ? [] : [...prompt.matchAll(steps)].slice(results.length);
  const last = rest.findIndex(([, , , and]) => and === undefined);
  const next = rest.slice(0, last + 1);
  if (next.length === 0) return { text: lastWord };
  const calls = next.map(([, name, args = ''], index) => {
    const tool = tools.find((offered) => offered.name === name);
    return tool ? { tool, args: argumentsOf(tool, decodeURIComponent(args), index) } : `There is no tool ${name}.`;
  });
  const text = calls.find((call) => typeof call === 'string');
  return text === undefined ? { calls: calls.filter((call) => typeof call !== 'string') } : { text };
}

function argumentsOf({ fields }: OfferedTool, args: string, index: number): string {
  if (index === 0 || !fields.includes(waiting)) return args;
  return JSON.stringify({ ...(JSON.parse(args) as Json), [waiting]: true });
}

async function answer(message: IncomingMessage, response: ServerResponse, seen: Seen[]): Promise<void> {
  const dialect = dialectOf(new URL(message.url ?? '', 'http://model').pathname);
  const body = await text(message);
  // Agents also send other requests to the model's host, and continue without a response.
  if (!dialect) return void response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
  const request = dialect.read(JSON.parse(body) as Json);
  seen.push({ ...request, headers: message.headers, body });
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
