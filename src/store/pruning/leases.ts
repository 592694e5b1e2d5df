import type { Db } from '../db.ts';

/** `holder` does what the lease is for until `until`, by the database's time. */
export type Lease = { name: string; holder: string; now: number; until: number };

// No query here names a workspace: leases are between the processes of the service.

/** Takes a lease that nobody holds, or holds one's own for longer. Of several that ask at once one gets it. */
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

/** Gives a lease up, so that another process need not wait for its end. */
export async function releaseLease(db: Db, { name, holder }: Pick<Lease, 'name' | 'holder'>): Promise<void> {
  await db.deleteFrom('leases').where('name', '=', name).where('holder', '=', holder).execute();
}
