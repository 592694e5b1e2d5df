import { z } from 'zod';
import { tokensOfLength } from '../../domain/pieces/tokens.ts';
import type { CapturedResponse } from '../../store/calls/captures.ts';
import { headersShape } from './shown-request.ts';

/** The answer of an upstream as people and agents see it. */
export const responseShape = z.object({
  status: z.int(),
  headers: headersShape,
  body: z.string().optional().describe('The first 8 KiB; absent when it is not text.'),
  body_bytes: z.int().describe('Size of the whole body.'),
  estimated_tokens: z
    .int()
    .optional()
    .describe('What the whole body would cost a model, at four characters each; absent when it is not text.'),
});

export function shownResponse({ status, headers, body, bodyBytes }: CapturedResponse): z.input<typeof responseShape> {
  return {
    status,
    headers,
    ...(body !== undefined && { body, estimated_tokens: tokensOfLength(bodyBytes) }),
    body_bytes: bodyBytes,
  };
}
