import { createOwnedMemory, type OwnedMemory } from '../../domain/work/owned-memory.ts';
import { isUnavailable, messageOf } from '../../errors.ts';
import type { Grant } from '../../store/logins/grants.ts';
import { charactersOf } from '../credentials.ts';
import type { ProviderTokens } from '../login-server.ts';

/** New provider tokens that the database could not store. This is their only copy, so they are kept until it can. */
export type UnsavedTokens = {
  /** The unsaved tokens that replace those of a grant at its `tokens_version`. */
  find(grant: Pick<Grant, 'id' | 'tokens_version'>): ProviderTokens | undefined;
  /** Keeps tokens and retries `store`, which returns false when another replica was faster. */
  keep(
    grant: Pick<Grant, 'id' | 'tokens_version' | 'workspace_id'>,
    tokens: ProviderTokens,
    store: () => Promise<boolean>,
  ): void;
  /**
   * Answers of providers to refresh tokens that agents hold themselves, by the hash of the refresh token. They are kept
   * until they can be passed on, when the agent retries with the old refresh token; see `lifeOfAnswer`.
   */
  answers: OwnedMemory<Owned>;
  /** Tries to store once more, and then drops everything. False when some were lost, which is logged. */
  close(): Promise<boolean>;
};

/** Tokens of a login at a server of this workspace. */
type Owned = { workspaceId: string; tokens: ProviderTokens };
type Unsaved = Owned & { version: number; store: () => Promise<boolean> };

const retryMs = 100;
const longestAnswerMs = 10 * 60_000;

/** How long an answer waits, in ms: an agent that has not come back by then has logged in again, or has no use for it. */
export function lifeOfAnswer({ expiresAt }: ProviderTokens, now: number): number {
  return Math.max(1, Math.min(longestAnswerMs, (expiresAt ?? Number.POSITIVE_INFINITY) - now));
}

/**
 * Above this many logins in one outage, or characters of their tokens, the oldest are dropped, and their people must log in
 * again: those of the workspace that has more than half, if there is one. One workspace can fill three fourths of it.
 */
const most = {
  max: 13_500,
  maxSize: 40_000_000,
  sizeOf: ({ tokens }: Owned) => charactersOf(tokens),
  ownerOf: ({ workspaceId }: Owned) => workspaceId,
};

export type UnsavedOptions = { log: (message: string, fields: { [key: string]: unknown }) => void };

export function createUnsavedTokens({ log }: UnsavedOptions): UnsavedTokens {
  const kept = createOwnedMemory<Unsaved>(most);
  let timer: NodeJS.Timeout | undefined;
  let storing: Promise<unknown> | undefined;
  const answers = createOwnedMemory<Owned>(most);

  /** Stores entries until none is left or the database is unavailable. Gives the number of those that can never be stored. */
  async function storeAll(): Promise<number> {
    let stored = 0;
    let lost = 0;
    for (const id of [...kept.keys()]) {
      const unsaved = kept.peek(id);
      if (!unsaved) continue;
      try {
        await unsaved.store();
        stored++;
      } catch (error) {
        if (isUnavailable(error)) return lost;
        lost++;
        log('refreshed tokens of a login could not be stored and are lost', { grant: id, reason: messageOf(error) });
      }
      if (kept.peek(id) === unsaved) kept.delete(id);
    }
    if (stored > 0) log('refreshed tokens that waited for the database are stored', { logins: stored });
    return lost;
  }

  function tryLater(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      storing = storeAll().finally(() => {
        storing = undefined;
        if (kept.size() > 0) tryLater();
      });
    }, retryMs).unref();
  }

  return {
    answers,
    find({ id, tokens_version }) {
      if (kept.size() === 0) return undefined;
      const unsaved = kept.peek(id);
      return unsaved?.version === tokens_version ? unsaved.tokens : undefined;
    },
    keep({ id, tokens_version, workspace_id }, tokens, store) {
      if (kept.size() === 0) log('refreshed tokens wait for the database', {});
      kept.set(id, { version: tokens_version, workspaceId: workspace_id, tokens, store });
      tryLater();
    },
    async close() {
      clearTimeout(timer);
      await storing;
      clearTimeout(timer);
      const never = kept.size() > 0 ? await storeAll() : 0;
      // Answers cannot be stored: only the agents that come for them know the keys that would seal them.
      // Those whose life is over count as long as nobody removes them, so the keys of the others are counted.
      const logins = kept.size() + [...answers.keys()].length;
      if (logins > 0) log('refreshed tokens of logins are lost: their people must log in again', { logins });
      kept.clear();
      answers.clear();
      return logins + never === 0;
    },
  };
}
