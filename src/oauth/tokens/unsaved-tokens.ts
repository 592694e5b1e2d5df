import { LRUCache } from 'lru-cache';
import { isUnavailable, messageOf } from '../../errors.ts';
import type { Grant } from '../../store/logins/grants.ts';
import type { ProviderTokens } from '../login-server.ts';

/** Tokens that a provider gave and the database did not take. Nobody else has them, so they are kept until it does. */
export type UnsavedTokens = {
  /** The tokens that follow those of a grant as it was read. */
  find(grant: Pick<Grant, 'id' | 'tokens_version'>): ProviderTokens | undefined;
  /** Keeps tokens and tries `store` again and again. False from it means that others were faster. */
  keep(grant: Pick<Grant, 'id' | 'tokens_version'>, tokens: ProviderTokens, store: () => Promise<boolean>): void;
  /**
   * What a provider answered to refresh tokens that agents hold themselves, by the hash of those, until it could be handed
   * on: the agent asks again with the old one.
   */
  answers: LRUCache<string, ProviderTokens>;
  /** Tries once more and keeps nothing any longer. */
  close(): Promise<void>;
};

type Unsaved = { version: number; tokens: ProviderTokens; store: () => Promise<boolean> };

const retryMs = 100;
/** Logins that are refreshed in one outage by one process; above it the oldest are lost, and their people log in again. */
const mostKept = 10_000;

export type UnsavedOptions = { log: (message: string, fields: { [key: string]: unknown }) => void };

export function createUnsavedTokens({ log }: UnsavedOptions): UnsavedTokens {
  const kept = new Map<string, Unsaved>();
  let timer: NodeJS.Timeout | undefined;
  let storing: Promise<void> | undefined;

  /** Until all is stored, or the database does not take it. */
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
