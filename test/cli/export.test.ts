import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { parse, stringify } from 'yaml';
import { getRunCount } from '../sets.ts';
import { pluck } from '../support/pluck.ts';
import { assertFailed, createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';

const upstream = 'https://api.example.com';

/** Texts that YAML could read as another type, or whose whitespace and line breaks it could lose. */
const text = fc.oneof(
  fc.constantFrom('yes', 'no', 'null', '~', '0x1f', '1e3', '2026-01-01', '- a', 'a: b', 'a #b', '*a', '&a', '!a', '<<'),
  fc.constantFrom(...'%a @a `a " \' {a [a | > --- ... : = ?'.split(' '), '# a', 'a\nb\n', 'ü€😀', 'a\tb'),
  fc.constantFrom(
    ' ',
    '\n',
    ' \n ',
    '\t',
    '  x',
    '\n\nx',
    'x\n \n',
    'x\n\n\n',
    '  x\ny',
    'x ',
    '\u00a0',
    '',
    'a\n\n  b\n\n',
  ),
  fc.string({ minLength: 1, maxLength: 120 }),
);
const visibleText = text.map((value) => `T ${value.replaceAll(/[\p{C}\u2028\u2029]/gu, '.')} .`.slice(0, 90));
const type = fc.constantFrom('string', 'integer', 'boolean');
const argumentFields = { type, description: visibleText, optional: fc.constant(true) };
const argument = fc.record(argumentFields, { requiredKeys: ['type'] });
// A colon could start something that looks like an argument, which headers reject.
const headerText = visibleText.map((value) => value.replaceAll(/[^ -~]|[{}:]/g, '.'));
const tool = fc.record(
  {
    description: visibleText,
    method: fc.constantFrom('GET', 'post', 'PATCH'),
    url: fc.constant(`${upstream}/thing`),
    title: visibleText,
    headers: fc.dictionary(fc.constantFrom('X-A', 'X-B', 'X-C'), headerText),
    input_schema: fc.dictionary(fc.constantFrom('yes', 'a', 'b', 'null', '_1'), argument),
    timeout_ms: fc.integer({ min: 1, max: 20_000 }),
    response_fields: fc.uniqueArray(fc.constantFrom('a', 'b.c', 'on'), { minLength: 1 }),
  },
  { requiredKeys: ['description', 'method', 'url'] },
);
const config = fc.record(
  {
    name: visibleText,
    description: text.map((value) => value.replaceAll('\0', '')),
    authentication: fc.constantFrom({ type: 'Bearer' }, { type: 'ApiKey', header: 'X-Key', token: '{{KEY}}' }),
    tools: fc
      .dictionary(fc.constantFrom('a', 'b', 'c.d', 'null', '1'), tool, { maxKeys: 4 })
      .map((tools) => Object.entries(tools).map(([name, fields]) => ({ name, ...fields }))),
    limits: fc.record({ calls_per_day: fc.integer({ min: 1, max: 9 }) }),
  },
  { requiredKeys: ['name', 'tools'] },
);

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
    write('refused.yaml', stringify(buildServerAt('somebody-else', upstream)));
    assertFailed(await exportServer(), /refused\.yaml: already exists with another server/);
  });

  it('[imp 6] changes nothing when any exported servers are applied again', async () => {
    let round = 0;
    let slugs: string[] = [];
    const servers = fc.array(fc.tuple(config, config), { minLength: 15, maxLength: 15 });
    const property = fc.asyncProperty(servers, async (pairs) => {
      const roundFolder = join(folder, String(round));
      mkdirSync(roundFolder);
      const pairedConfigs = pairs.map(([first, second], index) => {
        const slug = `any-${round}-${index}`;
        return { slug, first: { ...first, slug }, second: { ...second, slug } };
      });
      slugs = pairedConfigs.map(({ slug }) => slug);
      round += 1;
      for (const { slug, first } of pairedConfigs)
        writeFileSync(join(roundFolder, `${slug}.yaml`), stringify(first, { lineWidth: 0 }));
      await runSuccessfully('apply', roundFolder);
      const exported = join(roundFolder, 'exported');
      await runSuccessfully('export', ...slugs, '--out', exported);
      assert.match((await runSuccessfully('apply', exported)).stdout, /^15 same$/m);
      // Then every server becomes another one, and the exported files follow.
      const others = join(roundFolder, 'others');
      mkdirSync(others);
      for (const { slug, second } of pairedConfigs) writeFileSync(join(others, `${slug}.json`), JSON.stringify(second));
      await runSuccessfully('apply', others);
      await runSuccessfully('export', ...slugs, '--out', roundFolder);
      const { code, stdout } = await run('diff', roundFolder);
      assert.equal(code, 0, stdout);
    });
    // Shrinking rounds would otherwise fill the workspace.
    const deleteServers = () => Promise.all(slugs.map((slug) => running.rest('DELETE', `/servers/${slug}`)));
    await fc.assert(property.afterEach(deleteServers), { numRuns: getRunCount(3) });
  });
});
