import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { engines } from '../../../../../test/sets.ts';
import { buildGrant } from '../../../../../test/support/store/rows.ts';
import { useDatabase } from '../../../../../test/support/store/use-stores.ts';
import { createKeyring } from '../sealing/sealing.ts';
import { findGrant, insertGrant, revokeGrant, revokeLoginsOfPerson } from './grants.ts';
import {
  deletePersonValues,
  deleteValuesInWorkspace,
  findPersonValues,
  findProvidedNames,
  hasActiveLogin,
  markValuesRefused,
  savePersonValues,
} from './person-values.ts';

const anna = { serverId: 'srv_1', userId: 'usr_anna' };
const bert = { serverId: 'srv_1', userId: 'usr_bert' };

for (const engine of engines) {
  describe(`values of people on ${engine}`, () => {
    const database = useDatabase(engine);
    const keyring = createKeyring([randomBytes(32)]);
    const save = (person: typeof anna, values: Record<string, string>, at = 1) =>
      savePersonValues(database.db, keyring, { ...person, workspaceId: 'ours', values, agreement: 'hosts', at });

    it('are sealed, belong to one person at one server, and replace earlier ones', async () => {
      assert.equal(await save(anna, { KEY: 'first-value' }), true);
      await save(anna, { KEY: 'key-of-anna', site: 'acme' }, 2);
      await save(bert, { KEY: 'key-of-bert' });
      const found = await findPersonValues(database.db, keyring, anna);
      assert.deepEqual([found?.values, found?.version], [{ KEY: 'key-of-anna', site: 'acme' }, 2]);
      assert.equal(await findPersonValues(database.db, keyring, { ...anna, serverId: 'srv_2' }), undefined);
      const rows = await database.db.selectFrom('person_values').selectAll().execute();
      assert.doesNotMatch(JSON.stringify(rows), /key-of-|acme/);
      const swapped = { sealed_values: rows.find((row) => row.user_id === bert.userId)?.sealed_values ?? '' };
      await database.db.updateTable('person_values').set(swapped).where('user_id', '=', anna.userId).execute();
      await assert.rejects(findPersonValues(database.db, keyring, anna), /changed outside the service/);
    });

    it('are marked as refused only in the version that the API refused', async () => {
      await save(anna, { KEY: 'old' });
      const { version = 0 } = (await findPersonValues(database.db, keyring, anna)) ?? {};
      await save(anna, { KEY: 'new' });
      const refuse = (at: number) => markValuesRefused(database.db, anna, { names: ['KEY'], version: at });
      assert.equal(await refuse(version), false);
      assert.equal(await refuse(version + 1), true);
      assert.deepEqual((await findPersonValues(database.db, keyring, anna))?.refused, ['KEY']);
      await save(anna, { KEY: 'newest' });
      assert.deepEqual((await findPersonValues(database.db, keyring, anna))?.refused, []);
    });

    it('are listed by name, and deleted for one server or a whole workspace', async () => {
      await save(anna, { KEY: 'x', site: 'y' });
      await save(bert, { KEY: 'z' });
      const names = await findProvidedNames(database.db, 'ours', [anna, bert]);
      assert.deepEqual([...names.values()].toSorted(), [['KEY'], ['KEY', 'site']]);
      assert.equal((await findProvidedNames(database.db, 'other', [anna])).size, 0);
      assert.equal(await deletePersonValues(database.db, anna), true);
      assert.equal(await deletePersonValues(database.db, anna), false);
      await deleteValuesInWorkspace(database.db, 'other', bert.userId);
      assert.notEqual(await findPersonValues(database.db, keyring, bert), undefined);
      await deleteValuesInWorkspace(database.db, 'ours', bert.userId);
      assert.equal(await findPersonValues(database.db, keyring, bert), undefined);
    });

    it('belong to a person with an active login until the last one ends', async () => {
      const logins = ['grt_a', 'grt_b'].map((id) => buildGrant({ id, person_id: anna.userId }));
      for (const login of logins) await insertGrant(database.db, login);
      await insertGrant(database.db, buildGrant({ id: 'grt_c', person_id: bert.userId }));
      await revokeGrant(database.db, 'grt_a', 5);
      assert.equal(await hasActiveLogin(database.db, anna), true);
      await revokeLoginsOfPerson(database.db, { workspaceId: 'ours', userId: anna.userId }, 6);
      assert.equal(await hasActiveLogin(database.db, anna), false);
      assert.equal((await findGrant(database.db, 'grt_c'))?.revoked_at, null);
    });
  });
}
