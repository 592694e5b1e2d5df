import { redact } from '@toolhost/credentials/redactor';
import type { JsonObject } from '@toolhost/mcp-protocol/json-rpc';
import type { ModelQuestion } from '../../model.ts';
import type { SplicedJson } from './model-messages.ts';
import type { ModelResponse } from './model-response.ts';

/** An HTTP API of a model host. */
export type ModelApi = {
  /**
   * Creates the request of a question. `path` follows the API's base URL, and `headers` alternates names and values.
   * `json` inserts JSON texts into the body.
   */
  createRequest(question: ModelQuestion, json: SplicedJson): { path: string; headers: string[]; body: object };
  /** Creates a function that adds each event of a response to `response`. It throws ModelError. */
  createReader(response: ModelResponse): (event: JsonObject) => void;
};

/** Returns a value as an object. Empty for any other type. */
export function toObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
}

/** Returns the items of an array as objects. Empty for any other type. */
export function toObjects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.map(toObject) : [];
}

/** Returns a value as a string. Empty for any other type. */
export function toModelText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** More tokens than any model reads or writes. The sum of a few such numbers is a safe integer. */
const maxTokens = 1_000_000_000;

/** Returns a value as a token count, or undefined if it is not a plausible count. */
export function toCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= maxTokens ? Number(value) : undefined;
}

/**
 * Error codes that are shown, such as `invalid_api_key` and `RESOURCE_EXHAUSTED`: words without digits, periods, and
 * colons.
 */
const errorCodePattern = /^[A-Za-z]+(?:[_-][A-Za-z]+)*$/;
const maxCodeLength = 40;

/**
 * Returns the error code in a model host's error, in parentheses, or an empty string if there is none. Nothing else of
 * the error is shown, because the host may repeat a credential, or be a service in the operator's network that is not a
 * model.
 */
export function formatErrorCode(event: JsonObject, key = ''): string {
  const { code, type, status } = toObject(event.error);
  const isCode = (text: string) => text.length <= maxCodeLength && errorCodePattern.test(text);
  // A part of the key is not a code either.
  const isPartOfKey = (text: string) => key.toLowerCase().includes(text.toLowerCase());
  const displayedCode = [code, type, status].map(toModelText).find((text) => isCode(text) && !isPartOfKey(text));
  return displayedCode === undefined ? '' : redact(` (${displayedCode})`, key === '' ? [] : [key]);
}
