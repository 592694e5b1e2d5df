import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand, runToolhostJson } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

describe('toolhost versions and preview', () => {
  let running: TestToolhost;
  let env: Record<string, string>;
  before(async () => {
    running = await startToolhost();
    env = { TOOLHOST_URL: running.url, TOOLHOST_API_KEY: await running.createKey() };
    await running.createServer(buildServerAt('things', 'https://api.example.com', { description: 'First.' }));
    await running.rest('PATCH', '/servers/things', { body: { description: 'Second.' } });
  });
  after(() => running.stop());
  const run = (...args: string[]) => runToolhostCommand(args, { env });
  type Versions = { versions: { version: number }[] };

  it('[ship 7] lists, shows, compares, and restores versions', async () => {
    const { versions } = await runToolhostJson<Versions>(['versions', 'things'], { env });
    assert.deepEqual(versions, (await running.rest('GET', '/servers/things/versions')).body.versions);
    assert.match((await run('versions', 'list', 'things')).stdout, /^VERSION .*\n2 .*\n1 /);
    const shown = await run('versions', 'show', 'things', '1');
    assert.equal((parse(shown.stdout) as { description: string }).description, 'First.');
    const unchanged = await run('versions', 'diff', 'things', '2');
    assert.deepEqual(
      [unchanged.code, unchanged.stdout],
      [0, 'No differences between version 2 and version 2 of things.\n'],
    );
    const different = await run('versions', 'diff', 'things', '1');
    assert.equal(different.code, 2);
    assert.match(different.stdout, /^ {2}~ description: "First\." → "Second\."$/m);
    const missing = await run('versions', 'diff', 'things', '7', '--json');
    assert.deepEqual([missing.code, missing.stdout], [1, '']);
    const { error } = JSON.parse(missing.stderr) as { error: { kind: string; message: string; problems: object[] } };
    assert.deepEqual([error.kind, error.problems], ['notFound', []]);
    assert.match(error.message, /the server things has no version 7\. The current version is 2/);
    const restored = await run('versions', 'restore', 'things', '1');
    assert.deepEqual([restored.code, /^Restored the server "things" \(version 3\)/.test(restored.stdout)], [0, true]);
    assert.equal((await run('versions', 'diff', 'things', '1', '3')).code, 0);
  });

  it('[ship 7] previews the request of a call as text, as curl, and as JSON', async () => {
    assert.match((await run('preview', 'things', 'get')).stdout, /^GET https:\/\/api\.example\.com\/thing\n/);
    assert.match((await run('preview', 'things', 'get', '--curl')).stdout, /^curl .*'?https:\/\/api\.example\.com/);
    const { body } = await running.rest('POST', '/servers/things/tools/get/preview', { body: {} });
    assert.deepEqual(await runToolhostJson(['preview', 'things', 'get'], { env }), body);
    assert.match((await run('preview', 'things', 'gett')).stderr, /has no tool "gett".*get/);
  });
});
