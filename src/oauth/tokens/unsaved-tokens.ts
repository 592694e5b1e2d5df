import { LRUCache } from 'lru-cache';
import { isUnavailable, messageOf } from '../../errors.ts';
import type { Grant } from '../../store/logins/grants.ts';
import type { ProviderTokens } from '../login-server.ts';

/** New provider tokens that the database could not store. This is their only copy, so they are kept until it can. */
export type UnsavedTokens = {
  /** The unsaved tokens that replace those of a grant at its `tokens_version`. */
  find(grant: Pick<Grant, 'id' | 'tokens_version'>): ProviderTokens | undefined;
  /** Keeps tokens and retries `store`, which returns false when another replica was faster. */
  keep(grant: Pick<Grant, 'id' | 'tokens_version'>, tokens: ProviderTokens, store: () => Promise<boolean>): void;
  /**
   * Answers of providers to refresh tokens that agents hold themselves, by the hash of the refresh token. They are kept
   * until they can be passed on, when the agent retries with the old refresh token.
   */
  answers: LRUCache<string, ProviderTokens>;
  /** Tries to store once more, and then drops everything. */
  close(): Promise<void>;
};

type Unsaved = { version: number; tokens: ProviderTokens; store: () => Promise<boolean> };

const retryMs = 100;
/** Above this many logins in one outage the oldest are dropped, and their people must log in again. */
const mostKept = 10_000;

export type UnsavedOptions = { log: (message: string, fields: { [key: string]: unknown }) => void };

export function createUnsavedTokens({ log }: UnsavedOptions): UnsavedTokens {
  const kept = new Map<string, Unsaved>();
  let timer: NodeJS.Timeout | undefined;
  let storing: Promise<void> | undefined;

  /** Stores entries until none is left or the database is unavailable. */
  async function storeAll(): Promise<void> {
    let stored = 0;
    for (const [id, unsaved] of kept) {
      try {
        await unsaved.store();
        stored++;
      } catch (error) {
        if (isUnavailable(error)) return;
        log('refreshed tokens of a login could not be stored and are lost', { grant: id, reason: messageOf(error) });
      }
      if (kept.get(id) === unsaved) kept.delete(id);
    }
    log('refreshed tokens that waited for the database are stored', { logins: stored });
  }

  function tryLater(): void {
    timer ??= setTimeout(() => {
      timer = undefined;
      storing = storeAll().finally(() => {
        storing = undefined;
        if (kept.size > 0) tryLater();
      });
    }, retryMs).unref();
  }

  return {
    answers: new LRUCache({ max: mostKept }),
    find({ id, tokens_version }) {
      if (kept.size === 0) return undefined;
      const unsaved = kept.get(id);
      return unsaved?.version === tokens_version ? unsaved.tokens : undefined;
    },
    keep({ id, tokens_version }, tokens, store) {
      if (kept.size === 0) log('refreshed tokens wait for the database', {});
      kept.set(id, { version: tokens_version, tokens, store });
      const [oldest] = kept.keys();
      if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest);
      tryLater();
    },
    async close() {
      clearTimeout(timer);
      await storing;
      clearTimeout(timer);
      if (kept.size > 0) await storeAll();
      if (kept.size > 0)
        log('refreshed tokens of logins are lost: their people must log in again', { logins: kept.size });
      kept.clear();
    },
  };
}
