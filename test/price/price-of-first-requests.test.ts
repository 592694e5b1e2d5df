import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { loadedOnce } from '../../src/domain/work/loaded-once.ts';
import { eventually } from '../support/eventually.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { toolhostJson } from '../support/toolhost/toolhost-command.ts';

const watchLoop = join(import.meta.dirname, '..', 'support', 'toolhost', 'watch-loop.mjs');
/** A first request happens once in a process, so another attempt needs another process. */
const attempts = 8;

describe('the first requests to the parts that a start does not load', () => {
  it('hold the event loop no longer than any request: management server, dashboard, REST API and its document [find A1]', async () => {
    const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const requests: Record<string, RequestInit> = {
      '/mcp/manage': { method: 'POST', body: message },
      '/': { headers: { accept: 'text/html' } },
      '/api/v1/servers': {},
      '/api/v1/openapi.json': {},
    };
    const least: Record<string, number> = {};
    for (let attempt = 0; attempt < attempts; attempt++) {
      const dataDir = mkdtempSync(join(tmpdir(), 'toolhost-first-'));
      const env = { DATA_DIR: dataDir, LOG_LEVEL: 'info', NODE_OPTIONS: `--import=${watchLoop}` };
      const service = await startChildToolhost(env);
      const { key } = await toolhostJson<{ key: string }>(['keys', 'create', '--name', 'first', '--scopes', 'manage'], {
        env,
      });
      let count = 0;
      const held = async () => {
        service.signal('SIGUSR2');
        count++;
        const lines = () => [...service.output('stderr').matchAll(/^held (.+)$/gm)].map(([, ratio]) => Number(ratio));
        await eventually(() => assert.equal(lines().length, count));
        return lines()[count - 1] as number;
      };
      await held();
      for (const [path, init] of Object.entries(requests)) {
        const headers = {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          accept: '*/*',
          ...init.headers,
        };
        const response = await fetch(service.url + path, { ...init, headers });
        assert.equal(response.status, 200, await response.text());
        least[path] = Math.min(least[path] ?? Infinity, await held());
      }
      await service.end();
      rmSync(dataDir, { recursive: true });
      if (Object.values(least).every((ratio) => ratio <= 1)) break;
    }
    if (process.env.TEST_LOG) console.log(least);
    for (const [path, ratio] of Object.entries(least)) assert.ok(ratio <= 1, `${path}: ${ratio.toFixed(2)} units`);
  });

  it('try again what could not be loaded, and load it once', async () => {
    let count = 0;
    const load = loadedOnce(async () => {
      if (++count === 1) throw new Error('too many open files');
      return count;
    });
    await assert.rejects(load(), /open files/);
    assert.deepEqual(await Promise.all([load(), load()]), [2, 2]);
  });
});
