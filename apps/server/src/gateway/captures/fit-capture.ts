import { capFields } from '@toolhost/json/field-selection/field-statistics';
import type { ReadablePart } from '@toolhost/tool-config/request/upstream-request';
import type { Capture, ShortenedField } from '../../store/calls/captures.ts';

/** Maximum length of a capture's JSON text, in bytes, including escapes. A control character takes six. */
export const maxCaptureBytes = 64 * 1024;
/** Space reserved for the list of shortened parts, in bytes. */
const shortenedListBytes = 200;

/** A capture whose arguments are JSON text. */
export type CaptureDraft = Omit<Capture, 'arguments' | 'shortened'>;

/**
 * Returns the JSON text of a capture. If it is too long, parts are shortened, starting with those whose data also
 * appears elsewhere in the capture. The start of each part always remains. Arguments are omitted only if that is not
 * enough.
 */
export function formatWithinLimit(capture: CaptureDraft, args: string | undefined): string {
  const full = formatCapture(capture, args);
  let surplus = Buffer.byteLength(full) - maxCaptureBytes;
  if (surplus <= 0) return full;
  surplus += shortenedListBytes;
  const shortened: ShortenedField[] = [];
  for (const { name, minBytes, getValue, shorten } of getParts(capture)) {
    const bytes = countJsonBytes(getValue());
    if (surplus <= 0 || bytes <= minBytes) continue;
    shorten(Math.max(minBytes, bytes - surplus));
    surplus -= bytes - countJsonBytes(getValue());
    if (name !== undefined) shortened.push(name);
  }
  if (surplus <= 0 || args === undefined)
    return formatCapture({ ...capture, ...(shortened.length > 0 && { shortened }) }, args);
  return formatCapture({ ...capture, shortened: [...shortened, 'arguments'] }, undefined);
}

function formatCapture(capture: Omit<Capture, 'arguments'>, args: string | undefined): string {
  const otherFields = JSON.stringify(capture);
  return args === undefined ? otherFields : `{"arguments":${args},${otherFields.slice(1)}`;
}

