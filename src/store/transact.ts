import { setTimeout as delay } from 'node:timers/promises';
import type { Kysely, Transaction } from 'kysely';
import { isOvertaken, mostAttempts, retryPauseMs } from './engine/watched-dialect.ts';
import type { Tables } from './schema.ts';

/**
 * Runs work in a transaction, and again when the database ended it in favour of another one (SQLSTATE 40001 and 40P01),
 * because nothing of it has happened then. So the work must have no effect outside of the database.
 * @throws StoreFault, and what the work throws
 */
export async function transact<Result>(
  db: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await db.transaction().execute(work);
    } catch (error) {
      if (!isOvertaken(error) || attempt === mostAttempts) throw error;
    }
    await delay(retryPauseMs * attempt);
  }
}
