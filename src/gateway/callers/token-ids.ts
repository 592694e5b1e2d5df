import { hash } from 'node:crypto';
import { createRecentDigests } from './recent-digests.ts';

/** The id of a caller who brings a token: the server, and a digest of the token. */
export type TokenIds = {
  idOf(server: { id: string; workspaceId: string }, token: string): string;
  /** The id of a token that was accepted in the last minute, found without a digest. */
  find(serverId: string, token: string): string | undefined;
};

export function createTokenIds(isAccepted: (id: string) => boolean): TokenIds {
  const ids = createRecentDigests();
  return {
    find: ids.find,
    idOf(server, token) {
      const known = ids.find(server.id, token);
      if (known !== undefined) return known;
      const id = `${server.id} ${hash('sha256', token, 'base64url')}`;
      if (isAccepted(id)) ids.remember(server.id, server.workspaceId, token, id);
      return id;
    },
  };
}
