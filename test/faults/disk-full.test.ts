import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { freshCall, retryUntilServed } from '../support/fresh-request.ts';
import { createLimitedDisk, type Disk, mountSmallDisk } from '../support/store/full-disk.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const kinds: [name: string, make: () => Disk | undefined][] = [
  ['file size limit', createLimitedDisk],
  ['full file system', mountSmallDisk],
];

for (const [name, make] of kinds) {
  const disk = make();
  // Users that may not mount a file system run only the other kind.
  if (!disk) continue;
  describe(`SQLite on a full disk: ${name}`, () => {
    const fixtures = useFixtures();
    const upstream = fixtures.start(startRecordingUpstream);
    let child: ChildToolhost;
    let key: string;
    before(async () => {
      const env = {
        DATA_DIR: disk.folder,
        MASTER_KEY: randomBytes(32).toString('base64'),
        EGRESS_ALLOW: `127.0.0.1:${upstream.port}`,
      };
      const first = await startToolhost({ dataDir: disk.folder, env, egressPorts: [upstream.port] });
      key = await first.createKey();
      await first.createServer(buildServerAt('before', upstream.url));
      await first.stop();
      child = await startChildToolhost(env);
    });
    after(async () => {
      await child?.end('SIGKILL');
      disk.remove();
    });

    const send = async (method: string, path: string, body?: Json) => {
      const headers = { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) };
      const response = await fetch(child.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Json };
    };
    const rest = (method: string, path: string, body?: Json) =>
      retryUntilServed(() => send(method, `/api/v1${path}`, body));
    const countCalls = async () => ((await rest('GET', '/calls?outcome=ok&limit=200')).body.calls as Json[]).length;

    it('[sec G5] answers writes with 503, keeps serving reads and calls, and recovers without losing anything', async () => {
      assert.equal((await rest('POST', '/servers', buildServerAt('kept', upstream.url))).status, 201);
      disk.fill(child.pid);
      for (let n = 0; n < 3; n += 1) {
        const lost = await rest('POST', '/servers', buildServerAt(`lost-${n}`, upstream.url));
        assert.equal(lost.status, 503, lost.text);
        assert.match(lost.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
        assert.match(lost.text, /the disk is full, so only reads and calls work|the database disk failed/);
        assert.doesNotMatch(lost.text, /sqlite|toolhost-/i);
        assert.equal((await rest('PATCH', '/servers/before', { description: 'Lost' })).status, 503);
        assert.equal(((await rest('GET', '/servers')).body.servers as Json[]).length, 2);
        for (const slug of ['before', 'kept']) {
          const { status, text } = await freshCall(child.url, slug, { key });
          assert.equal(status, 200, text);
          assert.doesNotMatch(text, /"isError":true/);
        }
        assert.equal((await rest('GET', '/calls')).status, 200);
        assert.equal((await fetch(`${child.url}/readyz`)).status, 200);
      }
      disk.empty(child.pid);
      await eventually(async () =>
        assert.equal((await rest('POST', '/servers', buildServerAt('recovered', upstream.url))).status, 201),
      );
      const { body } = await rest('GET', '/servers');
      assert.deepEqual((body.servers as Json[]).map(({ slug }) => slug).toSorted(), ['before', 'kept', 'recovered']);
      await eventually(async () => assert.equal(await countCalls(), 6));
      assert.equal(await child.end(), 0);
      const file = new DatabaseSync(join(disk.folder, 'toolhost.sqlite'));
      assert.deepEqual({ ...file.prepare('pragma integrity_check').get() }, { integrity_check: 'ok' });
      file.close();
    });
  });
}
