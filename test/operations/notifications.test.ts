import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { after, afterEach, describe, it } from 'node:test';
import { pino } from 'pino';
import { startNotifier } from '../../apps/server/src/app/leader-jobs/deliver-notifications.ts';
import { startEventDetection } from '../../apps/server/src/app/leader-jobs/detect-events.ts';
import type { LeaderJob } from '../../apps/server/src/app/leader-jobs/leader-job.ts';
import { requireServing } from '../../apps/server/src/operations/operation.ts';
import { engines } from '../sets.ts';
import { createPersonSession } from '../support/browser/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import { createPersonClient } from '../support/toolhost/rest-clients.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startMailServer } from '../support/upstreams/mail-server.ts';
import { type RecordedRequest, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const dayMs = 24 * 3_600_000;
type StoredNotification = { event: string; text: string; page: string; attempts: number; deliveries: Json[] };

for (const engine of engines) {
  describe(`notifications on ${engine}`, async () => {
    const [receiver, otherReceiver] = [await startRecordingUpstream(), await startRecordingUpstream()];
    const mail = await startMailServer();
    const world = await startToolhostOnEngine(engine, {
      egressPorts: [receiver.port, otherReceiver.port],
      env: { SMTP_URL: mail.url, MAIL_FROM: 'Toolhost <toolhost@tools.example>', QUOTAS: 'writes=0,secrets=10' },
      // Events are only detected when the test polls.
      runtimeOptions: { leaderPollIntervalMs: dayMs },
    });
    after(async () => {
      await world.stop();
      await Promise.all([receiver.close(), otherReceiver.close(), mail.close()]);
    });

    const { deps, db } = world.toolhost.running.app.runner;
    const rest = (method: string, path: string, body?: Json) => world.toolhost.rest(method, path, body && { body });
    const startJob = async (start: typeof startEventDetection | typeof startNotifier): Promise<LeaderJob> => {
      const log = pino({ level: process.env.TEST_LOG ?? 'silent' });
      return start(await world.database(), log, { ...deps, ...requireServing(deps), pollIntervalMs: dayMs });
    };
    const poll = async (start: typeof startEventDetection | typeof startNotifier) => {
      const job = await startJob(start);
      await job.poll();
      await job.whenIdle();
      await job.stop();
    };
    /** Polls for events and sends notifications, like a process that has just become the leader. */
    const pollAndNotify = async () => {
      await poll(startEventDetection);
      await poll(startNotifier);
    };
    /** Creates a server and makes 20 calls that its API fails. */
    const makeFailingCalls = async (slug: string) => {
      receiver.on(`GET /${slug}`, () => ({ status: 500 }));
      await world.toolhost.createServer(buildServerAt(slug, '', { tools: [buildToolAt(`${receiver.url}/${slug}`)] }));
      for (let call = 0; call < 20; call++) await world.toolhost.callTool(slug, 'token-of-a-caller', 'get');
      await rest('GET', '/calls');
    };
    const listNotifications = async () =>
      (await rest('GET', '/notifications')).body.notifications as StoredNotification[];
    const createWebhook = async (path: string, events: string[]) => {
      const { status, body, text } = await rest('POST', '/webhooks', { url: `${receiver.url}${path}`, events });
      assert.equal(status, 201, text);
      return body as { id: string; secret: string };
    };
    afterEach(async () => {
      for (const { id } of (await rest('GET', '/webhooks')).body.webhooks as Json[])
        assert.equal((await rest('DELETE', `/webhooks/${id}`)).status, 200);
    });
    const respondWith = (path: string, status: number) => receiver.on(`POST ${path}`, () => ({ status }));
    const getReceived = (path: string) => receiver.requests.filter(({ url }) => url === path);
    const parseReceived = (path: string) => getReceived(path).map(({ body }) => JSON.parse(String(body)));
    const isSigned = ({ headers, body }: RecordedRequest, secret: string) => {
      const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
      const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
      return headers['webhook-signature'] === `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
    };

    it('are sent once a day, signed, to a webhook subscribed to a failing API', async () => {
      const webhook = await createWebhook('/hook?token=secret-path', ['upstream.failing']);
      assert.deepEqual((await rest('POST', `/webhooks/${webhook.id}/test`)).body, { delivered: true });
      const [test] = receiver.take();
      assert.ok(test && isSigned(test, webhook.secret));
      assert.equal(JSON.parse(String(test.body)).type, 'test');
      await makeFailingCalls('shop');
      receiver.take();
      for (const _ of [1, 2]) await pollAndNotify();
      const [sent, ...more] = receiver.take();
      assert.ok(sent && isSigned(sent, webhook.secret) && more.length === 0);
      const { type, text, data } = JSON.parse(String(sent.body));
      assert.deepEqual([type, data.subject], ['upstream.failing', 'shop']);
      assert.match(text, /^The API of shop is failing: 20 of 20 calls failed since .*\/calls\?server=shop$/);
      const [notification] = await listNotifications();
      assert.deepEqual(notification?.deliveries, [{ to: 'webhook', name: receiver.url, state: 'delivered' }]);
      for (const path of ['/notifications', '/webhooks'])
        assert.doesNotMatch((await rest('GET', path)).text, /secret-path/);
    });

    it('[find B8] are not sent to a former member, nor to their webhook until a member confirms it', async () => {
      const asOwner = createPersonClient(world.toolhost, await createPersonSession(world.toolhost, { name: 'Olga' }));
      const editor = await createPersonSession(world.toolhost, { name: 'Ed', role: 'editor' });
      const asEditor = createPersonClient(world.toolhost, editor);
      const events = ['upstream.failing'];
      const { body: webhook } = await asEditor('POST', '/webhooks', { url: `${receiver.url}/left`, events });
      await asEditor('PUT', '/notification-settings', { events });
      assert.equal((await asOwner('DELETE', `/members/usr_${editor}`)).status, 200);
      await makeFailingCalls('till');
      await pollAndNotify();
      assert.deepEqual([getReceived('/left'), mail.mails], [[], []]);
      assert.equal((await asOwner('PATCH', `/webhooks/${webhook.id}`, { paused: false })).status, 200);
      await pollAndNotify();
      assert.deepEqual([getReceived('/left').length, mail.mails.length], [1, 0]);
    });

    it('are retried for a day with the same ID, and then abandoned, if the receiver fails', async () => {
      await createWebhook('/down', ['quota.near']);
      respondWith('/down', 503);
      for (let n = 0; n < 8; n++) await rest('PUT', `/servers/shop/secrets/S${n}`, { value: `value-${n}-of-secret` });
      const startedAt = world.now();
      const getQuotaNotification = async () =>
        (await listNotifications()).findLast(({ event }) => event === 'quota.near');
      await pollAndNotify();
      let notification = await getQuotaNotification();
      assert.match(notification?.text ?? '', /^8 of 10 secrets in all servers are used\.$/);
      const delivery = { to: 'webhook', name: receiver.url, state: 'waiting', error: 'HTTP 503' };
      assert.deepEqual(notification?.deliveries, [delivery]);
      for (let minutes = 1; notification?.deliveries[0]?.state === 'waiting'; minutes *= 3) {
        await world.advanceTime(minutes * 60_000);
        await pollAndNotify();
        notification = await getQuotaNotification();
        assert.ok(world.now() - startedAt < 3 * dayMs);
      }
      assert.deepEqual([notification?.deliveries[0]?.state, notification?.attempts], ['failed', 7]);
    });

    it('keep the webhook secret when path and events change, and are not sent while the webhook is paused', async () => {
      const webhook = await createWebhook('/old', ['key.unused']);
      const change = (body: Json) => rest('PATCH', `/webhooks/${webhook.id}`, body);
      assert.equal((await change({ url: 'https://169.254.169.254/' })).status, 400);
      assert.equal((await change({ events: [] })).status, 400);
      assert.equal((await rest('PATCH', '/webhooks/whk_none', { paused: true })).status, 404);
      const changed = await change({ url: `${receiver.url}/new`, events: ['quota.near'] });
      assert.deepEqual([changed.status, changed.body.events], [200, ['quota.near']]);
      assert.equal((await change({ url: `${receiver.url}/new`, paused: false })).body.unchanged, true);
      await rest('POST', `/webhooks/${webhook.id}/test`);
      const [test] = getReceived('/new');
      assert.ok(test && isSigned(test, webhook.secret) && getReceived('/old').length === 0);
      // The test of a failing receiver has already sent the notification of this day.
      await world.advanceTime(31 * dayMs);
      assert.ok((await change({ paused: true })).body.paused_at);
      await pollAndNotify();
      assert.equal(getReceived('/new').length, 1);
      assert.equal((await change({ paused: false })).body.paused_at, undefined);
      await pollAndNotify();
      assert.equal(parseReceived('/new').at(-1).data.subject, 'secrets');
    });

    it('are signed with a new secret, shown once, after a webhook moves to another origin [sec A12]', async () => {
      const webhook = await createWebhook('/before', ['key.unused']);
      const change = (body: Json) => rest('PATCH', `/webhooks/${webhook.id}`, body);
      const moved = await change({ url: `${otherReceiver.url}/after` });
      const secret = String(moved.body.secret);
      assert.match(secret, /^whsec_/);
      assert.notEqual(secret, webhook.secret);
      const shownLater = [await change({ url: `${otherReceiver.url}/later` }), await rest('GET', '/webhooks')];
      for (const { text } of shownLater) assert.doesNotMatch(text, /whsec_/);
      await rest('POST', `/webhooks/${webhook.id}/test`);
      const [test] = otherReceiver.take();
      assert.ok(test && isSigned(test, secret));
    });

    it('are mailed to subscribers when keys expire or stay unused and when a login ends', async () => {
      const session = await createPersonSession(world.toolhost, { name: 'Ada' });
      const requestAs = createPersonClient(world.toolhost, session);
      const expireSessionAt = (expires_at: number) => db.updateTable('sessions').set({ expires_at }).execute();
      // The session was created with the clock of this machine.
      await expireSessionAt(world.now() + 400 * dayMs);
      const subscribedEvents = ['key.expiring', 'key.unused', 'login.ended'];
      const set = await requestAs('PUT', '/notification-settings', { events: subscribedEvents });
      assert.deepEqual([set.status, set.body.events, set.body.mail_available], [200, subscribedEvents, true]);
      await rest('POST', '/keys', { name: 'Idle', scopes: ['call'] });
      const expiring = { name: 'Ends', scopes: ['call'], expires_in: 30 * 86_400 };
      const { body: expiringKey } = await rest('POST', '/keys', expiring);
      await pollAndNotify();
      assert.equal(mail.mails.length, 0);
      await world.advanceTime(25 * dayMs);
      mail.state.refusesRecipients = true;
      await pollAndNotify();
      assert.deepEqual((await listNotifications())[0]?.deliveries[0], {
        to: 'mail',
        // Only people see names.
        name: `usr_${session}`,
        state: 'waiting',
        error: 'the mail server rejected the message',
      });
      mail.state.refusesRecipients = false;
      await world.advanceTime(2 * 60_000);
      await pollAndNotify();
      const [sent, ...others] = [...mail.mails];
      assert.ok(sent && others.length === 0);
      assert.match(sent.text, /^From: Toolhost <toolhost@tools\.example>$/m);
      assert.match(sent.text.replaceAll(/=\n/g, ''), /\/keys\n\n[\s\S]*\/notifications/);
      assert.match(String(sent.to), /^usr_.*@mail\.example$/);
      await rest('DELETE', `/keys/${expiringKey.id}`);
      await world.advanceTime(70 * dayMs);
      await expireSessionAt(world.now() + dayMs);
      await pollAndNotify();
      const texts = (await listNotifications()).map(({ text }) => text);
      assert.ok(texts.includes('The API key “Idle” was not used for 90 days.'), texts.join());
      mail.mails.length = 0;
      await requestAs('PUT', '/notification-settings', { events: [] });
      await world.advanceTime(31 * dayMs);
      await pollAndNotify();
      assert.equal(mail.mails.length, 0);
    });

    it('mention no one and hide no link in a chat webhook, whatever a key is named [sec N1]', async () => {
      const name = '<!channel> @everyone [docs](https://evil.example)';
      const { body: key } = await rest('POST', '/keys', { name, scopes: ['call'] });
      await createWebhook('/chat', ['key.unused']);
      await world.advanceTime(91 * dayMs);
      await pollAndNotify();
      const { text, data } = parseReceived('/chat').find((one) => one.data.subject === key.id);
      const chatText =
        'The API key “‹!channel› @\u200beveryone [docs]\u200b(https://evil.example)” was not used for 90 days.';
      assert.equal(text, `${chatText} ${data.link}`);
      assert.equal(data.text, `The API key “${name}” was not used for 90 days.`);
    });

    it('cover all of many unused and expiring keys, and logins only of existing servers', async () => {
      const workspace_id = 'local';
      const key = { workspace_id, secret_hash: 'none', scopes: '["call"]', created_by: 'usr', created_at: 1 };
      const keys = Array.from({ length: 60 }, (_, n) => ({ ...key, id: `key_many-${n}`, name: `Many ${n}` }));
      await db.insertInto('api_keys').values(keys).execute();
      const expiringFields = { last_used_at: world.now(), expires_at: world.now() + dayMs };
      const expiringKeys = keys.map((one, n) => ({ ...one, ...expiringFields, id: `key_ends-${n}` }));
      await db.insertInto('api_keys').values(expiringKeys).execute();
      for (const slug of ['left', 'stays']) await world.toolhost.createServer(buildServerAt(slug, receiver.url));
      const servers = db.selectFrom('servers').select(['id', 'slug']).where('slug', 'in', ['left', 'stays']);
      const login = { workspace_id, client_id: 'c', client_name: 'C', scope: '', agreement: '', sealed_tokens: '' };
      const times = { generation: 1, rotated_at: 1, created_at: 1, tokens_version: 1, broken_at: world.now() };
      for (const { id: server_id, slug } of await servers.execute()) {
        const grant = { ...login, ...times, id: `grt_${slug}`, server_id, slug };
        await db.insertInto('grants').values(grant).execute();
      }
      await rest('DELETE', '/servers/left');
      await createWebhook('/many', ['key.unused', 'key.expiring', 'login.ended']);
      for (const _ of [1, 2]) await pollAndNotify();
      const subjects = parseReceived('/many').map(({ data }) => String(data.subject));
      for (const kind of ['key_many-', 'key_ends-'])
        assert.equal(subjects.filter((subject) => subject.startsWith(kind)).length, 60, kind);
      const logins = subjects.filter((subject) => !subject.startsWith('key_'));
      assert.deepEqual(logins, ['stays']);
    });

    it('[find A8] let the hanging receivers of one creator take at most half of the slots across all their workspaces', async () => {
      const workspaces = [1, 2, 3].map((n) => `wsp_${'m'.repeat(22)}${n}`);
      const neighbor = `wsp_${'n'.repeat(22)}1`;
      otherReceiver.on('POST /never', () => 'hold');
      for (const workspace of [...workspaces, neighbor]) {
        const [url, keys] =
          workspace === neighbor ? [`${receiver.url}/neighbor`, 3] : [`${otherReceiver.url}/never`, 6];
        const key = await world.toolhost.createKey({ workspace });
        await world.toolhost.rest('POST', '/webhooks', { key, body: { url, events: ['key.unused'] } });
        for (let n = 1; n < keys; n++) await world.toolhost.createKey({ workspace });
      }
      await world.advanceTime(91 * dayMs);
      await poll(startEventDetection);
      const notifier = await startJob(startNotifier);
      await notifier.poll();
      const getHeldRequests = () => otherReceiver.requests.filter(({ url }) => url === '/never');
      // The key that created the webhook may count as unused too, because its use is written in batches.
      await eventually(() =>
        assert.deepEqual([getReceived('/neighbor').length >= 2, getHeldRequests().length], [true, 4]),
      );
      await notifier.stop();
      for (const request of getHeldRequests()) request.release();
      const ids = [...workspaces, neighbor];
      for (const table of ['webhooks', 'notifications'] as const)
        await db.deleteFrom(table).where('workspace_id', 'in', ids).execute();
    });

    it('are sent for a changed description among many unchanged ones', async () => {
      await createWebhook('/changed', ['description.changed']);
      const none = { changed: 0, conflicts: 0, new: 0, gone: 0, server: 0 };
      for (let n = 0; n <= 50; n++) await world.toolhost.createServer(buildServerAt(`watched-${n}`, receiver.url));
      const query = db.selectFrom('servers').select(['id', 'slug', 'workspace_id']).where('slug', 'like', 'watched-%');
      const servers = await query.orderBy('id').execute();
      for (const { id: server_id, workspace_id, slug } of servers) {
        const counts = JSON.stringify({ ...none, new: slug === servers.at(-1)?.slug ? 10 : 0 });
        const row = { server_id, workspace_id, watch: 'daily', due_at: world.now() + dayMs, counts, failures: 0 };
        await db.insertInto('import_checks').values(row).execute();
      }
      await pollAndNotify();
      const [sent] = getReceived('/changed');
      assert.match(String(sent?.body), /The description of watched-\d+ has changed: 10 new operations/);
    });

    it('allow a workspace at most five webhooks, with URLs that the service may call', async () => {
      const urls = ['http://127.0.0.1:9/', 'https://user:pass@hooks.example/', 'https://169.254.169.254/'];
      for (const url of [...urls, 'x', 'ftp://a.example/'])
        assert.equal((await rest('POST', '/webhooks', { url, events: ['key.unused'] })).status, 400, url);
      const webhooks = [];
      for (let n = 0; n < 5; n++) webhooks.push(await createWebhook(`/${n}`, ['key.unused']));
      const refused = await rest('POST', '/webhooks', { url: `${receiver.url}/5`, events: ['key.unused'] });
      assert.deepEqual([refused.status, /5 webhooks/.test(refused.text)], [403, true]);
      respondWith('/0', 302);
      const { body } = await rest('POST', `/webhooks/${webhooks[0]?.id}/test`);
      assert.deepEqual(body, { delivered: false, error: 'HTTP 302' });
      assert.deepEqual(getReceived('/5'), []);
    });
  });
}
