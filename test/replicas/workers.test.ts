import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import { engines } from '../sets.ts';
import { eventually } from '../support/eventually.ts';
import { freshCall, freshRequest } from '../support/fresh-request.ts';
import { signInAgent } from '../support/oauth/signed-in-agent.ts';
import { startDedicatedPostgres, startPostgres } from '../support/store/postgres.ts';
import { usePostgres } from '../support/store/use-postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const workerCount = 3;
const replacementTimeoutMs = 30_000;

/** Returns the process IDs of all workers that were ever ready, in starting order. */
function getWorkerPids(child: ChildToolhost): number[] {
  return [...child.output().matchAll(/"worker":(\d+),"msg":"worker is ready"/g)].map(([, pid]) => Number(pid));
}

async function killWorker(child: ChildToolhost, pid: number): Promise<void> {
  const before = getWorkerPids(child).length;
  process.kill(pid, 'SIGKILL');
  await eventually(() => assert.equal(getWorkerPids(child).length, before + 1), replacementTimeoutMs);
}

for (const engine of engines)
  describe(`multiple workers on ${engine}`, () => {
    const fixtures = useFixtures();
    const dataDir = fixtures.folder();
    const upstream = fixtures.start(startRecordingUpstream);
    const postgres = engine === 'postgres' ? fixtures.start(startPostgres) : undefined;
    let key: string;
    const child = fixtures.start(
      async () => {
        const env = {
          DATA_DIR: dataDir,
          MASTER_KEY: randomBytes(32).toString('base64'),
          EGRESS_ALLOW: `127.0.0.1:${upstream.port}`,
          // Workers divide limits, and chance decides which worker receives a call.
          CALLS_PER_SECOND: '0',
          CONCURRENT_CALLS: '0',
          CONCURRENT_CALLS_PER_KEY: '0',
          TRUSTED_PROXIES: '1',
          ...(postgres && { DATABASE_URL: await postgres.createDatabase() }),
        };
        const toolhost = await startToolhost({ dataDir, env });
        key = await toolhost.createKey();
        await toolhost.stop();
        return startChildToolhost({ ...env, WORKERS: String(workerCount) });
      },
      (serving) => serving.end('SIGKILL'),
    );
    before(async () => {
      const body = buildServerAt('things', upstream.url);
      assert.equal((await freshRequest(`${child.url}/api/v1/servers`, { key, body })).status, 201);
    });
    beforeEach(() => {
      upstream.on('*', () => ({ body: {} }));
      upstream.take();
    });

    // The kernel assigns connections randomly. With this many, a worker receives none in one of a hundred million runs.
    const sendToAllWorkers = <Result>(send: () => Promise<Result>) =>
      Promise.all(Array.from({ length: 16 * workerCount }, send));

    const callAllWorkers = () => sendToAllWorkers(() => freshCall(child.url, 'things', { key }));

    it('share one port, and become ready together', async () => {
      const replies = await sendToAllWorkers(() => freshRequest(`${child.url}/readyz`));
      assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]));
      // A request ID begins with the ID of its process.
      const processes = new Set(replies.map(({ headers }) => String(headers['x-request-id']).slice(0, 10)));
      assert.equal(processes.size, workerCount);
      assert.equal(child.output().match(/^toolhost ready /gm)?.length, 1);
    });

    it('each serve a change made by one of them within two seconds', async () => {
      for (const { status } of await callAllWorkers()) assert.equal(status, 200);
      const body = { tools: [buildToolAt(`${upstream.url}/moved`)] };
      const changed = await freshRequest(`${child.url}/api/v1/servers/things`, { key, method: 'PATCH', body });
      assert.equal(changed.status, 200);
      await eventually(async () => {
        upstream.take();
        await callAllWorkers();
        assert.deepEqual(new Set(upstream.requests.map(({ url }) => url)), new Set(['/moved']));
      }, replacementTimeoutMs);
    });

    it('fail independently: if one dies, the others continue and a new one replaces it', async () => {
      upstream.on('*', () => 'hold');
      const calls = Array.from({ length: 16 * workerCount }, () => freshCall(child.url, 'things', { key }));
      const settledCalls = Promise.allSettled(calls);
      await upstream.waitForRequest(calls.length);
      const [killedPid] = getWorkerPids(child).slice(-1);
      await killWorker(child, Number(killedPid));
      for (const request of upstream.requests) request.release({ body: {} });
      const lost = (await settledCalls).filter((settledCall) => settledCall.status === 'rejected').length;
      assert.ok(lost > 0 && lost < calls.length, `${lost} of ${calls.length}`);
      for (const settledCall of await settledCalls)
        if (settledCall.status === 'fulfilled') assert.match(settledCall.value.text, /"isError":false|"content"/);
      upstream.on('*', () => ({ body: {} }));
      for (const { status } of await callAllWorkers()) assert.equal(status, 200);
      assert.match(child.output(), new RegExp(`"worker":${killedPid},"exitCode":null,"signal":"SIGKILL"`));
    });

    const readCounters = async () => {
      const { text } = await freshRequest(`${child.url}/metrics`);
      const values = [...text.matchAll(/^(toolhost_processes|toolhost_calls_total\{outcome="ok".*\}) (\d+)$/gm)];
      const sum = (name: string) =>
        values
          .filter(([, sample]) => sample?.startsWith(name))
          .reduce((total, [, , value]) => total + Number(value), 0);
      return { processes: sum('toolhost_processes'), calls: sum('toolhost_calls_total') };
    };
    /** Returns the number of calls of all workers, once each of them has reported. */
    const countCalls = () =>
      eventually(async () => {
        const { processes, calls } = await readCounters();
        assert.equal(processes, workerCount);
        return calls;
      });

    it('count together, whichever worker is asked', async () => {
      const before = await countCalls();
      const calls = await callAllWorkers();
      for (const reply of calls) assert.equal(reply.status, 200, reply.text);
      // A worker that is late counts with its previous number, so the latest calls may be missing at first.
      await eventually(async () =>
        assert.deepEqual(new Set(await sendToAllWorkers(countCalls)), new Set([before + calls.length])),
      );
    });

    it('stop together with exit code 0 and leave an intact database', async () => {
      assert.equal(await child.end(), 0);
      for (const pid of getWorkerPids(child)) assert.throws(() => process.kill(pid, 0), /ESRCH/);
      if (engine === 'postgres') return;
      const file = new DatabaseSync(join(dataDir, 'toolhost.sqlite'));
      assert.deepEqual({ ...file.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
      assert.deepEqual(file.prepare('pragma foreign_key_check').all(), []);
      file.close();
    });
  });

