import { AppError, outcomes } from '@toolhost/errors/errors';
import { parseJson } from '@toolhost/json/json';
import { type CallerKind, callerKinds } from '@toolhost/tool-config/server-wide';
import { z } from 'zod';
import type { RecordedModel } from '../../model.ts';
import { type CallRecord, callIdPrefix } from '../../store/calls/call-writer.ts';
import { type CallFilter, findCall, findCalls, maxCallsSearchedPerPage } from '../../store/calls/calls.ts';
import { type Capture, captureRetentionMs, findCapture, shortenableFields } from '../../store/calls/captures.ts';
import { decodeCursor, type Page } from '../../store/page.ts';
import { findActorNames } from '../actor-names.ts';
import { getServer } from '../find-server.ts';
import { type Context, operation } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import {
  actorName,
  nextCursor,
  pageInputs,
  parsePage,
  slugInput,
  time,
  toIsoTime,
  toolInput,
  viewInput,
} from '../shapes.ts';
import { formatRequest, formatResponse, requestShape, responseShape } from './captures.ts';
import { formatCsvLine, formatCsvLines } from './csv.ts';

const callRecord = z.object({
  id: z.string(),
  at: time,
  server: z.string().describe('Slug of the server.'),
  tool: z.string(),
  outcome: z.enum(outcomes),
  caller_kind: z
    .enum(callerKinds)
    .describe(
      'How the caller was authenticated. A try_out is a trial call with callTool, from the dashboard or a managing agent; a playground call is a model request with askModel.',
    ),
  key_id: z
    .string()
    .optional()
    .describe('ID of the API key or of the grant of a login. For a trial call, ID of the key or user that made it.'),
  upstream_host: z.string().optional(),
  upstream_status: z.int().optional(),
  duration_ms: z.int(),
  upstream_ms: z.int().optional(),
  bytes_in: z.int(),
  bytes_out: z.int(),
  request_id: z.string(),
  reason: z
    .string()
    .optional()
    .describe(
      'Reason why the call failed: the argument and its allowed values, the status and type of the response, or the unreachable host. Never contains argument values or text from the API.',
    ),
  estimated_tokens: z
    .int()
    .optional()
    .describe(
      'Estimated tokens of the text that the agent got, at four characters per token; absent if it got no text.',
    ),
  view: z.string().optional().describe('View that was called; absent for a call at the URL of the server.'),
  model: z.string().optional().describe('Model of a model request; absent for a tool call.'),
  input_tokens: z.int().optional().describe('Input tokens, as counted by the model host.'),
  output_tokens: z.int().optional().describe('Output tokens, as counted by the model host.'),
  upstream_requests: z
    .int()
    .optional()
    .describe(
      'Number of upstream requests, for example two if a token was refreshed; absent if there was at most one.',
    ),
});
nameSchema('Call', callRecord);

function toRecord(row: CallRecord): z.input<typeof callRecord> {
  return {
    id: row.id,
    at: toIsoTime(row.started_at),
    server: row.slug,
    tool: row.tool,
    outcome: row.outcome,
    caller_kind: row.caller_kind as CallerKind,
    ...(row.key_id !== null && { key_id: row.key_id }),
    ...(row.upstream_host !== null && { upstream_host: row.upstream_host }),
    ...(row.upstream_status !== null && { upstream_status: row.upstream_status }),
    duration_ms: row.duration_ms,
    ...(row.upstream_ms !== null && { upstream_ms: row.upstream_ms }),
    bytes_in: row.bytes_in,
    bytes_out: row.bytes_out,
    request_id: row.id.slice(callIdPrefix.length),
    ...(row.reason !== null && { reason: row.reason }),
    ...(row.estimated_tokens !== null && { estimated_tokens: row.estimated_tokens }),
    ...(row.view !== null && { view: row.view }),
    ...(row.model !== null && toModelFields(row.model)),
    ...(row.upstream_requests !== null && { upstream_requests: row.upstream_requests }),
  };
}

function toModelFields(json: string) {
  const { name: model, ...tokens } = JSON.parse(json) as RecordedModel;
  return { model, ...tokens };
}

const filters = {
  view: viewInput.optional().describe('Only calls of this view.'),
  tool: toolInput.optional(),
  outcome: z
    .enum([...outcomes, 'failed'])
    .optional()
    .describe('failed matches any outcome except ok.'),
  caller_kind: z.enum(callerKinds).optional().describe('Only calls of this kind of caller.'),
  key_id: z.string().max(100).optional().describe('Only calls with this API key.'),
  since: z.iso.datetime().optional().describe('Only calls at or after this time.'),
  until: z.iso.datetime().optional().describe('Only calls before this time.'),
};

type CallQuery = z.output<z.ZodObject<typeof filters>> & { slug?: string | undefined };

/** Finds the requested calls that the actor may see, newest first. */
async function findVisibleCalls(context: Context, query: CallQuery, page: Page) {
  const { servers } = context.actor;
  const slug = query.slug ?? (servers?.length === 1 ? servers[0] : undefined);
  const filter: CallFilter = {
    ...(slug === undefined ? servers && { slugs: servers } : { slug }),
    ...(query.view !== undefined && { view: query.view }),
    ...(query.tool !== undefined && { tool: query.tool }),
    ...(query.outcome !== undefined && { outcome: query.outcome }),
    ...(query.caller_kind !== undefined && { callerKind: query.caller_kind }),
    ...(query.key_id !== undefined && { keyId: query.key_id }),
    ...(query.since !== undefined && { since: Date.parse(query.since) }),
    ...(query.until !== undefined && { until: Date.parse(query.until) }),
  };
  return findCalls(context.db, context.actor.workspaceId, filter, page);
}

