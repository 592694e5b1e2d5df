import { reservedToolNames } from '../domain/config/tool.ts';
import { parseJson } from '../domain/json/json.ts';
import {
  type ContentBlock,
  decidedAdmission,
  type JsonText,
  newestLegacyRevision,
  type ToolResult,
} from '../domain/mcp.ts';
import { nearestOrAll, newGuesses } from '../domain/problems.ts';
import type { Arguments } from '../domain/request/sent-argument.ts';
import { coerceObject } from '../domain/schema/coerce-value.ts';
import { searchToolNames } from '../domain/search/own-tools.ts';
import type { Served, TryOutCall } from '../domain/try-out.ts';
import { nextTurn } from '../domain/work/next-turn.ts';
import { AppError, ToolFailure } from '../errors.ts';
import type { Capture, CapturedResponse } from '../store/calls/captures.ts';
import type { CallRow } from '../store/schema.ts';
import { tokensOfContent, tokensOfResult } from './answer/json-answer.ts';
import { prepareArguments } from './arguments/prepare-arguments.ts';
import { isCapturing } from './call/call.ts';
import type { CallToolParts } from './call/call-tool.ts';
import { findPreview, type Previewed, previewCall } from './call/preview-call.ts';
import { checkOnThread } from './call/thread-work.ts';
import { textsAtStart } from './captures/capture-job.ts';
import { readSizes, withGivenFiles } from './files/given-files.ts';
import type { HostedServer, HostedTool } from './hosted/hosted-server.ts';
import type { HostedServers } from './hosted/hosted-servers.ts';
import { findServed } from './hosted/served.ts';
import { runnerOf } from './own-tools/read-more.ts';

/** A result for display. `left_out` describes what was cut from a long one. */
type ShownResult = {
  is_error: boolean;
  content: ContentBlock[];
  estimated_tokens: number;
  structured_content?: unknown;
  left_out?: string;
};

/**
 * Runs a tool for a try-out. The operations that call it have checked the permissions. `clock` returns monotonic ms.
 */
export function createTryOut(servers: HostedServers, parts: CallToolParts & { clock: () => number }) {
  const prepare = (server: HostedServer, tool: HostedTool, args: Arguments) =>
    preparePreview(server, tool, args, parts);
  /** Returns the prepared arguments of a call, or undefined if they are invalid. */
  async function preparable(server: HostedServer, tool: HostedTool, args: Arguments): Promise<Arguments | undefined> {
    try {
      return await prepare(server, tool, args);
    } catch (error) {
      if (error instanceof ToolFailure) return undefined;
      throw error;
    }
  }
  return {
    async callTool(call: TryOutCall) {
      const { server, tool } = await findTool(servers, call);
      const sent = tool ? { tool, args: call.args } : calledInside(server, call);
      if (sent) checkToken(server, sent.tool, call.token);
      const written: Written = {};
      const result = await runnerOf(server)(
        server,
        {
          kind: 'try_out',
          keyId: call.actorId,
          id: call.actorId,
          network: undefined,
          isKnown: true,
          limits: call.limits,
          token: server.access === 'api_key' ? undefined : call.token,
        },
        {
          name: call.tool,
          args: call.args,
          era: 'legacy',
          traceparent: undefined,
          tracestate: undefined,
          headers: {},
          requestId: call.requestId,
          bytesIn: 0,
          revision: newestLegacyRevision,
          ownOrigin: undefined,
          onGone: () => undefined,
          admission: decidedAdmission(async () => {
            await call.checkActor();
            return (await findTool(servers, call)).server;
          }, parts.clock),
        },
        recordingInto(written, server, parts),
      );
      const answered = shown(result);
      // The preview walks through all arguments twice more.
      await nextTurn();
      const args = sent && (await preparable(server, sent.tool, sent.args));
      await nextTurn();
      return {
        ...answered,
        record: written.row,
        request: sent && findPreview(sent.tool, args),
        response: responseIn(written.capture),
      };
    },
    async previewCall(of: WantedTool, args: Arguments): Promise<Previewed> {
      const found = await findTool(servers, of);
      if (!found.tool) throw new AppError('invalid', `${of.tool} is a built-in tool and sends no request`);
      try {
        const prepared = await prepare(found.server, found.tool, args);
        await nextTurn();
        return previewCall(found.server, found.tool, prepared);
      } catch (error) {
        if (!(error instanceof ToolFailure)) throw error;
        const problems = error.problems.map(({ path, message }) => ({ path: `arguments.${path}`, message }));
        throw new AppError('invalid', error.message, { problems });
      }
    },
  };
}

