import { type Kysely, sql } from 'kysely';
import { newId, type Random } from '../domain/ids.ts';
import { insertAuditEvent } from './audit-events.ts';
import { recordChange } from './changes/changes.ts';
import { revokeGrant } from './logins/grants.ts';
import type { Tables } from './schema.ts';
import { retireKeys } from './sealing/master-keys.ts';
import { removeSecret } from './servers/secrets.ts';
import { transact } from './transact.ts';

type DiscardOptions = {
  keyId: string;
  /** The database's time, epoch ms. */
  now: () => number;
  random: Random;
};

const rowsAtOnce = 100;

/**
 * Discards values that are sealed with a lost key: secrets are deleted, with an audit event in their workspace; logins
 * end, so that agents log in again; captures, tokens of client credentials, rests and files of answers are deleted. Returns the
 * number of rows by table.
 */
export async function discardSealed(db: Kysely<Tables>, options: DiscardOptions): Promise<{ [table: string]: number }> {
  const { keyId, now } = options;
  const isSealed = (column: string) => sql<boolean>`substr(${sql.ref(column)}, 4, 8) = ${keyId}`;
  type Emptied = 'authorizations' | 'captures' | 'client_tokens' | 'answer_pieces' | 'files' | 'file_chunks';
  const removeAll = async (table: Emptied, column: string) =>
    Number((await db.deleteFrom(table).where(isSealed(column)).executeTakeFirst()).numDeletedRows);
  const discarded = {
    secrets: await repeat(() => discardSecrets(db, options)),
    grants: await repeat(() => endGrants(db, options)),
    authorizations: await removeAll('authorizations', 'sealed_verifier'),
    captures: await removeAll('captures', 'sealed_document'),
    client_tokens: await removeAll('client_tokens', 'sealed_token'),
    answer_pieces: await removeAll('answer_pieces', 'sealed_pieces'),
    files: await removeAll('files', 'sealed_head'),
    file_chunks: await removeAll('file_chunks', 'sealed_chunk'),
  };
  await db.updateTable('master_keys').set({ sealed_mac_key: '' }).where(isSealed('sealed_mac_key')).execute();
  await retireKeys(db, [keyId], now());
  return discarded;
}

/** Repeats batches until no row is left. */
async function repeat(work: () => Promise<number>): Promise<number> {
  let all = 0;
  for (let done = await work(); done > 0; done = await work()) all += done;
  return all;
}

function discardSecrets(db: Kysely<Tables>, { keyId, now, random }: DiscardOptions): Promise<number> {
  return transact(db, async (transaction) => {
    const rows = await transaction
      .selectFrom('secrets')
      .innerJoin('servers', 'servers.id', 'secrets.server_id')
      .select(['secrets.server_id as id', 'secrets.workspace_id as workspaceId', 'secrets.name', 'servers.slug'])
      .where(sql<boolean>`substr(secrets.sealed_value, 4, 8) = ${keyId}`)
      .limit(rowsAtOnce)
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

function endGrants(db: Kysely<Tables>, { keyId, now, random }: DiscardOptions): Promise<number> {
  return transact(db, async (transaction) => {
    const rows = await transaction
      .selectFrom('grants')
      .select('id')
      .where(sql<boolean>`substr(sealed_tokens, 4, 8) = ${keyId}`)
      .limit(rowsAtOnce)
      .execute();
    for (const { id } of rows) {
      await revokeGrant(transaction, id, now());
      await transaction.updateTable('grants').set({ sealed_tokens: '' }).where('id', '=', id).execute();
      await recordChange(transaction, { random, now }, 'grant', id);
    }
    return rows.length;
  });
}
