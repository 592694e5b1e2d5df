import { hasScope } from '@toolhost/credentials/credential';
import { containsOwnCredential } from '@toolhost/credentials/own-credentials';
import { AppError, Unauthenticated } from '@toolhost/errors/errors';
import type { ContentBlock } from '@toolhost/mcp-protocol/mcp';
import { toolModes } from '@toolhost/tool-config/tool';
import { z } from 'zod';
import { findAuditEvents, maxEventsSearchedPerPage } from '../../store/audit-events.ts';
import { canSeePeople, findActorNames } from '../actor-names.ts';
import { getServer } from '../find-server.ts';
import { operation, requireServing } from '../operation.ts';
import { refreshActor } from '../run-operation.ts';
import { nameSchema } from '../schema-names.ts';
import { getOlderVersion } from '../servers/versions.ts';
import {
  actorName,
  argumentsInput,
  nextCursor,
  pageInputs,
  parsePage,
  slugInput,
  time,
  toIsoTime,
  toolInput,
  viewInput,
} from '../shapes.ts';
import { callRecordOperations } from './call-records.ts';
import { formatRequest, formatResponse, requestShape, responseShape } from './captures.ts';

const trialViewInput = viewInput.optional().describe('View in which to call the tool.');

const callTool = operation({
  name: 'callTool',
  summary: 'Call a tool of a hosted server as a trial',
  description: 'Sends the real upstream request.',
  scope: 'call',
  effect: 'call',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    view: trialViewInput,
    mode: z.enum(toolModes).optional().describe('Replaces the configured tool_mode.'),
    version: z.int().min(1).optional().describe('Older version to use.'),
    tool: toolInput,
    arguments: argumentsInput,
    token: z
      .string()
      .min(1)
      .max(8192)
      .regex(/^[\x21-\x7e]+$/, 'allowed: visible characters without spaces')
      .refine(
        (token) => !containsOwnCredential(token),
        'is a Toolhost API key or token, which is never sent to an upstream; use a token of the API',
      )
      .optional()
      .describe('Upstream token of the caller, if the server forwards it.'),
  }),
  output: z.object({
    is_error: z.boolean(),
    content: z.custom<ContentBlock[]>().describe('Content blocks as the agent gets them.'),
    structured_content: z.unknown().optional(),
    left_out: z
      .string()
      .optional()
      .describe('Description of the part of a long result that is omitted here. An agent gets the complete result.'),
    call_id: z.string().optional().describe('ID of the call record, for getCall.'),
    timing: z.object({
      total_ms: z.int(),
      upstream_ms: z
        .int()
        .optional()
        .describe('Part of total_ms that was spent waiting for the upstream; absent if nothing was sent.'),
    }),
    estimated_tokens: z.int().describe('Estimated tokens of the text of the result.'),
    request: requestShape.request
      .optional()
      .describe('Upstream request with masked credentials; absent if the arguments do not produce one.'),
    curl: requestShape.curl.optional(),
    response: responseShape.optional().describe('Upstream response without credentials.'),
  }),
  async run(context, { slug, view, mode, version, tool, arguments: args, token }) {
    const olderVersion = await getOlderVersion(context, await getServer(context, slug), version);
    let actorError: unknown;
    const checkActor = async () => {
      try {
        await refreshActor(context.db, context.actor, context.now());
      } catch (error) {
        actorError = error;
        throw error;
      }
    };
    try {
      const { record, request, response, ...result } = await requireServing(context).callTool({
        slug,
        view,
        mode,
        olderVersion,
        tool,
        args,
        token,
        actorId: context.actor.id,
        userId: context.actor.userId,
        limitedKeys: context.actor.callLimits,
        requestId: context.requestId,
        checkActor,
      });
      const upstreamMs = record?.upstream_ms ?? undefined;
      return {
        ...result,
        call_id: record?.id,
        timing: { total_ms: record?.duration_ms ?? 0, ...(upstreamMs !== undefined && { upstream_ms: upstreamMs }) },
        // A key that has only the scope call sees the tool result, but not the upstream request and response.
        ...(hasScope(context.actor.scopes, 'manage:read') && {
          ...(request && formatRequest(request)),
          ...(response && { response: formatResponse(response) }),
        }),
      };
    } catch (error) {
      // The upstream refused the token from the input. The actor's own credential is valid, so the response is not a
      // 401.
      if (error instanceof Unauthenticated && error !== actorError) throw new AppError('invalid', error.message);
      throw error;
    }
  },
});

