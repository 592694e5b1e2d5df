import { newWorkspaceId, type Random } from '../../domain/ids.ts';
import { AppError } from '../../errors.ts';
import type { Db } from '../../store/db.ts';
import { saveMember } from '../../store/people/users.ts';
import { countCreatedBy, insertWorkspace, periodOf, takeOfQuotas } from '../../store/workspaces.ts';

/** Maximum number of workspaces that one person created, whatever their role, and that they create in a day. */
export const maxCreated = 20;

/**
 * Creates a workspace for a person, in a transaction; gives its id. The default name holds no name of a person: keys and
 * consent pages show it.
 * @throws AppError forbidden when they have created as many as they may
 */
export async function addWorkspace(
  { db, random }: { db: Db; random: Random },
  { userId, name, at }: { userId: string; name?: string; at: number },
): Promise<string> {
  const day = periodOf('workspaces', userId, 'day', at);
  const [use] = await takeOfQuotas(db, [{ ...day, quota: maxCreated, calls: 1 }]);
  if (use?.granted !== 1)
    throw new AppError('forbidden', `You created ${maxCreated} workspaces today, the maximum. Try again tomorrow.`);
  if ((await countCreatedBy(db, userId)).inUse >= maxCreated)
    throw new AppError(
      'forbidden',
      `You created ${maxCreated} workspaces that still exist, the maximum. Delete one, or have an owner invite you to one.`,
    );
  const id = newWorkspaceId(random, userId);
  await insertWorkspace(db, { id, name: name ?? `Workspace ${id.slice(-4)}`, at });
  await saveMember(db, { workspaceId: id, userId, role: 'owner', at });
  return id;
}
