import assert from 'node:assert/strict';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { root } from '../files.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { useFixtures } from '../support/use-fixtures.ts';

describe('the drill on the backup page', () => {
  const fixtures = useFixtures();
  const folder = fixtures.folder();
  symlinkSync(join(root, 'bin'), join(folder, 'bin'));
  const env = { DATA_DIR: join(folder, 'data') };
  const service = fixtures.start(
    () => startChildToolhost({ ...env, DEMO: '1' }),
    (running) => running.end(),
  );

  it('[ship 3] restores its own backup, and leaves nothing behind', async () => {
    const script = readFileSync(join(root, 'deploy', 'backup', 'drill.sh'), 'utf8');
    assert.match(script, /backup drill\.backup[\s\S]*verify[\s\S]*restore/);
    const before = readdirSync(folder).toSorted();
    const { code, stdout, stderr } = await runToolhostCommand(
      ['-eu', '-c', script.replaceAll('8090', String(await findFreePort()))],
      { program: '/bin/sh', cwd: folder, env },
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Wrote [\s\S]*^Valid: [\s\S]*^Restored [\s\S]*Website relaunch/m);
    assert.deepEqual(readdirSync(folder).toSorted(), before);
    // The service that was backed up is still running.
    assert.equal((await fetch(`${service.url}/readyz`)).status, 200);
  });
});
