import { newWorkspaceId, type Random } from '@toolhost/credentials/ids';
import { AppError } from '@toolhost/errors/errors';
import type { Db } from '../../store/db.ts';
import { saveMember } from '../../store/people/users.ts';
import { countWorkspacesCreatedBy, getQuotaPeriod, insertWorkspace, takeFromQuotas } from '../../store/workspaces.ts';

/**
 * Maximum number of workspaces that a person created and that still exist, regardless of the person's role now, and
 * maximum number that a person may create per day.
 */
export const maxCreated = 20;

/**
 * Creates a workspace for a person, in a transaction, and returns its ID. The default name contains no name of a
 * person, because keys and consent pages show it.
 * @throws AppError forbidden if they have reached the maximum
 */
export async function addWorkspace(
  { db, random }: { db: Db; random: Random },
  { userId, name, at }: { userId: string; name?: string; at: number },
): Promise<string> {
  const day = getQuotaPeriod('workspaces', userId, 'day', at);
  const [usage] = await takeFromQuotas(db, [{ ...day, quota: maxCreated, calls: 1 }]);
  if (usage?.granted !== 1)
    throw new AppError('forbidden', `You created ${maxCreated} workspaces today, the maximum. Try again tomorrow.`);
  if ((await countWorkspacesCreatedBy(db, userId)).inUse >= maxCreated)
    throw new AppError(
      'forbidden',
      `You created ${maxCreated} workspaces that still exist, the maximum. Delete one, or have an owner invite you to one.`,
    );
  const id = newWorkspaceId(random, userId);
  await insertWorkspace(db, { id, name: name ?? `Workspace ${id.slice(-4)}`, at });
  await saveMember(db, { workspaceId: id, userId, role: 'owner', at });
  return id;
}
