import { AppError, ToolFailure } from '@toolhost/errors/errors';
import { createSuggestionBudget, suggestNearestOrList } from '@toolhost/errors/problems';
import { yieldToEventLoop } from '@toolhost/errors/yield-to-event-loop';
import { parseJson } from '@toolhost/json/json';
import { coerceObject } from '@toolhost/json-schema/coerce-value';
import {
  type ContentBlock,
  createAuthorizationSnapshot,
  type JsonText,
  newestStatefulRevision,
  type ToolResult,
} from '@toolhost/mcp-protocol/mcp';
import { searchToolNames } from '@toolhost/tool-config/built-in-tools';
import type { Arguments } from '@toolhost/tool-config/request/wire-argument';
import { getReservedToolNames } from '@toolhost/tool-config/tool';
import type { Capture, CapturedResponse } from '../store/calls/captures.ts';
import type { CallRow } from '../store/schema.ts';
import type { ServedVariant, TestCall } from '../try-out.ts';
import { prepareArguments } from './arguments/prepare-arguments.ts';
import { isCapturing } from './call/call.ts';
import type { CallToolDeps } from './call/call-tool.ts';
import { type CallPreview, findPreview, previewCall } from './call/preview-call.ts';
import { checkOnThread } from './call/thread-work.ts';
import type { CallingPerson } from './callers/caller.ts';
import { getTextsAtStart } from './captures/capture-job.ts';
import { createSizeReader, replaceFileUrls } from './files/argument-files.ts';
import type { HostedServer, HostedTool } from './hosted/hosted-server.ts';
import type { HostedServers } from './hosted/hosted-servers.ts';
import { findVariant } from './hosted/server-variants.ts';
import { estimateContentTokens, estimateResultTokens } from './response/json-response.ts';
import { getRunner } from './runner.ts';

/** A result for display. `left_out` describes what was cut from a long one. */
type DisplayedResult = {
  is_error: boolean;
  content: ContentBlock[];
  estimated_tokens: number;
  structured_content?: unknown;
  left_out?: string;
};

/** Finds the values of a user at a server. */
type FindPerson = (server: HostedServer, userId: string | undefined) => Promise<CallingPerson | undefined>;

/** Returns true if a server accepts API keys, so that a call needs no other token. */
function acceptsKeys({ access }: HostedServer): boolean {
  return access === 'api_key' || access === 'login';
}

/**
 * Runs a tool for a try-out. The operations that call it have checked the permissions. `clock` returns monotonic ms.
 */
export function createTryOut(
  servers: HostedServers,
  deps: CallToolDeps & { findPerson: FindPerson },
  clock: () => number,
) {
  const prepare = (server: HostedServer, tool: HostedTool, args: Arguments) =>
    preparePreviewArguments(server, tool, args, deps);
  /** Returns the prepared arguments of a call, or undefined if they are invalid. */
  async function tryPrepare(server: HostedServer, tool: HostedTool, args: Arguments): Promise<Arguments | undefined> {
    try {
      return await prepare(server, tool, args);
    } catch (error) {
      if (error instanceof ToolFailure) return undefined;
      throw error;
    }
  }
  return {
    async callTool(call: TestCall) {
      const { server, tool } = await findTool(servers, call);
      const innerCall = tool ? { tool, args: call.args } : getInnerCall(server, call);
      if (innerCall) checkToken(server, innerCall.tool, call.token);
      const recorded: CallRecording = {};
      const result = await getRunner(server)(
        server,
        {
          kind: 'try_out',
          keyId: call.actorId,
          id: call.actorId,
          network: undefined,
          isVerified: true,
          limitedKeys: call.limitedKeys,
          token: acceptsKeys(server) ? undefined : call.token,
          person: server.personalNames.size > 0 ? await deps.findPerson(server, call.userId) : undefined,
        },
        {
          name: call.tool,
          args: call.args,
          generation: 'stateful',
          traceparent: undefined,
          tracestate: undefined,
          headers: {},
          requestId: call.requestId,
          bytesIn: 0,
          revision: newestStatefulRevision,
          ownOrigin: undefined,
          onDisconnect: () => undefined,
          authorization: createAuthorizationSnapshot(async () => {
            await call.checkActor();
            return (await findTool(servers, call)).server;
          }, clock),
        },
        withRecording(recorded, server, deps),
      );
      const displayed = toDisplayedResult(result);
      // The preview walks through all arguments twice more.
      await yieldToEventLoop();
      const args = innerCall && (await tryPrepare(server, innerCall.tool, innerCall.args));
      await yieldToEventLoop();
      return {
        ...displayed,
        record: recorded.row,
        request: innerCall && findPreview(innerCall.tool, args),
        response: getResponse(recorded.capture),
      };
    },
    async previewCall(target: ToolTarget, args: Arguments): Promise<CallPreview> {
      const resolved = await findTool(servers, target);
      if (!resolved.tool) throw new AppError('invalid', `${target.tool} is a built-in tool and sends no request`);
      try {
        const prepared = await prepare(resolved.server, resolved.tool, args);
        await yieldToEventLoop();
        return previewCall(resolved.server, resolved.tool, prepared);
      } catch (error) {
        if (!(error instanceof ToolFailure)) throw error;
        const problems = error.problems.map(({ path, message }) => ({ path: `arguments.${path}`, message }));
        throw new AppError('invalid', error.message, { problems });
      }
    },
  };
}

