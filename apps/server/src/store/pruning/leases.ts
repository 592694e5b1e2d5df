import type { Db } from '../db.ts';

/** Right of one process (`holder`) to do a piece of work until `expiresAt`, in database time. */
export type Lease = { name: string; holder: string; now: number; expiresAt: number };

// No query here takes a workspace, because leases belong to the processes of the service.

/** Takes a free lease, or extends the holder's own. Only one of several concurrent callers receives it. */
export async function acquireLease(db: Db, { name, holder, now, expiresAt }: Lease): Promise<boolean> {
  const result = await db
    .insertInto('leases')
    .values({ name, holder, held_until: expiresAt })
    .onConflict((c) =>
      c
        .column('name')
        .doUpdateSet({ holder, held_until: expiresAt })
        .where((e) => e.or([e('leases.holder', '=', holder), e('leases.held_until', '<=', now)])),
    )
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Releases a lease, so that another process need not wait for its end. */
export async function releaseLease(db: Db, { name, holder }: Pick<Lease, 'name' | 'holder'>): Promise<void> {
  await db.updateTable('leases').set({ held_until: 0 }).where('name', '=', name).where('holder', '=', holder).execute();
}

/** Records the time at which work was completed, with or without a lease. */
export async function recordCompletion(db: Db, name: string, at: number): Promise<void> {
  await db
    .insertInto('leases')
    .values({ name, holder: '', held_until: 0, done_at: at })
    .onConflict((c) => c.column('name').doUpdateSet({ done_at: at }))
    .execute();
}

/** Returns the time at which each piece of work was last completed, in epoch ms. */
export async function findCompletionTimes(db: Db): Promise<{ name: string; done_at: number }[]> {
  return db.selectFrom('leases').select(['name', 'done_at']).where('done_at', '>', 0).orderBy('name').execute();
}