const previewToolCall = operation({
  name: 'previewToolCall',
  summary: 'Show the exact upstream request of a tool call with masked credentials, without sending it',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({ slug: slugInput, view: trialViewInput, tool: toolInput, arguments: argumentsInput }),
  output: z.object({
    ...requestShape,
    refused: z
      .string()
      .optional()
      .describe(
        'Reason why the call would be refused instead of sent, for example because a secret may not be sent to this host.',
      ),
  }),
  async run(context, { slug, view, tool, arguments: args }) {
    await getServer(context, slug);
    const { request, refusal } = await requireServing(context).previewCall({ slug, view, tool }, args);
    return { ...formatRequest(request), ...(refusal !== undefined && { refused: refusal }) };
  },
});

const auditRecord = z.object({
  id: z.string(),
  at: time,
  actor_kind: z.string(),
  actor_id: z.string(),
  actor_name: actorName,
  operation: z.string(),
  target: z.string().optional(),
  target_name: z
    .string()
    .optional()
    .describe(
      'Name of the target if it is a key, a person, or the client of a login. Programs never get names of people.',
    ),
  detail: z.record(z.string(), z.unknown()),
  request_id: z.string(),
});
nameSchema('AuditEvent', auditRecord);

const listAuditEvents = operation({
  name: 'listAuditEvents',
  summary: 'List the changes in the workspace and who made them, newest first',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({
    actor_id: z.string().max(100).optional().describe('Only changes by this person or API key.'),
    operation: z.string().max(100).optional().describe('Only changes by this operation, such as createApiKey.'),
    target: z.string().max(300).optional().describe('Only changes of this target, such as the slug of a server.'),
    since: z.iso.datetime().optional().describe('Only changes at or after this time.'),
    until: z.iso.datetime().optional().describe('Only changes before this time.'),
    ...pageInputs,
  }),
  output: z.object({
    events: z.array(auditRecord),
    next_cursor: nextCursor,
    searched_to: time
      .optional()
      .describe(
        `Time back to which changes were searched. A page searches at most ${maxEventsSearchedPerPage} changes, so it may contain few matches or none if the filter is rare. next_cursor continues from this time.`,
      ),
  }),
  async run(context, input) {
    const { actor_id: actorId, operation: name, target: targetFilter, since, until } = input;
    const { rows, next, searchedTo } = await findAuditEvents(context.db, context.actor.workspaceId, {
      ...parsePage(input),
      actorId,
      operation: name,
      target: targetFilter,
      since: since === undefined ? undefined : Date.parse(since),
      until: until === undefined ? undefined : Date.parse(until),
    });
    const ids = rows.flatMap((row) => [row.actor_id, row.target ?? '']);
    const names = await findActorNames(context, ids);
    const events = rows.map(({ at, detail: detailJson, target, workspace_id: _, ...row }) => {
      const { people: personalDetail, ...publicDetail } = JSON.parse(detailJson) as Record<string, unknown>;
      const detail = canSeePeople(context.actor)
        ? { ...publicDetail, ...(personalDetail as object | undefined) }
        : publicDetail;
      const client = row.actor_kind === 'client' && typeof detail.client === 'string' ? detail.client : undefined;
      const name = names.get(row.actor_id) ?? client;
      const targetName = names.get(target ?? '');
      return {
        ...row,
        at: toIsoTime(at),
        ...(name !== undefined && { actor_name: name }),
        ...(target !== null && { target }),
        ...(targetName !== undefined && { target_name: targetName }),
        detail,
      };
    });
    return { events, next_cursor: next, ...(searchedTo !== undefined && { searched_to: toIsoTime(searchedTo) }) };
  },
});

export const callOperations = { callTool, previewToolCall, ...callRecordOperations, listAuditEvents };
