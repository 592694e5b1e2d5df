import { boundFields } from '../../domain/answer-fields/field-use.ts';
import type { ReadablePart } from '../../domain/request/upstream-request.ts';
import type { Capture, ShortenedPart } from '../../store/calls/captures.ts';

/** Maximum length of a capture's JSON text, in bytes, including escapes. A control character takes six. */
export const longestCapture = 64 * 1024;
/** Space reserved for the list of shortened parts, in bytes. */
const roomForList = 200;

/** A capture whose arguments are JSON text. */
export type CaptureDraft = Omit<Capture, 'arguments' | 'shortened'>;

/**
 * Returns the JSON text of a capture. If it is too long, parts are shortened, starting with those whose data also
 * appears elsewhere in the capture. The start of each part always remains. Arguments are omitted only if all of that
 * was not enough.
 */
export function fitCapture(capture: CaptureDraft, args: string | undefined): string {
  const whole = written(capture, args);
  let surplus = Buffer.byteLength(whole) - longestCapture;
  if (surplus <= 0) return whole;
  surplus += roomForList;
  const shortened: ShortenedPart[] = [];
  for (const { name, least, value, shorten } of partsOf(capture)) {
    const bytes = bytesInJson(value());
    if (surplus <= 0 || bytes <= least) continue;
    shorten(Math.max(least, bytes - surplus));
    surplus -= bytes - bytesInJson(value());
    if (name !== undefined) shortened.push(name);
  }
  if (surplus <= 0 || args === undefined)
    return written({ ...capture, ...(shortened.length > 0 && { shortened }) }, args);
  return written({ ...capture, shortened: [...shortened, 'arguments'] }, undefined);
}

function written(capture: Omit<Capture, 'arguments'>, args: string | undefined): string {
  const rest = JSON.stringify(capture);
  return args === undefined ? rest : `{"arguments":${args},${rest.slice(1)}`;
}

function bytesInJson(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** A part of a capture that can be shortened to a number of bytes. At least `least` of them always remain. */
type Part = {
  /** Undefined if the part itself shows that it is incomplete. */
  name: ShortenedPart | undefined;
  least: number;
  value(): unknown;
  shorten(most: number): void;
};

const kib = 1024;

/**
 * Returns the parts in the order in which they are shortened. The bytes that always remain leave space for arguments of
 * 32 KiB.
 */
function partsOf(capture: CaptureDraft): Part[] {
  const { request, response, result } = capture;
  return [
    ...(result ? textPart('result.text', 3 * kib, result, 'text') : []),
    ...(request ? requestHeaders(request) : []),
    ...(request ? requestBody(request) : []),
    ...(response ? responseHeaders(response) : []),
    ...measuredFields(capture),
    ...(request ? textPart('request.url', 3 * kib, request, 'path') : []),
    ...(response ? textPart('response.body', 6 * kib, response, 'body') : []),
  ];
}

function textPart<Key extends string>(
  name: ShortenedPart,
  least: number,
  around: { [key in Key]?: string },
  key: Key,
): Part[] {
  const text = around[key];
  if (text === undefined) return [];
  const shorten = (most: number) => {
    around[key] = startInJson(text, most);
  };
  return [{ name, least, value: () => around[key], shorten }];
}

type Request = NonNullable<Capture['request']>;
type Response = NonNullable<Capture['response']>;

function requestHeaders(request: Request): Part[] {
  const { headers } = request;
  const pairs = Array.from({ length: headers.length / 2 }, (_, n) => headers.slice(2 * n, 2 * n + 2));
  const shorten = (most: number) => {
    request.headers = firstEntries(pairs, most, (pair, short) => pair.map(short)).flat();
  };
  return [{ name: 'request.headers', least: 3 * kib, value: () => request.headers, shorten }];
}

function responseHeaders(response: Response): Part[] {
  const { headers } = response;
  const shorten = (most: number) => {
    response.headers = firstEntries(headers, most, ([name, line], short) => [short(name), short(line)]);
  };
  return [{ name: 'response.headers', least: 3 * kib, value: () => response.headers, shorten }];
}

function requestBody(request: Request): Part[] {
  const { body } = request;
  if (body === undefined || (typeof body === 'object' && !('fields' in body))) return [];
  const around = '{"fields":}'.length;
  const shorten = (most: number) => {
    request.body =
      typeof body === 'string'
        ? startInJson(body, most)
        : { fields: firstEntries(body.fields, most - around, shortField) };
  };
  return [{ name: 'request.body', least: 4 * kib, value: () => request.body, shorten }];
}

/**
 * Returns the measured fields. The fields of an object are retained all together or not at all, so that the remaining
 * ones stay meaningful.
 */
function measuredFields({ fields }: CaptureDraft): Part[] {
  if (!fields) return [];
  const shorten = (most: number) => {
    for (let count = 128; bytesInJson(fields) > most && count > 0; count >>= 1)
      boundFields(fields.answer, { ofAnswer: count, ofObject: count });
  };
  return [{ name: undefined, least: 6 * kib, value: () => fields, shorten }];
}

type Short = (text: string) => string;

/** Shortens each text of a form field. */
export function shortField([name, text, of]: ReadablePart, short: Short): ReadablePart {
  const field: ReadablePart = [short(name), short(text)];
  if (of)
    field.push({
      ...(of.fileName !== undefined && { fileName: short(of.fileName) }),
      ...(of.mediaType !== undefined && { mediaType: short(of.mediaType) }),
    });
  return field;
}

/** Minimum number of bytes for each text of an entry, however many entries there are. */
const leastOfText = 16;

/**
 * Returns the first entries that fit in `most` bytes of JSON. Long texts in them are shortened, so that more entries
 * fit.
 */
function firstEntries<Entry>(
  entries: readonly Entry[],
  most: number,
  shortened: (entry: Entry, short: Short) => Entry,
): Entry[] {
  const ofText = Math.max(leastOfText, Math.floor(most / entries.length / 2) - 2);
  const kept: Entry[] = [];
  let left = most - '[]'.length;
  for (const entry of entries) {
    const shorter = shortened(entry, (text) => startInJson(text, ofText));
    left -= bytesInJson(shorter) + ','.length;
    if (left < 0) break;
    kept.push(shorter);
  }
  return kept;
}

/** Returns the longest start of a text, in complete characters, whose JSON with quotes has at most `most` bytes. */
function startInJson(text: string, most: number): string {
  let left = most - 2;
  if (text.length * longestInJson <= left) return text;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) as number;
    left -= bytesOfCode(code);
    if (left < 0) return text.slice(0, at);
    at += code > 0xffff ? 2 : 1;
  }
  return text;
}

/** Maximum length of a character in JSON, such as `\u0001`, in bytes. */
const longestInJson = 6;
/**
 * Control characters with an escape of two characters: \b, \t,
 * , \f, and \r.
 */
const shortEscapes: readonly number[] = [0x08, 0x09, 0x0a, 0x0c, 0x0d];

/**
 * Returns the number of bytes of a character as JSON.stringify writes it. Half of a surrogate pair is an escape, too.
 */
function bytesOfCode(code: number): number {
  if (code === 0x22 || code === 0x5c || shortEscapes.includes(code)) return 2;
  if (code < 0x20 || (code >= 0xd800 && code <= 0xdfff)) return longestInJson;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code <= 0xffff ? 3 : 4;
}
