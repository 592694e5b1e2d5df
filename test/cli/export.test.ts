import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { pluck } from '../support/pluck.ts';
import { assertFailed, createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const upstream = 'https://api.example.com';

/** Texts that YAML could read as another type, or whose whitespace and line breaks it could lose. */
const texts = [
  ...'yes no null ~ 0x1f 1e3 2026-01-01 *a &a !a << %a @a `a " \' {a [a | > --- ... : = ? ü€😀'.split(' '),
  ...['- a', 'a: b', 'a #b', '# a', 'a\nb\n', 'a\tb', ' ', '\n', ' \n ', '\t', '  x', '\n\nx', 'x\n \n', 'x\n\n\n'],
  ...['  x\ny', 'x ', '\u00a0', '', 'a\n\n  b\n\n', 'long '.repeat(40)],
];
const getText = (at: number) => texts[at % texts.length] ?? '';
const getVisibleText = (at: number) => `T ${getText(at).replaceAll(/[\p{C}\u2028\u2029]/gu, '.')} .`.slice(0, 90);

/** Returns a configuration that has the texts from this one on in its fields, and optional fields in one tool of two. */
function createConfig(slug: string, at: number): Json {
  const names = ['a', 'b', 'c.d', 'null', '1'].slice(at % 2);
  const tools = names.map((name, index) => {
    const text = getVisibleText(at + index);
    const optional = {
      title: text,
      // A colon could start something that looks like an argument, which headers reject.
      headers: { 'X-A': text.replaceAll(/[^ -~]|[{}:]/g, '.') },
      input_schema: { yes: { type: 'string', description: text, optional: true }, null: { type: 'integer' } },
      ...{ timeout_ms: 1 + at, response_fields: ['a', 'b.c', 'on'] },
    };
    const fields = { name, description: text, method: index % 2 === 0 ? 'post' : 'GET', url: `${upstream}/thing` };
    return { ...fields, ...((at + index) % 2 === 0 && optional) };
  });
  const authentication = at % 3 === 0 ? { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' } : { type: 'Bearer' };
  const more = at % 2 === 0 && { authentication, limits: { calls_per_day: 1 + (at % 9) } };
  return { name: getVisibleText(at), slug, description: getText(at), tools, ...more };
}

describe('toolhost export', async () => {
  let folder: string;
  let count = 0;
  const { running, run: runCommand } = await startCommandService();
  const root = createTestFolder();
  beforeEach(() => {
    folder = join(root, `test-${count++}`);
    mkdirSync(folder);
  });
  const run = (...args: string[]) => runCommand(args);
  const runSuccessfully = async (...args: string[]) => {
    const ended = await run(...args);
    assert.equal(ended.code, 0, ended.stdout + ended.stderr);
    return ended;
  };
  const write = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };

  it('[imp 6] contains everything except secret values, and names the schema for editors', async () => {
    const oauth = {
      ...{ authorization_url: 'https://login.example.com/authorize', token_url: 'https://login.example.com/token' },
      ...{ client_id: 'client', client_secret: 'cl1ent-secret' },
    };
    await running.createServer(buildServerAt('whole', upstream, { oauth }));
    await running.rest('PUT', '/servers/whole/secrets/KEY', { body: { value: 'v4lue' } });
    await running.rest('PATCH', '/servers/whole/limits', { body: { calls_per_second: 7 } });
    const { stdout } = await runSuccessfully('export', 'whole');
    const start = `# yaml-language-server: $schema=${running.url}/schema/file.json\nname: whole\n`;
    assert.equal(stdout.slice(0, start.length), start);
    assert.doesNotMatch(stdout, /cl1ent-secret|v4lue/);
    const exported = parse(stdout) as Json;
    assert.deepEqual(exported.secrets, { 'oauth.client_secret': 'stored', KEY: 'stored' });
    assert.deepEqual(exported.limits, { calls_per_second: 7 });
    const published = (await (await fetch(`${running.url}/schema/file.json`)).json()) as { properties: Json };
    const printed = JSON.parse((await runSuccessfully('schema')).stdout) as { properties: Json };
    assert.deepEqual(printed.properties, published.properties);
    for (const field of Object.keys(exported)) assert.ok(field in published.properties, field);
    const path = write('whole.yaml', stdout);
    assert.match((await runSuccessfully('apply', path)).stdout, /^1 same$/m);
    assert.match((await runSuccessfully('check', path)).stdout, /whole\.yaml: ok/);
    assert.equal((await run('export', 'nothing-here')).code, 1);
  });

  it('[imp 6] keeps comments, order, and style of a file where nothing changed', async () => {
    const slug = 'commented';
    const content = `# Owned by the weather team.
slug: ${slug} # never change it
name: "Weather"

# What agents may do
tools:
  # The first tool
  - name: get
    method: get # as the API says
    url: ${upstream}/thing
    description: >-
      Gets the thing
      from the upstream.
  # The second tool
  - {name: other, method: GET, url: "https://api.example.com/other", description: "Gets the other thing."}
secrets:
  KEY: {env: NOT_SET} # from the vault
`;
    const path = write('any-name.yaml', content);
    await running.createServer(parse(content.slice(0, content.indexOf('secrets:'))) as Json);
    await runSuccessfully('export', slug, '--out', folder);
    assert.equal(readFileSync(path, 'utf8'), content);
    const tools = [
      buildToolAt(`${upstream}/new`, { name: 'new' }),
      buildToolAt(`${upstream}/other`, { name: 'other', description: 'Gets the other thing.', timeout_ms: 500 }),
      buildToolAt(`${upstream}/thing`, { headers: { Accept: 'text/plain' } }),
    ];
    const changed = await running.rest('PATCH', `/servers/${slug}`, { body: { description: 'Forecasts', tools } });
    assert.equal(changed.status, 200, changed.text);
    await runSuccessfully('export', slug, '--out', folder);
    const text = readFileSync(path, 'utf8');
    for (const line of [
      ...['# Owned by the weather team.', `slug: ${slug} # never change it`, 'name: "Weather"', '# What agents may do'],
      ...['  # The first tool', '    method: get # as the API says', '    description: >-', '  # The second tool'],
      ...['  KEY: {env: NOT_SET} # from the vault', 'description: Forecasts'],
    ])
      assert.ok(text.includes(`${line}\n`), `${line}\n\n${text}`);
    assert.deepEqual(pluck((parse(text) as { tools: { name: string }[] }).tools, 'name'), ['new', 'other', 'get']);
    assert.equal((await run('diff', path)).code, 0, text);
  });

  it('[imp 6] writes a server into its document of a multi-document YAML or JSON file, and resolves anchors', async () => {
    const [a, b, c] = ['multi-a', 'multi-b', 'multi-c'];
    const anchored = `# second
name: A
slug: ${a}
tools:
  - name: get # the first
    method: GET
    url: &url ${upstream}/thing
    description: Gets the thing from the upstream.
  - { name: other, method: GET, url: *url, description: Gets the other thing. }
`;
    const yaml = write('several.yaml', `# first\n${stringify(buildServerAt(b, upstream))}---\n${anchored}`);
    const json = write('list.json', JSON.stringify([buildServerAt(c, upstream)]));
    await runSuccessfully('apply', folder);
    const tools = [
      buildToolAt(`${upstream}/moved`),
      buildToolAt(`${upstream}/thing`, { name: 'other', description: 'Gets the other thing.' }),
    ];
    await running.rest('PATCH', `/servers/${a}`, { body: { tools } });
    for (const slug of [b, c]) await running.rest('PATCH', `/servers/${slug}`, { body: { description: 'Changed.' } });
    await runSuccessfully('export', a, b, c, '--out', folder);
    assert.match(readFileSync(yaml, 'utf8'), /^# first\n[\s\S]*^---\n# second\n[\s\S]*- name: get # the first\n/m);
    assert.equal((JSON.parse(readFileSync(json, 'utf8')) as Json[])[0]?.description, 'Changed.');
    const { code, stdout } = await run('diff', folder);
    assert.equal(code, 0, `${stdout}\n${readFileSync(yaml, 'utf8')}`);
  });

  it('[imp 6] rejects a folder with unreadable files before writing anything', async () => {
    await running.createServer(buildServerAt('refused', upstream));
    write('broken.yaml', 'name: [');
    const exportServer = () => run('export', 'refused', '--out', folder);
    assertFailed(await exportServer(), /broken\.yaml: is not YAML: .*nothing was written/);
    rmSync(join(folder, 'broken.yaml'));
    write('refused.yaml', stringify(buildServerAt('another-user', upstream)));
    assertFailed(await exportServer(), /refused\.yaml: already exists with another server/);
  });

  it('[imp 6] changes nothing when exported servers with any texts are applied again', async () => {
    const slugs = texts.map((_, at) => `any-${at}`);
    const writeServers = (name: string, format: (config: Json) => string, offset: number) => {
      mkdirSync(join(folder, name), { recursive: true });
      for (const [at, slug] of slugs.entries())
        write(join(name, `${slug}.${offset > 0 ? 'json' : 'yaml'}`), format(createConfig(slug, at + offset)));
      return join(folder, name);
    };
    const first = writeServers('first', (config) => stringify(config, { lineWidth: 0 }), 0);
    await runSuccessfully('apply', first);
    const exported = join(folder, 'exported');
    await runSuccessfully('export', ...slugs, '--out', exported);
    assert.match((await runSuccessfully('apply', exported)).stdout, new RegExp(`^${slugs.length} same$`, 'm'));
    // Then every server becomes another one, and the files follow.
    await runSuccessfully('apply', writeServers('others', JSON.stringify, 7));
    await runSuccessfully('export', ...slugs, '--out', first);
    const { code, stdout } = await run('diff', first);
    assert.equal(code, 0, stdout);
  });
});
