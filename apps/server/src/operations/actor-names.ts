import { findDisplayNames } from '../store/audit-events.ts';
import type { Actor, Context } from './operation.ts';

/**
 * Returns true for people in the dashboard and the operator at the machine. No one else sees names and email addresses
 * of people. Programs get IDs, and so does an agent that acts for a person.
 */
export function canSeePeople({ kind, role }: Actor): boolean {
  return kind === 'operator' || role !== undefined;
}

/** Finds the current names of API keys and of the clients of logins, and of people if the actor may see them. */
export function findActorNames({ db, actor }: Context, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  return findDisplayNames(db, actor.workspaceId, ids, canSeePeople(actor));
}
