import { z } from 'zod';
import { looksLikeOurs } from '../domain/api-key.ts';
import { mask } from '../domain/server-config.ts';
import { encode } from '../domain/url-template.ts';
import { AppError, outcomes, Unauthenticated } from '../errors.ts';
import { listAuditEvents as findAuditEvents } from '../store/audit-events.ts';
import { type CallRecord, listCalls as findCalls } from '../store/calls.ts';
import { asCurl } from './as-curl.ts';
import { operation } from './operation.ts';
import {
  argumentsInput,
  getServer,
  isoTime,
  nextCursor,
  pageFrom,
  pageInputs,
  slugInput,
  time,
  toolInput,
} from './shapes.ts';

const callTool = operation({
  name: 'callTool',
  summary: 'Call a tool of a hosted server, to try it out',
  description: 'Sends the real upstream request. Where the server forwards the token of its caller, give that token.',
  scope: 'call',
  effect: 'call',
  route: { method: 'POST', path: '/servers/{slug}/tools/{tool}/call' },
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    tool: toolInput,
    arguments: argumentsInput,
    token: z
      .string()
      .min(1)
      .max(8192)
      .regex(/^[\x21-\x7e]+$/, 'allowed: visible characters without spaces')
      .refine((token) => !looksLikeOurs(token), 'is a key of this service, which is never sent to an upstream')
      .optional()
      .describe('Token of the upstream, for servers that forward the token of their caller.'),
  }),
  output: z.object({
    is_error: z.boolean(),
    content: z.unknown().describe('Content blocks, as the agent gets them.'),
    structured_content: z.unknown().optional(),
  }),
  async run(context, { slug, tool, arguments: args, token }) {
    await getServer(context, slug);
    try {
      return await context.callTool({ slug, tool, args, token, requestId: context.requestId });
    } catch (error) {
      // It is the given token that the upstream refuses, not the credential of who asks us.
      if (error instanceof Unauthenticated) throw new AppError('invalid', error.message);
      throw error;
    }
  },
});

const previewToolCall = operation({
  name: 'previewToolCall',
  summary: 'Show the exact upstream request of a tool call, credentials masked; nothing is sent',
  scope: 'manage:read',
  effect: 'read',
  route: { method: 'POST', path: '/servers/{slug}/tools/{tool}/preview' },
  isTool: true,
  input: z.strictObject({ slug: slugInput, tool: toolInput, arguments: argumentsInput }),
  output: z.object({
    request: z.object({
      method: z.string(),
      url: z.string(),
      headers: z.array(z.tuple([z.string(), z.string()])),
      body: z.string().optional(),
    }),
    curl: z.string().describe(`The same as a command line; ${mask} stands for credentials.`),
  }),
  async run(context, { slug, tool, arguments: args }) {
    await getServer(context, slug);
    const built = await context.previewCall(slug, tool, args);
    // In a query the mask comes encoded, which nobody would recognise.
    const request = { ...built, path: built.path.replaceAll(encode(mask), mask) };
    const headers: [string, string][] = [];
    for (let i = 0; i < request.headers.length; i += 2)
      headers.push([request.headers[i] as string, request.headers[i + 1] as string]);
    const body =
      typeof request.body === 'object'
        ? request.body.fields.map(([name, value]) => `${name}=${value}`).join('\n')
        : request.body;
    return {
      request: {
        method: request.method,
        url: request.origin + request.path,
        headers,
        ...(body !== undefined && { body }),
      },
      curl: asCurl(request),
    };
  },
});

const callRecord = z.object({
  id: z.string(),
  at: time,
  server: z.string().describe('Slug.'),
  tool: z.string(),
  outcome: z.enum(outcomes),
  caller_kind: z.string(),
  key_id: z.string().optional(),
  upstream_host: z.string().optional(),
  upstream_status: z.int().optional(),
  duration_ms: z.int(),
  upstream_ms: z.int().optional(),
  bytes_in: z.int(),
  bytes_out: z.int(),
  request_id: z.string(),
});

