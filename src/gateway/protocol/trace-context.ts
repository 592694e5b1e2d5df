import { headerValue } from '../../domain/credentials/credential.ts';
import type { RequestHeaders } from '../../domain/visit.ts';

const traceparentPattern = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const tracestatePattern = /^[\x20-\x7e]{1,512}$/;

/** W3C trace context from `_meta` (SEP-414), or else from the headers; invalid values are dropped. */
export function traceContext(
  headers: RequestHeaders,
  meta: unknown,
): { traceparent: string | undefined; tracestate: string | undefined } {
  const fields = typeof meta === 'object' && meta !== null ? (meta as Record<string, unknown>) : {};
  const fromMeta = fields.traceparent;
  const traceparent = fromMeta ?? headerValue(headers, 'traceparent');
  if (typeof traceparent !== 'string' || !traceparentPattern.test(traceparent))
    return { traceparent: undefined, tracestate: undefined };
  const state = fromMeta === undefined ? headerValue(headers, 'tracestate') : fields.tracestate;
  return { traceparent, tracestate: typeof state === 'string' && tracestatePattern.test(state) ? state : undefined };
}
