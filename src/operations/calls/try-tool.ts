import { z } from 'zod';
import { toolModes } from '../../domain/config/tool.ts';
import { covers } from '../../domain/credentials/credential.ts';
import { holdsOurCredential } from '../../domain/credentials/own-credentials.ts';
import type { ContentBlock } from '../../domain/mcp.ts';
import { AppError, Unauthenticated } from '../../errors.ts';
import { eventsSearchedAtOnce, findAuditEvents } from '../../store/audit-events.ts';
import { namesFor, seesPeople } from '../names.ts';
import { operation, servingOf } from '../operation.ts';
import { actorNow } from '../run-operation.ts';
import { nameSchema } from '../schema-names.ts';
import { olderVersion } from '../servers/versions.ts';
import {
  actorName,
  argumentsInput,
  getServer,
  isoTime,
  nextCursor,
  pageFrom,
  pageInputs,
  slugInput,
  time,
  toolInput,
  viewInput,
} from '../shapes.ts';
import { callRecordOperations } from './call-records.ts';
import { requestShape, responseShape, shownRequest, shownResponse } from './captures.ts';

const triedView = viewInput.optional().describe('A view, as agents get it there.');

const callTool = operation({
  name: 'callTool',
  summary: 'Call a tool of a hosted server, to try it out',
  description: 'Sends the real upstream request.',
  scope: 'call',
  effect: 'call',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    view: triedView,
    mode: z.enum(toolModes).optional().describe('As with this tool_mode.'),
    version: z.int().min(1).optional().describe('An older version.'),
    tool: toolInput,
    arguments: argumentsInput,
    token: z
      .string()
      .min(1)
      .max(8192)
      .regex(/^[\x21-\x7e]+$/, 'allowed: visible characters without spaces')
      .refine((token) => !holdsOurCredential(token), 'is a key of this service, which is never sent to an upstream')
      .optional()
      .describe('Token of the API, where the server forwards it.'),
  }),
  output: z.object({
    is_error: z.boolean(),
    content: z.custom<ContentBlock[]>().describe('Content blocks, as the agent gets them.'),
    structured_content: z.unknown().optional(),
    left_out: z.string().optional().describe('Says of a long result what is not shown here; an agent gets all of it.'),
    call_id: z.string().optional().describe('Id of the record, for getCall.'),
    timing: z.object({
      total_ms: z.int(),
      upstream_ms: z.int().optional().describe('Of it, waiting for the upstream; absent when nothing was sent.'),
    }),
    estimated_tokens: z.int().describe('About what the text of the result costs a model.'),
    request: requestShape.request
      .optional()
      .describe('The upstream request, credentials masked; absent when the arguments become none.'),
    curl: requestShape.curl.optional(),
    response: responseShape.optional().describe('What the upstream answered, without credentials.'),
  }),
  async run(context, { slug, view, mode, version, tool, arguments: args, token }) {
    const older = await olderVersion(context, await getServer(context, slug), version);
    let ended: unknown;
    const checkActor = async () => {
      try {
        await actorNow(context.db, context.actor, context.now());
      } catch (error) {
        ended = error;
        throw error;
      }
    };
    try {
      const { record, request, response, ...result } = await servingOf(context).callTool({
        slug,
        view,
        mode,
        older,
        tool,
        args,
        token,
        actorId: context.actor.id,
        limits: context.actor.callLimits,
        requestId: context.requestId,
        checkActor,
      });
      const upstreamMs = record?.upstream_ms ?? undefined;
      return {
        ...result,
        call_id: record?.id,
        timing: { total_ms: record?.duration_ms ?? 0, ...(upstreamMs !== undefined && { upstream_ms: upstreamMs }) },
        // A key with only the scope call sees the answer of a tool, not what went to the upstream and came from there.
        ...(covers(context.actor.scopes, 'manage:read') && {
          ...(request && shownRequest(request)),
          ...(response && { response: shownResponse(response) }),
        }),
      };
    } catch (error) {
      // The upstream refused the given token; the credential of the actor is fine, so the answer is not a 401.
      if (error instanceof Unauthenticated && error !== ended) throw new AppError('invalid', error.message);
      throw error;
    }
  },
});

const previewToolCall = operation({
  name: 'previewToolCall',
  summary: 'Show the exact upstream request of a tool call, credentials masked; nothing is sent',
  scope: 'manage:read',
  effect: 'read',
  isTool: true,
  input: z.strictObject({ slug: slugInput, view: triedView, tool: toolInput, arguments: argumentsInput }),
  output: z.object({
    ...requestShape,
    refused: z
      .string()
      .optional()
      .describe('Why the call would be refused instead of sent, for example a secret that may not go to this host.'),
  }),
  async run(context, { slug, view, tool, arguments: args }) {
    await getServer(context, slug);
    const { request, refused } = await servingOf(context).previewCall({ slug, view, tool }, args);
    return { ...shownRequest(request), ...(refused !== undefined && { refused }) };
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
      'What a key, a person or the client of a login that it is about is called; programs get no names of people.',
    ),
  detail: z.record(z.string(), z.unknown()),
  request_id: z.string(),
});
nameSchema('AuditEvent', auditRecord);

const listAuditEvents = operation({
  name: 'listAuditEvents',
  summary: 'List who changed what in the workspace, newest first',
  scope: 'manage:read',
  effect: 'read',
  isReport: true,
  isTool: false,
  input: z.strictObject({
    actor_id: z.string().max(100).optional().describe('Only changes by this person or API key.'),
    operation: z.string().max(100).optional().describe('Only changes by this operation, such as createApiKey.'),
    target: z.string().max(300).optional().describe('Only changes of this, such as the slug of a server.'),
    since: z.iso.datetime().optional().describe('Only changes at this time or later.'),
    until: z.iso.datetime().optional().describe('Only changes before this time.'),
    ...pageInputs,
  }),
  output: z.object({
    events: z.array(auditRecord),
    next_cursor: nextCursor,
    searched_to: time
      .optional()
      .describe(
        `Where a filter is rare, a page may have few changes or none: only ${eventsSearchedAtOnce} are looked through for it, back to this time. next_cursor goes on before it.`,
      ),
  }),
  async run(context, input) {
    const { actor_id: actorId, operation: name, target: wanted, since, until } = input;
    const { rows, next, searchedTo } = await findAuditEvents(context.db, context.actor.workspaceId, {
      ...pageFrom(input),
      actorId,
      operation: name,
      target: wanted,
      since: since === undefined ? undefined : Date.parse(since),
      until: until === undefined ? undefined : Date.parse(until),
    });
    const ids = rows.flatMap((row) => [row.actor_id, row.target ?? '']);
    const names = await namesFor(context, ids);
    const events = rows.map(({ at, detail: text, target, workspace_id: _, ...row }) => {
      const { people, ...others } = JSON.parse(text) as Record<string, unknown>;
      const detail = seesPeople(context.actor) ? { ...others, ...(people as object | undefined) } : others;
      const client = row.actor_kind === 'client' && typeof detail.client === 'string' ? detail.client : undefined;
      const name = names.get(row.actor_id) ?? client;
      const targetName = names.get(target ?? '');
      return {
        ...row,
        at: isoTime(at),
        ...(name !== undefined && { actor_name: name }),
        ...(target !== null && { target }),
        ...(targetName !== undefined && { target_name: targetName }),
        detail,
      };
    });
    return { events, next_cursor: next, ...(searchedTo !== undefined && { searched_to: isoTime(searchedTo) }) };
  },
});

export const callOperations = { callTool, previewToolCall, ...callRecordOperations, listAuditEvents };
