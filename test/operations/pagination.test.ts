import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { insertAuditEvent } from '../../apps/server/src/store/audit-events.ts';
import { saveInvitation } from '../../apps/server/src/store/people/members.ts';
import { saveMember, saveUser } from '../../apps/server/src/store/people/users.ts';
import { deleteServer } from '../../apps/server/src/store/servers/deleted-servers.ts';
import { insertServer } from '../../apps/server/src/store/servers/servers.ts';
import { engines } from '../sets.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { personRequest } from '../support/browser/person-request.ts';
import { getOutput } from '../support/oauth/management-agent.ts';
import { buildServer } from '../support/store/rows.ts';
import { type EngineToolhost, startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const defaultQuota = 1000;
/** Creation time of rows. It is recent because the service prunes old rows some time after its start. */
const startedAt = Date.now();

for (const engine of engines) {
  describe(`long lists on ${engine}`, () => {
    let world: EngineToolhost;
    let key: string;
    before(async () => {
      world = await startToolhostOnEngine(engine);
      key = await world.toolhost.createKey({ workspace: 'full' });
      const { db } = world.toolhost.running.app.runner;
      await db.transaction().execute(async (transaction) => {
        for (let n = 0; n < defaultQuota; n += 1)
          await insertServer(transaction, buildServer({ workspaceId: 'full', slug: `full-${n}`, createdAt: 1000 + n }));
      });
      for (let n = 0; n < 30; n += 1) {
        const deleted = buildServer({ workspaceId: 'full', slug: `gone-${n}`, createdAt: 5000 });
        await insertServer(db, deleted);
        await deleteServer(db, deleted, 6000);
      }
    });
    after(() => world?.stop());

    const getSlugs = (body: Json) => (body.servers as Json[]).map(({ slug }) => slug);

    it('[find E2] return all servers of a workspace without a limit parameter, up to the default quota', async () => {
      const { body } = await world.toolhost.rest('GET', '/servers', { key });
      assert.deepEqual([getSlugs(body).length, body.next_cursor], [defaultQuota, undefined]);
      assert.deepEqual(getSlugs(body).slice(0, 2), ['full-999', 'full-998']);
      const listed = await world.toolhost.callTool('manage', key, 'listMcpServers');
      assert.equal(getSlugs(getOutput(listed)).length, defaultQuota);
    });

    it('[find E2] return a cursor if there are more servers', async () => {
      const { db } = world.toolhost.running.app.runner;
      const more = buildServer({ workspaceId: 'full', slug: 'one-more', createdAt: 10_000 });
      await insertServer(db, more);
      const first = (await world.toolhost.rest('GET', '/servers', { key })).body;
      const second = (await world.toolhost.rest('GET', `/servers?cursor=${first.next_cursor}`, { key })).body;
      assert.deepEqual([getSlugs(first).length, getSlugs(second)], [defaultQuota, ['full-0']]);
      await deleteServer(db, more, 11_000);
    });

    it('[find A4] return shorter pages of versions if their configurations are large', async () => {
      const manager = await world.toolhost.createKey();
      const description = (n: number) => `${n} ${'x'.repeat(1900)}`;
      const tools = (n: number) =>
        Array.from({ length: 100 }, (_, i) => ({
          name: `tool_${i}`,
          description: description(n),
          method: 'GET',
          url: 'https://api.example.com/v1/things',
          input_schema: {},
        }));
      await world.toolhost.createServer({ name: 'Large', slug: 'large', tools: tools(1) });
      for (let n = 2; n <= 8; n += 1) {
        const { status } = await world.toolhost.rest('PATCH', '/servers/large', {
          key: manager,
          body: { tools: tools(n) },
        });
        assert.equal(status, 200);
      }
      const found: unknown[] = [];
      for (let query = ''; ; ) {
        const { body, text } = await world.toolhost.rest('GET', `/servers/large/versions${query}`, { key: manager });
        assert.ok(text.length < 1_200_000, String(text.length));
        found.push(...(body.versions as Json[]).map(({ version }) => version));
        if (body.next_cursor === undefined) break;
        query = `?cursor=${body.next_cursor}`;
      }
      assert.deepEqual(found, [8, 7, 6, 5, 4, 3, 2, 1]);
    });

    it('[find A4] return shorter pages of audit events if events are large, and omit details that are too large', async () => {
      const { db } = world.toolhost.running.app.runner;
      const auditor = await world.toolhost.createKey({ workspace: 'audited' });
      const event = (n: number, length: number) => ({
        id: `aud_${String(n).padStart(3, '0')}`,
        workspace_id: 'audited',
        at: startedAt + n,
        actor_kind: 'operator',
        actor_id: 'operator',
        operation: 'deleteSecret',
        target: null,
        detail: JSON.stringify({ name: 'n'.repeat(length) }),
        request_id: 'of-this-test',
      });
      for (let n = 0; n < 40; n += 1) await insertAuditEvent(db, event(n, 30_000));
      await insertAuditEvent(db, event(40, 2_000_000));
      const found: Json[] = [];
      for (let query = '?limit=200'; ; ) {
        const { body, text } = await world.toolhost.rest('GET', `/audit${query}`, { key: auditor });
        assert.ok(text.length < 600_000, String(text.length));
        found.push(...(body.events as Json[]));
        if (body.next_cursor === undefined) break;
        query = `?limit=200&cursor=${body.next_cursor}`;
      }
      const own = found.filter(({ request_id }) => request_id === 'of-this-test');
      assert.equal(own.length, 41);
      assert.deepEqual(
        own.slice(0, 1).map(({ detail }) => detail),
        [{ left_out: true }],
      );
    });

    it('[find A4] return members before invitations, in pages of any size', async () => {
      const { db } = world.toolhost.running.app.runner;
      const session = await createPersonSession(world.toolhost, { name: 'Owner' });
      for (let n = 0; n < 5; n += 1) {
        const user = { id: `usr_${n}`, issuer: 'i', subject: `s${n}`, email: `m${n}@b.example`, name: null };
        await saveUser(db, { ...user, at: startedAt });
        await saveMember(db, { workspaceId: 'local', userId: user.id, role: 'viewer', at: startedAt });
        const address = { workspaceId: 'local', email: `i.${n}+x@b.example` };
        await saveInvitation(db, { ...address, role: 'viewer', invitedBy: 'x', createdAt: startedAt });
      }
      const all = (await personRequest(world.toolhost, session, 'GET', '/members')).body;
      const getEmails = ({ members, invitations }: Json) =>
        [...(members as Json[]), ...(invitations as Json[])].map(({ email }) => email);
      assert.equal(getEmails(all).length, 11);
      for (const limit of [1, 2, 3, 5, 6, 7, 11]) {
        const found: unknown[] = [];
        for (let query = `?limit=${limit}`; ; ) {
          const { status, body } = await personRequest(world.toolhost, session, 'GET', `/members${query}`);
          assert.equal(status, 200);
          assert.ok(getEmails(body).length <= limit);
          found.push(...getEmails(body));
          if (body.next_cursor === undefined) break;
          query = `?limit=${limit}&cursor=${body.next_cursor}`;
        }
        assert.deepEqual(found, getEmails(all), String(limit));
      }
    });
  });
}