/** Prepares arguments for a preview, which shows file sizes instead of contents. @throws ToolFailure */
async function preparePreviewArguments(
  { workspaceId }: HostedServer,
  tool: HostedTool,
  args: Arguments,
  deps: CallToolDeps,
): Promise<Arguments> {
  const jobContext = { ownerId: workspaceId, registerCancel: undefined };
  const prepared = await prepareArguments(tool, args, (largeArgs) =>
    checkOnThread(deps.threads, tool, largeArgs, jobContext),
  );
  return replaceFileUrls(tool.fileArguments, prepared, deps.fileUrls.findId, createSizeReader(workspaceId, deps));
}

/** The record of a call, and its capture. */
type CallRecording = { row?: CallRow; capture?: string | undefined };

/** Returns deps that also copy the record of a call to `recorded`. Stores its capture only if the server captures. */
function withRecording(recorded: CallRecording, server: HostedServer, deps: CallToolDeps): CallToolDeps {
  return {
    ...deps,
    record(row, capture) {
      recorded.row = row;
      recorded.capture = capture;
      deps.record(row, isCapturing(server, row.started_at) ? capture : undefined);
    },
  };
}

/** Returns the upstream response of a capture. */
function getResponse(capture: string | undefined): CapturedResponse | undefined {
  return capture === undefined ? undefined : (parseJson(capture) as Capture).response;
}

type ToolTarget = ServedVariant & { tool: string };

/** Finds a server and one of its tools. The tool is undefined if it is a built-in one. @throws AppError notFound */
async function findTool(servers: HostedServers, { tool, ...target }: ToolTarget) {
  const server = await findVariant(servers, target);
  const foundTool = server.getTool(tool);
  if (foundTool || getReservedToolNames(server.config).has(tool)) return { server, tool: foundTool };
  const isDisabled = server.config.tools.some(({ name, disabled }) => name === tool && disabled);
  const name = JSON.stringify(tool);
  const detail = isDisabled
    ? `the tool ${name} is disabled; enable it first`
    : `the ${target.view === undefined ? 'server' : 'view'} has no tool ${name}${suggestNearestOrList(tool, server.toolNames, createSuggestionBudget())}`;
  throw new AppError('notFound', detail);
}

/** Returns the tool and the arguments inside a `call_tool`. */
function getInnerCall(server: HostedServer, { tool, args }: TestCall) {
  const inner = tool === searchToolNames.call ? server.getTool(String(args.name)) : undefined;
  return inner && { tool: inner, args: coerceObject(args.arguments) ?? {} };
}

/** Rejects a try-out that lacks the token it needs. It is not a call and leaves no record. @throws AppError invalid */
function checkToken(server: HostedServer, tool: HostedTool, callerToken: string | undefined): void {
  if (callerToken !== undefined || acceptsKeys(server) || tool.request.credentials.length === 0) return;
  throw new AppError('invalid', "token: this server forwards the caller's token; provide one to try the tool", {
    problems: [{ path: 'token', message: "this server forwards the caller's token; provide one to try the tool" }],
  });
}

/**
 * Maximum size of a result that is shown completely, in bytes of its JSON. Parsing and serializing that much takes a
 * few milliseconds.
 */
const maxDisplayedBytes = 512 * 1024;

/** Maximum length of the text that is shown of a longer result, in characters. */
const maxDisplayedCharacters = 256 * 1024;

function toDisplayedResult(result: ToolResult): DisplayedResult {
  const { content: json, structured, isError } = result;
  const bytes = Buffer.byteLength(json);
  if (bytes + Buffer.byteLength(structured ?? '') > maxDisplayedBytes) {
    const left_out = `The result is ${bytes} bytes long. Only the first ${maxDisplayedCharacters} characters of its text are shown here, without structured content. An agent gets the complete result.`;
    return {
      is_error: isError,
      content: getStartOfContent(json),
      estimated_tokens: estimateResultTokens(result),
      left_out,
    };
  }
  const content = JSON.parse(String(json)) as ContentBlock[];
  return {
    is_error: isError,
    content,
    estimated_tokens: estimateContentTokens(content),
    ...(structured !== undefined && { structured_content: parseJson(String(structured)) }),
  };
}

/** Returns the texts at the start of the content, without half of a surrogate pair at the end. */
function getStartOfContent(json: JsonText): ContentBlock[] {
  let remaining = maxDisplayedCharacters;
  return getTextsAtStart(typeof json === 'string' ? Buffer.from(json) : json, maxDisplayedCharacters).flatMap(
    (text): ContentBlock[] => {
      if (remaining <= 0) return [];
      const isSplit = text.length > remaining && /[\ud800-\udbff]/.test(text.charAt(remaining - 1));
      const start = text.slice(0, isSplit ? remaining - 1 : remaining);
      remaining -= text.length;
      return [{ type: 'text', text: start }];
    },
  );
}
