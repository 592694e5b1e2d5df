import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { post } from '../../bench/post.ts';
import { node, startChild, stopAll } from '../../bench/processes.ts';
import type { MeasuredService } from '../../bench/service.ts';
import { root } from '../files.ts';

describe('the entry point with which the benchmark of any commit starts this service', () => {
  const folder = mkdtempSync(join(tmpdir(), 'toolhost-bench-'));
  after(async () => {
    await stopAll();
    rmSync(folder, { recursive: true });
  });
  const start = (name: string, args: string[], ready: RegExp) =>
    startChild([node, join(root, 'bench', name), ...args], { core: undefined, ready });

  it('[ship bench] prints a process ID and four requests that succeed, and stops the process on SIGTERM', async () => {
    const upstream = await start('upstream.ts', [], /^ready (\S+)$/m);
    const entry = await start('service.ts', [upstream.ready, join(folder, 'data')], /^(\{.*\})$/m);
    const { pid, targets } = JSON.parse(entry.ready) as MeasuredService;
    assert.deepEqual(Object.keys(targets).toSorted(), [
      'call_1kb_key',
      'call_1kb_token',
      'call_20kb_key',
      'list_200_tools',
    ]);
    for (const target of Object.values(targets)) assert.match(await post(target), /"result":/);
    await entry.stop();
    assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  });
});
