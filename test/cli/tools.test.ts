import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { assertFailed, createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const upstream = 'https://api.example.com';

describe('toolhost tools', async () => {
  const { running, env, run, runJson } = await startCommandService();
  const folder = createTestFolder();
  await running.createServer(buildServerAt('tooled', upstream));
  const listTools = async () => (await runJson<{ tools: Json[] }>(['tools', 'list', 'tooled'])).tools;

  it('[conf 7] adds, lists, changes, and removes a tool', async () => {
    const file = join(folder, 'tool.json');
    writeFileSync(file, JSON.stringify({ ...buildToolAt(`${upstream}/b`), name: 'b', title: 'B' }));
    const added = await run(['tools', 'add', 'tooled', file]);
    assert.deepEqual([added.code, added.stderr], [0, '']);
    assert.equal(added.stdout, 'Added the tool "b" of the server "tooled" (version 2).\n');
    const set = ['timeout_ms=5000', 'title=null', 'name=c', 'response_fields=["id"]'].flatMap((value) => [
      '--set',
      value,
    ]);
    const changed = await run(['tools', 'update', 'tooled', 'b', ...set]);
    assert.equal(changed.stdout, 'Changed the tool "c" of the server "tooled" (version 3).\n', changed.stderr);
    const tool = (await listTools())[1] ?? {};
    assert.deepEqual([tool.name, tool.timeout_ms, 'title' in tool, tool.response_fields], ['c', 5000, false, ['id']]);
    const piped = await run(['tools', 'update', 'tooled', 'c', '-'], { input: 'disabled: true\n' });
    assert.equal(piped.code, 0, piped.stderr);
    const table = await run(['tools', 'list', 'tooled']);
    const rows = /^TOOL +METHOD +URL *\nget +GET +https:\/\/api\.example\.com\/thing *\nc +GET +\S+\/b +disabled/;
    assert.match(table.stdout, rows);
    const removed = await run(['tools', 'remove', 'tooled', 'c', '--yes']);
    assert.match(removed.stdout, /^Removed the tool "c" of the server "tooled"/);
    assert.deepEqual((await listTools()).length, 1);
  });

  it('[conf 7] reports problems by field', async () => {
    const refused = await run(['tools', 'update', 'tooled', 'get', '--set', 'timeout_ms=0', '--set', 'metod=GET']);
    const problems =
      /^error: Nothing was stored; the tool is not valid\n {2}timeout_ms: found 0; .*\n {2}metod: unknown/;
    assertFailed(refused, problems);
    const nothing = await run(['tools', 'update', 'tooled', 'get']);
    assert.match(nothing.stderr, /nothing to change\. Name a file with fields, or pass --set field=value/);
    assert.equal((await run(['tools', 'update', 'tooled', 'get', '--set', 'title'])).code, 2);
    assertFailed(await run(['tools', 'remove', 'tooled', 'got', '--yes']), /no such tool; did you mean `get`\?/);
  });

  it('[conf 7] check applies the tool quota', async () => {
    const file = join(folder, 'many.json');
    const tools = Array.from({ length: 3 }, (_, i) => ({ ...buildToolAt(`${upstream}/${i}`), name: `t${i}` }));
    writeFileSync(file, JSON.stringify(buildServerAt('many', upstream, { tools })));
    const { code, stdout } = await run(['check', file], { env: { ...env, QUOTAS: 'tools=2' } });
    assert.match(`${code} ${stdout}`, /^1 .*: tools: 3 tools; allowed: 2; split them into several servers/);
  });
});
