import { isRawNumber, parseJson } from '../../domain/json/json.ts';
import type { DotPath } from '../../domain/json/response-transform.ts';
import type { ReadableRequest } from '../../domain/request/upstream-request.ts';
import type { Capture, CapturedResponse, CapturedResult } from '../../store/calls/captures.ts';
import { cut, type Redactor, redactedStart, redactor } from '../answer/redact.ts';
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

export function writeCapture(raw: RawCapture): { output: CaptureJob['output'] } {
  const redact = redactor(raw.sensitive);
  const { response, request } = raw;
  const body = response?.body && Buffer.from(response.body);
  const capture: Capture = {
    ...(raw.arguments !== undefined && { arguments: parseJson(raw.arguments) as NonNullable<Capture['arguments']> }),
    argumentsBytes: raw.argumentsBytes,
    ...(request && { request }),
    ...(response && {
      response: { ...response, body: body && redactedStart(body, maxCapturedBytes, redact) } as CapturedResponse,
    }),
    ...(raw.result && { result: resultOf(raw.result, redact) }),
  };
  const document = JSON.stringify(capture, (_name, value: unknown) => cleaned(value, redact));
  const fields = raw.answer && measuredAnswer(raw.answer, redact);
  // The numbers of a measurement are ours: none of them may be taken for a credential.
  return { output: { document: fields ? `${document.slice(0, -1)},"fields":${JSON.stringify(fields)}}` : document } };
}

function resultOf({ start, ...result }: NonNullable<RawCapture['result']>, redact: Redactor): CapturedResult {
  const text = textOfStart(start, start.length === result.bytes, maxCapturedBytes + 4 * redact.longest);
  return text === undefined ? result : { ...result, text: redactedStart(Buffer.from(text), maxCapturedBytes, redact) };
}

/** A text of a capture without the credentials of its call. An argument may be a credential, even as a number. */
function cleaned(value: unknown, redact: Redactor): unknown {
  if (typeof value === 'string') return redact.text(value);
  const digits = typeof value === 'number' ? String(value) : isRawNumber(value) ? value.rawJSON : '';
  const clean = redact.text(digits);
  return clean === digits ? value : clean;
}

/** The first lines of headers, names and values in turn, each cut. */
export function cutLines(lines: readonly string[], most: number, mostBytes: number): string[] {
  return lines.slice(0, 2 * most).map((line) => cut(line, mostBytes));
}
