import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import type { ResealResult } from '../../apps/server/src/app/keys/reseal.ts';
import { createKeyring, sealedColumns } from '../../apps/server/src/store/sealing/sealing.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const generateKey = () => randomBytes(32).toString('base64');
const getKeyId = (key: string) => createKeyring([Buffer.from(key, 'base64')]).keyIds[0];

describe('the master key', () => {
  const [oldKey, fresh] = [generateKey(), generateKey()];
  const fixtures = useFixtures();
  const upstream = fixtures.start(startRecordingUpstream);
  const folder = fixtures.folder();

  const withMasterKey = async (MASTER_KEY: string, work: (toolhost: TestToolhost) => Promise<unknown>) => {
    const toolhost = await startToolhost({ dataDir: folder, egressPorts: [upstream.port], env: { MASTER_KEY } });
    try {
      await work(toolhost);
    } finally {
      await toolhost.stop();
    }
  };
  const assertSends = async (toolhost: TestToolhost) => {
    upstream.take();
    assert.notEqual((await toolhost.callTool('kept', await toolhost.createKey(), 'get')).isError, true);
    assert.equal(upstream.take()[0]?.headers.authorization, 'Bearer a-value');
  };

  it('[find C2] replaces the master key step by step, and afterwards opens everything with the new key', async () => {
    await withMasterKey(oldKey, async (toolhost) => {
      const config = buildServerAt('kept', upstream.url, { authentication: { type: 'Bearer', token: '{{TOKEN}}' } });
      await toolhost.createServer(config);
      await toolhost.rest('PUT', '/servers/kept/secrets/TOKEN', { body: { value: 'a-value' } });
    });
    await withMasterKey(`${oldKey},${fresh}`, assertSends);
    await withMasterKey(`${fresh},${oldKey}`, async (toolhost) => {
      const env = { DATA_DIR: folder, MASTER_KEY: `${fresh},${oldKey}` };
      const result = await runToolhostJson<ResealResult>(['master-key', 'reseal'], { env });
      assert.deepEqual(
        [result.sealing_key, result.left, result.unused_keys],
        [getKeyId(fresh), [], [getKeyId(oldKey)]],
      );
      assert.equal(result.resealed.secrets, 1);
      await assertSends(toolhost);
    });
    await withMasterKey(fresh, assertSends);
    await assert.rejects(
      withMasterKey(oldKey, async () => undefined),
      /does not have all keys of this database/,
    );
  });

  it('[find C2] reseals every sealed column of the tables', async () => {
    await withMasterKey(fresh, async (toolhost) => {
      const tables = await toolhost.running.app.runner.db.introspection.getTables();
      const inTables = tables.flatMap(({ name, columns }) =>
        columns.filter((column) => column.name.startsWith('sealed_')).map((column) => `${name}.${column.name}`),
      );
      assert.deepEqual(inTables.toSorted(), sealedColumns.map(({ table, column }) => `${table}.${column}`).toSorted());
    });
  });
});
