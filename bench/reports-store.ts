import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { base62, hashSecret } from '@toolhost/credentials/ids';
import pg from 'pg';
import { type Database, openDatabase } from '../apps/server/src/store/database.ts';
import type { Engine } from '../apps/server/src/store/db.ts';
import { insertSession } from '../apps/server/src/store/people/sessions.ts';
import { version } from '../apps/server/src/version.ts';
import { startPostgres } from '../test/support/store/postgres.ts';
import { root } from './processes.ts';
import { largeWorkspace, olderWorkspace, type RowCounts } from './reports-rows.ts';

/** Full store, and the settings for a service on it. */
export type FilledStore = {
  engine: Engine;
  env: Record<string, string>;
  /** Session cookies of a person who owns every workspace, by the workspace that the session shows. */
  sessions: { [workspace: string]: string };
  fillMs: number;
  stop(): Promise<void>;
};

const sessionMs = 24 * 60 * 60 * 1000;

/** Creates a store and runs the statements sequentially. */
export async function fillStore(
  engine: Engine,
  folder: string,
  world: RowCounts,
  statements: readonly string[],
): Promise<FilledStore> {
  const file = join(folder, engine, 'toolhost.sqlite');
  const postgres = engine === 'postgres' ? await startPostgres() : undefined;
  const url = await postgres?.createDatabase();
  const open = () => openStore(file, url);
  await (await open()).close();
  const startedAt = performance.now();
  await (url === undefined ? runOnSqlite(file, statements) : runOnPostgres(url, statements));
  const fillMs = performance.now() - startedAt;
  const database = await open();
  const sessions: FilledStore['sessions'] = {};
  for (const workspace of [largeWorkspace, olderWorkspace])
    sessions[workspace] = await signIn(database, workspace, world.now);
  await database.close();
  const env = { DATA_DIR: join(folder, engine), ...(url !== undefined && { DATABASE_URL: url }) };
  return { engine, env, sessions, fillMs, stop: async () => postgres?.stop() };
}

function openStore(file: string, url: string | undefined): Promise<Database> {
  return openDatabase({
    postgres: url === undefined ? undefined : { url, maxConnections: 2, authorities: undefined },
    file,
    migrations: join(root, 'migrations'),
    version,
    exclusive: true,
    now: Date.now,
    onError: console.error,
    onDatabaseError: console.error,
    onWarning: console.error,
  });
}

/** Runs the statements without waiting for the disk, because lost rows can be created again. */
function runOnSqlite(file: string, statements: readonly string[]): void {
  const database = new DatabaseSync(file);
  database.exec('pragma synchronous = off; pragma journal_mode = memory; pragma cache_size = -400000; begin');
  for (const statement of statements) database.exec(statement);
  database.exec('commit');
  database.close();
}

async function runOnPostgres(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("set synchronous_commit = off; set maintenance_work_mem = '256MB'; set work_mem = '256MB'");
  for (const statement of statements) await client.query(statement);
  // Autovacuum would do the same eventually.
  await client.query('vacuum analyze');
  await client.end();
}

async function signIn({ db }: Database, workspaceId: string, at: number): Promise<string> {
  const cookie = base62(randomBytes(32), 43);
  const session = { hash: hashSecret(cookie), userId: 'usr_0', workspaceId, at, expiresAt: at + sessionMs };
  await insertSession(db, session);
  return cookie;
}
