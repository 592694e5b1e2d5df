import { z } from 'zod';
import { mask } from '../../domain/config/server-config.ts';
import { encode } from '../../domain/http/values.ts';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import {
  type ReadableBody,
  type ReadablePart,
  type ReadableRequest,
  readableBody,
  type UpstreamRequest,
} from '../../domain/request/upstream-request.ts';
import { upstreamCurl } from '../../domain/snippets/upstream-curl.ts';
import { type CapturedResponse, capturesPerServer, capturesPerWorkspace } from '../../store/calls/captures.ts';
import { setCapture } from '../../store/servers/servers.ts';
import { operation } from '../operation.ts';
import { nameSchema } from '../schema-names.ts';
import { noteChange } from '../servers/store-server.ts';
import { getServer, isCaptured, isoTime, isUnchanged, slugInput, time, unchangedShape } from '../shapes.ts';

const hourMs = 60 * 60_000;

const captureCalls = operation({
  name: 'captureCalls',
  summary: 'Capture requests and responses of the calls of a hosted server for up to 24 hours',
  description: `getCall shows captures, without credentials, for at most a day: the newest ${capturesPerServer} per server and ${capturesPerWorkspace} per workspace.`,
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
    await noteChange(context, server);
    return { slug, ...(until !== undefined && { capture_until: isoTime(until) }) };
  },
  isUnchanged,
  audit: ({ slug, hours }) => ({ target: slug, detail: { hours } }),
});

const header = z.tuple([z.string(), z.string()]);
const mostHeaders = 300;
const headersShape = z.array(header).max(mostHeaders).describe('Headers, each as name and value.');

/** Maximum number of body characters that are shown: Linux limits an argument to 128 KiB (execve(2)). */
const mostOfBody = 100_000;

/** Shape of an upstream request as people and agents see it. */
export const requestShape = {
  request: z.object({
    method: z.string(),
    url: z.string(),
    headers: headersShape,
    body: z
      .string()
      .optional()
      .describe(`Body; a longer one is cut to its first ${mostOfBody} characters, followed by its length.`),
  }),
  curl: z
    .string()
    .describe(
      `Equivalent curl command. ${mask} stands for credentials. A body that is too long for a command line is read from a file.`,
    ),
};

nameSchema('UpstreamRequest', requestShape.request);

const shown = z.object(requestShape);

export function shownRequest(built: UpstreamRequest | ReadableRequest): z.input<typeof shown> {
  // Decoded, because people would not recognize the encoded mask in a query.
  const path = built.path.replaceAll(encode(mask), mask);
  const request: ReadableRequest = { ...built, path, body: readableBody(built.body) };
  const headers: [string, string][] = [];
  for (let i = 0; i < Math.min(request.headers.length, 2 * mostHeaders); i += 2)
    headers.push([request.headers[i] as string, request.headers[i + 1] as string]);
  const { body, isWhole } = shownBody(request.body);
  return {
    request: {
      method: request.method,
      url: request.origin + request.path,
      headers,
      ...(body !== undefined && { body }),
    },
    curl: upstreamCurl(request, isWhole),
  };
}

function shownBody(body: ReadableBody | undefined): { body: string | undefined; isWhole: boolean } {
  if (typeof body === 'object' && 'byteCount' in body) return { body: `(${body.byteCount} bytes)`, isWhole: true };
  const text = typeof body === 'object' ? linesOf(body.fields) : body;
  if (text === undefined || text.length <= mostOfBody) return { body: text, isWhole: true };
  const size = typeof body === 'object' ? `${body.fields.length} fields` : `${text.length} characters`;
  return { body: `${text.slice(0, mostOfBody).toWellFormed()}\n… (${size} in total)`, isWhole: false };
}

/** Formats the first fields up to the limit, and one more to show that there are others. */
function linesOf(fields: readonly ReadablePart[]): string {
  const lines: string[] = [];
  let length = 0;
  for (const [name, text, of] of fields) {
    if (length > mostOfBody) break;
    const about = [of?.fileName, of?.mediaType].filter((one) => one !== undefined);
    const line = `${name}${about.length > 0 ? ` (${about.join(', ')})` : ''}=${text}`;
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

export function shownResponse({ status, headers, body, bodyBytes }: CapturedResponse): z.input<typeof responseShape> {
  return {
    status,
    headers,
    ...(body !== undefined && { body, estimated_tokens: tokensOfLength(bodyBytes) }),
    body_bytes: bodyBytes,
  };
}

export const captureOperations = { captureCalls };
