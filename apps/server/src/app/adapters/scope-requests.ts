import { hashSecret } from '@toolhost/credentials/ids';
import type { StepUpDeps } from '../../gateway/call/step-up.ts';
import type { Db } from '../../store/db.ts';
import { reportMissingPassthroughScope, reportMissingScope } from '../../store/logins/missing-scopes.ts';

/**
 * Returns a function that requests a login with more scopes. The scopes of a token that the agent holds itself are not
 * known, so they count as those of the server.
 */
export function createScopeRequests(db: Db, now: () => number): StepUpDeps['requestScopes'] {
  return async (server, { login, token }, missing) => {
    const report = { scope: missing.join(' '), now: now() };
    if (login) {
      // Some providers separate granted scopes with commas.
      const grantedScopes = (login.providerScope ?? login.scope).split(/[ ,]+/);
      if (missing.every((scope) => grantedScopes.includes(scope))) return undefined;
      if (!(await reportMissingScope(db, login.grantId, report))) return undefined;
    } else {
      const held = { serverId: server.id, hash: hashSecret(token ?? '') };
      if (!(await reportMissingPassthroughScope(db, held, report))) return undefined;
    }
    const currentScopes = login ? login.scope.split(' ') : (server.config.oauth?.scopes ?? []);
    return [...new Set([...currentScopes, ...missing])].filter((scope) => scope !== '');
  };
}
