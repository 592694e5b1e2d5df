import type { FieldProblem } from './api-types.ts';

type Query = { readonly [name: string]: string | number | undefined };
type Options = { query?: Query; body?: unknown; version?: number; signal?: AbortSignal };
type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export const apiPath = '/api/v1';

/** What the service said instead of an answer, or that it could not be reached (status 0). */
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

/** A path with its parts encoded: path`/servers/${slug}`. */
export function path(texts: TemplateStringsArray, ...parts: (string | number)[]): string {
  return texts.map((text, index) => text + encodeURIComponent(parts[index] ?? '')).join('');
}

export function withQuery(address: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)]));
  return search.size > 0 ? `${address}?${search}` : address;
}

/** Sends a request to the REST API. @throws ApiProblem */
export async function api<Answer>(method: Method, address: string, options: Options = {}): Promise<Answer> {
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (options.body !== undefined) headers['Content-Type'] = 'application/json';
  if (options.version !== undefined) headers['If-Match'] = `"${options.version}"`;
  const response = await reach(withQuery(apiPath + address, options.query), {
    method,
    headers,
    ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
    ...(options.signal && { signal: options.signal }),
  });
  if (!response.ok) throw await problemOf(response);
  return (response.status === 204 ? undefined : await response.json()) as Answer;
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
