import { randomBytes } from 'node:crypto';
import { hashSecret, newId, newSecret } from '@toolhost/credentials/ids';
import { durations } from '../../apps/server/src/oauth/oauth-deps.ts';
import { sealTokens, wrapKey } from '../../apps/server/src/oauth/provider.ts';
import type { Runner } from '../../apps/server/src/operations/run-operation.ts';
import { insertGrant } from '../../apps/server/src/store/logins/grants.ts';
import { insertTokens } from '../../apps/server/src/store/logins/issued-tokens.ts';
import type { StoredServer } from '../../apps/server/src/store/servers/servers.ts';

const dayMs = 24 * 60 * 60_000;

/** Age in days, and true if the provider has ended the login since. */
const logins = [
  { client: 'Claude', person: 'ines@example.com', daysAgo: 28.2, isBroken: false },
  { client: 'Cursor', person: 'jonas@example.com', daysAgo: 24.1, isBroken: true },
  { client: 'Visual Studio Code', person: 'ines@example.com', daysAgo: 15.3, isBroken: false },
  { client: 'Claude', person: 'mara@example.com', daysAgo: 4.4, isBroken: false },
] as const;

/** Seeded login. Calls use it from `at` to `until`, in epoch ms. */
export type SeedLogin = { id: string; at: number; until: number };

/** Adds agent logins at a server. Their tokens are discarded. */
export async function insertLogins({ db, deps }: Runner, server: StoredServer, now: number): Promise<SeedLogin[]> {
  const seededLogins: SeedLogin[] = [];
  for (const { client, person, daysAgo, isBroken } of logins) {
    const id = newId(deps.random, 'grt');
    const at = now - daysAgo * dayMs;
    const until = isBroken ? at + 6 * dayMs : now;
    const tokens = { accessToken: 'of-the-seed', refreshToken: undefined, expiresAt: undefined, scope: undefined };
    const grantKey = randomBytes(32);
    const sealed = sealTokens(deps.keyring, { id, workspace_id: server.workspaceId }, grantKey, tokens);
    await insertGrant(db, {
      id,
      workspace_id: server.workspaceId,
      server_id: server.id,
      slug: server.slug,
      client_id: `https://${client.toLowerCase().replaceAll(' ', '-')}.example.com/client.json`,
      client_name: client,
      person,
      scope: 'tickets:read tickets:write',
      agreement: 'of the seed',
      sealed_tokens: sealed,
      tokens_version: 1,
      generation: 0,
      rotated_at: at,
      created_at: at,
      last_used_at: until,
      broken_at: isBroken ? until : null,
    });
    // A login without an issued token counts as ended. This token is discarded.
    const token = newSecret(deps.random);
    const kind = 'refresh';
    const row = {
      hash: hashSecret(token),
      grant_id: id,
      kind,
      generation: 0,
      wrapped_key: wrapKey(grantKey, token, id),
    } as const;
    await insertTokens(db, [{ ...row, expires_at: until + durations.refresh }]);
    seededLogins.push({ id, at, until });
  }
  return seededLogins;
}
