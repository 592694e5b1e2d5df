import { percentEncode } from '@toolhost/tool-config/http/values';
import {
  type ReadableBody,
  type ReadablePart,
  type ReadableRequest,
  toReadableBody,
  type UpstreamRequest,
} from '@toolhost/tool-config/request/upstream-request';
import { mask } from '@toolhost/tool-config/server-config';
import { estimateTokenCount } from '@toolhost/tool-config/tokens';
import { z } from 'zod';
import { toUpstreamCurl } from '../../snippets/upstream-curl.ts';
import { type CapturedResponse, maxCapturesPerServer, maxCapturesPerWorkspace } from '../../store/calls/captures.ts';
import { setCapture } from '../../store/servers/servers.ts';
import { getServer } from '../find-server.ts';
import { operation } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import { publishChange } from '../servers/store-server.ts';
import { isCaptured, isUnchanged, slugInput, time, toIsoTime, unchangedShape } from '../shapes.ts';

const hourMs = 60 * 60_000;

const captureCalls = operation({
  name: 'captureCalls',
  summary: 'Capture requests and responses of the calls of a hosted server for up to 24 hours',
  description: `getCall shows captures, without credentials, for at most a day: the newest ${maxCapturesPerServer} per server and ${maxCapturesPerWorkspace} per workspace.`,
  scope: 'manage:write',
  effect: 'write',
  isTool: true,
  input: z.strictObject({
    slug: slugInput,
    hours: z.int().min(0).max(24).describe('Hours to capture from now; 0 stops capturing.'),
  }),
  output: z.object({
    slug: z.string(),
    capture_until: time.optional().describe('Time when capturing ends; absent if nothing is captured.'),
    unchanged: unchangedShape,
  }),
  async run(context, { slug, hours }) {
    const server = await getServer(context, slug);
    if (hours === 0 && !isCaptured(server, context.now())) return { slug, unchanged: true as const };
    const until = hours === 0 ? undefined : context.now() + hours * hourMs;
    await setCapture(context.db, server, until);
    await publishChange(context, server);
    return { slug, ...(until !== undefined && { capture_until: toIsoTime(until) }) };
  },
  isUnchanged,
  audit: ({ slug, hours }) => ({ target: slug, detail: { hours } }),
});

const header = z.tuple([z.string(), z.string()]);
const maxHeaders = 300;
const headersShape = z.array(header).max(maxHeaders).describe('Headers, each as name and value.');

/** Maximum number of body characters, which are an argument of curl: Linux limits one to 128 KiB (execve(2)). */
const maxBodyLength = 100_000;

/** Shape of an upstream request as people and agents see it. */
export const requestShape = {
  request: z.object({
    method: z.string(),
    url: z.string(),
    headers: headersShape,
    body: z
      .string()
      .optional()
      .describe(`Body; a longer one is cut to its first ${maxBodyLength} characters, followed by its length.`),
  }),
  curl: z
    .string()
    .describe(
      `Equivalent curl command. ${mask} stands for credentials. A body that is too long for a command line is read from a file.`,
    ),
};

nameSchema('UpstreamRequest', requestShape.request);

const requestOutput = z.object(requestShape);

export function formatRequest(upstreamRequest: UpstreamRequest | ReadableRequest): z.input<typeof requestOutput> {
  // Decoded, because people would not recognize the encoded mask in a query.
  const path = upstreamRequest.path.replaceAll(percentEncode(mask), mask);
  const request: ReadableRequest = { ...upstreamRequest, path, body: toReadableBody(upstreamRequest.body) };
  const headers: [string, string][] = [];
  for (let i = 0; i < Math.min(request.headers.length, 2 * maxHeaders); i += 2)
    headers.push([request.headers[i] as string, request.headers[i + 1] as string]);
  const { body, isComplete } = formatBody(request.body);
  return {
    request: {
      method: request.method,
      url: request.origin + request.path,
      headers,
      ...(body !== undefined && { body }),
    },
    curl: toUpstreamCurl(request, isComplete),
  };
}

function formatBody(body: ReadableBody | undefined): { body: string | undefined; isComplete: boolean } {
  if (typeof body === 'object' && 'byteCount' in body) return { body: `(${body.byteCount} bytes)`, isComplete: true };
  const text = typeof body === 'object' ? formatFields(body.fields) : body;
  if (text === undefined || text.length <= maxBodyLength) return { body: text, isComplete: true };
  const size = typeof body === 'object' ? `${body.fields.length} fields` : `${text.length} characters`;
  return { body: `${text.slice(0, maxBodyLength).toWellFormed()}\n… (${size} in total)`, isComplete: false };
}

/** Formats the first fields up to the limit, and one more to show that there are others. */
function formatFields(fields: readonly ReadablePart[]): string {
  const lines: string[] = [];
  let length = 0;
  for (const [name, text, file] of fields) {
    if (length > maxBodyLength) break;
    const fileInfo = [file?.fileName, file?.mediaType].filter((value) => value !== undefined);
    const line = `${name}${fileInfo.length > 0 ? ` (${fileInfo.join(', ')})` : ''}=${text}`;
    length += line.length + 1;
    lines.push(line);
  }
  return lines.join('\n');
}

/** Shape of an upstream response as people and agents see it. */
export const responseShape = z.object({
  status: z.int(),
  headers: headersShape,
  body: z.string().optional().describe('First 8 KiB of the body; absent if it is not text.'),
  body_bytes: z.int().describe('Size of the complete body.'),
  estimated_tokens: z
    .int()
    .optional()
    .describe('Estimated tokens of the complete body, at four characters per token; absent if it is not text.'),
});
nameSchema('UpstreamResponse', responseShape);

export function formatResponse({ status, headers, body, bodyBytes }: CapturedResponse): z.input<typeof responseShape> {
  return {
    status,
    headers,
    ...(body !== undefined && { body, estimated_tokens: estimateTokenCount(bodyBytes) }),
    body_bytes: bodyBytes,
  };
}

export const captureOperations = { captureCalls };