const listCalls = operation({
  name: 'listCalls',
  summary: 'List the calls of the workspace, newest first',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: true,
  input: z.strictObject({ slug: slugInput.optional(), ...filters, ...pageInputs }),
  output: z.object({
    calls: z.array(callRecord),
    next_cursor: nextCursor,
    searched_to: time
      .optional()
      .describe(
        `Time back to which calls were searched. A page searches at most ${maxCallsSearchedPerPage} calls, so it may contain few matches or none if the filter is rare. next_cursor continues from this time.`,
      ),
  }),
  async run(context, input) {
    await context.serving?.flushCalls();
    const { rows, next, searchedTo } = await findVisibleCalls(context, input, parsePage(input));
    return {
      calls: rows.map(toRecord),
      next_cursor: next,
      ...(searchedTo !== undefined && { searched_to: toIsoTime(searchedTo) }),
    };
  },
});

const listServerCalls = operation({
  name: 'listServerCalls',
  summary: 'List the calls of one hosted server, newest first',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({ slug: slugInput, ...filters, ...pageInputs }),
  output: listCalls.output,
  run: async (context, input) => {
    await getServer(context, String(input.slug));
    return listCalls.run(context, input);
  },
});

/** Maximum number of calls in an exported file. */
export const maxExported = 10_000;
/** Number of rows that are formatted as CSV before yielding to the event loop, so that calls can run in between. */
const rowsPerChunk = 500;
/** Maximum number of pages of calls that an export with a filter searches. */
const maxSearches = 6;

const exportCalls = operation({
  name: 'exportCalls',
  summary: 'Export the calls of the workspace as a CSV file, newest first',
  description: `The file contains at most the newest ${maxExported} calls. With a rare filter, it contains matches among the newest ${maxSearches * maxCallsSearchedPerPage} calls. Use since and until to export others.`,
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({ slug: slugInput.optional(), ...filters }),
  output: z.object({
    csv: z.string().describe('Content of the file. The REST API returns only the file, as text/csv.'),
  }),
  file: { mediaType: 'text/csv; charset=utf-8', name: 'calls.csv', toText: ({ csv }) => csv },
  async run(context, input) {
    await context.serving?.flushCalls();
    const columns = Object.keys(callRecord.shape);
    const csvChunks = [formatCsvLine(columns)];
    let [exported, searches] = [0, 0];
    let after: Page['after'];
    do {
      const limit = Math.min(rowsPerChunk, maxExported - exported);
      const { rows, next, searchedTo } = await findVisibleCalls(context, input, { limit, after });
      csvChunks.push(formatCsvLines(columns, rows.map(toRecord)));
      exported += rows.length;
      if (searchedTo !== undefined) searches += 1;
      after = next === undefined ? undefined : decodeCursor(next);
    } while (after && exported < maxExported && searches < maxSearches);
    return { csv: csvChunks.join('') };
  },
});

const captureShape = z.object({
  expires_at: time.describe('Time when the capture is deleted at the latest.'),
  arguments: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Arguments of the call; absent if they are longer than 32 KiB or are listed in shortened.'),
  arguments_bytes: z.int(),
  request: requestShape.request
    .optional()
    .describe('Upstream request; absent if the call was refused before the request was built.'),
  curl: requestShape.curl.optional(),
  response: responseShape.optional().describe('Upstream response; absent if the upstream did not respond.'),
  result: z
    .object({
      is_error: z.boolean(),
      text: z.string().optional().describe('First 8 KiB of the text; absent if the result begins with a large file.'),
      bytes: z.int().describe('Size of the complete result.'),
    })
    .optional()
    .describe('Result that the caller got. Its size in tokens is estimated_tokens of the call.'),
  shortened: z
    .array(z.enum(shortenableFields))
    .max(shortenableFields.length)
    .optional()
    .describe('Parts that were shortened, because a capture is limited to 64 KiB.'),
});
nameSchema('Capture', captureShape);

const getCall = operation({
  name: 'getCall',
  summary: 'Get the record of a call, including its request and response if it was captured',
  description: 'Credentials are masked in the request and redacted everywhere else.',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({
    id: z.string().min(1).max(200).describe('ID of the call (call_…).'),
    slug: slugInput.optional(),
  }),
  output: z.object({ call: callRecord, caller_name: actorName, capture: captureShape.optional() }),
  async run(context, { id, slug }) {
    await context.serving?.flushCalls();
    const { db, actor, keyring } = context;
    const row = await findCall(db, actor.workspaceId, id);
    const visible = slug === undefined ? actor.servers : [slug];
    if (!row || (visible && !visible.includes(row.slug)))
      throw new AppError(
        'notFound',
        'there is no such call in this workspace; call records are deleted after their retention period',
      );
    const document = await findCapture(db, keyring, { workspaceId: actor.workspaceId, callId: id }, context.now());
    const names = await findActorNames(context, row.key_id === null ? [] : [row.key_id]);
    return {
      call: toRecord(row),
      caller_name: row.key_id === null ? undefined : names.get(row.key_id),
      ...(document !== undefined && { capture: formatCapture(document, row.started_at) }),
    };
  },
});

function formatCapture(document: string, at: number): z.input<typeof captureShape> {
  const { argumentsBytes, arguments: args, request, response, result, shortened } = parseJson(document) as Capture;
  return {
    expires_at: toIsoTime(at + captureRetentionMs),
    ...(args && { arguments: args }),
    arguments_bytes: argumentsBytes,
    ...(request && formatRequest(request)),
    ...(response && { response: formatResponse(response) }),
    ...(result && {
      result: {
        is_error: result.isError,
        ...(result.text !== undefined && { text: result.text }),
        bytes: result.bytes,
      },
    }),
    ...(shortened && { shortened }),
  };
}

export const callRecordOperations = { listCalls, listServerCalls, exportCalls, getCall };
