import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { Json } from '../toolhost/toolhost.ts';
import { type SilentProxy, startSilentProxy } from '../upstreams/silent-proxy.ts';
import { type Fixtures, useFixtures } from '../use-fixtures.ts';
import { startPostgres, type TestPostgres } from './postgres.ts';

/** A migrated database, and the variables with which all services use it with one master key. */
type Location = { url: string; env: { DATABASE_URL: string; MASTER_KEY: string } };

/** Starts PostgreSQL with one database for the tests of the enclosing suite. */
export function usePostgres<Server extends TestPostgres = TestPostgres>(
  fixtures: Fixtures = useFixtures(),
  start: () => Promise<Server> = startPostgres as () => Promise<Server>,
): { postgres: Server; database: Location } {
  const postgres = fixtures.start(start);
  const database = fixtures.start(async () => {
    const url = await postgres.createDatabase();
    return { url, env: { DATABASE_URL: url, MASTER_KEY: randomBytes(32).toString('base64') } };
  });
  return { postgres, database };
}

/** Starts a proxy before a database of the suite, through which a test can cut or silence connections. */
export function useSilentProxy(fixtures: Fixtures, database: Location): { proxy: SilentProxy; proxied: Location } {
  const proxy = fixtures.start(() => {
    const { hostname, port } = new URL(database.url);
    return startSilentProxy({ host: hostname, port: Number(port) });
  });
  const proxied = fixtures.start(() => {
    const url = Object.assign(new URL(database.url), { port: String(proxy.port) }).href;
    return { url, env: { ...database.env, DATABASE_URL: url } };
  });
  return { proxy, proxied };
}

/** Runs one statement on a connection of its own. */
export async function queryPostgres(url: string, text: string): Promise<Json[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows as Json[];
  } finally {
    await client.end();
  }
}
