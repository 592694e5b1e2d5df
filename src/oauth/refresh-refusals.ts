import { createOwnedMemory } from '../domain/work/owned-memory.ts';
import { OAuthError } from '../errors.ts';
import { UnexplainedRefusal } from './provider.ts';

/** Unexplained refusals in a row, and the time of the first one. */
type Refusals = { count: number; firstAt: number; workspaceId: string };

/** This many refusals in a row, over at least this time, end a login. */
export const refusalsToEnd = 3;
export const refusedToEndMs = 60_000;

/** How long a refusal is remembered: an agent may call once a day. */
const rememberedMs = 7 * 24 * 60 * 60_000;
/** Above this many, the oldest are forgotten, and their logins take longer to end. */
const maxRemembered = 10_000;

/** Decides which failed refresh ends a login. */
export type RefreshRefusals = ReturnType<typeof createRefreshRefusals>;

/** `now` is in epoch ms. */
export function createRefreshRefusals(now: () => number) {
  const remembered = createOwnedMemory<Refusals>({ max: maxRemembered, ownerOf: ({ workspaceId }) => workspaceId });
  return {
    /**
     * The error of a failed refresh of the token that `key` names: invalid_grant where the login is over. A token endpoint
     * that refuses without a reason may be mistaken for a moment, so one such refusal fails only the call that needed it.
     */
    judge(error: OAuthError, key: string, workspaceId: string): OAuthError {
      if (!(error instanceof UnexplainedRefusal)) {
        remembered.delete(key);
        return error;
      }
      const { count, firstAt } = remembered.get(key) ?? { count: 0, firstAt: now() };
      remembered.set(key, { count: count + 1, firstAt, workspaceId }, rememberedMs);
      const isOver = count + 1 >= refusalsToEnd && now() - firstAt >= refusedToEndMs;
      return isOver ? new OAuthError('invalid_grant', error.message, error.detail, error.said) : error;
    },
  };
}
