import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { sql } from 'kysely';
import type { Database } from '../../src/store/database.ts';
import { pruneTasks } from '../../src/store/pruning/prunings.ts';
import { engines } from '../sets.ts';
import { type Stores, startStores } from '../support/store/stores.ts';

type Row = { tables: string[]; bound: string; deletedBy: string };

/** What bounds each table, and what deletes its rows. Words in capitals are settings; quotas are in `domain/quotas.ts`. */
const rows: Row[] = [
  {
    tables: ['workspaces', 'members', 'users'],
    bound:
      'people who can sign in at the identity provider, who each own 20 and make 20 in a day; quota members. Workspaces with nothing in them, and people in no workspace, are deleted after AUDIT_RETENTION_DAYS without a visit',
    deletedBy: 'upkeep',
  },
  {
    tables: ['servers'],
    bound:
      'quotas servers and megabytes; slugs for the tombstones, which stay because slugs are not given away again. Deleted ones count for megabytes until they are gone, after 30 days or when their space is needed',
    deletedBy: 'upkeep, and changing a server',
  },
  {
    tables: ['server_versions'],
    bound: 'quotas versions and megabytes; 20 MB of one server',
    deletedBy: 'changing the server; upkeep with a deleted server',
  },
  {
    tables: ['imports'],
    bound: 'the newest five of a server; quota megabytes',
    deletedBy: 'adding one; upkeep with a deleted server',
  },
  {
    tables: ['import_checks'],
    bound: 'one row for each imported server; 50 watched ones of a workspace',
    deletedBy: 'upkeep with a deleted server',
  },
  {
    tables: ['secrets'],
    bound: 'quota secrets, 200 of one server',
    deletedBy: 'deleting a secret; upkeep with a deleted server',
  },
  {
    tables: ['models'],
    bound: '20 of a workspace',
    deletedBy: 'deleting a model',
  },
  {
    tables: ['api_keys'],
    bound:
      'quota keys; revoked and expired ones are deleted after AUDIT_RETENTION_DAYS, as are those of a workspace beyond the 10,000 that were made last, unless a key that was made with them still exists; quota dailywrites',
    deletedBy: 'upkeep',
  },
  {
    tables: ['calls', 'call_counts'],
    bound:
      'CALL_RETENTION_DAYS, counts by the minute three days; limits of calls, and of refused ones 600 a minute of a server in each process',
    deletedBy: 'upkeep',
  },
  {
    tables: ['usage_counts'],
    bound: 'CALL_RETENTION_DAYS; in a day a row for each server and key, and for each server and kind of other callers',
    deletedBy: 'upkeep',
  },
  {
    tables: ['call_quota_use'],
    bound:
      'a row for each quota of calls that was used in this minute or day, for each kind of event of the logins at a server in this day, for the new logins of a workspace and of a server in this minute, and for the details in its audit in this day',
    deletedBy: 'upkeep',
  },
  {
    tables: ['captures'],
    bound: 'a day; 64 KiB each before they are sealed, the newest 1,000 of a server and 4,000 of a workspace',
    deletedBy: 'upkeep, also those of deleted servers, and adding a capture',
  },
  {
    tables: ['answer_pieces'],
    bound:
      'ten minutes; 64 MB and 2,000 rows of a workspace, three quarters of it for strangers; the caller, or address of strangers, that holds most loses its oldest',
    deletedBy: 'upkeep, and keeping the rest of an answer',
  },
  {
    tables: ['files', 'file_chunks'],
    bound:
      'ten minutes, and one more for downloads that have begun; 100 MiB and 1,000 files of a workspace, half of what others leave of it for one address of strangers',
    deletedBy: 'upkeep, and keeping a file',
  },
  {
    tables: ['webhooks'],
    bound: 'five of a workspace',
    deletedBy: 'deleting one',
  },
  {
    tables: ['notices'],
    bound: '30 days; 200 a day of a workspace',
    deletedBy: 'upkeep',
  },
  {
    tables: ['audit_events'],
    bound:
      'AUDIT_RETENTION_DAYS; quota dailywrites, details of 32 KiB each, and of those above 1,000 characters 20 MB a day of a workspace; of the logins at a server in a day 500 failures, 10,000 logins and 10,000 ends, and one row with the number of further ones (store/logins/login-events.ts)',
    deletedBy: 'upkeep',
  },
  {
    tables: ['changes'],
    bound: 'a day; quota dailywrites',
    deletedBy: 'upkeep',
  },
  {
    tables: ['sessions'],
    bound: 'seven days; 50 of one person',
    deletedBy: 'upkeep, and signing in',
  },
  {
    tables: ['invitations'],
    bound: '90 days; quota members',
    deletedBy: 'upkeep, and signing in',
  },
  {
    tables: ['authorizations', 'codes'],
    bound: 'minutes, used codes a day; 300 requests of one address a minute; codes end with their grant',
    deletedBy: 'upkeep; each login that begins removes two expired ones',
  },
  {
    tables: ['tokens'],
    bound:
      '30 days at most, and a day to notice a second use; 100 rotations of one grant, and 200 tokens of each kind where one is used again and again',
    deletedBy: 'upkeep, and rotating a token',
  },
  {
    tables: ['grants'],
    bound:
      '100,000 of one server that have not ended, those used last, and 100,000 that ended last; ended ones are deleted after AUDIT_RETENTION_DAYS. The logins for managing count by workspace, and one person has 100 of them there. At the servers of a workspace 500 MB that have not ended, and 500 MB that ended last; 20 MB of new ones in a minute',
    deletedBy: 'upkeep, also those of deleted servers; logging in for managing',
  },
  {
    tables: ['handed_out_tokens'],
    bound:
      'until they expire; 100,000 of one server, 1,000,000 of a workspace, of which each server keeps an equal share',
    deletedBy: 'upkeep',
  },
  {
    tables: ['client_tokens'],
    bound: 'one row for each location of a token of a server; 30 days after it was last asked for',
    deletedBy: 'upkeep',
  },
  {
    tables: ['processes'],
    bound: 'a minute after the last sign of life',
    deletedBy: 'upkeep',
  },
  {
    tables: ['leases'],
    bound: 'one row for each kind of lease',
    deletedBy: 'nobody',
  },
  {
    tables: ['master_keys'],
    bound: 'one row for each key that the operator ever used',
    deletedBy: 'nobody',
  },
  {
    tables: ['migrations'],
    bound: 'one row for each migration of the program',
    deletedBy: 'nobody',
  },
];

for (const engine of engines) {
  describe(`the tables of ${engine}`, () => {
    let stores: Stores;
    let database: Database;
    before(async () => {
      stores = await startStores(engine);
      database = await stores.open();
    });
    after(() => stores?.stop());

    const tables = async () => {
      const names =
        engine === 'sqlite'
          ? sql<{ name: string }>`select name from sqlite_master where type = 'table' and name not like 'sqlite_%'`
          : sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`;
      return (await names.execute(database.db)).rows.map(({ name }) => name).toSorted();
    };

    it('[find A5] each have a bound, and those that upkeep prunes are declared', async () => {
      assert.deepEqual(rows.flatMap((row) => row.tables).toSorted(), await tables());
      for (const { tables: names, bound } of rows) assert.ok(bound.length > 5, `${names} has no bound`);
      const pruned = rows.filter(({ deletedBy }) => /\bupkeep\b/.test(deletedBy)).flatMap((row) => row.tables);
      assert.deepEqual(pruneTasks.flatMap(([tables]) => tables).toSorted(), pruned.toSorted());
    });
  });
}
