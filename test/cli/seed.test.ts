import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import { outcomes } from '@toolhost/errors/errors';
import type { Output } from '@toolhost/server/operations';
import { assertFailed } from '../support/toolhost/command-world.ts';
import { runScript } from '../support/toolhost/run-script.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';

const script = resolve(import.meta.dirname, '..', '..', 'examples', 'seed', 'main.ts');

describe('npm run seed', async () => {
  const run = (dir: string, ...args: string[]) => runScript(script, args, folder, { env: { DATA_DIR: dir } });
  const getJson = async <Body>(path: string): Promise<Body> => {
    const { status, body } = await toolhost.rest('GET', path, { key });
    assert.equal(status, 200, path);
    return body as Body;
  };

  const folder = mkdtempSync(join(tmpdir(), 'toolhost-seed-'));
  const dataDir = join(folder, 'data');
  assert.equal((await run(dataDir)).code, 0);
  const toolhost = await startToolhost({ dataDir });
  const key = await toolhost.createKey({ scopes: ['manage'] });
  after(async () => {
    await toolhost.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('creates servers with every kind of access, with versions, secrets, and logins', async () => {
    const { servers } = await getJson<Output<'listMcpServers'>>('/servers');
    const kinds = new Set(servers.map((server) => (server.open ? 'open' : server.access)));
    assert.deepEqual(kinds, new Set(['oauth', 'api_key', 'caller_token', 'open']));
    const { versions } = await getJson<Output<'listVersions'>>('/servers/invoices/versions');
    assert.equal(versions.length, 3);
    const { warnings, secrets } = await getJson<Output<'getMcpServer'>>('/servers/warehouse');
    assert.ok(warnings.some(({ message }) => message.includes('LABEL_PRINTER_KEY')));
    assert.deepEqual(secrets, ['WAREHOUSE_KEY']);
    const { grants } = await getJson<Output<'listGrants'>>('/grants?slug=helpdesk');
    assert.deepEqual(new Set(grants.map(({ status }) => status)), new Set(['active', 'broken']));
  });

  it('creates thousands of calls with all outcomes over the last month, their statistics, and captures of the newest', async () => {
    const since = new Date(Date.now() - 30 * 24 * 60 * 60_000).toISOString();
    const statistics = await getJson<Output<'getCallStatistics'>>(`/statistics?since=${since}&buckets=30`);
    const calls = statistics.buckets.reduce((sum, bucket) => sum + bucket.calls, 0);
    assert.ok(calls > 4000 && calls < 7000, String(calls));
    assert.ok(statistics.buckets.filter((bucket) => bucket.calls > 0).length >= 27);
    for (const outcome of outcomes) {
      const page = await getJson<Output<'listCalls'>>(`/calls?outcome=${outcome}&limit=1`);
      assert.equal(page.calls.length, 1, outcome);
    }
    const { calls: newest } = await getJson<Output<'listCalls'>>('/calls?slug=invoices&outcome=ok&limit=1');
    const { capture } = await getJson<Output<'getCall'>>(`/calls/${newest[0]?.id}`);
    assert.match(capture?.request?.url ?? '', /^https:\/\/invoices\.example\.com\//);
    assert.equal(capture?.response?.status, 200);
  });

  it('refuses to seed a folder that is not empty, and a database in which a slug exists', async () => {
    const usedFolder = join(folder, 'used');
    mkdirSync(usedFolder, { mode: 0o700 });
    writeFileSync(join(usedFolder, 'note.txt'), 'mine');
    assertFailed(await run(usedFolder), /^error: The folder .*used is not empty\. .*DATA_DIR=.*--add/);
    assert.deepEqual(readdirSync(usedFolder), ['note.txt']);
    assert.equal((await run(usedFolder, '--add')).code, 0);
    const repeated = await run(usedFolder, '--add');
    assert.match(repeated.stderr, /^error: The slug \w+ already exists in this database\. Nothing was changed/);
    const wrong = await run(usedFolder, '--force');
    assert.deepEqual([wrong.code, wrong.stderr], [2, 'error: --force is not an option; allowed: --add, --large\n']);
  });
});
