import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startFollowing } from '../support/toolhost/follow-command.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { toolhostProgram } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';
import { findFreePort } from '../support/upstreams/listener.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const timeoutMs = 30_000;

describe('toolhost calls --follow', () => {
  let running: TestToolhost;
  let upstream: RecordingUpstream;
  let env: Record<string, string>;
  let dataDir: string;
  let port: string;
  const start = async () => {
    running = await startToolhost({ egressPorts: [upstream.port], dataDir, env: { PORT: port } });
  };
  before(async () => {
    upstream = await startRecordingUpstream();
    dataDir = mkdtempSync(join(tmpdir(), 'toolhost-records-'));
    port = String(await findFreePort());
    await start();
    env = { TOOLHOST_URL: running.url, TOOLHOST_API_KEY: await running.createKey() };
    await running.createServer(buildServerAt('things', upstream.url));
    await running.callTool('things', 'some-token', 'get');
  });
  after(async () => {
    await running.stop();
    await upstream.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it('[ship 7] exits silently when its reader exits', async () => {
    const pipe = spawn(
      'bash',
      ['--norc', '-o', 'pipefail', '-c', `'${toolhostProgram}' calls --follow --limit 1 | head -n 1`],
      {
        env: { PATH: process.env.PATH ?? '', ...env },
      },
    );
    const ended = once(pipe, 'close');
    let hasEnded = false;
    void ended.then(() => {
      hasEnded = true;
    });
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
    await start();
    await running.callTool('things', 'some-token', 'get');
    await eventually(() => assert.equal(following.lines().length, 2), timeoutMs);
    assert.equal(new Set(following.ids()).size, 2);
    assert.equal((await following.end()).code, 0);
  });
});
