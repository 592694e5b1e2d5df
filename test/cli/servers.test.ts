import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { promptHidden, promptLine } from '../../apps/cli/src/ask.ts';
import { pluck } from '../support/pluck.ts';
import { assertFailed, createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const upstream = 'https://api.example.com';

describe('commands for servers, secrets, tools, and versions', async () => {
  const { running, env, run, runJson: json } = await startCommandService();
  const folder = createTestFolder();

  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const authentication = { type: 'Bearer', token: '{{SERVICE_KEY}}' };
  const withSecret = (slug: string) => buildServerAt(slug, upstream, { authentication, description: 'A thing.' });

  it('creates a server from JSON, YAML, or standard input, and prints the next steps', async () => {
    const first = await run(['servers', 'create', file('first.json', JSON.stringify(withSecret('first')))]);
    assert.deepEqual([first.code, first.stderr], [0, '']);
    assert.match(first.stdout, /^Created the server "first" \(version 1\) at http:\/\/\S+\/mcp\/first\n/);
    assert.match(first.stdout, /^Warning: authentication\.token: \{\{SERVICE_KEY\}\} has no value yet/m);
    assert.match(first.stdout, /^Next: Set the secret SERVICE_KEY/m);
    type Stored = { server: { slug: string }; url: string; warnings: object[]; next_steps: string[] };
    const second = await json<Stored>(['servers', 'create', file('second.yml', stringify(withSecret('second')))]);
    assert.deepEqual([second.server.slug, second.url], ['second', `${running.url}/mcp/second`]);
    const input = `\u{feff}${stringify(buildServerAt('third', upstream))}`;
    const third = await json<Stored>(['servers', 'create', '-'], { input });
    assert.equal(third.server.slug, 'third');
  });

  it('prints every problem on its own line', async () => {
    const bad = { name: 'Bad', slug: 'BAD', tools: [{ name: 'x y', metod: 'GET' }] };
    const { code, stdout, stderr } = await run(['servers', 'create', file('bad.json', JSON.stringify(bad))]);
    assert.deepEqual([code, stdout], [1, '']);
    const [head, ...lines] = stderr.trimEnd().split('\n');
    assert.equal(head, 'error: The server was not stored; its configuration is not valid');
    for (const path of ['slug', 'tools[0].name', 'tools[0].metod', 'tools[0].url'])
      assert.equal(lines.filter((line) => line.startsWith(`  ${path}: `)).length, 1, stderr);
    assert.match(stderr, /did you mean `method`\?/);
  });

  it('names the file that it cannot use', async () => {
    const sections = file('sections.yaml', stringify({ ...withSecret('x'), secrets: {} }));
    const cases: [string, RegExp][] = [
      [join(folder, 'none.json'), /none\.json: there is no such file/],
      [folder, /: is a folder\. Name a file/],
      [file('broken.yaml', 'name: ['), /broken\.yaml: is not YAML: .*line 1/],
      [file('broken.json', '{"name": }'), /broken\.json: is not JSON: /],
      [file('empty.json', ' \n'), /empty\.json: is empty/],
      [sections, /sections\.yaml: secrets: only apply reads/],
      [file('list.yaml', '- 1\n'), /list\.yaml: is not a configuration; allowed: an object/],
    ];
    for (const [path, expected] of cases) assertFailed(await run(['servers', 'create', path]), expected);
  });

  it('lists servers as a table or as JSON, also more than fit on a page', async () => {
    await running.createServer(buildServerAt('listed', upstream));
    const table = await run(['servers', 'list']);
    const row = `^listed +listed +caller_token +1 +1 +${running.url}/mcp/listed$`;
    assert.match(table.stdout, new RegExp(`^SLUG +NAME +ACCESS[\\s\\S]*${row}`, 'm'));
    const many = await running.createKey({ workspace: 'many' });
    const expectedSlugs = Array.from({ length: 201 }, (_, index) => `many-${index}`);
    for (const slug of expectedSlugs)
      await running.rest('POST', '/servers', { key: many, body: buildServerAt(slug, upstream) });
    const { servers } = await json<{ servers: object[] }>(['servers', 'list', '--key', many]);
    assert.deepEqual(new Set(pluck(servers, 'slug')), new Set(expectedSlugs));
    const none = await run(['servers', 'list', '--key', await running.createKey({ workspace: 'none' })]);
    assert.match(none.stdout, /There are no servers yet/);
  });

  it('prints a server as a file that updates it', async () => {
    await running.createServer(withSecret('round-trip'));
    const { stdout } = await run(['servers', 'get', 'round-trip']);
    assert.match(stdout, new RegExp(`^# ${running.url}/mcp/round-trip \\(api_key\\), version 1 `));
    const config = parse(stdout) as { description: string };
    assert.equal(config.description, 'A thing.');
    const edited = file('edited.yaml', stdout.replace('A thing.', 'Another thing.'));
    const updated = await run(['servers', 'update', edited]);
    assert.match(updated.stdout, /^Updated the server "round-trip" \(version 2\)/);
    type Shown = { config: { description: string }; server: { version: number } };
    const shown = await json<Shown>(['servers', 'get', 'round-trip']);
    assert.deepEqual([shown.config.description, shown.server.version], ['Another thing.', 2]);
    const nameless = await run(['servers', 'update', file('nameless.json', '{"name": "x", "tools": []}')]);
    assertFailed(nameless, /nameless\.json: slug: /);
    const unknownFile = file('unknown.json', JSON.stringify(buildServerAt('unknown', upstream)));
    const unknown = await run(['servers', 'update', unknownFile]);
    assertFailed(unknown, /^error: there is no such server in this workspace; .*\n$/);
  });

  it('deletes a server, lists it as deleted, and restores it', async () => {
    await running.createServer(buildServerAt('doomed', upstream));
    await running.createServer(buildServerAt('doomed-too', upstream));
    const unconfirmed = await run(['servers', 'delete', 'doomed']);
    assertFailed(unconfirmed, /would delete the server doomed, .* nothing was changed\. Add --yes/);
    assert.equal((await run(['servers', 'get', 'doomed'])).code, 0);
    const { code, stdout } = await run(['servers', 'delete', 'doomed', '--yes']);
    assert.equal(code, 0);
    assert.match(stdout, /^Deleted the server doomed\. It can be restored until .*\. Its slug stays reserved\.\n$/);
    assert.equal((await json<{ deleted: string }>(['servers', 'delete', 'doomed-too', '--yes'])).deleted, 'doomed-too');
    assert.equal((await run(['servers', 'get', 'doomed'])).code, 1);
    assert.match((await run(['servers', 'deleted'])).stdout, /^SLUG +NAME[\s\S]*^doomed-too +doomed-too /m);
    const deleted = await run(['servers', 'delete-secrets', 'doomed', '--yes']);
    assert.deepEqual([deleted.code, deleted.stdout], [0, 'Deleted 0 secrets of doomed.\n']);
    assert.equal((await run(['servers', 'delete-secrets', 'unknown', '--yes'])).code, 1);
    assert.match((await run(['servers', 'restore', 'doomed'])).stdout, /^Restored the server "doomed" \(version 1\)/);
    assert.equal((await run(['servers', 'get', 'doomed'])).code, 0);
  });

  it('stores a secret from standard input or a file, lists its name, and deletes it', async () => {
    await running.createServer(withSecret('sealed'));
    const set = await run(['secrets', 'set', 'sealed', 'SERVICE_KEY'], { input: 'v4lue-of-it\n' });
    const used = `It is only sent to ${upstream}. Used by authentication.token.`;
    assert.deepEqual(set, { code: 0, stdout: `Stored the secret SERVICE_KEY of sealed. ${used}\n`, stderr: '' });
    const value = file('value', 'v4lue\r\n');
    const other = await json<{ name: string }>(['secrets', 'set', 'sealed', 'OTHER', '--value-file', value]);
    assert.equal(other.name, 'OTHER');
    const { secrets } = await json<{ secrets: { name: string; used_by: string[] }[] }>(['secrets', 'list', 'sealed']);
    const useCounts = Object.fromEntries(secrets.map(({ name, used_by }) => [name, used_by.length]));
    assert.deepEqual(useCounts, { OTHER: 0, SERVICE_KEY: 1 });
    const table = await run(['secrets', 'list', 'sealed']);
    assert.match(table.stdout, /^NAME +SET AT +SENT TO +USED BY\n[\s\S]*^OTHER .* nothing$/m);
    for (const { stdout } of [set, table]) assert.doesNotMatch(stdout, /v4lue/);
    assert.match((await run(['secrets', 'delete', 'sealed', 'OTHER', '--yes'])).stdout, /Deleted the secret/);
    assert.deepEqual(await json(['secrets', 'delete', 'sealed', 'SERVICE_KEY', '--yes']), { deleted: 'SERVICE_KEY' });
    assert.match((await run(['secrets', 'list', 'sealed'])).stdout, /has no secrets/);
  });

  it('rejects an empty or invalid secret, and prints none of them', async () => {
    await running.createServer(buildServerAt('unfit', upstream));
    const set = (args: string[], input: string) => run(['secrets', 'set', 'unfit', 'KEY', ...args], { input });
    assertFailed(await set([], '\n'), /the value of KEY is empty; nothing was stored/);
    const [lines, argument] = [await set([], 'hunter2\nhunter3\n'), await set(['hunter2'], 'x')];
    assertFailed(lines, /^error: value: .*one line of visible text/m);
    assertFailed(argument, /the value must not be an argument/, 2);
    for (const { stderr } of [lines, argument]) assert.doesNotMatch(stderr, /hunter/);
  });

  it('[conf 7] adds, lists, changes, and removes a tool', async () => {
    await running.createServer(buildServerAt('tooled', upstream));
    const listTools = async () => (await json<{ tools: Json[] }>(['tools', 'list', 'tooled'])).tools;
    const tool = file('tool.json', JSON.stringify(buildToolAt(`${upstream}/b`, { name: 'b', title: 'B' })));
    const stdout = 'Added the tool "b" of the server "tooled" (version 2).\n';
    assert.deepEqual(await run(['tools', 'add', 'tooled', tool]), { code: 0, stdout, stderr: '' });
    const set = ['--set=timeout_ms=5000', '--set=title=null', '--set=name=c', '--set=response_fields=["id"]'];
    const changed = await run(['tools', 'update', 'tooled', 'b', ...set]);
    assert.equal(changed.stdout, 'Changed the tool "c" of the server "tooled" (version 3).\n', changed.stderr);
    const { name, timeout_ms, title, response_fields } = (await listTools())[1] ?? {};
    assert.deepEqual([name, timeout_ms, title, response_fields], ['c', 5000, undefined, ['id']]);
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
    const tools = Array.from({ length: 3 }, (_, i) => ({ ...buildToolAt(`${upstream}/${i}`), name: `t${i}` }));
    const many = file('many.json', JSON.stringify(buildServerAt('many', upstream, { tools })));
    const { code, stdout } = await run(['check', many], { env: { ...env, QUOTAS: 'tools=2' } });
    assert.match(`${code} ${stdout}`, /^1 .*: tools: 3 tools; allowed: 2; split them into several servers/);
  });

  it('[ship 7] lists, shows, compares, and restores versions', async () => {
    await running.createServer(buildServerAt('things', upstream, { description: 'First.' }));
    await running.rest('PATCH', '/servers/things', { body: { description: 'Second.' } });
    const { versions } = await json<{ versions: object[] }>(['versions', 'things']);
    assert.deepEqual(versions, (await running.rest('GET', '/servers/things/versions')).body.versions);
    assert.match((await run(['versions', 'list', 'things'])).stdout, /^VERSION .*\n2 .*\n1 /);
    const shown = await run(['versions', 'show', 'things', '1']);
    assert.equal((parse(shown.stdout) as { description: string }).description, 'First.');
    const stdout = 'No differences between version 2 and version 2 of things.\n';
    assert.deepEqual(await run(['versions', 'diff', 'things', '2']), { code: 0, stdout, stderr: '' });
    const different = await run(['versions', 'diff', 'things', '1']);
    assert.equal(different.code, 2);
    assert.match(different.stdout, /^ {2}~ description: "First\." → "Second\."$/m);
    const missing = await run(['versions', 'diff', 'things', '7', '--json']);
    assertFailed(missing, /the server things has no version 7\. The current version is 2/);
    const { kind, problems } = JSON.parse(missing.stderr).error;
    assert.deepEqual([kind, problems], ['notFound', []]);
    const restored = await run(['versions', 'restore', 'things', '1']);
    assert.deepEqual([restored.code, /^Restored the server "things" \(version 3\)/.test(restored.stdout)], [0, true]);
    assert.equal((await run(['versions', 'diff', 'things', '1', '3'])).code, 0);
  });

  it('[ship 7] previews the request of a call as text, as curl, and as JSON', async () => {
    assert.match((await run(['preview', 'things', 'get'])).stdout, /^GET https:\/\/api\.example\.com\/thing\n/);
    assert.match((await run(['preview', 'things', 'get', '--curl'])).stdout, /^curl .*'?https:\/\/api\.example\.com/);
    const { body } = await running.rest('POST', '/servers/things/tools/get/preview', { body: {} });
    assert.deepEqual(await json(['preview', 'things', 'get']), body);
    assert.match((await run(['preview', 'things', 'gett'])).stderr, /has no tool "gett".*get/);
  });
});

/** Prompts that only a person at a terminal sees. */
describe('terminal prompts', () => {
  const createTerminal = () => {
    const input = new PassThrough();
    const output = new PassThrough({ encoding: 'utf8' });
    let shown = '';
    output.on('data', (text: string) => (shown += text));
    return { input, output, shown: () => shown };
  };

  it('do not echo a secret', async () => {
    const { input, output, shown } = createTerminal();
    const promptResult = promptHidden('Value of KEY: ', { input, output });
    input.write('hunTTer2');
    input.write('\r');
    assert.equal(await promptResult, 'hunTTer2');
    assert.equal(shown(), 'Value of KEY: \n');
  });

  it('can be canceled with Ctrl-C or Ctrl-D', async () => {
    for (const key of ['\u0003', '\u0004']) {
      const { input, output } = createTerminal();
      const promptResult = promptHidden('Value of KEY: ', { input, output });
      input.write(key);
      await assert.rejects(promptResult, /no input; nothing was changed/);
    }
    const { input, output } = createTerminal();
    const lineResult = promptLine('Type the slug to confirm: ', { input, output });
    input.end();
    await assert.rejects(lineResult, /nothing was changed/);
  });
});
