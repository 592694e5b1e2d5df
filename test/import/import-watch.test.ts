import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import type { LeaderJob } from '../../apps/server/src/app/leader-jobs/leader-job.ts';
import { startImportWatcher } from '../../apps/server/src/app/leader-jobs/watch-imports.ts';
import { pruneDeletedServers } from '../../apps/server/src/store/servers/deleted-servers.ts';
import { engines } from '../sets.ts';
import { eventually } from '../support/eventually.ts';
import { openApi } from '../support/import/import-plans.ts';
import { type EngineToolhost, startToolhostOnEngine } from '../support/toolhost/engine-toolhost.ts';
import type { Json, Reply } from '../support/toolhost/toolhost.ts';

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
  const paths = Object.fromEntries(
    Object.entries(summaries).map(([name, summary]) => [`/${name}`, { get: { operationId: name, summary } }]),
  );
  return JSON.stringify(openApi(paths, { servers: [{ url: 'https://things.example.com' }] }));
}
const initialOperations = { apples: 'List all the apples', pears: 'List all the pears' };

/** Starts a web server with an adjustable response that records its requests. */
async function startDocument(): Promise<{
  url: string;
  port: number;
  server: Server;
  asked: { ifNoneMatch: string | undefined }[];
  answer: RequestListener;
}> {
  const document = {
    asked: [] as { ifNoneMatch: string | undefined }[],
    answer: ((_, response) => response.end()) as RequestListener,
  };
  const server = createServer((request, response) => {
    document.asked.push({ ifNoneMatch: request.headers['if-none-match'] });
    document.answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(document, { url: `http://127.0.0.1:${port}/api.json`, port, server });
}

for (const engine of engines) {
  describe(`watch of imported descriptions on ${engine}`, () => {
    let document: Awaited<ReturnType<typeof startDocument>>;
    let world: EngineToolhost;
    let watchers: LeaderJob[];
    let count = 0;
    before(async () => {
      document = await startDocument();
      // Prevents automatic polls, so that only the test polls.
      const pollIntervalMs = day;
      world = await startToolhostOnEngine(engine, {
        egressPorts: [document.port],
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
      document?.server.close();
    });

    const rest = (method: string, path: string, body?: Json) =>
      world.toolhost.rest(method, path, body && { body }) as Promise<Reply<Json & { imported: State }>>;
    const serve = (text: string, headers: Record<string, string> = {}) => {
      document.answer = (_, response) => {
        response.writeHead(200, headers).end(text);
      };
    };
    async function importServer(summaries: { [name: string]: string } = initialOperations): Promise<string> {
      serve(createDocument(summaries));
      const slug = `watched-${engine}-${++count}`;
      const reply = await rest('POST', '/import', { mode: 'create', url: document.url, slug, include: ['*'] });
      assert.equal(reply.status, 200, reply.text);
      document.asked.length = 0;
      return slug;
    }
    const getState = async (slug: string) =>
      ((await rest('GET', `/servers/${slug}`)).body.server as unknown as { imported: State }).imported;
    const watch = async (slug: string, how: string) => {
      const reply = await rest('PUT', `/servers/${slug}/import/watch`, { watch: how });
      assert.equal(reply.status, 200, reply.text);
      return reply.body;
    };
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
      serve(createDocument({ apples: 'List the apples of the shop', plums: 'List all the plums' }));
      await pollAll();
      assert.deepEqual(
        [document.asked.length, (await getState(slug)).checked_at],
        [0, undefined],
        'no check before it is due',
      );
      await waitUntilDue(slug);
      await pollAll();
      assert.equal(document.asked.length, 1);
      const { changed, counts } = await getState(slug);
      assert.deepEqual([changed, counts], [true, { changed: 1, conflicts: 0, new: 1, gone: 1, server: 0 }]);
      const { servers } = (await rest('GET', '/servers')).body as unknown as {
        servers: { slug: string; imported?: State }[];
      };
      assert.equal(servers.find((server) => server.slug === slug)?.imported?.changed, true);
      assert.equal(((await rest('GET', `/servers/${slug}`)).body.server as unknown as Json).version, 1);
      for (let days = 1; days <= 3; days++) {
        assert.ok(Math.abs((await waitUntilDue(slug)) - day) < hour / 4, 'one day later');
        assert.equal(document.asked.length, 1 + days);
      }
      await watch(slug, 'never');
      await world.advanceTime(2 * day);
      await pollAll();
      assert.equal(document.asked.length, 4);
    });

    it('[imp 5] downloads a description only if it changed, and reports no changes after a re-import', async () => {
      const slug = await importServer();
      const changedDocument = createDocument({ ...initialOperations, plums: 'List all the plums' });
      document.answer = (request, response) => {
        if (request.headers['if-none-match'] === '"two"') response.writeHead(304).end();
        else response.writeHead(200, { etag: '"two"' }).end(changedDocument);
      };
      const check = async () => (await rest('POST', `/servers/${slug}/import/compare`)).body;
      assert.equal((await check()).imported.counts?.new, 1);
      const repeated = await check();
      assert.deepEqual([repeated.unchanged, repeated.imported.counts?.new], [true, 1]);
      assert.deepEqual(
        document.asked.map(({ ifNoneMatch }) => ifNoneMatch),
        [undefined, '"two"'],
      );
      await rest('POST', `/servers/${slug}/import`, { mode: 'apply' });
      assert.deepEqual(await getState(slug), { watch: 'never' });
      assert.deepEqual((await check()).imported.changed, false);
      await rest('POST', `/servers/${slug}/versions/1/restore`);
      assert.deepEqual(
        await getState(slug),
        { watch: 'never' },
        'a restored version discards the result of another import',
      );
      assert.equal((await check()).imported.changed, true);
    });

    it('[imp 5] retries an unreadable description with increasing delays, and shows the reason to the owner', async () => {
      const slug = await importServer();
      await watch(slug, 'daily');
      document.answer = (_, response) => {
        response.writeHead(500).end();
      };
      await waitUntilDue(slug);
      assert.match((await getState(slug)).error ?? '', /HTTP 500/);
      let requestCount = document.asked.length;
      for (const hours of [1, 2, 4, 8, 16, 24, 24]) {
        await world.advanceTime((hours / 2) * hour);
        await pollAll();
        assert.equal(document.asked.length, requestCount, `no retry before ${hours} hours`);
        await world.advanceTime((hours / 2) * hour);
        await pollAll();
        assert.equal(document.asked.length, ++requestCount);
      }
      serve(createDocument(initialOperations));
      await waitUntilDue(slug);
      const { error, changed } = await getState(slug);
      assert.deepEqual([error, changed], [undefined, false]);
      await watch(slug, 'never');
    });

    it('[imp 5] handles redirects, HTML, oversized bodies, and long validators of an adversarial server', async () => {
      const slug = await importServer();
      const getCheckError = async () =>
        (await rest('POST', `/servers/${slug}/import/compare`)).body.imported.error ?? '';
      document.answer = (_, response) => {
        response.writeHead(302, { location: 'http://169.254.169.254/latest/meta-data' }).end();
      };
      assert.match(await getCheckError(), /169\.254\.169\.254|private|not allowed|refused/i);
      serve('<!doctype html><title>Sign in</title>', { 'content-type': 'text/html' });
      assert.notEqual(await getCheckError(), '');
      document.answer = (_, response) => {
        response.writeHead(200, { 'content-length': 40 * 1024 * 1024 });
        response.write(Buffer.alloc(1024 * 1024, 32));
      };
      assert.match(await getCheckError(), /larger|more than|MiB|bytes|long/i);
      serve(createDocument(initialOperations), { etag: `"${'x'.repeat(2000)}"`, 'last-modified': 'x'.repeat(500) });
      assert.equal(await getCheckError(), '');
      await rest('POST', `/servers/${slug}/import/compare`);
      assert.equal(document.asked.at(-1)?.ifNoneMatch, undefined, 'a long ETag is not stored');
      document.answer = (_, response) => {
        response.writeHead(304).end();
      };
      assert.match(await getCheckError(), /HTTP 304/);
    });

    it('[find A8] does not delay other owners when the servers of one owner never respond', async () => {
      const creator = 'm'.repeat(22);
      const watched: [workspace: string, path: string][] = [
        [`wsp_${creator}1`, '/never'],
        [`wsp_${creator}2`, '/never'],
        [`wsp_${'n'.repeat(22)}1`, '/neighbor'],
      ];
      serve(createDocument(initialOperations));
      for (const [index, [workspace, path]] of watched.entries()) {
        const key = await world.toolhost.createKey({ workspace });
        const slug = `shared-${engine}-${index}`;
        const url = new URL(path, document.url).href;
        const body = { mode: 'create', url, slug, include: ['*'] };
        assert.equal((await world.toolhost.rest('POST', '/import', { key, body })).status, 200);
        const watching = { key, body: { watch: 'daily' } };
        assert.equal((await world.toolhost.rest('PUT', `/servers/${slug}/import/watch`, watching)).status, 200);
      }
      const { db } = await world.database();
      await world.advanceTime(2 * day);
      const heldResponses: ServerResponse[] = [];
      const requestedUrls: (string | undefined)[] = [];
      document.answer = (request, response) => {
        requestedUrls.push(request.url);
        if (request.url === '/never') heldResponses.push(response);
        else response.writeHead(200).end(createDocument(initialOperations));
      };
      const [watcher] = watchers;
      await watcher?.poll();
      const shared = db.selectFrom('import_checks').select('checked_at').where('workspace_id', 'like', 'wsp_%');
      const checked = async () => (await shared.execute()).filter(({ checked_at }) => checked_at !== null).length;
      await eventually(async () => assert.equal(await checked(), 1));
      assert.deepEqual(requestedUrls.toSorted(), ['/neighbor', '/never']);
      serve(createDocument(initialOperations));
      for (const response of heldResponses) response.writeHead(200).end(createDocument(initialOperations));
      await watcher?.whenIdle();
      assert.equal(await checked(), 3);
      await db.deleteFrom('import_checks').where('workspace_id', 'like', 'wsp_%').execute();
    });

    it('[imp 5] limits watches per workspace, requires a URL, and ends with the server', async () => {
      await world.toolhost.createServer({ name: 'By hand', slug: `hand-${engine}`, tools: [] });
      assert.match(
        (await rest('PUT', `/servers/hand-${engine}/import/watch`, { watch: 'daily' })).text,
        /not imported/,
      );
      const text = `text-${engine}`;
      await rest('POST', '/import', {
        mode: 'create',
        document: createDocument(initialOperations),
        slug: text,
        include: ['*'],
      });
      assert.match((await rest('PUT', `/servers/${text}/import/watch`, { watch: 'daily' })).text, /has no URL/);
      const slug = await importServer();
      const { db } = await world.database();
      const { workspace_id } = await db
        .selectFrom('servers')
        .select('workspace_id')
        .where('slug', '=', slug)
        .executeTakeFirstOrThrow();
      const rows = Array.from({ length: 50 }, (_, index) => ({
        server_id: `other-${index}`,
        workspace_id,
        watch: 'daily',
        due_at: world.now() + 30 * day,
        failures: 0,
      }));
      await db.insertInto('import_checks').values(rows).execute();
      assert.match((await rest('PUT', `/servers/${slug}/import/watch`, { watch: 'daily' })).text, /at most 50/);
      await db.deleteFrom('import_checks').where('server_id', 'like', 'other-%').execute();
      await watch(slug, 'daily');
      await rest('DELETE', `/servers/${slug}`);
      await world.advanceTime(2 * day);
      await pollAll();
      assert.equal(document.asked.length, 0);
      await pruneDeletedServers(db, Number.MAX_SAFE_INTEGER, world.now());
      const remaining = await db.selectFrom('import_checks').select('server_id').execute();
      const servers = await db.selectFrom('servers').select('id').where('deleted_at', 'is', null).execute();
      assert.ok(remaining.every(({ server_id }) => servers.some(({ id }) => id === server_id)));
      const foreignKey = await world.toolhost.createKey({ workspace: 'strangers' });
      const reply = await world.toolhost.rest('POST', `/servers/${text}/import/compare`, { key: foreignKey });
      assert.equal(reply.status, 404);
    });
  });
}
