import assert from 'node:assert/strict';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { stringify } from 'yaml';
import { pluck } from '../support/pluck.ts';
import { createTestFolder } from '../support/toolhost/command-world.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const example = resolve(import.meta.dirname, '..', '..', 'examples', 'projects', 'server.json');

type FileResult = { file: string; valid: boolean; problems: { path: string }[]; warnings: object[] };
type CheckResult = { valid: boolean; files: FileResult[] };

/** Runs offline, without a service, key, or database. */
describe('toolhost check', async () => {
  const folder = createTestFolder();
  const file = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const validConfig = (slug: string) => JSON.stringify(buildServerAt(slug, 'https://api.example.com'));
  const check = (files: readonly string[], env: Record<string, string> = {}, input = '') =>
    runToolhostCommand(['check', ...files], { env, input });

  it('accepts a valid file in JSON or YAML, from a file or standard input', async () => {
    const json = file('good.json', validConfig('good'));
    const yaml = file('good.yaml', stringify(buildServerAt('good', 'https://api.example.com')));
    const results = await Promise.all([check([json, yaml]), check(['-'], {}, validConfig('good'))]);
    assert.deepEqual(results, [
      { code: 0, stdout: `${json}: ok\n${yaml}: ok\n`, stderr: '' },
      { code: 0, stdout: '-: ok\n', stderr: '' },
    ]);
  });

  it('accepts $schema in a JSON file, which names the schema for editors [imp 6]', async () => {
    const $schema = 'https://tools.example.com/schema/file.json';
    const named = file('named.json', JSON.stringify({ $schema, ...buildServerAt('named', 'https://api.example.com') }));
    assert.deepEqual(await check([named]), { code: 0, stdout: `${named}: ok\n`, stderr: '' });
  });

  it('allows the hosts that import --serve has stored, only for a local service, and names their file in a problem', async () => {
    const config = file('stored.json', JSON.stringify(buildServerAt('stored', 'http://127.0.0.1:9000')));
    const DATA_DIR = join(folder, 'data');
    mkdirSync(DATA_DIR);
    assert.equal((await check([config], { DATA_DIR })).code, 1);
    writeFileSync(join(DATA_DIR, 'egress-allow'), '127.0.0.1:8000\n127.0.0.1:9000\n');
    assert.deepEqual(await check([config], { DATA_DIR }), { code: 0, stdout: `${config}: ok\n`, stderr: '' });
    assert.equal((await check([config], { DATA_DIR, BASE_URL: 'https://tools.example.com' })).code, 1);
    writeFileSync(join(DATA_DIR, 'egress-allow'), '127.0.0.1\n');
    const { code, stderr } = await check([config], { DATA_DIR });
    assert.equal(code, 1);
    assert.match(stderr, /data\/egress-allow: found "127\.0\.0\.1"; allowed: host-or-address-or-cidr:port/);
    assert.doesNotMatch(stderr, /EGRESS_ALLOW/);
  });

  it('prints nothing from a file that a link outside its folder points to [find F3]', async () => {
    const secret = 'pr1vate-line';
    const texts = [
      `${secret}\nmore: [`,
      `{ ${secret}`,
      `${secret}: value`,
      stringify({ ...buildServerAt(secret, 'https://api.example.com'), name: '', [secret]: secret }),
      stringify(buildServerAt('whole', 'https://api.example.com', { description: secret })),
    ];
    const linked = join(folder, 'linked');
    mkdirSync(linked);
    const insideLink = join(linked, 'inside.yaml');
    writeFileSync(join(linked, '.data'), stringify(buildServerAt('inside', 'https://api.example.com')));
    symlinkSync('.data', insideLink);
    for (const [index, text] of texts.entries()) {
      const target = file(`outside-${index}.txt`, text);
      const link = join(linked, `outside.${index === 1 ? 'json' : 'yaml'}`);
      symlinkSync(index % 2 === 0 ? target : `../outside-${index}.txt`, link);
      for (const args of [[linked], [link], [linked, '--json']]) {
        const { code, stdout, stderr } = await check(args);
        assert.equal(code, 1, `${args}`);
        assert.match(stdout, /is a link to a file outside its folder/, `${args}`);
        assert.ok(!(stdout + stderr).includes(secret), stdout + stderr);
      }
      rmSync(link);
    }
    assert.equal((await check([linked])).stdout, `${insideLink}: ok\n`);
  });

  it('checks the configuration files of a folder in name order, and reports a folder without any', async () => {
    const servers = join(folder, 'servers');
    mkdirSync(join(servers, 'older'), { recursive: true });
    writeFileSync(join(servers, 'b.json'), validConfig('beta'));
    writeFileSync(join(servers, 'a.yml'), stringify(buildServerAt('alpha', 'https://api.example.com')));
    writeFileSync(join(servers, 'notes.txt'), 'no configuration');
    const { code, stdout } = await check([servers]);
    assert.deepEqual([code, stdout], [0, `${join(servers, 'a.yml')}: ok\n${join(servers, 'b.json')}: ok\n`]);
    const empty = await check([join(servers, 'older')]);
    const advice = /^1 .*older: is a folder without \.json/;
    assert.match(`${empty.code} ${empty.stdout}`, advice);
  });

  it('[imp 6] checks every document of a file, and names both files of a repeated slug', async () => {
    const servers = join(folder, 'documents');
    mkdirSync(servers);
    const two = join(servers, 'two.yaml');
    const sections = { secrets: { KEY: { env: 'X' } }, limits: { calls_per_second: 3 } };
    const first = stringify({ ...buildServerAt('one', 'https://api.example.com'), ...sections });
    writeFileSync(two, `${first}---\n${validConfig('two')}`);
    const list = join(servers, 'list.json');
    writeFileSync(list, `[${validConfig('three')}]`);
    const fine = await check([servers]);
    assert.deepEqual([fine.code, fine.stdout], [0, `${list}: ok\n${two} (document 1): ok\n${two} (document 2): ok\n`]);
    const conflicting = join(servers, 'z.yaml');
    const wrong = buildServerAt('two', 'https://api.example.com', {
      secrets: { KEY: 'lit3ral' },
      limits: { calls: 1 },
    });
    writeFileSync(conflicting, stringify(wrong));
    const { code, stdout } = await check([servers]);
    assert.equal(code, 1);
    const allowed = 'allowed: { env: NAME }, { file: PATH }, or stored; a file must not contain the value itself';
    for (const problem of [`slug: "two" is already the slug in ${two} (document 2)`, `secrets.KEY: ${allowed}`])
      assert.ok(stdout.includes(`${conflicting}: ${problem}\n`), stdout);
    assert.match(stdout, /limits\.calls: unknown field/);
    assert.doesNotMatch(stdout, /lit3ral/);
    writeFileSync(conflicting, 'name: &a [*a]');
    assert.match((await check([conflicting])).stdout, /z\.yaml: has a YAML anchor that contains itself/);
  });

  it('reports file, path, and problem for every file', async () => {
    const tools = [{ ...createTool('x'), timeout_ms: 20_001 }];
    const bad = file('bad.json', JSON.stringify({ name: 'Bad', slug: 'manage', tools }));
    const broken = file('broken.json', '{');
    const { code, stdout, stderr } = await check([bad, broken, join(folder, 'none.json')]);
    assert.deepEqual([code, stderr], [1, '']);
    const lines = stdout.split('\n');
    const expected = [
      `${bad}: slug: "manage" is reserved; choose another`,
      `${bad}: tools[0].timeout_ms: found 20001; allowed: at most 20000`,
      `${join(folder, 'none.json')}: there is no such file. Check the path`,
    ];
    for (const line of expected) assert.ok(lines.includes(line), stdout);
    assert.ok(stdout.includes(`${broken}: is not JSON: `), stdout);
    assert.doesNotMatch(stdout, /: ok/);
  });

  it('exits with 0 when there are only warnings', async () => {
    const tools = [{ ...createTool('x'), description: 'Short.' }];
    const path = file('warned.json', JSON.stringify({ name: 'Warned', slug: 'warned', tools }));
    const warning = 'is shorter than 20 characters; models choose tools by their description';
    const stdout = `${path}: tools[0].description: warning: ${warning}\n${path}: ok, with warnings (1)\n`;
    assert.deepEqual(await check([path]), { code: 0, stdout, stderr: '' });
  });

  it('prints results as JSON', async () => {
    const bad = file('bad-too.json', '{"name": "Bad"}');
    const fine = file('fine.json', validConfig('fine'));
    const { code, stdout, stderr } = await check([bad, fine, '--json']);
    assert.deepEqual([code, stderr], [1, '']);
    const { valid, files } = JSON.parse(stdout) as CheckResult;
    assert.deepEqual([valid, pluck(files, 'file', 'valid')], [false, [bad, false, fine, true]]);
    assert.deepEqual(pluck(files[0]?.problems, 'path').toSorted(), ['slug', 'tools']);
    assert.deepEqual([files[1]?.problems, files[1]?.warnings], [[], []]);
  });

  it('applies the settings of the current environment, as a service started in it would', async () => {
    const other = file('other.json', validConfig('other'));
    const [closed, open, reserved, unset] = await Promise.all([
      check([example]),
      check([example], { EGRESS_ALLOW: '127.0.0.1:8081' }),
      check([other], { MANAGEMENT_SLUG: 'other' }),
      check([other], { EGRESS_ALLOW: 'nonsense' }),
    ]);
    assert.deepEqual([closed.code, open.code, reserved.code, unset.code], [1, 0, 1, 1]);
    assert.match(closed.stdout, /tools\[0\]\.url: found http:\/\/; allowed: https:\/\//);
    assert.match(reserved.stdout, /slug: "other" is reserved/);
    assert.match(unset.stderr, /EGRESS_ALLOW: found "nonsense"; allowed: /);
  });
});

function createTool(name: string): object {
  return buildToolAt('https://api.example.com/thing', { name });
}
