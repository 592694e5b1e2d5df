import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import { freshCall } from '../support/fresh-request.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { type SilentProxy, startSilentProxy } from '../support/upstreams/silent-proxy.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('a service that stops while its database is down', () => {
  const fixtures = useFixtures();
  const postgres = fixtures.start(startPostgres);
  const upstream = fixtures.start(startRecordingUpstream);
  let proxy: SilentProxy;
  let dataDir: string;
  let env: Record<string, string>;
  let child: ChildToolhost | undefined;
  before(() => upstream.on('*', () => ({ body: { fine: true } })));
  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'toolhost-records-'));
    const url = new URL(await postgres.createDatabase());
    proxy = await startSilentProxy({ host: url.hostname, port: Number(url.port) });
    url.port = String(proxy.port);
    env = { DATABASE_URL: url.href, MASTER_KEY: randomBytes(32).toString('base64') };
    const toolhost = await startToolhost({ egressPorts: [upstream.port], env });
    await toolhost.createServer(buildServerAt('things', upstream.url, { authentication: { type: 'Bearer' } }));
    await toolhost.stop();
  });
  afterEach(async () => {
    await child?.end('SIGKILL');
    await proxy.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const serve = (more: Record<string, string>) =>
    startChildToolhost({ ...env, EGRESS_ALLOW: `127.0.0.1:${upstream.port}`, DATA_DIR: dataDir, ...more });
  const call = async ({ url }: ChildToolhost) => {
    const { text } = await freshCall(url, 'things', { key: 'a-token' });
    assert.match(text, /fine/);
  };
  /** Makes calls while the database is up and while it is down, then sends the signal. */
  const stopDuringOutage = async (more: Record<string, string>, calls: number) => {
    child = await serve(more);
    // Every worker caches the server before the database goes down.
    for (let n = 0; n < 20; n++) await call(child);
    proxy.cut();
    for (let n = 0; n < calls; n++) await call(child);
    return child.end('SIGTERM');
  };
  const waitForRecordedCalls = async (): Promise<number> => {
    const toolhost = await startToolhost({ env, dataDir });
    try {
      for (;;) {
        const { body } = await toolhost.rest('GET', '/calls?slug=things&outcome=ok&limit=100');
        const count = (body.calls as Json[]).length;
        if (count >= 25 || findSpoolFiles().length === 0) return count;
      }
    } finally {
      await toolhost.stop();
    }
  };
  const findSpoolFiles = () => readdirSync(dataDir).filter((name) => name.startsWith('unwritten-calls'));

  for (const WORKERS of ['1', '2'])
    it(`[find C5] saves call records to a file that the next start writes to the database, with ${WORKERS} process(es)`, async () => {
      assert.equal(await stopDuringOutage({ WORKERS }, 5), 0, child?.output() ?? '');
      assert.match(child?.output() ?? '', /call records could not be written.*they were saved to a file/);
      assert.ok(findSpoolFiles().length >= 1);
      for (const file of findSpoolFiles()) assert.equal(statSync(join(dataDir, file)).mode & 0o777, 0o600);
      proxy.heal();
      assert.equal(await waitForRecordedCalls(), 25);
      assert.deepEqual([findSpoolFiles(), await waitForRecordedCalls()], [[], 25]);
    });

  it('[find C5] exits with 1 and reports the number of lost records if the data folder is missing', async () => {
    const missingFolder = join(dataDir, 'none');
    assert.equal(await stopDuringOutage({ DATA_DIR: missingFolder }, 5), 1);
    assert.match(child?.output() ?? '', /\d+ call records could not be written.*they were lost, because the folder/);
  });

  it('[find C5] reads a file whose last line is incomplete up to that line', async () => {
    await stopDuringOutage({}, 5);
    writeFileSync(join(dataDir, findSpoolFiles()[0] ?? ''), '{"id":"call_x","workspa', { flag: 'a' });
    proxy.heal();
    assert.equal(await waitForRecordedCalls(), 25);
    assert.deepEqual(findSpoolFiles(), []);
  });
});
