import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startFollowing } from '../support/toolhost/follow-command.ts';
import { startToolhost } from '../support/toolhost/toolhost.ts';
import { toolhostProgram } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const timeoutMs = 30_000;

describe('toolhost calls --follow', async () => {
  const upstream = await startRecordingUpstream();
  const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-records-'));
  const port = String(await findFreePort());
  const start = () => startToolhost({ egressPorts: [upstream.port], dataDir, env: { PORT: port } });
  let running = await start();
  const env = { TOOLHOST_URL: running.url, TOOLHOST_API_KEY: await running.createKey() };
  await running.createServer(buildServerAt('things', upstream.url));
  await running.callTool('things', 'some-token', 'get');
  after(async () => {
    await running.stop();
    await upstream.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('[ship 7] exits silently when its reader exits', async () => {
    const script = `'${toolhostProgram}' calls --follow --limit 1 | head -n 1`;
    const bashEnv = { PATH: process.env.PATH ?? '', ...env };
    const pipe = spawn('bash', ['--norc', '-o', 'pipefail', '-c', script], { env: bashEnv });
    const ended = once(pipe, 'close');
    let hasEnded = false;
    void ended.then(() => (hasEnded = true));
    const stderr = text(pipe.stderr);
    await eventually(async () => {
      await running.callTool('things', 'some-token', 'get');
      assert.ok(hasEnded);
    }, timeoutMs);
    assert.deepEqual([(await ended)[0], await stderr], [0, '']);
  });

  it('[ship 7] resumes when the service is available again, without losing or repeating a call', async () => {
    const following = startFollowing(['calls', '--json', '--limit', '1'], env);
    await eventually(() => assert.equal(following.lines().length, 1), timeoutMs);
    await running.stop();
    await eventually(() => assert.match(following.stderrText(), /no service is listening at .*; retrying/), timeoutMs);
    running = await start();
    await running.callTool('things', 'some-token', 'get');
    await eventually(() => assert.equal(following.lines().length, 2), timeoutMs);
    assert.equal(new Set(following.ids()).size, 2);
    assert.equal((await following.end()).code, 0);
  });
});
