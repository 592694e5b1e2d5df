import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Kysely, sql } from 'kysely';
import type { Engine } from './database.ts';
import type { Tables } from './schema.ts';

/** Any number; the same in every replica, so that only one of them migrates at a time. */
const advisoryLock = 7_236_491;

/**
 * Applies the files of `folder` that were not applied yet, in the order of their names, all in one transaction.
 * Forward only: a file that was applied is never changed.
 */
export async function migrate(db: Kysely<Tables>, engine: Engine, folder: string, now: () => number): Promise<void> {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort();
  if (await isCurrent(db, files)) return;
  await db.transaction().execute(async (transaction) => {
    if (engine === 'postgres') await sql`select pg_advisory_xact_lock(${sql.lit(advisoryLock)})`.execute(transaction);
    await sql`create table if not exists migrations (name text primary key, applied_at bigint not null)`.execute(
      transaction,
    );
    const applied = new Set(
      (await transaction.selectFrom('migrations').select('name').execute()).map((row) => row.name),
    );
    for (const name of files.filter((file) => !applied.has(file))) {
      for (const statement of statements(readFileSync(join(folder, name), 'utf8'))) {
        await sql.raw(statement).execute(transaction);
      }
      await transaction.insertInto('migrations').values({ name, applied_at: now() }).execute();
    }
  });
}

async function isCurrent(db: Kysely<Tables>, files: readonly string[]): Promise<boolean> {
  const tables = await db.introspection.getTables();
  if (!tables.some((table) => table.name === 'migrations')) return false;
  const applied = new Set((await db.selectFrom('migrations').select('name').execute()).map((row) => row.name));
  return files.every((file) => applied.has(file));
}

/** The statements of a migration: they end in `;` at the end of a line, comments have lines of their own. */
export function statements(text: string): string[] {
  return text
    .replaceAll(/^\s*--.*$/gm, '')
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '');
}
