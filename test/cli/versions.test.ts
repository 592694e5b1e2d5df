import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { assertFailed, startCommandService } from '../support/toolhost/command-world.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

describe('toolhost versions and preview', async () => {
  const { running, run: runCommand, runJson } = await startCommandService();
  await running.createServer(buildServerAt('things', 'https://api.example.com', { description: 'First.' }));
  await running.rest('PATCH', '/servers/things', { body: { description: 'Second.' } });
  const run = (...args: string[]) => runCommand(args);

  it('[ship 7] lists, shows, compares, and restores versions', async () => {
    const { versions } = await runJson<{ versions: object[] }>(['versions', 'things']);
    assert.deepEqual(versions, (await running.rest('GET', '/servers/things/versions')).body.versions);
    assert.match((await run('versions', 'list', 'things')).stdout, /^VERSION .*\n2 .*\n1 /);
    const shown = await run('versions', 'show', 'things', '1');
    assert.equal((parse(shown.stdout) as { description: string }).description, 'First.');
    const stdout = 'No differences between version 2 and version 2 of things.\n';
    assert.deepEqual(await run('versions', 'diff', 'things', '2'), { code: 0, stdout, stderr: '' });
    const different = await run('versions', 'diff', 'things', '1');
    assert.equal(different.code, 2);
    assert.match(different.stdout, /^ {2}~ description: "First\." → "Second\."$/m);
    const missing = await run('versions', 'diff', 'things', '7', '--json');
    assertFailed(missing, /the server things has no version 7\. The current version is 2/);
    const { kind, problems } = JSON.parse(missing.stderr).error;
    assert.deepEqual([kind, problems], ['notFound', []]);
    const restored = await run('versions', 'restore', 'things', '1');
    assert.deepEqual([restored.code, /^Restored the server "things" \(version 3\)/.test(restored.stdout)], [0, true]);
    assert.equal((await run('versions', 'diff', 'things', '1', '3')).code, 0);
  });

  it('[ship 7] previews the request of a call as text, as curl, and as JSON', async () => {
    assert.match((await run('preview', 'things', 'get')).stdout, /^GET https:\/\/api\.example\.com\/thing\n/);
    assert.match((await run('preview', 'things', 'get', '--curl')).stdout, /^curl .*'?https:\/\/api\.example\.com/);
    const { body } = await running.rest('POST', '/servers/things/tools/get/preview', { body: {} });
    assert.deepEqual(await runJson(['preview', 'things', 'get']), body);
    assert.match((await run('preview', 'things', 'gett')).stderr, /has no tool "gett".*get/);
  });
});
