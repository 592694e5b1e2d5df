import { hash } from 'node:crypto';

/** The id of a caller who brings a token: the server, and a digest of the token. */
export type TokenIds = {
  idOf(server: { id: string; workspaceId: string }, token: string): string;
  /** The id of a token that was accepted in the last minute, found without a digest. */
  find(serverId: string, token: string): string | undefined;
};

/** Of all. One workspace has at most as many as are left for others. */
const mostRemembered = 2000;
/** Longest remembered token; a longer one is digested each time. */
const longestRemembered = 2048;
const rememberedMs = 60_000;

/**
 * Remembers the ids of the tokens of the last minute, because computing one takes 2 µs of each call. The tokens stay in
 * memory for that time, in a limited number, and only those of accepted credentials: made-up tokens take no memory and
 * displace nobody. `clock` is monotonic, in ms.
 */
export function createTokenIds(clock: () => number, isAccepted: (id: string) => boolean): TokenIds {
  const byServer = new Map<string, Map<string, string>>();
  const ofWorkspace = new Map<string, number>();
  let count = 0;
  let since = clock();

  function remember({ id: serverId, workspaceId }: Parameters<TokenIds['idOf']>[0], token: string, id: string): void {
    const own = ofWorkspace.get(workspaceId) ?? 0;
    if (own >= mostRemembered - count || token.length > longestRemembered || !isAccepted(id)) return;
    count++;
    ofWorkspace.set(workspaceId, own + 1);
    const known = byServer.get(serverId);
    if (known) known.set(token, id);
    else byServer.set(serverId, new Map([[token, id]]));
  }

  function find(serverId: string, token: string): string | undefined {
    const now = clock();
    if (now - since > rememberedMs) {
      byServer.clear();
      ofWorkspace.clear();
      count = 0;
      since = now;
    }
    return byServer.get(serverId)?.get(token);
  }

  return {
    find,
    idOf(server, token) {
      const known = find(server.id, token);
      if (known !== undefined) return known;
      const id = `${server.id} ${hash('sha256', token, 'base64url')}`;
      remember(server, token, id);
      return id;
    },
  };
}
