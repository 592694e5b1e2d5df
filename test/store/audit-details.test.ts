import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AuditEvent, insertAuditEvent, maxDetailCharsPerDay } from '../../apps/server/src/store/audit-events.ts';
import { engines } from '../sets.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const dayMs = 24 * 60 * 60_000;
const noon = Date.UTC(2026, 0, 1, 12);
const longDetailChars = 30_000;

for (const engine of engines)
  describe(`audit details on ${engine}`, () => {
    const world = useFixtures().start(() => startToolhostOnEngine(engine));

    const db = () => world.toolhost.running.app.runner.db;
    let count = 0;
    const buildEvent = (length: number, fields: Partial<AuditEvent> = {}): AuditEvent => ({
      id: `aud_${++count}`,
      workspace_id: 'local',
      at: noon,
      actor_kind: 'operator',
      actor_id: 'operator',
      operation: 'updateServer',
      target: null,
      detail: JSON.stringify('d'.repeat(length - 2)),
      request_id: 'of-this-test',
      ...fields,
    });
    async function fillDailyLimit(at: number): Promise<void> {
      for (let remaining = maxDetailCharsPerDay; remaining > 0; remaining -= longDetailChars)
        await insertAuditEvent(db(), buildEvent(longDetailChars, { at }));
    }
    const insertAndMeasure = async (written: AuditEvent) => {
      await insertAuditEvent(db(), written);
      const query = db().selectFrom('audit_events').select('detail').where('id', '=', written.id);
      return (await query.executeTakeFirstOrThrow()).detail.length;
    };

    it('[find A5] limits details above 1,000 characters to 20 MB per day and workspace', async () => {
      await fillDailyLimit(noon);
      const omittedLength = '{"left_out":true}'.length;
      assert.equal(await insertAndMeasure(buildEvent(longDetailChars)), omittedLength);
      assert.equal(await insertAndMeasure(buildEvent(1001)), omittedLength);
      assert.equal(await insertAndMeasure(buildEvent(1000)), 1000);
      assert.equal(await insertAndMeasure(buildEvent(longDetailChars, { workspace_id: 'another' })), longDetailChars);
      assert.equal(await insertAndMeasure(buildEvent(longDetailChars, { at: noon + dayMs })), longDetailChars);
      const rows = await db().selectFrom('audit_events').select('detail').where('at', '=', noon).execute();
      assert.ok(rows.reduce((sum, { detail }) => sum + detail.length, 0) < maxDetailCharsPerDay + 2 * longDetailChars);
    });

    it('[find A5] omits the details of a change above the daily limit, and makes the change', async () => {
      const { toolhost } = world;
      const slugs = Array.from({ length: 20 }, (_, n) => `server-${n}-${'s'.repeat(50)}`);
      for (const slug of slugs) await toolhost.createServer({ name: 'Named', slug, description: 'd', tools: [] });
      const createKeyAndGetDetail = async () => {
        const body = { name: 'of many servers', scopes: ['call'], servers: slugs };
        const created = await toolhost.rest('POST', '/keys', { body });
        assert.equal(created.status, 201, created.text);
        const events = db()
          .selectFrom('audit_events')
          .select('detail')
          .where('target', '=', created.body.id as string);
        return (await events.executeTakeFirstOrThrow()).detail;
      };
      assert.match(await createKeyAndGetDetail(), /server-19-s/);
      await fillDailyLimit(world.now());
      assert.equal(await createKeyAndGetDetail(), '{"left_out":true}');
    });
  });
