import { personRequest } from '../browser/person-request.ts';
import type { Json, Reply, TestToolhost } from './toolhost.ts';

/** Sends a REST API request with one credential. */
export type Send<Result = { status: number; body: Json }> = (
  method: string,
  path: string,
  body?: Json,
) => Promise<Result>;

/** Returns a client that sends REST API requests with an API key. */
export function createKeyClient(toolhost: TestToolhost, key: string): Send<Reply> {
  return (method, path, body) => toolhost.rest(method, path, { key, ...(body && { body }) });
}

/** Returns a client that sends REST API requests in a session from `createPersonSession`. */
export function createPersonClient(toolhost: TestToolhost, session: string): Send {
  return (method, path, body) => personRequest(toolhost, session, method, path, body);
}
