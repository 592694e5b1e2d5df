import type { Access } from './config/server-wide.ts';
import { type BodyLimits, wellFormedJsonText } from './json/json-scan.ts';
import { tokensOfLength } from './pieces/tokens.ts';
import type { Arguments } from './request/sent-argument.ts';
import type { Lookup, Party, RequestHeaders, Visit } from './visit.ts';
import type { MaybePromise } from './work/next-turn.ts';

/** The protocol revisions that are served, newest first. The first one is the modern era: no handshake, metadata on every request. */
export const revisions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'] as const;
export type Revision = (typeof revisions)[number];
export const modernRevision = revisions[0];
export const newestLegacyRevision = revisions[1];
/** The first revision whose results may have blocks of the type `resource_link`. */
export const firstRevisionWithLinks = revisions[2];

export type Era = 'modern' | 'legacy';

/** A content block of a tool result (MCP, server/tools). */
export type ContentBlock =
  | { type: 'text'; text: string }
  | ({ type: 'image' | 'audio'; data: string; mimeType: string } & FileMeta)
  | {
      type: 'resource';
      resource: { uri: string; mimeType: string } & ({ text: string } | { blob: string }) & FileMeta;
    }
  | { type: 'resource_link'; uri: string; name: string; mimeType: string; size: number };

/** The name of the file that a block is. */
type FileMeta = { _meta?: { 'toolhost/file_name': string } };

/** JSON text; a long one that is passed on stays as the received bytes. */
export type JsonText = string | Buffer;

/**
 * The result of a tool call. `content` is the JSON text of an array of content blocks and `structured` that of
 * `structuredContent`: text, because an upstream's JSON is passed on unchanged.
 */
export type ToolResult = {
  content: JsonText;
  structured: JsonText | undefined;
  isError: boolean;
  /** Estimated tokens of its text, where they were counted. */
  tokens?: number;
};

/** A result of one text block. A text that was cut may end in half of a character. */
export function textResult(text: string, isError: boolean): ToolResult {
  return { content: JSON.stringify([{ type: 'text', text: text.toWellFormed() }]), structured: undefined, isError };
}

/**
 * A result whose text is JSON, once: clients that show structured content beside the text would pay twice. With a text `said`
 * for people the JSON is structured content.
 */
export function jsonResult(value: object, said?: string): ToolResult {
  const json = wellFormedJsonText(JSON.stringify(value));
  return said === undefined ? textResult(json, false) : { ...textResult(said, false), structured: json };
}

/** The result with a text block for each of these lines after its other blocks. */
export function withLines(result: ToolResult, lines: readonly string[]): ToolResult {
  if (lines.length === 0) return result;
  const { content, tokens } = result;
  const end = `,${lines.map((text) => JSON.stringify({ type: 'text', text })).join(',')}]`;
  return {
    ...result,
    ...(tokens !== undefined && { tokens: tokens + tokensOfLength(lines.join('').length) }),
    content:
      typeof content === 'string'
        ? content.slice(0, -1) + end
        : Buffer.concat([content.subarray(0, -1), Buffer.from(end)]),
  };
}

/** An argument that modern clients mirror in a `Mcp-Param-…` header (MCP 2026-07-28, transports). */
export type MirroredArgument = { header: string; path: readonly string[]; type: 'string' | 'integer' | 'boolean' };

/** One `tools/call` as the protocol core hands it on. */
export type ToolCall = {
  name: string;
  args: Arguments;
  era: Era;
  /** W3C trace context of the request, valid or undefined. */
  traceparent: string | undefined;
  tracestate: string | undefined;
  /** Headers of the request, of which a configuration may name some to pass on. */
  headers: RequestHeaders;
  requestId: string;
  /** Size of the request body in bytes. */
  bytesIn: number;
  /** The revision that the request states, if any. */
  revision: string | undefined;
  /** Origin of the server's own host, when the request came to that. */
  ownOrigin: string | undefined;
  /**
   * Calls `cancel` when the client of a modern request disconnects, at once when it already has. A function and no
   * AbortSignal, because each signal with a listener takes four times as long to make, and hardly any call is cancelled.
   */
  onGone: (cancel: () => void) => void;
  admission: Admission;
};

/**
 * The decision that a sender may use a server. It holds for half a second: what the sender waited for after that may have
 * outlived its credential, the server or the configuration.
 */
export type Admission<Server = Pick<McpServer, 'source'>> = {
  /** Whether it was made too long ago to act by it. */
  isOld(): boolean;
  /** Makes it again, for the server as it is now. @throws Unauthenticated, AppError */
  again(): MaybePromise<Server>;
};

/**
 * The headers of a request decide who it is from. When the body came later than this after that decision, in ms, it is
 * made again: a revoked credential is refused within two seconds, also where a request was begun before.
 */
export const admittedMs = 500;

/**
 * A decision that can be made again. The first one counts from now, because a login may be refreshed within it for seconds.
 * `clock` gives monotonic ms.
 */
export function decidedAdmission<Server>(decide: () => MaybePromise<Server>, clock: () => number): Admission<Server> {
  let at = clock();
  return {
    isOld: () => clock() - at > admittedMs,
    again() {
      at = clock();
      return decide();
    },
  };
}

/** What the protocol core serves to one admitted caller: a hosted server, or the management server. */
export type McpServer = {
  /** What it was made of, for comparison: a text, or an object that stays the same. */
  source: string | object;
  /** Whom its work is done for, and whose its bodies and answers are. */
  party: Party;
  /** JSON text of `{name, title, version}`. */
  info: string;
  instructions: string | undefined;
  /** JSON text of the array of tool definitions, as bytes, because it is long and always the same. */
  tools(): Buffer;
  toolNames: readonly string[];
  /** Limits of a message, where they are not the usual ones. */
  bodyLimits?: BodyLimits;
  /** Parses a long message, which takes too long here. Large arguments are `LongValue`s. @throws AppError */
  readLong?: (message: Buffer) => Promise<unknown>;
  /** The mirrored arguments of a tool, or undefined when there is no such tool. */
  mirrored(tool: string): readonly MirroredArgument[] | undefined;
  /** @throws AppError for failures that are not tool results: limits, a missing database */
  call(call: ToolCall): Promise<ToolResult>;
};

/** Where a client finds out how to log in (RFC 9728), for servers that have a login. */
export type LoginHints = { resourceMetadata: string; scopes: readonly string[] };

/** The MCP server at one slug. */
export type McpEndpoint = {
  /** `look` counts queries for a credential that is not cached. @throws Unauthenticated */
  admit(visit: Visit, look: Lookup): McpServer | Promise<McpServer>;
  /** How to log in, when the server has a login. */
  hints: LoginHints | undefined;
  /** The page for people who open the address in a browser; nothing secret. */
  about: { name: string; description: string | undefined; access: Access | 'open' | 'management'; tools: number };
};