function toRecord(row: CallRecord): z.input<typeof callRecord> {
  return {
    id: row.id,
    at: isoTime(row.started_at),
    server: row.slug,
    tool: row.tool,
    outcome: row.outcome,
    caller_kind: row.caller_kind,
    ...(row.key_id !== null && { key_id: row.key_id }),
    ...(row.upstream_host !== null && { upstream_host: row.upstream_host }),
    ...(row.upstream_status !== null && { upstream_status: row.upstream_status }),
    duration_ms: row.duration_ms,
    ...(row.upstream_ms !== null && { upstream_ms: row.upstream_ms }),
    bytes_in: row.bytes_in,
    bytes_out: row.bytes_out,
    request_id: row.request_id,
  };
}

const filters = {
  tool: toolInput.optional(),
  outcome: z.enum(outcomes).optional().describe('How the call ended.'),
  key_id: z.string().max(100).optional().describe('Only calls made with this API key.'),
  since: z.iso.datetime().optional().describe('Only calls that started at this time or later.'),
  ...pageInputs,
};

const listCalls = operation({
  name: 'listCalls',
  summary: 'List the calls of the workspace, newest first',
  scope: 'manage:read',
  effect: 'read',
  route: { method: 'GET', path: '/calls' },
  isTool: true,
  input: z.strictObject({ slug: slugInput.optional(), ...filters }),
  output: z.object({ calls: z.array(callRecord), next_cursor: nextCursor }),
  async run(context, input) {
    await context.flushCalls();
    const { rows, next } = await findCalls(
      context.db,
      context.actor.workspaceId,
      {
        ...(input.slug !== undefined && { slug: input.slug }),
        ...(context.actor.servers && { slugs: context.actor.servers }),
        ...(input.tool !== undefined && { tool: input.tool }),
        ...(input.outcome !== undefined && { outcome: input.outcome }),
        ...(input.key_id !== undefined && { keyId: input.key_id }),
        ...(input.since !== undefined && { since: Date.parse(input.since) }),
      },
      pageFrom(input),
    );
    return { calls: rows.map(toRecord), next_cursor: next };
  },
});

const listServerCalls = operation({
  name: 'listServerCalls',
  summary: 'List the calls of one hosted server, newest first',
  scope: 'manage:read',
  effect: 'read',
  route: { method: 'GET', path: '/servers/{slug}/calls' },
  isTool: false,
  input: z.strictObject({ slug: slugInput, ...filters }),
  output: listCalls.output,
  run: async (context, input) => {
    await getServer(context, String(input.slug));
    return listCalls.run(context, input);
  },
});

const auditRecord = z.object({
  id: z.string(),
  at: time,
  actor_kind: z.string(),
  actor_id: z.string(),
  operation: z.string(),
  target: z.string().optional(),
  detail: z.record(z.string(), z.unknown()),
  request_id: z.string(),
});

const listAuditEvents = operation({
  name: 'listAuditEvents',
  summary: 'List who changed what in the workspace, newest first',
  scope: 'manage:read',
  effect: 'read',
  route: { method: 'GET', path: '/audit' },
  isTool: false,
  input: z.strictObject(pageInputs),
  output: z.object({ events: z.array(auditRecord), next_cursor: nextCursor }),
  async run(context, input) {
    const { rows, next } = await findAuditEvents(context.db, context.actor.workspaceId, pageFrom(input));
    const events = rows.map(({ at, detail, target, workspace_id: _, ...row }) => ({
      ...row,
      at: isoTime(at),
      ...(target !== null && { target }),
      detail: JSON.parse(detail) as Record<string, unknown>,
    }));
    return { events, next_cursor: next };
  },
});

export const callOperations = [callTool, previewToolCall, listCalls, listServerCalls, listAuditEvents];
