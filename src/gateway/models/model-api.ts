import type { ModelQuestion } from '../../domain/model.ts';
import type { JsonObject } from '../protocol/json-rpc.ts';
import type { ModelResponse } from './model-response.ts';

/** An HTTP API that models are asked by. */
export type ModelApi = {
  /** Request for a question. `path` follows the address of the API, `headers` alternates names and values. */
  createRequest(question: ModelQuestion): { path: string; headers: string[]; body: object };
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

/** A number of tokens, undefined where a value is none. */
export function toCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
}

/** Longest error code that is shown. */
const errorCode = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/**
 * The code in an error of a model's host, in parentheses; empty where there is none. Nothing else of an error is shown,
 * because the host may repeat a credential, or be a service in the operator's network that is no model.
 */
export function errorCodeIn(event: JsonObject): string {
  const { code, type, status } = toObject(event.error);
  const found = [code, type, status].find((value) => errorCode.test(toText(value)));
  return found === undefined ? '' : ` (${found})`;
}
