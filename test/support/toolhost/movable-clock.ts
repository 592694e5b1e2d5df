import pg from 'pg';

/** The clock of one PostgreSQL database, which a test can move or stop. */
export type MovableClock = {
  /** Moves the clock by this many ms. The service notices at its next poll for changes. */
  move(ms: number): Promise<void>;
  /** Stops the clock at a time in epoch ms. */
  stopAt(timeMs: number): Promise<void>;
};

/** Shadows the engine's `clock_timestamp` for every connection that is opened to the database from now on. */
export async function createMovableClock(url: string): Promise<MovableClock> {
  const run = async (...statements: string[]) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  };
  await run(
    'create schema clock',
    'create table clock.setting (moved interval not null, stopped timestamptz)',
    "insert into clock.setting values ('0')",
    `create function clock.clock_timestamp() returns timestamptz language sql volatile as
      'select coalesce(stopped, pg_catalog.clock_timestamp() + moved) from clock.setting'`,
    `alter database ${new URL(url).pathname.slice(1)} set search_path = public, clock, pg_catalog`,
  );
  return {
    move: (ms) => run(`update clock.setting set moved = moved + interval '${ms} milliseconds'`),
    stopAt: (at) => run(`update clock.setting set stopped = to_timestamp(${at}::numeric / 1000)`),
  };
}
