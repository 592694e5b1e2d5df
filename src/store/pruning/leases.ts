import type { Db } from '../db.ts';

/** A right to do a piece of work that one process (`holder`) has until `until`, by the database's time. */
export type Lease = { name: string; holder: string; now: number; until: number };

// No query here names a workspace: leases belong to the processes of the service.

/** Takes a free lease, or extends the holder's own. One of several concurrent callers gets it. */
export async function takeLease(db: Db, { name, holder, now, until }: Lease): Promise<boolean> {
  const result = await db
    .insertInto('leases')
    .values({ name, holder, held_until: until })
    .onConflict((c) =>
      c
        .column('name')
        .doUpdateSet({ holder, held_until: until })
        .where((e) => e.or([e('leases.holder', '=', holder), e('leases.held_until', '<=', now)])),
    )
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Releases a lease, so that another process need not wait for its end. */
export async function releaseLease(db: Db, { name, holder }: Pick<Lease, 'name' | 'holder'>): Promise<void> {
  await db.updateTable('leases').set({ held_until: 0 }).where('name', '=', name).where('holder', '=', holder).execute();
}

/** Stores that the work of a lease was done to its end; of other work, that it was done. */
export async function noteDone(db: Db, name: string, at: number): Promise<void> {
  await db
    .insertInto('leases')
    .values({ name, holder: '', held_until: 0, done_at: at })
    .onConflict((c) => c.column('name').doUpdateSet({ done_at: at }))
    .execute();
}

/** When the work of each lease was last done, epoch ms. */
export async function lastDone(db: Db): Promise<{ name: string; done_at: number }[]> {
  return db.selectFrom('leases').select(['name', 'done_at']).where('done_at', '>', 0).orderBy('name').execute();
}
