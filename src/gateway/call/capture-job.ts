import { type Redactor, redactor } from '../../domain/credentials/redactor.ts';
import { isRawNumber, parseJson } from '../../domain/json/json.ts';
import type { DotPath } from '../../domain/json/response-transform.ts';
import type { ReadableBody, ReadablePart, ReadableRequest } from '../../domain/request/upstream-request.ts';
import type { Capture, CapturedResponse, CapturedResult } from '../../store/calls/captures.ts';
import { redactedStart } from '../answer/redact.ts';
import { textOfStart } from '../answer/result-start.ts';
import { measuredAnswer } from './measured-answer.ts';

/** A capture before anything is redacted. */
export type RawCapture = {
  /** JSON text; undefined when they are too long to be kept. */
  arguments: string | undefined;
  argumentsBytes: number;
  request: ReadableRequest | undefined;
  /** `body` is the beginning of the body, where that is text. */
  response: (Omit<CapturedResponse, 'body'> & { body: Uint8Array | undefined }) | undefined;
  /** `start` is the beginning of the content. */
  result: (Omit<CapturedResult, 'text'> & { start: Uint8Array }) | undefined;
  /** The whole answer, where its fields are to be measured, and the path of its `response_transform`. */
  answer: { body: Uint8Array; transform: DotPath } | undefined;
  /** Credentials that must not appear in it. */
  sensitive: readonly string[];
};

/** Writes the JSON text of a `Capture`. */
export type CaptureJob = { input: RawCapture; output: { document: string } };

export const maxCapturedBytes = 8 * 1024;
/** Longest line of a header, and longest text of a form's field, in bytes. */
export const maxFieldBytes = 1024;

export function writeCapture(raw: RawCapture): { output: CaptureJob['output'] } {
  const redact = redactor(raw.sensitive);
  const { response, request } = raw;
  const body = response?.body && Buffer.from(response.body);
  const capture: Capture = {
    argumentsBytes: raw.argumentsBytes,
    ...(request && { request: requestOf(request, redact) }),
    ...(response && {
      response: {
        ...response,
        headers: response.headers.map(([name, line]) => [name, startOf(line, maxFieldBytes, redact)]),
        body: body && redactedStart(body, maxCapturedBytes, redact),
      } as CapturedResponse,
    }),
    ...(raw.result && { result: resultOf(raw.result, redact) }),
  };
  const rest = JSON.stringify(capture, (_name, value: unknown) => cleaned(value, redact));
  const document =
    raw.arguments === undefined ? rest : `{"arguments":${argumentsOf(raw.arguments, redact)},${rest.slice(1)}`;
  const fields = raw.answer && measuredAnswer(raw.answer, redact);
  // The numbers of a measurement are ours: none of them may be taken for a credential.
  return { output: { document: fields ? `${document.slice(0, -1)},"fields":${JSON.stringify(fields)}}` : document } };
}

/** The request without credentials, its texts cut to their final length. */
function requestOf(request: ReadableRequest, redact: Redactor): ReadableRequest {
  const { path, headers, body } = request;
  const short = (text: string) => startOf(text, maxFieldBytes, redact);
  const cutBody = (): ReadableBody | undefined => {
    if (typeof body !== 'object') return body && startOf(body, maxCapturedBytes, redact);
    return 'fields' in body ? { fields: body.fields.map((field) => cutField(field, short)) } : body;
  };
  return { ...request, path: startOf(path, maxCapturedBytes, redact), headers: headers.map(short), body: cutBody() };
}

/** A field of a form with each of its texts changed by `short`. */
export function cutField([name, text, of]: ReadablePart, short: (text: string) => string): ReadablePart {
  const field: ReadablePart = [short(name), short(text)];
  if (of) field.push({ ...of, ...(of.fileName !== undefined && { fileName: short(of.fileName) }) });
  return field;
}

function startOf(text: string, limit: number, redact: Redactor): string {
  return redactedStart(Buffer.from(text), limit, redact);
}

function resultOf({ start, ...result }: NonNullable<RawCapture['result']>, redact: Redactor): CapturedResult {
  const text = textOfStart(start, start.length === result.bytes, maxCapturedBytes + 4 * redact.longest);
  return text === undefined ? result : { ...result, text: redactedStart(Buffer.from(text), maxCapturedBytes, redact) };
}

/** Arguments without credentials; the caller chooses names inside them, too. */
function argumentsOf(text: string, redact: Redactor): string {
  const change = (name: string) => redact.text(name);
  return JSON.stringify(parseJson(text), (_name, value: unknown) => {
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value);
    return isObject ? withNames(value, change) : cleaned(value, redact);
  });
}

/** A text of a capture without the credentials of its call. An argument may be a credential, even as a number. */
function cleaned(value: unknown, redact: Redactor): unknown {
  if (typeof value === 'string') return redact.text(value);
  const digits = typeof value === 'number' ? String(value) : isRawNumber(value) ? value.rawJSON : '';
  const clean = redact.text(digits);
  return clean === digits ? value : clean;
}

/** The same object, or a copy whose names are changed. */
function withNames(object: object, change: (name: string) => string): object {
  const entries = Object.entries(object);
  const isChanged = entries.some(([name]) => change(name) !== name);
  return isChanged ? Object.fromEntries(entries.map(([name, value]) => [change(name), value])) : object;
}
