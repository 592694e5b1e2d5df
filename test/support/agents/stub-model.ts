import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Json } from '../toolhost/toolhost.ts';
import { listenLocally } from '../upstreams/local-server.ts';
import { type Decision, getDialect, type OfferedTool, type Request } from './model-dialects.ts';

type RecordedRequest = Request & { headers: IncomingHttpHeaders; body: string };

/** A model whose script is the prompt. It calls the tool of each step in sequence, and those of a turn together. */
export type StubModel = {
  readonly url: string;
  /** Returns the requests since the last call, oldest first. */
  takeRequests(): RecordedRequest[];
  close(): Promise<void>;
};

/** Formats the part of a prompt that makes the model call a tool. */
export function formatStep(tool: string, args: Json = {}): string {
  // Encoded, because some agents quote or escape the prompt.
  return `[[${tool}:${encodeURIComponent(JSON.stringify(args))}]]`;
}

/** Formats the part of a prompt that makes the model call several tools in one turn. */
export function formatTurn(...calls: readonly string[]): string {
  return calls.join('&');
}

/** Text of the model after all calls have their results. */
const finalText = 'The script has ended.';

const steps = /\[\[(\w+):([^\]]*)\]\](&(?:amp;)?)?/g;

/** Argument that Gemini CLI adds to every tool, for calls that wait for earlier calls of the turn. */
const waitField = 'wait_for_previous';

/**
 * Returns the calls of the script's next turn, or the last text. A request without tools, such as for a title, runs no
 * script.
 */
function decide({ tools, prompt, results }: Request): Decision {
  const remainingSteps = tools.length === 0 ? [] : [...prompt.matchAll(steps)].slice(results.length);
  const lastIndex = remainingSteps.findIndex(([, , , and]) => and === undefined);
  const nextSteps = remainingSteps.slice(0, lastIndex + 1);
  if (nextSteps.length === 0) return { text: finalText };
  const calls = nextSteps.map(([, name, args = ''], index) => {
    const tool = tools.find((offered) => offered.name === name);
    return tool ? { tool, args: formatArguments(tool, decodeURIComponent(args), index) } : `There is no tool ${name}.`;
  });
  const text = calls.find((call) => typeof call === 'string');
  return text === undefined ? { calls: calls.filter((call) => typeof call !== 'string') } : { text };
}

function formatArguments({ fields }: OfferedTool, args: string, index: number): string {
  if (index === 0 || !fields.includes(waitField)) return args;
  return JSON.stringify({ ...(JSON.parse(args) as Json), [waitField]: true });
}

async function handleRequest(
  message: IncomingMessage,
  response: ServerResponse,
  requests: RecordedRequest[],
): Promise<void> {
  const dialect = getDialect(new URL(message.url ?? '', 'http://model').pathname);
  const body = await text(message);
  // Agents also send other requests to the model's host, and continue without a response.
  if (!dialect) return void response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
  const request = dialect.parseRequest(JSON.parse(body) as Json);
  requests.push({ ...request, headers: message.headers, body });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of dialect.formatEvents(decide(request))) {
    const type = typeof event.type === 'string' ? `event: ${event.type}\n` : '';
    response.write(`${type}data: ${JSON.stringify(event)}\n\n`);
  }
  response.end(dialect.terminator);
}

export async function startStubModel(): Promise<StubModel> {
  const requests: RecordedRequest[] = [];
  const server = createServer((message, response) => {
    handleRequest(message, response, requests).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  const { url, close } = await listenLocally(server);
  return {
    url,
    takeRequests: () => requests.splice(0),
    close,
  };
}
