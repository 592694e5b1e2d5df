import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Kysely, sql } from 'kysely';
import { AppError } from '../../errors.ts';
import type { Engine } from '../db.ts';
import { openingFailure } from '../engine/opening-failure.ts';
import type { PostgresLocation } from '../engine/postgres-location.ts';
import { makeDataFolderPrivate } from '../engine/private-files.ts';
import { lockSqlite, sqliteDialect } from '../engine/sqlite.ts';
import { findOrMakeFile } from '../engine/sqlite-file.ts';
import { watchedDialect } from '../engine/watched-dialect.ts';
import { createWriteLock } from '../engine/write-lock.ts';
import type { Tables } from '../schema.ts';

/** An empty database that a backup is read into. */
export type EmptyDatabase = {
  engine: Engine;
  db: Kysely<Tables>;
  /** Makes what was read the database; without that, `close` leaves nothing behind. */
  keep(): Promise<void>;
  close(): Promise<void>;
};

const ignore = () => undefined;

/**
 * A SQLite file under another name, which gets its own when everything is in it, so that an interrupted restore leaves no
 * half database.
 * @throws AppError conflict when there is a database already
 */
export async function openEmptySqlite(file: string): Promise<EmptyDatabase> {
  const restoring = `${file}.restoring`;
  const names = (path: string) => [path, `${path}-wal`, `${path}-shm`];
  try {
    makeDataFolderPrivate(dirname(file));
    const present = names(file).find((path) => existsSync(path));
    if (present !== undefined) {
      throw new AppError(
        'conflict',
        `${present} is there already; restore into an empty folder (DATA_DIR), or stop the service and move its database away, so that nothing is overwritten`,
      );
    }
    // No service can begin a database of its own meanwhile, and no other restore the same one.
    const lock = lockSqlite(file);
    for (const path of names(restoring)) rmSync(path, { force: true });
    const db = new Kysely<Tables>({
      dialect: watchedDialect(sqliteDialect(findOrMakeFile(restoring), createWriteLock()), ignore),
    });
    return {
      engine: 'sqlite',
      db,
      async keep() {
        await sql`pragma wal_checkpoint(truncate)`.execute(db);
        await db.destroy();
        syncFile(restoring);
        renameSync(restoring, file);
        syncFile(dirname(file));
      },
      async close() {
        await db.destroy();
        for (const path of names(restoring)) rmSync(path, { force: true });
        lock.release();
      },
    };
  } catch (error) {
    throw openingFailure(error, file);
  }
}

/** Makes a file or the names in a folder last through a power cut. */
function syncFile(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** A PostgreSQL database; `importTables` refuses one with tables of ours, and fills it in one transaction. */
export async function openEmptyPostgres(location: PostgresLocation): Promise<EmptyDatabase> {
  const { postgresDialect } = await import('../engine/postgres.ts');
  const db = new Kysely<Tables>({
    dialect: watchedDialect(postgresDialect(location, ignore, 'migrations'), ignore),
  });
  try {
    await sql`select 1`.execute(db);
  } catch (error) {
    await db.destroy();
    throw openingFailure(error, undefined);
  }
  return { engine: 'postgres', db, keep: async () => undefined, close: () => db.destroy() };
}
