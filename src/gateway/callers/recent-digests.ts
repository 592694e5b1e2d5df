import { hash } from 'node:crypto';

/** Digests of the credentials that were accepted in the last minute. */
export type RecentDigests = {
  /** `scope` is what the digest depends on besides the credential. */
  find(scope: string, credential: string): string | undefined;
  /** Only for a credential that was accepted: made-up ones take no memory and displace nobody. */
  remember(scope: string, workspaceId: string, credential: string, digest: string): void;
};

/** Of all. One workspace has at most as many as are left for others. */
const mostRemembered = 2000;
/** Longest remembered credential; a longer one is digested each time. */
const longestRemembered = 2048;
const rememberedMs = 60_000;

/**
 * Computing a digest takes 2 µs of each call. For at most a minute the credentials stay in memory, also when nobody calls
 * any more, and in a limited number.
 */
export function createRecentDigests(): RecentDigests {
  const byScope = new Map<string, Map<string, string>>();
  const ofWorkspace = new Map<string, number>();
  let count = 0;

  function forget(): void {
    byScope.clear();
    ofWorkspace.clear();
    count = 0;
  }

  return {
    find: (scope, credential) => byScope.get(scope)?.get(credential),
    remember(scope, workspaceId, credential, digest) {
      const own = ofWorkspace.get(workspaceId) ?? 0;
      if (own >= mostRemembered - count || credential.length > longestRemembered) return;
      if (count === 0) setTimeout(forget, rememberedMs).unref();
      count++;
      ofWorkspace.set(workspaceId, own + 1);
      const known = byScope.get(scope);
      if (known) known.set(credential, digest);
      else byScope.set(scope, new Map([[credential, digest]]));
    },
  };
}

/** The id of a caller who brings a token: the server, and a digest of the token. */
export type TokenIds = {
  idOf(server: { id: string; workspaceId: string }, token: string): string;
};

export function createTokenIds(isAccepted: (id: string) => boolean): TokenIds {
  const ids = createRecentDigests();
  return {
    idOf(server, token) {
      const known = ids.find(server.id, token);
      if (known !== undefined) return known;
      const id = `${server.id} ${hash('sha256', token, 'base64url')}`;
      if (isAccepted(id)) ids.remember(server.id, server.workspaceId, token, id);
      return id;
    },
  };
}
