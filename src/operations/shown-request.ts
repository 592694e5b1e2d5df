import { z } from 'zod';
import { encode } from '../domain/percent-encoding.ts';
import type { UpstreamRequest } from '../domain/request-template.ts';
import { mask } from '../domain/server-config.ts';
import { asCurl } from './as-curl.ts';

const header = z.tuple([z.string(), z.string()]);
const mostHeaders = 300;
export const headersShape = z.array(header).max(mostHeaders).describe('Name and value of each.');

/** An upstream request as people and agents see it. */
export const requestShape = {
  request: z.object({
    method: z.string(),
    url: z.string(),
    headers: headersShape,
    body: z.string().optional(),
  }),
  curl: z.string().describe(`The same as a command line; ${mask} stands for credentials.`),
};

const shown = z.object(requestShape);

export function shownRequest(built: UpstreamRequest): z.input<typeof shown> {
  // In a query the mask comes encoded, which nobody would recognise.
  const request = { ...built, path: built.path.replaceAll(encode(mask), mask) };
  const headers: [string, string][] = [];
  for (let i = 0; i < Math.min(request.headers.length, 2 * mostHeaders); i += 2)
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
}
