import { AppError, errorKinds, Unauthenticated } from '@toolhost/errors/errors';
import { addFont, getPagePolicy, renderErrorPage, toBasePath } from './page.ts';

/**
 * Renders an error as a REST response: `application/problem+json` (RFC 9457), or a page for a person if `homeUrl` is
 * set, to which the page links.
 */
export function createErrorResponse(
  thrown: unknown,
  requestId: string,
  onUnexpected: (error: unknown, requestId: string) => void,
  homeUrl?: string,
): Response {
  const error = toAppError(thrown);
  if (!error) onUnexpected(thrown, requestId);
  const status = error?.status ?? 500;
  const headers: Record<string, string> = { 'Content-Type': 'application/problem+json', ...error?.headers };
  if (status === 401) headers['WWW-Authenticate'] = 'Bearer';
  const message = error?.message ?? `internal error; request ${requestId}`;
  if (homeUrl !== undefined) {
    const basePath = toBasePath(homeUrl);
    const pageHeaders = {
      ...headers,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': getPagePolicy(basePath),
    };
    return new Response(addFont(renderErrorPage(status, message, homeUrl), basePath), { status, headers: pageHeaders });
  }
  const { code, title } = errorKinds[error?.kind ?? 'internal'];
  const body = {
    type: 'about:blank',
    title,
    status,
    code,
    detail: message,
    ...(error && error.problems.length > 0 && { problems: error.problems }),
    request_id: requestId,
  };
  return new Response(JSON.stringify(body), { status, headers });
}

function toAppError(error: unknown): AppError | undefined {
  if (error instanceof AppError) return error;
  if (error instanceof Unauthenticated)
    return new AppError(error.status === 401 ? 'unauthenticated' : 'forbidden', error.message);
  return undefined;
}
