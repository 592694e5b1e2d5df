import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { insertAuditEvent } from '../../apps/server/src/store/audit-events.ts';
import { saveInvitation } from '../../apps/server/src/store/people/members.ts';
import { saveMember, saveUser } from '../../apps/server/src/store/people/users.ts';
import { deleteServer } from '../../apps/server/src/store/servers/deleted-servers.ts';
import { insertServer } from '../../apps/server/src/store/servers/servers.ts';
import { engines } from '../sets.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { getOutput } from '../support/oauth/management-agent.ts';
import { pluck } from '../support/pluck.ts';
import { buildServer } from '../support/store/rows.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { createKeyClient, createPersonClient, type Send } from '../support/toolhost/rest-clients.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const defaultQuota = 1000;
/** Creation time of rows. It is recent because the service prunes old rows some time after its start. */
const startedAt = Date.now();

for (const engine of engines) {
  describe(`long lists on ${engine}`, async () => {
    const world = await startToolhostOnEngine(engine);
    const key = await world.toolhost.createKey({ workspace: 'full' });
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
    after(() => world.stop());

    const getSlugs = (body: Json) => pluck(body.servers, 'slug');
    /** Returns the bodies of all pages, each of which must succeed and be shorter than this. */
    const readPages = async (send: Send, path: string, maxLength: number): Promise<Json[]> => {
      const pages: Json[] = [];
      for (let cursor: unknown = ''; cursor !== undefined; cursor = pages.at(-1)?.next_cursor) {
        const { status, body } = await send('GET', `${path}${cursor && `&cursor=${cursor}`}`);
        assert.equal(status, 200);
        assert.ok(JSON.stringify(body).length < maxLength);
        pages.push(body);
      }
      return pages;
    };

    it('[find E2] return all servers of a workspace without a limit parameter, up to the default quota', async () => {
      const { body } = await world.toolhost.rest('GET', '/servers', { key });
      assert.deepEqual([getSlugs(body).length, body.next_cursor], [defaultQuota, undefined]);
      assert.deepEqual(getSlugs(body).slice(0, 2), ['full-999', 'full-998']);
      const listed = await world.toolhost.callTool('manage', key, 'listMcpServers');
      assert.equal(getSlugs(getOutput(listed)).length, defaultQuota);
    });

    it('[find E2] return a cursor if there are more servers', async () => {
      const more = buildServer({ workspaceId: 'full', slug: 'one-more', createdAt: 10_000 });
      await insertServer(db, more);
      const first = (await world.toolhost.rest('GET', '/servers', { key })).body;
      const second = (await world.toolhost.rest('GET', `/servers?cursor=${first.next_cursor}`, { key })).body;
      assert.deepEqual([getSlugs(first).length, getSlugs(second)], [defaultQuota, ['full-0']]);
      await deleteServer(db, more, 11_000);
    });

    it('[find A4] return shorter pages of versions if their configurations are large', async () => {
      const manager = await world.toolhost.createKey();
      const url = 'https://api.example.com/v1/things';
      const tools = (n: number) =>
        Array.from({ length: 100 }, (_, i) =>
          buildToolAt(url, { name: `tool_${i}`, description: `${n} ${'x'.repeat(1900)}` }),
        );
      await world.toolhost.createServer({ name: 'Large', slug: 'large', tools: tools(1) });
      const send = createKeyClient(world.toolhost, manager);
      for (let n = 2; n <= 8; n += 1)
        assert.equal((await send('PATCH', '/servers/large', { tools: tools(n) })).status, 200);
      const pages = await readPages(send, '/servers/large/versions?', 1_200_000);
      assert.deepEqual(
        pages.flatMap((page) => pluck(page.versions, 'version')),
        [8, 7, 6, 5, 4, 3, 2, 1],
      );
      assert.ok(pages.length > 1);
    });

    it('[find A4] return shorter pages of audit events if events are large, and omit details that are too large', async () => {
      const auditor = await world.toolhost.createKey({ workspace: 'audited' });
      const event = (n: number, length: number) => ({
        ...{ id: `aud_${String(n).padStart(3, '0')}`, workspace_id: 'audited', at: startedAt + n, target: null },
        ...{ actor_kind: 'operator', actor_id: 'operator', operation: 'deleteSecret', request_id: 'of-this-test' },
        detail: JSON.stringify({ name: 'n'.repeat(length) }),
      });
      for (let n = 0; n < 40; n += 1) await insertAuditEvent(db, event(n, 30_000));
      await insertAuditEvent(db, event(40, 2_000_000));
      const pages = await readPages(createKeyClient(world.toolhost, auditor), '/audit?limit=200', 600_000);
      const found = pages.flatMap(({ events }) => events as Json[]);
      const own = found.filter(({ request_id }) => request_id === 'of-this-test');
      assert.equal(own.length, 41);
      assert.deepEqual(pluck(own.slice(0, 1), 'detail'), [{ left_out: true }]);
    });

    it('[find A4] return members before invitations, in pages of any size', async () => {
      const send = createPersonClient(world.toolhost, await createPersonSession(world.toolhost, { name: 'Owner' }));
      for (let n = 0; n < 5; n += 1) {
        const user = { id: `usr_${n}`, issuer: 'i', subject: `s${n}`, email: `m${n}@b.example`, name: null };
        await saveUser(db, { ...user, at: startedAt });
        await saveMember(db, { workspaceId: 'local', userId: user.id, role: 'viewer', at: startedAt });
        const address = { workspaceId: 'local', email: `i.${n}+x@b.example` };
        await saveInvitation(db, { ...address, role: 'viewer', invitedBy: 'x', createdAt: startedAt });
      }
      const all = (await send('GET', '/members')).body;
      const getEmails = ({ members, invitations }: Json) => [
        ...pluck(members, 'email'),
        ...pluck(invitations, 'email'),
      ];
      assert.equal(getEmails(all).length, 11);
      for (const limit of [1, 2, 3, 5, 6, 7, 11]) {
        const pages = (await readPages(send, `/members?limit=${limit}`, 100_000)).map(getEmails);
        for (const emails of pages) assert.ok(emails.length <= limit);
        assert.deepEqual(pages.flat(), getEmails(all), String(limit));
      }
    });
  });
}
