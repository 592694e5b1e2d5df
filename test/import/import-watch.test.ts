import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import type { LeaderJob } from '../../apps/server/src/app/leader-jobs/leader-job.ts';
import { startImportWatcher } from '../../apps/server/src/app/leader-jobs/watch-imports.ts';
import { pruneDeletedServers } from '../../apps/server/src/store/servers/deleted-servers.ts';
import { engines } from '../sets.ts';
import { eventually } from '../support/eventually.ts';
import { openApi } from '../support/import/import-plans.ts';
import { pluck } from '../support/pluck.ts';
import { type EngineToolhost, startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';
import {
  type CannedResponse,
  type Handler,
  type RecordingUpstream,
  startRecordingUpstream,
} from '../support/upstreams/recording-upstream.ts';

type State = {
  watch: string;
  checked_at?: string;
  next_check_at?: string;
  changed?: boolean;
  counts?: Record<string, number>;
  error?: string;
};

const hour = 3_600_000;
const day = 24 * hour;

/** Returns the description of an API with these operations and summaries. */
function createDocument(summaries: { [name: string]: string }): string {
  const operations = Object.entries(summaries);
  const paths = operations.map(([operationId, summary]) => [`/${operationId}`, { get: { operationId, summary } }]);
  return JSON.stringify(openApi(Object.fromEntries(paths), { servers: [{ url: 'https://things.example.com' }] }));
}
const initialOperations = { apples: 'List all the apples', pears: 'List all the pears' };
const initial = { body: createDocument(initialOperations) };

for (const engine of engines) {
  describe(`watch of imported descriptions on ${engine}`, () => {
    let upstream: RecordingUpstream;
    let world: EngineToolhost;
    let watchers: LeaderJob[];
    let count = 0;
    before(async () => {
      upstream = await startRecordingUpstream();
      // Prevents automatic polls, so that only the test polls.
      const pollIntervalMs = day;
      world = await startToolhostOnEngine(engine, {
        egressPorts: [upstream.port],
        runtimeOptions: { leaderPollIntervalMs: pollIntervalMs },
      });
      const { deps } = world.toolhost.running.app.runner;
      const log = pino({ level: 'silent' });
      const database = await world.database();
      // Two more processes on the same database. Their clocks are hours off, which must not matter.
      watchers = [0, 1].map(() => startImportWatcher(database, log, { ...deps, pollIntervalMs }));
    });
    after(async () => {
      for (const watcher of watchers ?? []) await watcher.stop();
      await world?.stop();
      await upstream?.close();
    });

    const rest = (method: string, path: string, body?: Json) =>
      world.toolhost.rest(method, path, body && { body }) as Promise<Reply<Json & { imported: State }>>;
    const serve = (response: CannedResponse | Handler) =>
      upstream.on('*', typeof response === 'function' ? response : () => response);
    async function importServer(): Promise<string> {
      serve(initial);
      const slug = `watched-${engine}-${++count}`;
      const reply = await rest('POST', '/import', { mode: 'create', url: upstream.url, slug, include: ['*'] });
      assert.equal(reply.status, 200, reply.text);
      upstream.take();
      return slug;
    }
    const getServer = async (slug: string) =>
      (await rest('GET', `/servers/${slug}`)).body.server as { imported: State; version: number };
    const getState = async (slug: string) => (await getServer(slug)).imported;
    const tryWatch = (slug: string, how = 'daily') => rest('PUT', `/servers/${slug}/import/watch`, { watch: how });
    const watch = async (slug: string, how: string) => {
      const reply = await tryWatch(slug, how);
      assert.equal(reply.status, 200, reply.text);
      return reply.body;
    };
    const check = async (slug: string) => (await rest('POST', `/servers/${slug}/import/compare`)).body;
    /** Lets every process poll for due checks, several times. */
    const pollAll = async () => {
      for (let round = 0; round < 2; round++) {
        await Promise.all(watchers.map((watcher) => watcher.poll()));
        await Promise.all(watchers.map((watcher) => watcher.whenIdle()));
        await world.advanceTime(61_000);
      }
    };

    /** Waits until the next check is due, lets every process poll, and returns the elapsed time. */
    const waitUntilDue = async (slug: string): Promise<number> => {
      const before = world.now();
      const due = Date.parse((await getState(slug)).next_check_at ?? '');
      await world.advanceTime(Math.max(0, due - before) + 1000);
      const passed = world.now() - before;
      await pollAll();
      return passed;
    };

    it('[imp 5] checks a description once a day in one of several processes, and reports the changes in the server list', async () => {
      const slug = await importServer();
      const watched = await watch(slug, 'daily');
      assert.equal((await watch(slug, 'daily')).unchanged, true);
      const due = Date.parse(watched.imported.next_check_at ?? '');
      assert.ok(due > world.now() && due <= world.now() + day, String(watched.imported.next_check_at));
      serve({ body: createDocument({ apples: 'List the apples of the shop', plums: 'List all the plums' }) });
      await pollAll();
      const { checked_at: checkedAt } = await getState(slug);
      assert.deepEqual([upstream.requests.length, checkedAt], [0, undefined], 'no check before it is due');
      await waitUntilDue(slug);
      await pollAll();
      assert.equal(upstream.requests.length, 1);
      const { imported, version } = await getServer(slug);
      assert.deepEqual(imported.counts, { changed: 1, conflicts: 0, new: 1, gone: 1, server: 0 });
      assert.deepEqual([imported.changed, version], [true, 1]);
      const servers = (await rest('GET', '/servers')).body.servers as { slug: string; imported?: State }[];
      assert.equal(servers.find((server) => server.slug === slug)?.imported?.changed, true);
      for (let days = 1; days <= 3; days++) {
        assert.ok(Math.abs((await waitUntilDue(slug)) - day) < hour / 4, 'one day later');
        assert.equal(upstream.requests.length, 1 + days);
      }
      await watch(slug, 'never');
      await world.advanceTime(2 * day);
      await pollAll();
      assert.equal(upstream.requests.length, 4);
    });

    it('[imp 5] downloads a description only if it changed, and reports no changes after a re-import', async () => {
      const slug = await importServer();
      const body = createDocument({ ...initialOperations, plums: 'List all the plums' });
      serve(({ headers }) =>
        headers['if-none-match'] === '"two"' ? { status: 304 } : { headers: { etag: '"two"' }, body },
      );
      assert.equal((await check(slug)).imported.counts?.new, 1);
      const repeated = await check(slug);
      assert.deepEqual([repeated.unchanged, repeated.imported.counts?.new], [true, 1]);
      assert.deepEqual(
        upstream.requests.map(({ headers }) => headers['if-none-match']),
        [undefined, '"two"'],
      );
      await rest('POST', `/servers/${slug}/import`, { mode: 'apply' });
      assert.deepEqual(await getState(slug), { watch: 'never' });
      assert.deepEqual((await check(slug)).imported.changed, false);
      await rest('POST', `/servers/${slug}/versions/1/restore`);
      assert.deepEqual(await getState(slug), { watch: 'never' }, 'a restored version discards the earlier result');
      assert.equal((await check(slug)).imported.changed, true);
    });

    it('[imp 5] retries an unreadable description with increasing delays, and shows the reason to the owner', async () => {
      const slug = await importServer();
      await watch(slug, 'daily');
      serve({ status: 500 });
      await waitUntilDue(slug);
      assert.match((await getState(slug)).error ?? '', /HTTP 500/);
      let requestCount = upstream.requests.length;
      for (const hours of [1, 2, 4, 8, 16, 24, 24]) {
        await world.advanceTime((hours / 2) * hour);
        await pollAll();
        assert.equal(upstream.requests.length, requestCount, `no retry before ${hours} hours`);
        await world.advanceTime((hours / 2) * hour);
        await pollAll();
        assert.equal(upstream.requests.length, ++requestCount);
      }
      serve(initial);
      await waitUntilDue(slug);
      const { error, changed } = await getState(slug);
      assert.deepEqual([error, changed], [undefined, false]);
      await watch(slug, 'never');
    });

    it('[imp 5] handles redirects, HTML, oversized bodies, and long validators of an adversarial server', async () => {
      const slug = await importServer();
      const getCheckError = async (response: CannedResponse) => {
        serve(response);
        return (await check(slug)).imported.error ?? '';
      };
      const location = 'http://169.254.169.254/latest/meta-data';
      const redirected = await getCheckError({ status: 302, headers: { location } });
      assert.match(redirected, /169\.254\.169\.254|private|not allowed|refused/i);
      const page = { headers: { 'content-type': 'text/html' }, body: '<!doctype html><title>Sign in</title>' };
      assert.notEqual(await getCheckError(page), '');
      const large = { headers: { 'content-length': 40 * 1024 * 1024 }, body: Buffer.alloc(1024 * 1024, 32) };
      assert.match(await getCheckError(large), /larger|more than|MiB|bytes|long/i);
      const headers = { etag: `"${'x'.repeat(2000)}"`, 'last-modified': 'x'.repeat(500) };
      assert.equal(await getCheckError({ ...initial, headers }), '');
      await check(slug);
      assert.equal(upstream.requests.at(-1)?.headers['if-none-match'], undefined, 'a long ETag is not stored');
      assert.match(await getCheckError({ status: 304 }), /HTTP 304/);
    });

    it('[find A8] does not delay other owners when the servers of one owner never respond', async () => {
      const creator = 'm'.repeat(22);
      const owners = [`wsp_${creator}1/never`, `wsp_${creator}2/never`, `wsp_${'n'.repeat(22)}1/neighbor`];
      serve(initial);
      for (const [index, owner] of owners.entries()) {
        const [workspace = '', path] = owner.split('/');
        const key = await world.toolhost.createKey({ workspace });
        const slug = `shared-${engine}-${index}`;
        const body = { mode: 'create', url: `${upstream.url}/${path}`, slug, include: ['*'] };
        assert.equal((await world.toolhost.rest('POST', '/import', { key, body })).status, 200);
        const watching = { key, body: { watch: 'daily' } };
        assert.equal((await world.toolhost.rest('PUT', `/servers/${slug}/import/watch`, watching)).status, 200);
      }
      const { db } = await world.database();
      await world.advanceTime(2 * day);
      upstream.take();
      serve(({ url }) => (url === '/never' ? 'hold' : initial));
      const [watcher] = watchers;
      await watcher?.poll();
      const shared = db.selectFrom('import_checks').select('checked_at').where('workspace_id', 'like', 'wsp_%');
      const checked = async () => (await shared.execute()).filter(({ checked_at }) => checked_at !== null).length;
      await eventually(async () => assert.equal(await checked(), 1));
      assert.deepEqual(pluck(upstream.requests, 'url').toSorted(), ['/neighbor', '/never']);
      serve(initial);
      for (const request of upstream.take()) request.release(initial);
      await watcher?.whenIdle();
      assert.equal(await checked(), 3);
      await db.deleteFrom('import_checks').where('workspace_id', 'like', 'wsp_%').execute();
    });

    it('[imp 5] limits watches per workspace, requires a URL, and ends with the server', async () => {
      await world.toolhost.createServer({ name: 'By hand', slug: `hand-${engine}`, tools: [] });
      assert.match((await tryWatch(`hand-${engine}`)).text, /not imported/);
      const text = `text-${engine}`;
      await rest('POST', '/import', { mode: 'create', document: initial.body, slug: text, include: ['*'] });
      assert.match((await tryWatch(text)).text, /has no URL/);
      const slug = await importServer();
      const { db } = await world.database();
      const owned = db.selectFrom('servers').select('workspace_id').where('slug', '=', slug);
      const { workspace_id } = await owned.executeTakeFirstOrThrow();
      const common = { workspace_id, watch: 'daily', due_at: world.now() + 30 * day, failures: 0 };
      const rows = Array.from({ length: 50 }, (_, index) => ({ server_id: `other-${index}`, ...common }));
      await db.insertInto('import_checks').values(rows).execute();
      assert.match((await tryWatch(slug)).text, /at most 50/);
      await db.deleteFrom('import_checks').where('server_id', 'like', 'other-%').execute();
      await watch(slug, 'daily');
      await rest('DELETE', `/servers/${slug}`);
      await world.advanceTime(2 * day);
      await pollAll();
      assert.equal(upstream.requests.length, 0);
      await pruneDeletedServers(db, Number.MAX_SAFE_INTEGER, world.now());
      const remaining = await db.selectFrom('import_checks').select('server_id').execute();
      const servers = await db.selectFrom('servers').select('id').where('deleted_at', 'is', null).execute();
      assert.ok(remaining.every(({ server_id }) => servers.some(({ id }) => id === server_id)));
    });
  });
}
