import type { Redactor } from '../../domain/credentials/redactor.ts';

/**
 * The first `limit` bytes of a long text without credentials, and without the beginning of one at the cut. Reads only a
 * few times `limit`, however long the text is.
 */
export function redactedStart(text: Buffer, limit: number, redact: Redactor): string {
  const { longest } = redact;
  const looked = limit + longest * 2;
  const clean = redact.text(text.toString('utf8', 0, looked));
  if (text.length <= looked) return cut(clean, limit);
  return cut(clean, Math.max(0, Math.min(limit, Buffer.byteLength(clean) - longest)));
}

/** The first `limit` bytes of a text, whole characters only. */
export function cut(text: string, limit: number): string {
  if (text.length * 3 <= limit) return text;
  // A character takes at least one byte.
  const bytes = Buffer.from(text.slice(0, limit + 1));
  if (bytes.length <= limit) return text;
  let end = limit;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
