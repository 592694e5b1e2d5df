import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { openApi } from '../support/import/import-plans.ts';
import { startCommandService } from '../support/toolhost/command-world.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('toolhost reimport', async () => {
  const upstream = await startRecordingUpstream();
  after(() => upstream.close());
  const { running, run: runCommand } = await startCommandService({ egressPorts: [upstream.port] });

  const run = (...args: string[]) => runCommand(args);
  const serveDescription = (summary: string) => {
    const paths = { '/pets': { get: { operationId: 'listPets', summary } } };
    const document = openApi(paths, { servers: [{ url: upstream.url }] });
    upstream.on('GET /api.json', () => ({ body: document }));
  };

  it('[imp 5] checks the API description, watches it, and lists what has changed', async () => {
    serveDescription('All pets of the shop');
    const url = `${upstream.url}/api.json`;
    const body = { mode: 'create', url, slug: 'pets', include: ['*'] };
    const created = await running.rest('POST', '/import', { body });
    assert.equal(created.status, 200, created.text);
    assert.match((await run('servers', 'list')).stdout, /IMPORT.*\n.*imported/);
    const watched = await run('reimport', 'pets', '--watch', 'daily', '--check');
    assert.equal(watched.code, 0, watched.stderr);
    const report = /checked every day; next check: .*\npets: Nothing has changed since the last import\./;
    assert.match(watched.stdout, report);
    serveDescription('Every pet of the shop');
    const changed = await run('reimport', 'pets', '--check');
    assert.deepEqual([changed.code, /1 tool changes/.test(changed.stdout)], [2, true], changed.stdout);
    assert.match((await run('servers', 'list')).stdout, /changed/);
    assert.match(changed.stdout, /Next: .*toolhost reimport pets$/m);
    const { stdout: planned } = await run('reimport', 'pets');
    assert.match(planned, /: 1 tool changes; preserved edits: 0, unchanged tools: 0, /);
    assert.match(planned, /^list_pets changes: description$/m);
    assert.match(planned, /^Next: .*toolhost reimport pets --apply/m);
    assert.equal((await run('reimport', 'pets', '--apply')).code, 0);
    assert.equal((await run('reimport', 'pets', '--check')).code, 0);
    upstream.on('GET /api.json', () => ({ status: 404, body: {} }));
    const failed = await run('reimport', 'pets', '--check', '--json');
    assert.equal(failed.code, 1);
    assert.match((JSON.parse(failed.stdout) as { imported: { error: string } }).imported.error, /HTTP 404/);
    assert.match((await run('reimport', 'pets', 'openapi.json', '--check')).stderr, /Omit this argument/);
    assert.match((await run('reimport', 'pets', '--watch', 'never')).stdout, /no longer watched/);
  });
});
