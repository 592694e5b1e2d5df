import type { JsonText, McpServer, ToolResult } from '../../domain/mcp.ts';
import { revisions } from '../../domain/mcp.ts';

/** A JSON text in pieces, of which some may be bytes. */
export type Pieces = readonly [string, ...JsonText[], string];

/** The text of an answer in one piece. */
export function textOf(body: string | Pieces): string {
  return typeof body === 'string' ? body : body.join('');
}

export function lengthOfAnswer(body: string | Pieces): number {
  return typeof body === 'string' ? body.length : body.reduce((sum, piece) => sum + piece.length, 0);
}

/**
 * The answers to a batch as one array. Bytes stay as they are: a list of tools is megabytes long, and its own server and
 * all who read it share it.
 */
export function batchPieces(answers: readonly (string | Pieces)[]): Pieces {
  const pieces: JsonText[] = [];
  let text = '[';
  for (const [index, answer] of answers.entries()) {
    if (index > 0) text += ',';
    for (const piece of typeof answer === 'string' ? [answer] : answer) {
      if (typeof piece === 'string') text += piece;
      else {
        pieces.push(text, piece);
        text = '';
      }
    }
  }
  return ['', ...pieces, `${text}]`];
}

/** How long a client may reuse a list. Lists depend on the caller, so callers never share them. */
const listTtlMs = 30_000;

const caching = `"ttlMs":${listTtlMs},"cacheScope":"private"`;

function stamp(server: McpServer): string {
  return `"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":${server.info}}`;
}

function instructions(server: McpServer): string {
  return server.instructions === undefined
    ? ''
    : `,"instructions":${JSON.stringify(server.instructions.toWellFormed())}`;
}

/** Results of the modern era carry their type, the server's identity and, for lists, how long they keep. */
export const modernResults = {
  discover: (server: McpServer) =>
    `{"supportedVersions":${JSON.stringify(revisions)},"capabilities":{"tools":{}}${instructions(server)},${caching},${stamp(server)}}`,
  tools: (server: McpServer): Pieces => ['{"tools":', server.tools(), `,${caching},${stamp(server)}}`],
  call: (server: McpServer, result: ToolResult) => callResult(result, true, `,${stamp(server)}`),
};

export const legacyResults = {
  initialize: (server: McpServer, revision: string) =>
    `{"protocolVersion":"${revision}","capabilities":{"tools":{}},"serverInfo":${server.info}${instructions(server)}}`,
  tools: (server: McpServer): Pieces => ['{"tools":', server.tools(), '}'],
  call: (result: ToolResult) => callResult(result, false, ''),
};

/** Up to 2025-11-25 structured content must be an object; an older client would refuse anything else. */
function callResult({ content, structured, isError }: ToolResult, anyValue: boolean, more: string): Pieces {
  const shown = structured !== undefined && (anyValue || isObjectText(structured)) ? structured : undefined;
  const end = `${isError ? ',"isError":true' : ''}${more}}`;
  const open = '{"content":';
  return shown === undefined ? [open, content, end] : [open, content, ',"structuredContent":', shown, end];
}

function isObjectText(text: JsonText): boolean {
  return typeof text === 'string' ? text.startsWith('{') : text[0] === 0x7b;
}
