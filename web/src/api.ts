import type { Input, OperationName, Output } from '../../src/operations/index.ts';
import { operationRoutes, restRequest } from '../../src/operations/routes.ts';
import type { FieldProblem } from './answers.ts';
import { basePath } from './base-path.ts';
import { parseJson } from './exact-json.ts';

const apiPath = `${basePath}/api/v1`;

/** An error answer of the service; status 0 when it could not be reached. */
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

/** An input in which optional fields may also be `undefined`. */
type Given<Fields> = {
  [Name in keyof Fields]: Record<never, never> extends Pick<Fields, Name> ? Fields[Name] | undefined : Fields[Name];
};

/** `version` is the version that a change builds on; the change is refused with a conflict when there is a newer one. */
type Options = { version?: number; signal?: AbortSignal };

/** The address of an operation that is read by GET, for a link. */
export function addressOf<Name extends OperationName>(name: Name, input: Given<Input<Name>>): string {
  return apiPath + restRequest(operationRoutes[name], input).path;
}

/** Runs an operation over the REST API. @throws ApiProblem */
export async function api<Name extends OperationName>(
  name: Name,
  input: Given<Input<Name>>,
  { version, signal }: Options = {},
): Promise<Output<Name>> {
  const { method, path, body } = restRequest(operationRoutes[name], input);
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (version !== undefined) headers['If-Match'] = `"${version}"`;
  const response = await reach(apiPath + path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  });
  if (!response.ok) throw await problemOf(response);
  return parseJson(await response.text()) as Output<Name>;
}

async function reach(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new ApiProblem(0, 'The service cannot be reached. Check your connection and try again; nothing is lost.');
  }
}

type ProblemBody = { title?: string; detail?: string; problems?: FieldProblem[]; request_id?: string };

async function problemOf(response: Response): Promise<ApiProblem> {
  const body = (await response.json().catch(() => ({}))) as ProblemBody;
  if (response.status === 401) return new ApiProblem(401, 'You are not signed in any more. Sign in and try again.');
  const message = body.detail ?? body.title ?? `The service answered ${response.status}.`;
  return new ApiProblem(response.status, message, body.problems, body.request_id);
}
