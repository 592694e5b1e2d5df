import { isUtf8 } from 'node:buffer';
import type { FieldUse } from '../../domain/answer-fields/field-use.ts';
import { measureFields } from '../../domain/answer-fields/measure-fields.ts';
import type { Redactor } from '../../domain/credentials/redactor.ts';
import { compactJson } from '../../domain/json/json-cursor.ts';
import { scanJson } from '../../domain/json/json-scan.ts';
import { type DotPath, findPart, hasPart } from '../../domain/json/response-transform.ts';
import type { MeasuredAnswer } from '../../store/calls/captures.ts';

const deepest = 1000;

/** The fields of an answer, without credentials in their names and values; undefined where it is no JSON. */
export function measuredAnswer(
  { body, transform }: { body: Uint8Array; transform: DotPath },
  redact: Redactor,
): MeasuredAnswer | undefined {
  const json = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const scan = isUtf8(json) ? scanJson(json, deepest) : undefined;
  if (!scan || scan.depth > deepest || !hasPart(json, transform)) return undefined;
  const { from, end } = findPart(json, transform);
  return {
    transform: transform.join('.'),
    answer: redacted(measureFields(compactJson(json.subarray(from, end))), redact),
  };
}

function redacted(use: FieldUse, redact: Redactor): FieldUse {
  return {
    ...use,
    name: redact.text(use.name),
    ...(use.always !== undefined && { always: redact.text(use.always) }),
    fields: use.fields.map((field) => redacted(field, redact)),
  };
}