function countJsonBytes(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** A part of a capture that can be shortened to a number of bytes. At least `minBytes` of them always remain. */
type CapturePart = {
  /** Undefined if the part itself shows that it is incomplete. */
  name: ShortenedField | undefined;
  minBytes: number;
  getValue(): unknown;
  shorten(maxBytes: number): void;
};

const kib = 1024;

/**
 * Returns the parts in the order in which they are shortened. The bytes that always remain leave space for arguments of
 * 32 KiB.
 */
function getParts(capture: CaptureDraft): CapturePart[] {
  const { request, response, result } = capture;
  return [
    ...(result ? createTextPart('result.text', 3 * kib, result, 'text') : []),
    ...(request ? createRequestHeadersPart(request) : []),
    ...(request ? createRequestBodyPart(request) : []),
    ...(response ? createResponseHeadersPart(response) : []),
    ...createMeasuredFieldsPart(capture),
    ...(request ? createTextPart('request.url', 3 * kib, request, 'path') : []),
    ...(response ? createTextPart('response.body', 6 * kib, response, 'body') : []),
  ];
}

function createTextPart<Key extends string>(
  name: ShortenedField,
  minBytes: number,
  container: { [key in Key]?: string },
  key: Key,
): CapturePart[] {
  const text = container[key];
  if (text === undefined) return [];
  const shorten = (maxBytes: number) => {
    container[key] = truncateToJsonBytes(text, maxBytes);
  };
  return [{ name, minBytes, getValue: () => container[key], shorten }];
}

type Request = NonNullable<Capture['request']>;
type Response = NonNullable<Capture['response']>;

function createRequestHeadersPart(request: Request): CapturePart[] {
  const { headers } = request;
  const pairs = Array.from({ length: headers.length / 2 }, (_, n) => headers.slice(2 * n, 2 * n + 2));
  const shorten = (maxBytes: number) => {
    request.headers = takeEntries(pairs, maxBytes, (pair, shortenText) => pair.map(shortenText)).flat();
  };
  return [{ name: 'request.headers', minBytes: 3 * kib, getValue: () => request.headers, shorten }];
}

function createResponseHeadersPart(response: Response): CapturePart[] {
  const { headers } = response;
  const shorten = (maxBytes: number) => {
    response.headers = takeEntries(headers, maxBytes, ([name, line], shortenText) => [
      shortenText(name),
      shortenText(line),
    ]);
  };
  return [{ name: 'response.headers', minBytes: 3 * kib, getValue: () => response.headers, shorten }];
}

function createRequestBodyPart(request: Request): CapturePart[] {
  const { body } = request;
  if (body === undefined || (typeof body === 'object' && !('fields' in body))) return [];
  const wrapperLength = '{"fields":}'.length;
  const shorten = (maxBytes: number) => {
    request.body =
      typeof body === 'string'
        ? truncateToJsonBytes(body, maxBytes)
        : { fields: takeEntries(body.fields, maxBytes - wrapperLength, shortenField) };
  };
  return [{ name: 'request.body', minBytes: 4 * kib, getValue: () => request.body, shorten }];
}

/**
 * Returns the measured fields. They are shortened by halving the maximum number of fields until they fit. An object
 * with more fields loses all of them, because some of its fields would be misleading.
 */
function createMeasuredFieldsPart({ fields }: CaptureDraft): CapturePart[] {
  if (!fields) return [];
  const shorten = (maxBytes: number) => {
    for (let count = 128; countJsonBytes(fields) > maxBytes && count > 0; count >>= 1)
      capFields(fields.answer, { perResponse: count, perObject: count });
  };
  return [{ name: undefined, minBytes: 6 * kib, getValue: () => fields, shorten }];
}

type ShortenText = (text: string) => string;

/** Shortens each text of a form field. */
export function shortenField([name, text, file]: ReadablePart, shortenText: ShortenText): ReadablePart {
  const field: ReadablePart = [shortenText(name), shortenText(text)];
  if (file)
    field.push({
      ...(file.fileName !== undefined && { fileName: shortenText(file.fileName) }),
      ...(file.mediaType !== undefined && { mediaType: shortenText(file.mediaType) }),
    });
  return field;
}

/** Minimum number of bytes for each text of an entry, however many entries there are. */
const minTextBytes = 16;

/**
 * Returns the first entries that fit in `maxBytes` bytes of JSON. Long texts in them are shortened, so that more
 * entries fit.
 */
function takeEntries<Entry>(
  entries: readonly Entry[],
  maxBytes: number,
  shortenEntry: (entry: Entry, shortenText: ShortenText) => Entry,
): Entry[] {
  const maxTextBytes = Math.max(minTextBytes, Math.floor(maxBytes / entries.length / 2) - 2);
  const retained: Entry[] = [];
  let remaining = maxBytes - '[]'.length;
  for (const entry of entries) {
    const shortEntry = shortenEntry(entry, (text) => truncateToJsonBytes(text, maxTextBytes));
    remaining -= countJsonBytes(shortEntry) + ','.length;
    if (remaining < 0) break;
    retained.push(shortEntry);
  }
  return retained;
}

/** Returns the longest start of a text, in complete characters, whose JSON with quotes has at most `maxBytes` bytes. */
function truncateToJsonBytes(text: string, maxBytes: number): string {
  let remaining = maxBytes - 2;
  if (text.length * maxCharacterBytes <= remaining) return text;
  for (let index = 0; index < text.length; ) {
    const code = text.codePointAt(index) as number;
    remaining -= countCharacterBytes(code);
    if (remaining < 0) return text.slice(0, index);
    index += code > 0xffff ? 2 : 1;
  }
  return text;
}

/** Maximum length of a character in JSON, such as `\u0001`, in bytes. */
const maxCharacterBytes = 6;
/** Control characters with an escape of two characters: `\b`, `\t`, `\n`, `\f`, and `\r`. */
const shortEscapes: readonly number[] = [0x08, 0x09, 0x0a, 0x0c, 0x0d];

/**
 * Returns the number of bytes of a character as JSON.stringify writes it. Half of a surrogate pair is an escape, too.
 */
function countCharacterBytes(code: number): number {
  if (code === 0x22 || code === 0x5c || shortEscapes.includes(code)) return 2;
  if (code < 0x20 || (code >= 0xd800 && code <= 0xdfff)) return maxCharacterBytes;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code <= 0xffff ? 3 : 4;
}
