import type { ClientRequest, QueryCharge, RequestHeaders, TenantKey } from '@toolhost/credentials/client-request';
import type { MaybePromise } from '@toolhost/errors/yield-to-event-loop';
import { type BodyLimits, toWellFormedJsonText } from '@toolhost/json/json-scan';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import type { Access } from '@toolhost/tool-config/server-wide';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';

/**
 * Supported protocol revisions, newest first. The first one is stateless: no handshake, metadata on every request. The
 * others are stateful.
 */
export const revisions = ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'] as const;
export type Revision = (typeof revisions)[number];
export const statelessRevision = revisions[0];
export const newestStatefulRevision = revisions[1];
/** First revision whose results may contain blocks of type `resource_link`. */
export const resourceLinkRevision = revisions[2];

export type ProtocolGeneration = 'stateless' | 'stateful';

/** A content block of a tool result (MCP, server/tools). */
export type ContentBlock =
  | { type: 'text'; text: string }
  | ({ type: 'image' | 'audio'; data: string; mimeType: string } & FileMeta)
  | {
      type: 'resource';
      resource: { uri: string; mimeType: string } & ({ text: string } | { blob: string }) & FileMeta;
    }
  | { type: 'resource_link'; uri: string; name: string; mimeType: string; size: number };

/** Metadata of a file block: its file name. */
type FileMeta = { _meta?: { 'toolhost/file_name': string } };

/** JSON text. Long text that is forwarded unchanged stays the received bytes. */
export type JsonText = string | Buffer;

/**
 * The result of a tool call. `content` is the JSON text of an array of content blocks, and `structured` that of
 * `structuredContent`. Both are text, because an upstream's JSON is forwarded unchanged.
 */
export type ToolResult = {
  content: JsonText;
  structured: JsonText | undefined;
  isError: boolean;
  /** Estimated tokens of its text; undefined if they were not counted. */
  tokens?: number;
};

/** Returns a result with one text block. A truncated text may end in half a surrogate pair, which is replaced. */
export function toTextResult(text: string, isError: boolean): ToolResult {
  return { content: JSON.stringify([{ type: 'text', text: text.toWellFormed() }]), structured: undefined, isError };
}

/**
 * Returns a result whose text is JSON, without a structured copy: clients that show structured content next to the text
 * would pay for it twice. With `displayText`, that text is shown to people and the JSON becomes structured content.
 */
export function toJsonResult(value: object, displayText?: string): ToolResult {
  const json = toWellFormedJsonText(JSON.stringify(value));
  return displayText === undefined
    ? toTextResult(json, false)
    : { ...toTextResult(displayText, false), structured: json };
}

/** Appends a text block for each line to a result. */
export function appendTextBlocks(result: ToolResult, lines: readonly string[]): ToolResult {
  if (lines.length === 0) return result;
  const { content, tokens } = result;
  const appendedBlocks = `,${lines.map((text) => JSON.stringify({ type: 'text', text })).join(',')}]`;
  return {
    ...result,
    ...(tokens !== undefined && { tokens: tokens + estimateTokenCount(lines.join('').length) }),
    content:
      typeof content === 'string'
        ? content.slice(0, -1) + appendedBlocks
        : Buffer.concat([content.subarray(0, -1), Buffer.from(appendedBlocks)]),
  };
}

/** An argument that stateless clients mirror in a `Mcp-Param-…` header (MCP 2026-07-28, transports). */
export type MirroredArgument = { header: string; path: readonly string[]; type: 'string' | 'integer' | 'boolean' };

/** One `tools/call`, as parsed by the protocol core. */
export type ToolCall = {
  name: string;
  args: Arguments;
  generation: ProtocolGeneration;
  /** W3C trace context of the request; undefined if absent or invalid. */
  traceparent: string | undefined;
  tracestate: string | undefined;
  /** Headers of the request. A configuration may name some to forward. */
  headers: RequestHeaders;
  requestId: string;
  /** Size of the request body in bytes. */
  bytesIn: number;
  /** Protocol revision that the request states, if any. */
  revision: string | undefined;
  /** Origin of the server's own host, if the request was sent to it. */
  ownOrigin: string | undefined;
  /**
   * Calls `cancel` when the client of a stateless request disconnects, or immediately if it already has. This is a
   * function rather than an AbortSignal, because creating a signal with a listener takes four times as long and hardly
   * any call is canceled.
   */
  onDisconnect: (cancel: () => void) => void;
  authorization: AuthorizationSnapshot;
};

/**
 * The decision that a caller may use a server. It is valid for half a second: a caller that waits longer may outlive
 * its credential, the server, or the configuration.
 */
export type AuthorizationSnapshot<Server = Pick<McpServer, 'source'>> = {
  /** Returns true if the decision is too old to rely on. */
  isStale(): boolean;
  /** Repeats the decision for the current server. @throws Unauthenticated, AppError */
  refresh(): MaybePromise<Server>;
};

/**
 * Maximum age of an authorization decision in ms. The headers of a request authorize it; if its body arrives later than
 * this, authorization is repeated. A revoked credential is therefore refused within two seconds, even for a request
 * that had already begun.
 */
export const authorizationMaxAgeMs = 500;

/**
 * Returns a decision that can be repeated. Its age counts from now, because `decide` may refresh a login, which can
 * take seconds. `clock` returns monotonic ms.
 */
export function createAuthorizationSnapshot<Server>(
  decide: () => MaybePromise<Server>,
  clock: () => number,
): AuthorizationSnapshot<Server> {
  let decidedAt = clock();
  return {
    isStale: () => clock() - decidedAt > authorizationMaxAgeMs,
    refresh() {
      decidedAt = clock();
      return decide();
    },
  };
}

/** The server that the protocol core exposes to one authorized caller: a hosted server or the management server. */
export type McpServer = {
  /** Source of the server, for comparison: a text, or an object that keeps its identity. */
  source: string | object;
  /** Tenant and caller that work, bodies, and results are charged to. */
  tenantKey: TenantKey;
  /** JSON text of `{name, title, version}`. */
  info: string;
  instructions: string | undefined;
  /** Returns the JSON text of the array of tool definitions. It is long and always the same, so it is bytes. */
  getToolsJson(): Buffer;
  toolNames: readonly string[];
  /** Limits of a message, if they differ from the defaults. */
  bodyLimits?: BodyLimits;
  /**
   * Parses a message that is too long to parse on the event loop. Large arguments become `LargeValue`s.
   * @throws AppError
   */
  parseLongMessage?: (message: Buffer) => Promise<unknown>;
  /** Returns the mirrored arguments of a tool, or undefined if there is no such tool. */
  getMirroredArguments(tool: string): readonly MirroredArgument[] | undefined;
  /** Calls a tool. @throws AppError for failures that are not tool results: limits, an unavailable database */
  call(call: ToolCall): Promise<ToolResult>;
};

/** Login discovery for clients (RFC 9728), for servers that have a login. */
export type LoginHints = { resourceMetadata: string; scopes: readonly string[] };

/** The MCP server at one slug. */
export type McpEndpoint = {
  /** Authorizes a request. `chargeQuery` counts queries for a credential that is not cached. @throws Unauthenticated */
  authorize(request: ClientRequest, chargeQuery: QueryCharge): McpServer | Promise<McpServer>;
  /** Login discovery, if the server has a login. */
  loginHints: LoginHints | undefined;
  /** Content of the page for people who open the address in a browser; nothing secret. */
  pageContent: { name: string; description: string | undefined; access: Access | 'open' | 'management'; tools: number };
};
