import type { ModelProgress } from '@toolhost/server/model';
import type { Input, OperationName, Output } from '@toolhost/server/operations';
import { buildRestRequest, operationRoutes } from '@toolhost/server/operations/routes';
import type { FieldProblem } from './api-types.ts';
import { basePath } from './base-path.ts';
import { parseJson } from './exact-json.ts';

const apiPath = `${basePath}/api/v1`;

/** Error response of the service. The status is 0 if the service could not be reached. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly problems: readonly FieldProblem[];
  readonly requestId: string | undefined;

  constructor(status: number, message: string, problems: readonly FieldProblem[] = [], requestId?: string) {
    super(message);
    this.name = 'ApiProblem';
    this.status = status;
    this.problems = problems;
    this.requestId = requestId;
  }
}

export const isNotFound = (error: unknown) => error instanceof ApiProblem && error.status === 404;

/** Returns the response, or the fallback if there is none (404). */
export async function orIfNotFound<Result>(response: Promise<Result>, fallback: Result): Promise<Result> {
  try {
    return await response;
  } catch (error) {
    if (isNotFound(error)) return fallback;
    throw error;
  }
}

/** Operation input in which the optional fields may be `undefined`. */
type LooseInput<Fields> = {
  [Name in keyof Fields]: Record<never, never> extends Pick<Fields, Name> ? Fields[Name] | undefined : Fields[Name];
};

/** `version` is the version that a change is based on. If a newer one exists, the service responds with a conflict. */
type Options = { version?: number; signal?: AbortSignal };

/** Returns the URL of a GET operation, for use in a link. */
export function getOperationUrl<Name extends OperationName>(name: Name, input: LooseInput<Input<Name>>): string {
  return apiPath + buildRestRequest(operationRoutes[name], input).path;
}

/** Runs an operation over the REST API. @throws ApiProblem */
export async function api<Name extends OperationName>(
  name: Name,
  input: LooseInput<Input<Name>>,
  { version, signal }: Options = {},
): Promise<Output<Name>> {
  const { method, path, body } = buildRestRequest(operationRoutes[name], input);
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (version !== undefined) headers['If-Match'] = `"${version}"`;
  const response = await fetchOrThrow(apiPath + path, {
    method,
    headers,
    body: body && JSON.stringify(body),
    signal,
  });
  if (!response.ok) throw await toApiProblem(response);
  return parseJson(await response.text()) as Output<Name>;
}

/**
 * Sends a prompt to a model that can use a server's tools. `onProgress` receives the reply as it is streamed.
 * @throws ApiProblem
 */
export async function askModel(
  input: LooseInput<Input<'askModel'>>,
  onProgress: (progress: ModelProgress) => void,
  signal: AbortSignal,
): Promise<Output<'askModel'>> {
  const { method, path, body } = buildRestRequest(operationRoutes.askModel, input);
  const headers = { Accept: 'application/jsonl', 'Content-Type': 'application/json' };
  const response = await fetchOrThrow(apiPath + path, { method, headers, body: JSON.stringify(body), signal });
  if (!response.ok || !response.body) throw await toApiProblem(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let partialLine = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new ApiProblem(0, 'The connection was lost before the model replied. Try again.');
    const lines = (partialLine + value).split('\n');
    partialLine = lines.pop() ?? '';
    for (const line of lines) {
      const event = JSON.parse(line) as ModelProgress | { result: Output<'askModel'> } | { problem: ProblemBody };
      if ('result' in event) return event.result;
      if ('problem' in event) throw createApiProblem(event.problem);
      onProgress(event);
    }
  }
}

async function fetchOrThrow(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiProblem(0, 'The service is unreachable. Check your connection and try again. Your input is kept.');
  }
}

type ProblemBody = {
  status?: number;
  title?: string;
  detail?: string;
  problems?: FieldProblem[];
  request_id?: string;
};

async function toApiProblem(response: Response): Promise<ApiProblem> {
  const body = (await response.json().catch(() => ({}))) as ProblemBody;
  if (response.status === 401) return new ApiProblem(401, 'You are signed out. Sign in and try again.');
  return createApiProblem({ ...body, status: response.status });
}

function createApiProblem({ status = 0, detail, title, problems, request_id: requestId }: ProblemBody): ApiProblem {
  return new ApiProblem(status, detail ?? title ?? `The service returned ${status}.`, problems, requestId);
}
