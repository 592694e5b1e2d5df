import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { root } from '../files.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { findFreePort } from '../support/upstreams/listener.ts';

describe('the drill on the backup page', () => {
  let folder: string;
  let service: ChildToolhost;
  const env = () => ({ DATA_DIR: join(folder, 'data') });
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-drill-'));
    symlinkSync(join(root, 'bin'), join(folder, 'bin'));
    service = await startChildToolhost({ ...env(), DEMO: '1' });
  });
  after(async () => {
    await service?.end();
    rmSync(folder, { recursive: true, force: true });
  });

  it('[ship 3] restores its own backup, and leaves nothing behind', async () => {
    const script = readFileSync(join(root, 'deploy', 'backup', 'drill.sh'), 'utf8');
    assert.match(script, /backup drill\.backup[\s\S]*verify[\s\S]*restore/);
    const before = readdirSync(folder).toSorted();
    const { code, stdout, stderr } = await runToolhostCommand(
      ['-eu', '-c', script.replaceAll('8090', String(await findFreePort()))],
      {
        program: '/bin/sh',
        cwd: folder,
        env: env(),
      },
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Wrote [\s\S]*^Valid: [\s\S]*^Restored [\s\S]*Website relaunch/m);
    assert.deepEqual(readdirSync(folder).toSorted(), before);
    // The service that was backed up is still running.
    assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
  });
});
