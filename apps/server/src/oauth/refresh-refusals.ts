import { OAuthError } from '@toolhost/errors/errors';
import { createFairCache } from '@toolhost/limits/fair-cache';
import { UnexplainedRefusal } from './provider.ts';

/** Unexplained refusals in a row, and the time of the first one. */
type Refusals = { count: number; firstAt: number; workspaceId: string };

/** Number of refusals in a row, and the minimum time in ms between the first and the last, that end a login. */
export const refusalsToEnd = 3;
export const refusalPeriodToEndMs = 60_000;

/** Time for which a refusal is remembered, in ms. An agent may call only once a day. */
const retentionMs = 7 * 24 * 60 * 60_000;
/**
 * Maximum number of remembered logins. Above it, the oldest are dropped, and it takes longer for those logins to end.
 */
const maxTrackedLogins = 10_000;

/** Decides which failed refresh ends a login. */
export type RefreshRefusals = ReturnType<typeof createRefreshRefusals>;

/** Creates the list of refusals. `now` returns epoch ms. */
export function createRefreshRefusals(now: () => number) {
  const refusals = createFairCache<Refusals>({ max: maxTrackedLogins, getOwner: ({ workspaceId }) => workspaceId });
  return {
    /**
     * Returns the error of a failed refresh of the token identified by `key`: invalid_grant if the login is over. A
     * token endpoint that refuses without a reason may be wrong temporarily, so a single refusal fails only the call
     * that needed the token.
     */
    classify(error: OAuthError, key: string, workspaceId: string): OAuthError {
      if (!(error instanceof UnexplainedRefusal)) {
        refusals.delete(key);
        return error;
      }
      const { count, firstAt } = refusals.get(key) ?? { count: 0, firstAt: now() };
      refusals.set(key, { count: count + 1, firstAt, workspaceId }, retentionMs);
      const isEnded = count + 1 >= refusalsToEnd && now() - firstAt >= refusalPeriodToEndMs;
      return isEnded ? new OAuthError('invalid_grant', error.message, error.detail, error.providerMessage) : error;
    },
  };
}
