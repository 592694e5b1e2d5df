import { redact } from '../../domain/credentials/redactor.ts';
import type { ModelQuestion } from '../../domain/model.ts';
import type { JsonObject } from '../protocol/json-rpc.ts';
import type { SplicedJson } from './model-messages.ts';
import type { ModelResponse } from './model-response.ts';

/** An HTTP API that models are asked by. */
export type ModelApi = {
  /**
   * Request for a question. `path` follows the address of the API, `headers` alternates names and values; `json` takes
   * JSON texts that stand in the body.
   */
  createRequest(question: ModelQuestion, json: SplicedJson): { path: string; headers: string[]; body: object };
  /** Returns what adds each event of one response to `response`. It throws ModelError. */
  createReader(response: ModelResponse): (event: JsonObject) => void;
};

/** The members of a value, none where it is no object. */
export function toObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
}

/** The items of a value as objects, none where it is no list. */
export function toObjects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.map(toObject) : [];
}

/** A text, empty where a value is none. */
export function toText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** More than any model reads or writes; a sum of a few such numbers is a safe integer. */
const maxTokens = 1_000_000_000;

/** A number of tokens, undefined where a value is none. */
export function toCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= maxTokens ? Number(value) : undefined;
}

/** Error codes that are shown, such as `invalid_api_key` and `RESOURCE_EXHAUSTED`: words without digits, points, and colons. */
const errorCode = /^[A-Za-z]+(?:[_-][A-Za-z]+)*$/;
const maxCodeLength = 40;

/**
 * The code in an error of a model's host, in parentheses; empty where there is none. Nothing else of an error is shown,
 * because the host may repeat a credential, or be a service in the operator's network that is no model.
 */
export function errorCodeIn(event: JsonObject, key = ''): string {
  const { code, type, status } = toObject(event.error);
  const isCode = (text: string) => text.length <= maxCodeLength && errorCode.test(text);
  // A part of the key is no code either.
  const isOfKey = (text: string) => key.toLowerCase().includes(text.toLowerCase());
  const found = [code, type, status].map(toText).find((text) => isCode(text) && !isOfKey(text));
  return found === undefined ? '' : redact(` (${found})`, key === '' ? [] : [key]);
}
