import { covers, scopesOf } from '../domain/credentials/scopes.ts';
import { Unauthenticated } from '../errors.ts';
import { findApiKey } from '../store/api-keys.ts';
import type { Db } from '../store/db.ts';
import { findGrant } from '../store/logins/grants.ts';
import { findSession } from '../store/people/sessions.ts';
import { findRole } from '../store/people/users.ts';
import type { Actor } from './operation.ts';

/**
 * An actor as it is now. Between the admission of a request and its change, a body arrives, a description is fetched
 * and others write first; a credential that was revoked meanwhile must change nothing. Within the transaction of the
 * change, after the row of the workspace was updated, revocations come either before or after the change.
 * @throws Unauthenticated
 */
export async function actorNow(db: Db, actor: Actor, now: number): Promise<Actor> {
  if (actor.kind === 'operator') return actor;
  if (actor.kind === 'api_key') {
    const key = await findApiKey(db, actor.id);
    if (!key || key.revokedAt !== undefined || (key.expiresAt !== undefined && key.expiresAt <= now))
      throw ended('the API key');
    return actor;
  }
  if (!(await isSignedIn(db, actor, now))) throw ended(actor.sessionHash === undefined ? 'the login' : 'the session');
  const role = await findRole(db, actor.id, actor.workspaceId);
  if (!role) throw ended('the membership');
  const own = scopesOf(role);
  const scopes = actor.scopes.filter((scope) => own.includes(scope) || (scope !== 'manage' && covers(own, scope)));
  return { ...actor, scopes, ...(actor.role !== undefined && { role }) };
}

async function isSignedIn(db: Db, { sessionHash, grantId }: Actor, now: number): Promise<boolean> {
  if (sessionHash !== undefined) return (await findSession(db, sessionHash, now)) !== undefined;
  const grant = grantId === undefined ? undefined : await findGrant(db, grantId);
  return grant !== undefined && grant.revoked_at === null;
}

function ended(what: string): Unauthenticated {
  return new Unauthenticated('invalid', `${what} ended while the request was under way; nothing was changed`);
}