describe('the primary process of several workers', () => {
  const fixtures = useFixtures();
  const env = { DATA_DIR: fixtures.folder(), WORKERS: '2' };
  const otherFolder = fixtures.folder();
  let child: ChildToolhost | undefined;
  afterEach(() => child?.end('SIGKILL'));

  it('refuses a second service on the SQLite file, and leaves no workers behind when killed', async () => {
    child = await startChildToolhost(env);
    await assert.rejects(startChildToolhost(env), /another toolhost process serves from \S+toolhost\.sqlite; stop it/);
    // Resolves when the last worker has closed the output streams that it shares with the primary process.
    assert.equal(await child.end('SIGKILL'), 'SIGKILL');
    child = await startChildToolhost({ ...env, WORKERS: '1' });
    assert.equal(await child.end(), 0);
  });

  it('runs the identity provider and the example server of local mode for all workers', async () => {
    child = await startChildToolhost({ ...env, DEMO: '1' });
    const { url } = child;
    for (let login = 0; login < 4; login++) assert.match((await signInAgent({ url })).tokens.access_token, /^tha_/);
    const calls = Array.from({ length: 6 }, () =>
      freshCall(url, 'projects', { tool: 'list_projects', key: 'local-example-key' }),
    );
    for (const reply of await Promise.all(calls)) assert.match(reply.text, /Website relaunch/);
    assert.equal(await child.end(), 0);
  });

  it('reports a port that is in use once, and does not start', async () => {
    child = await startChildToolhost({ ...env, WORKERS: '1' });
    const PORT = new URL(child.url).port;
    await assert.rejects(startChildToolhost({ ...env, DATA_DIR: otherFolder, PORT }), ({ message }: Error) => {
      const problems = message.match(/port \d+ is in use; stop the process that uses it, or set PORT/g);
      assert.equal(problems?.length, 1, message);
      assert.doesNotMatch(message, /\n\s+at /);
      return true;
    });
    assert.equal(await child.end(), 0);
  });

  it('exits with an error message when workers keep dying', async () => {
    const serving = await startChildToolhost(env);
    child = serving;
    const ended = serving.ended();
    let over = false;
    void ended.then(() => {
      over = true;
    });
    let killed = 0;
    while (!over) {
      const [latest = 0] = getWorkerPids(serving).slice(-1);
      if (getWorkerPids(serving).length === 2 + killed) {
        process.kill(latest, 'SIGKILL');
        killed += 1;
      }
      await eventually(() => assert.ok(over || getWorkerPids(serving).length === 2 + killed), replacementTimeoutMs);
    }
    assert.equal(await ended, 1);
    assert.ok(killed >= 8, String(killed));
    assert.match(serving.output(), /8 consecutive workers ended within seconds; the service is shutting down/);
  });
});

describe('workers without a database', () => {
  const fixtures = useFixtures();
  const { postgres, database } = usePostgres(fixtures, startDedicatedPostgres);
  const DATA_DIR = fixtures.folder();

  it('continue without a worker that died, which restarts when the database is back', async (t) => {
    const child = await startChildToolhost({ ...database.env, DATA_DIR, WORKERS: '2' });
    t.after(() => child.end('SIGKILL'));
    await postgres.crash();
    process.kill(Number(getWorkerPids(child)[0]), 'SIGKILL');
    const failedStarts = () => child.output().match(/"exitCode":1,/g)?.length ?? 0;
    await eventually(() => assert.ok(failedStarts() > 8, child.output()), 10 * replacementTimeoutMs);
    assert.equal((await freshRequest(`${child.url}/livez`)).status, 200);
    await postgres.restart();
    await eventually(() => assert.equal(getWorkerPids(child).length, 3), replacementTimeoutMs);
    assert.equal((await freshRequest(`${child.url}/livez`)).status, 200);
    // If no serving worker is left, failing starts end the service.
    await postgres.crash();
    for (const pid of getWorkerPids(child).slice(1)) process.kill(pid, 'SIGKILL');
    assert.equal(await child.ended(), 1);
  });
});
