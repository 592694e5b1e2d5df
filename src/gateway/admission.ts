import type { Admission, McpServer, ToolCall } from '../domain/mcp.ts';
import { type MaybePromise, whenKnown } from '../domain/work/maybe-promise.ts';
import { AppError, ServerChanged } from '../errors.ts';
import { admittedMs } from '../http/read-body.ts';

/**
 * The first decision counts from now, because a login may be refreshed within it for seconds. `clock` gives monotonic ms.
 */
export class DecidedAdmission<Server> implements Admission<Server> {
  readonly #decide: () => MaybePromise<Server>;
  readonly #clock: () => number;
  #at: number;

  constructor(decide: () => MaybePromise<Server>, clock: () => number) {
    this.#decide = decide;
    this.#clock = clock;
    this.#at = clock();
  }

  isOld(): boolean {
    return this.#clock() - this.#at > admittedMs;
  }

  again(): MaybePromise<Server> {
    this.#at = this.#clock();
    return this.#decide();
  }
}

/**
 * Decides again whether a call may be made, when it has waited: in a queue, for a token, for a file. A call whose request
 * the upstream has taken is finished without this; one that it refused and that is sent again is not.
 * @throws Unauthenticated or AppError when it may not be made any more
 * @throws ServerChanged when the configuration, and so the request, is another one now
 */
export async function admitAgain({ admission }: ToolCall, source: object): Promise<void> {
  const now = await admission.again();
  if (now.source !== source) throw new ServerChanged();
}

/** A message whose call may be made again. */
export type Readmitted = {
  admission: Admission<McpServer>;
  /** How often the server was changed while the message waited; absent for never. */
  changes?: number;
};

const mostChanges = 3;

/** Answers the message of a call again when its server was changed before anything was sent; other errors go on. */
export function atChangedServer<Context extends Readmitted, Answer>(
  context: Context,
  answerAgain: (now: McpServer, context: Context) => MaybePromise<Answer>,
): (thrown: unknown) => MaybePromise<Answer> {
  return (thrown) => {
    if (!(thrown instanceof ServerChanged)) throw thrown;
    const changes = (context.changes ?? 0) + 1;
    if (changes > mostChanges)
      throw new AppError('unavailable', 'the server was changed again and again while the call waited; call again', {
        retryAfterS: 1,
      });
    return whenKnown(context.admission.again(), (now) => answerAgain(now, { ...context, changes }));
  };
}
