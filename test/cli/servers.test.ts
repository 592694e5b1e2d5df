import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { promptHidden, promptLine } from '../../apps/cli/src/ask.ts';
import { pluck } from '../support/pluck.ts';
import { assertFailed, createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import { buildServerAt } from '../support/upstream-configs.ts';

const upstream = 'https://api.example.com';

describe('toolhost servers and secrets', async () => {
  const { running, run, runJson: json } = await startCommandService();
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
      [folder, /: is a folder; name a file/],
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
    assertFailed(lines, /^ {2}value: .*one line of visible text/m);
    assertFailed(argument, /the value must not be an argument/, 2);
    for (const { stderr } of [lines, argument]) assert.doesNotMatch(stderr, /hunter/);
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
