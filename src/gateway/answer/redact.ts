import { encode } from '../../domain/http/percent-encoding.ts';

/** Forms in which an upstream may echo a credential; very short ones would match ordinary text. */
function formsOf(value: string): string[] {
  if (value.length < 4) return [];
  // The token of type Basic is the base64 of user:password, and that is what an upstream would echo.
  const decoded = Buffer.from(value, 'base64').toString('latin1');
  const isPair = /^[\x20-\x7e]+:[\x20-\x7e]+$/.test(decoded);
  const forms = [value, encode(value), Buffer.from(value).toString('base64'), JSON.stringify(value).slice(1, -1)];
  return isPair ? [...forms, decoded] : forms;
}

/** Removes credentials from texts. */
export type Redactor = {
  text(text: string): string;
  /** Length of the longest form of a credential, 1 at least. */
  longest: number;
};

/** A redactor is prepared once for many texts. */
export function redactor(sensitive: readonly string[]): Redactor {
  // One credential may begin with another. Replacing the shorter one first would leave the rest of the longer.
  const forms = [...new Set(sensitive.flatMap(formsOf))].sort((a, b) => b.length - a.length);
  return {
    longest: Math.max(1, forms[0]?.length ?? 0),
    text(text) {
      let clean = text;
      for (const form of forms) {
        if (form.length <= clean.length) clean = clean.replaceAll(form, '[redacted]');
      }
      return clean;
    },
  };
}

/** Removes the credentials of a call from a text. */
export function redact(text: string, sensitive: readonly string[]): string {
  return redactor(sensitive).text(text);
}

/**
 * The first `limit` bytes of a long text without credentials, and without the beginning of one at the cut. Reads only a
 * few times `limit`, however long the text is.
 */
export function redactedStart(text: Buffer, limit: number, redact: Redactor): string {
  const looked = limit + redact.longest * 4;
  const clean = redact.text(text.toString('utf8', 0, looked));
  return cut(text.length > looked ? clean.slice(0, -redact.longest) : clean, limit);
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