/** Prepares arguments for a preview, which shows file sizes instead of contents. @throws ToolFailure */
async function preparePreview(
  { workspaceId }: HostedServer,
  tool: HostedTool,
  args: Arguments,
  parts: CallToolParts,
): Promise<Arguments> {
  const of = { workspaceId, onGone: undefined };
  const prepared = await prepareArguments(tool, args, (long) => checkOnThread(parts.threads, tool, long, of));
  return withGivenFiles(tool.fileArguments, prepared, parts.fileAddresses.idIn, readSizes(workspaceId, parts));
}

/** The record of a call, and its capture. */
type Written = { row?: CallRow; capture?: string | undefined };

/** Returns deps that also copy the record of a call to `written`. Its capture is stored only if the server captures. */
function recordingInto(written: Written, server: HostedServer, parts: CallToolParts): CallToolParts {
  return {
    ...parts,
    record(row, capture) {
      written.row = row;
      written.capture = capture;
      parts.record(row, isCapturing(server, row.started_at) ? capture : undefined);
    },
  };
}

/** Returns the upstream response of a capture. */
function responseIn(capture: string | undefined): CapturedResponse | undefined {
  return capture === undefined ? undefined : (parseJson(capture) as Capture).response;
}

type WantedTool = Served & { tool: string };

/** Finds a server and one of its tools. The tool is undefined if it is a built-in one. @throws AppError notFound */
async function findTool(servers: HostedServers, { tool, ...served }: WantedTool) {
  const server = await findServed(servers, served);
  const found = server.tool(tool);
  if (found || reservedToolNames(server.config).has(tool)) return { server, tool: found };
  const isDisabled = server.config.tools.some(({ name, disabled }) => name === tool && disabled);
  const name = JSON.stringify(tool);
  const why = isDisabled
    ? `the tool ${name} is disabled; enable it first`
    : `the ${served.view === undefined ? 'server' : 'view'} has no tool ${name}${nearestOrAll(tool, server.toolNames, newGuesses())}`;
  throw new AppError('notFound', why);
}

/** Returns the tool and the arguments inside a `call_tool`. */
function calledInside(server: HostedServer, { tool, args }: TryOutCall) {
  const inner = tool === searchToolNames.call ? server.tool(String(args.name)) : undefined;
  return inner && { tool: inner, args: coerceObject(args.arguments) ?? {} };
}

/** Rejects a try-out that lacks the token it needs. It is not a call and leaves no record. @throws AppError invalid */
function checkToken(server: HostedServer, tool: HostedTool, given: string | undefined): void {
  if (given !== undefined || server.access === 'api_key' || tool.request.credentials.length === 0) return;
  throw new AppError('invalid', "token: this server forwards the caller's token; provide one to try the tool", {
    problems: [{ path: 'token', message: "this server forwards the caller's token; provide one to try the tool" }],
  });
}

/**
 * Maximum size of a result that is shown completely, in bytes of its JSON. Parsing and serializing that much takes a
 * few milliseconds.
 */
const mostShownWhole = 512 * 1024;

/** Maximum length of the text that is shown of a longer result, in characters. */
const mostShownText = 256 * 1024;

function shown(result: ToolResult): ShownResult {
  const { content: json, structured, isError } = result;
  const bytes = Buffer.byteLength(json);
  if (bytes + Buffer.byteLength(structured ?? '') > mostShownWhole) {
    const left_out = `The result is ${bytes} bytes long. Only the first ${mostShownText} characters of its text are shown here, without structured content. An agent gets the complete result.`;
    return { is_error: isError, content: beginningOf(json), estimated_tokens: tokensOfResult(result), left_out };
  }
  const content = JSON.parse(String(json)) as ContentBlock[];
  return {
    is_error: isError,
    content,
    estimated_tokens: tokensOfContent(content),
    ...(structured !== undefined && { structured_content: parseJson(String(structured)) }),
  };
}

/** Returns the texts at the start of the content, without half of a surrogate pair at the end. */
function beginningOf(json: JsonText): ContentBlock[] {
  let left = mostShownText;
  return textsAtStart(typeof json === 'string' ? Buffer.from(json) : json, mostShownText).flatMap(
    (text): ContentBlock[] => {
      if (left <= 0) return [];
      const isSplit = text.length > left && /[\ud800-\udbff]/.test(text.charAt(left - 1));
      const start = text.slice(0, isSplit ? left - 1 : left);
      left -= text.length;
      return [{ type: 'text', text: start }];
    },
  );
}
