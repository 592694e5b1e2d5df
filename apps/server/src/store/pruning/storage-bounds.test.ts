import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sql } from 'kysely';
import { engines } from '../../../../../test/sets.ts';
import { useDatabase } from '../../../../../test/support/store/use-stores.ts';
import { pruneTasks } from './prunings.ts';

type Row = { tables: string[]; bound: string; deletedBy: string };

/**
 * Limits of each table, and the work that deletes its rows. Words in capitals are settings. Quotas are in
 * `apps/server/src/quotas.ts`.
 */
const rows: Row[] = [
  {
    tables: ['workspaces', 'members', 'users'],
    bound:
      'people who can sign in at the identity provider, who each own 20 and create 20 per day; quota members. Empty workspaces, and people without a workspace, are deleted after AUDIT_RETENTION_DAYS without a visit',
    deletedBy: 'upkeep',
  },
  {
    tables: ['servers'],
    bound:
      'quotas servers and megabytes; slugs for the tombstones, which stay because slugs are never reused. Deleted servers count toward megabytes until they are purged, after 30 days or when their space is needed',
    deletedBy: 'upkeep, and changing a server',
  },
  {
    tables: ['server_versions'],
    bound: 'quotas versions and megabytes; 20 MB per server',
    deletedBy: 'changing the server; upkeep with a deleted server',
  },
  {
    tables: ['imports'],
    bound: 'the newest five per server; quota megabytes',
    deletedBy: 'adding one; upkeep with a deleted server',
  },
  {
    tables: ['import_checks'],
    bound: 'one row per imported server, with at most ten descriptions; 50 watched ones per workspace',
    deletedBy: 'upkeep with a deleted server',
  },
  {
    tables: ['secrets'],
    bound: 'quota secrets, 200 per server',
    deletedBy: 'deleting a secret; upkeep with a deleted server',
  },
  {
    tables: ['person_values'],
    bound: '10,000 people per server, ten values of at most 8,192 characters each',
    deletedBy: 'the person; revoking their last login; leaving the workspace; upkeep with a deleted server',
  },
  { tables: ['models'], bound: '20 per workspace', deletedBy: 'deleting a model' },
  {
    tables: ['api_keys'],
    bound:
      'quota keys; revoked and expired keys are deleted after AUDIT_RETENTION_DAYS, as are those of a workspace beyond the newest 10,000, unless a key created with them still exists; quota daily_writes',
    deletedBy: 'upkeep',
  },
  {
    tables: ['calls', 'call_counts'],
    bound:
      'CALL_RETENTION_DAYS, counts per minute for three days; call limits, and 600 refused calls per minute and server in each process',
    deletedBy: 'upkeep',
  },
  {
    tables: ['usage_counts'],
    bound:
      'CALL_RETENTION_DAYS; one row per day for each server and key, and for each server and kind of other callers',
    deletedBy: 'upkeep',
  },
  {
    tables: ['call_quota_use'],
    bound:
      'one row for each call quota used in this minute or day, for each kind of login event at a server on this day, for the new logins of a workspace and of a server in this minute, and for the audit details of a workspace on this day',
    deletedBy: 'upkeep',
  },
  {
    tables: ['captures'],
    bound: 'a day; 64 KiB each before sealing, the newest 1,000 per server and 4,000 per workspace',
    deletedBy: 'upkeep, also those of deleted servers, and adding a capture',
  },
  {
    tables: ['result_chunks'],
    bound:
      'ten minutes; 64 MB and 2,000 rows per workspace, three quarters of it for unverified callers; the caller, or the address of unverified callers, that stores the most loses its oldest',
    deletedBy: 'upkeep, and storing the remainder of a result',
  },
  {
    tables: ['files', 'file_chunks'],
    bound:
      'ten minutes, and one more for downloads that have started; 100 MiB and 1,000 files per workspace, half of the free space for one address of unverified callers',
    deletedBy: 'upkeep, and storing a file',
  },
  { tables: ['webhooks'], bound: 'five per workspace', deletedBy: 'deleting one' },
  { tables: ['notifications'], bound: '30 days; 200 per day and workspace', deletedBy: 'upkeep' },
  {
    tables: ['audit_events'],
    bound:
      'AUDIT_RETENTION_DAYS; quota daily_writes, details of 32 KiB each, and 20 MB per day and workspace of those above 1,000 characters; per day, 500 login failures, 10,000 logins, and 10,000 ends at a server, and one row with the number of further ones (store/logins/login-events.ts)',
    deletedBy: 'upkeep',
  },
  { tables: ['changes'], bound: 'a day; quota daily_writes', deletedBy: 'upkeep' },
  { tables: ['sessions'], bound: 'seven days; 50 per person', deletedBy: 'upkeep, and signing in' },
  {
    tables: ['sign_in_links'],
    bound: 'fifteen minutes; one per start of the service and per use of toolhost open',
    deletedBy: 'upkeep, and using a link',
  },
  { tables: ['role_groups'], bound: '50 per workspace', deletedBy: 'setting others; deleting the workspace' },
  { tables: ['invitations'], bound: '90 days; quota members', deletedBy: 'upkeep, and signing in' },
  {
    tables: ['authorizations', 'codes'],
    bound: 'minutes, used codes a day; 300 requests per address and minute; codes end with their grant',
    deletedBy: 'upkeep; each new login removes two expired ones',
  },
  {
    tables: ['tokens'],
    bound:
      '30 days at most, and a day to detect a second use; 100 rotations per grant, and 200 tokens of each kind where one is used repeatedly',
    deletedBy: 'upkeep, and rotating a token',
  },
  {
    tables: ['grants'],
    bound:
      'per server, the 100,000 active ones used last and the 100,000 that ended last; ended ones are deleted after AUDIT_RETENTION_DAYS. Management logins count per workspace, where one person has at most 100. Per workspace, 500 MB of active ones and 500 MB of those that ended last; 20 MB of new ones per minute',
    deletedBy: 'upkeep, also those of deleted servers; management logins',
  },
  {
    tables: ['passthrough_tokens'],
    bound: 'until they expire; 100,000 per server, 1,000,000 per workspace, divided equally among its servers',
    deletedBy: 'upkeep',
  },
  {
    tables: ['client_tokens'],
    bound: 'one row for each token location of a server; 30 days after the last request',
    deletedBy: 'upkeep',
  },
  { tables: ['processes'], bound: 'a minute after the last heartbeat', deletedBy: 'upkeep' },
  { tables: ['leases'], bound: 'one row for each kind of lease', deletedBy: 'never' },
  { tables: ['master_keys'], bound: 'one row for each key that the operator has ever used', deletedBy: 'never' },
  { tables: ['migrations'], bound: 'one row for each migration of the program', deletedBy: 'never' },
];

for (const engine of engines)
  describe(`the tables of ${engine}`, () => {
    const database = useDatabase(engine);

    const tables = async () => {
      const names =
        engine === 'sqlite'
          ? sql<{ name: string }>`select name from sqlite_master where type = 'table' and name not like 'sqlite_%'`
          : sql<{ name: string }>`select tablename as name from pg_tables where schemaname = current_schema()`;
      return (await names.execute(database.db)).rows.map(({ name }) => name).toSorted();
    };

    it('[find A5] limits every table, and declares those that maintenance prunes', async () => {
      assert.deepEqual(rows.flatMap((row) => row.tables).toSorted(), await tables());
      for (const { tables: names, bound } of rows) assert.ok(bound.length > 5, `${names} has no bound`);
      const pruned = rows.filter(({ deletedBy }) => /\bupkeep\b/.test(deletedBy)).flatMap((row) => row.tables);
      assert.deepEqual(pruneTasks.flatMap(([tables]) => tables).toSorted(), pruned.toSorted());
    });
  });
