import { newId, type Random } from '@toolhost/credentials/ids';
import type { Kysely } from 'kysely';
import { insertAuditEvent } from './audit-events.ts';
import { recordChange } from './changes/follow-changes.ts';
import { transact } from './engine/watched-dialect.ts';
import { revokeGrant } from './logins/grants.ts';
import type { Tables } from './schema.ts';
import { getKeyIdColumn, retireKeys } from './sealing/master-keys.ts';
import { sealedColumns } from './sealing/sealing.ts';
import { removeSecret } from './servers/secrets.ts';

type DiscardOptions = {
  keyId: string;
  /** Returns the database time in epoch ms. */
  now: () => number;
  random: Random;
};

const rowsPerBatch = 100;

/**
 * Discards values that are sealed with a lost key. Secrets are deleted, with an audit event in their workspace. Logins
 * end, so that agents log in again. Captures, tokens of client credentials, and continuations and files of results are
 * deleted. Returns the number of rows by table.
 */
export async function discardSealed(db: Kysely<Tables>, options: DiscardOptions): Promise<{ [table: string]: number }> {
  const { keyId, now } = options;
  const discarded: { [table: string]: number } = {};
  for (const { table, column } of sealedColumns) {
    if (table === 'secrets') discarded[table] = await repeatUntilDone(() => discardSecrets(db, options));
    else if (table === 'grants') discarded[table] = await repeatUntilDone(() => discardGrants(db, options));
    else if (table === 'master_keys')
      await db.updateTable(table).set({ sealed_mac_key: '' }).where(getKeyIdColumn(column), '=', keyId).execute();
    else
      discarded[table] = Number(
        (await db.deleteFrom(table).where(getKeyIdColumn(column), '=', keyId).executeTakeFirst()).numDeletedRows,
      );
  }
  await retireKeys(db, [keyId], now());
  return discarded;
}

/** Repeats batches until no rows are left. */
async function repeatUntilDone(runBatch: () => Promise<number>): Promise<number> {
  let total = 0;
  for (let done = await runBatch(); done > 0; done = await runBatch()) total += done;
  return total;
}

function discardSecrets(db: Kysely<Tables>, { keyId, now, random }: DiscardOptions): Promise<number> {
  return transact(db, async (transaction) => {
    const rows = await transaction
      .selectFrom('secrets')
      .innerJoin('servers', 'servers.id', 'secrets.server_id')
      .select(['secrets.server_id as id', 'secrets.workspace_id as workspaceId', 'secrets.name', 'servers.slug'])
      .where(getKeyIdColumn('secrets.sealed_value'), '=', keyId)
      .limit(rowsPerBatch)
      .execute();
    for (const { id, workspaceId, name, slug } of rows) {
      await removeSecret(transaction, { id, workspaceId }, name);
      for (const ref of [id, slug]) await recordChange(transaction, { random, now }, 'server', ref);
      await insertAuditEvent(transaction, {
        id: newId(random, 'aud'),
        workspace_id: workspaceId,
        at: now(),
        actor_kind: 'operator',
        actor_id: 'operator',
        operation: 'deleteSecret',
        target: slug,
        detail: JSON.stringify({ name, reason: 'its master key is lost' }),
        request_id: 'master-key',
      });
    }
    return rows.length;
  });
}

function discardGrants(db: Kysely<Tables>, { keyId, now, random }: DiscardOptions): Promise<number> {
  return transact(db, async (transaction) => {
    const rows = await transaction
      .selectFrom('grants')
      .select('id')
      .where(getKeyIdColumn('sealed_tokens'), '=', keyId)
      .limit(rowsPerBatch)
      .execute();
    for (const { id } of rows) {
      await revokeGrant(transaction, id, now());
      await transaction.updateTable('grants').set({ sealed_tokens: '' }).where('id', '=', id).execute();
      await recordChange(transaction, { random, now }, 'grant', id);
    }
    return rows.length;
  });
}
