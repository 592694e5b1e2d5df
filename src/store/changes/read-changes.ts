import { sql } from 'kysely';
import type { Db } from '../db.ts';
import { type Change, isPostgres } from './changes.ts';
import type { FoundTime } from './database-clock.ts';

/** The result of a look for changes. */
export type Look = {
  /** Changes committed since the previous look. Some may come twice. */
  changes: readonly Change[];
  /** False when the changes between the looks are not known: at the first look, on another database, after too many changes. */
  isContinuous: boolean;
  /** What the database says of the time. */
  time: FoundTime;
};

/** Reads the changes since its last reading. @throws whatever the database throws; then nothing is skipped */
export type ReadChanges = () => Promise<Look>;

/** Above this, dropping all cached values is less work than dropping each. */
const maxChanges = 2000;

type Found<Mark> = { rows: readonly Change[]; mark: Mark; time: FoundTime };

/** How one engine finds new changes: `mark` is the end of a look in that engine's terms. */
type Engine<Mark> = {
  read(mark: Mark | undefined): Promise<Found<Mark>>;
  /** Whether `mark` comes after `last` on the same database. */
  follows(last: Mark, mark: Mark): boolean;
};

/**
 * No clock takes part. Each look continues where the one before it stopped:
 *
 * - **PostgreSQL.** A change carries the id of its transaction. A look remembers the snapshot that it read in, and the
 *   next one asks for the changes whose transaction was not visible in that snapshot. A transaction is either visible in
 *   it, and then its rows were read, or it is not, however late it commits, and then it is asked for again. What was
 *   rolled back leaves no row. Transaction ids grow. A restarted server, or one that replaced it, may have lost the last
 *   of them: its start time shows that, or the next id, which is lower than before. A row with an id that has not begun was
 *   restored from another cluster, whose ids were higher: no cache here is older than it, so it is not reported.
 * - **SQLite.** Transactions that write run one after another, and each takes the position after the greatest that it
 *   sees, which is the greatest of all. So positions grow in the order of the commits, and a look that has seen one has
 *   seen all below it. `pruneChanges` keeps the greatest.
 */
export function createReadChanges(db: Db): ReadChanges {
  return isPostgres(db) ? reading(postgres(db)) : reading(sqlite(db));
}

function reading<Mark>(engine: Engine<Mark>): ReadChanges {
  let last: Mark | undefined;
  return async () => {
    const { rows, mark, time } = await engine.read(last);
    const isContinuous = last !== undefined && engine.follows(last, mark) && rows.length <= maxChanges;
    last = mark;
    return { changes: rows, isContinuous, time };
  };
}

/** A left join returns one row without a change when there is none. */
type Row = { id: string | null; kind: Change['kind']; ref: string };

function changesIn(rows: readonly Row[]): Change[] {
  return rows.flatMap(({ id, kind, ref }) => (id === null ? [] : [{ id, kind, ref }]));
}

type Snapshot = { text: string /** When the server was started, as it says it. */; server: string };

function postgres(db: Db): Engine<Snapshot> {
  return {
    async read(last) {
      const { rows } = await sql<Row & { snapshot: string; server: string; at: number }>`
        select look.*, found.*
        from (
          select txid_current_snapshot()::text as snapshot,
            extract(epoch from pg_postmaster_start_time())::text as server,
            floor(extract(epoch from clock_timestamp()) * 1000)::bigint as at
        ) as look
        left join (
          select id, kind, ref from changes
          where position >= ${last ? boundsOf(last).xmin : null}::bigint
            and position < txid_snapshot_xmax(txid_current_snapshot())
            and not txid_visible_in_snapshot(position, ${last?.text ?? null}::txid_snapshot)
          limit ${maxChanges + 1}
        ) as found on true`.execute(db);
      const { snapshot: text, server, at } = rows[0] as (typeof rows)[number];
      return { rows: changesIn(rows), mark: { text, server }, time: { at } };
    },
    follows: (last, mark) => last.server === mark.server && boundsOf(mark).xmax >= boundsOf(last).xmax,
  };
}

/** A snapshot is `xmin:xmax:` and a list. Every transaction below `xmin` has ended; `xmax` and above had not begun. */
function boundsOf({ text }: Snapshot): { xmin: number; xmax: number } {
  const [xmin, xmax] = text.split(':', 2).map(Number);
  return { xmin: xmin as number, xmax: xmax as number };
}

function sqlite(db: Db): Engine<number> {
  return {
    async read(last) {
      const { rows } = await sql<Row & { last: number | null; boot: string | null; level: number | null }>`
        select look.*, machine_clock.boot, machine_clock.level, found.*
        from (select max(position) as last from changes) as look
        left join machine_clock on true
        left join (
          select id, kind, ref from changes where position > ${last ?? null} limit ${maxChanges + 1}
        ) as found on true`.execute(db);
      const { last: mark = null, boot = null, level = null } = rows[0] ?? {};
      const shared = boot === null || level === null ? undefined : { boot, level };
      return { rows: changesIn(rows), mark: mark ?? 0, time: { level: shared } };
    },
    follows: (last, mark) => mark >= last,
  };
}
