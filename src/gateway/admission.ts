import type { Admission, McpServer, ToolCall } from '../domain/mcp.ts';
import type { MaybePromise } from '../domain/work/maybe-promise.ts';
import { AppError } from '../errors.ts';
import { admittedMs } from '../http/read-body.ts';

/**
 * A decision that can be made again. The first one counts from now, because a login may be refreshed within it for seconds.
 * `clock` gives monotonic ms.
 */
export function decidedAdmission<Server>(decide: () => MaybePromise<Server>, clock: () => number): Admission<Server> {
  let at = clock();
  return {
    isOld: () => clock() - at > admittedMs,
    again() {
      at = clock();
      return decide();
    },
  };
}

/**
 * Decides again whether a call may be made, when it has waited: in a queue, for a token, for a file. A call whose request
 * the upstream has taken is finished without this; one that it refused and that is sent again is not.
 * @throws Unauthenticated or AppError when it may not be made any more, and AppError unavailable when the server, and so
 * the request, is another one now
 */
export async function admitAgain({ admission }: ToolCall, server: Pick<McpServer, 'source'>): Promise<void> {
  const now = await admission.again();
  if (now.source === server.source) return;
  throw new AppError('unavailable', 'the server was changed while the call waited, and nothing was sent; call again', {
    retryAfterS: 1,
  });
}
