import assert from 'node:assert/strict';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { parse, stringify } from 'yaml';
import { pluck } from '../support/pluck.ts';
import { assertFailed, createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import { type Json, startToolhost } from '../support/toolhost/toolhost.ts';
import type { CommandResult } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

type Outcome = { slug: string; result: string; changes: { path: string }[]; message?: string };
type Report = { applied: boolean; problems: { at: string; path: string; message: string }[]; servers: Outcome[] };

const upstream = 'https://api.example.com';

describe('toolhost apply', async () => {
  let folder: string;
  let count = 0;
  const recordingUpstream = await startRecordingUpstream();
  const { running, env, run: runCommand } = await startCommandService({ egressPorts: [recordingUpstream.port] });
  const root = createTestFolder();
  beforeEach(() => {
    count += 1;
    folder = join(root, String(count));
    mkdirSync(folder);
  });
  after(() => recordingUpstream.close());

  const file = (name: string, ...values: (Json | string)[]): string => {
    const path = join(folder, name);
    const texts = values.map((value) => (typeof value === 'string' ? value : stringify(value)));
    writeFileSync(path, texts.join('---\n'));
    return path;
  };
  const run = (args: readonly string[], more: Record<string, string> = {}) =>
    runCommand(args, { env: { ...env, ...more } });
  const apply = (args: readonly string[], more: Record<string, string> = {}) => run(['apply', ...args], more);
  const parseReport = ({ stdout }: CommandResult) => JSON.parse(stdout) as Report;
  /** Returns the result of each slug, in the order of the report. */
  const getResults = (ended: CommandResult) => pluck(parseReport(ended).servers, 'slug', 'result');
  const getChangedPaths = (ended: CommandResult) => pluck(parseReport(ended).servers[0]?.changes, 'path');
  const getStatus = async (slug: string) => (await running.rest('GET', `/servers/${slug}`)).status;
  const getServer = async (slug: string) => (await running.rest('GET', `/servers/${slug}`)).body;
  const getVersion = async (slug: string) => ((await getServer(slug)).server as { version: number }).version;
  /** Returns a slug that is unique to this test. */
  const uniqueSlug = (name: string) => `${name}-${count}`;

  it('[imp 6] creates and updates the servers that files describe, and changes nothing on the second run', async () => {
    const [a, b, c] = [uniqueSlug('a'), uniqueSlug('b'), uniqueSlug('c')];
    file('one.yaml', buildServerAt(a, upstream), buildServerAt(b, upstream));
    file('two.json', JSON.stringify([{ ...buildServerAt(c, upstream), limits: { calls_per_day: 9 } }]));
    const dry = await apply([folder, '--dry-run', '--json']);
    assert.deepEqual([dry.code, getResults(dry)], [2, [a, 'created', b, 'created', c, 'created']]);
    assert.equal(await getStatus(a), 404);
    const first = await apply([folder]);
    assert.deepEqual([first.code, first.stderr], [0, '']);
    assert.match(first.stdout, /^created {2}a-\d+ {2}.*one\.yaml \(document 1\)$/m);
    assert.match(first.stdout, /^3 created$/m);
    const limits = (await running.rest('GET', `/servers/${c}/limits`)).body;
    assert.equal((limits.calls_per_day as { set: number }).set, 9);
    const again = await apply([folder, '--json']);
    assert.deepEqual([again.code, getResults(again)], [0, [a, 'same', b, 'same', c, 'same']]);
    assert.equal((await apply([folder, '--dry-run'])).code, 0);
    assert.equal(await getVersion(a), 1);
    file('one.yaml', buildServerAt(a, upstream, { description: 'New.' }), buildServerAt(b, upstream));
    assert.equal((await apply([folder, '--dry-run', '--json'])).code, 2);
    const changed = await apply([folder, '--json']);
    assert.deepEqual([changed.code, getResults(changed)], [0, [a, 'changed', b, 'same', c, 'same']]);
    const change = { path: 'description', after: 'New.', text: 'description added' };
    assert.deepEqual(parseReport(changed).servers[0]?.changes, [change]);
    assert.equal(await getVersion(a), 2);
  });

  it('applies a login with fields, refuses secrets with their names, and gets the same file back from an export', async () => {
    const slug = uniqueSlug('login');
    const login = { allow: { domains: ['example.com'] }, fields: [{ name: 'KEY', label: 'Key', optional: true }] };
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    const config = buildServerAt(slug, upstream, { login, authentication });
    const secret = file('secret.txt', 'a-value');
    const path = file('login.yaml', { ...config, secrets: { KEY: { file: 'secret.txt' } } });
    const refused = await apply([path, '--json']);
    assert.notEqual(refused.code, 0, secret);
    assert.match(
      refused.stdout,
      /login\.fields\[0\]\.name.*KEY is also a secret of the server, but each person provides this value/,
    );
    file('login.yaml', config);
    assert.deepEqual(getResults(await apply([path, '--json'])), [slug, 'created']);
    assert.equal((await run(['check', path])).code, 0);
    const exported = await run(['export', slug]);
    const { $schema: _, ...document } = parse(exported.stdout) as Json;
    assert.deepEqual([document.login, document.secrets], [login, undefined], exported.stderr);
    file('login.yaml', exported.stdout);
    assert.deepEqual(getResults(await apply([path, '--json'])), [slug, 'same']);
    const wrong = { ...config, login: { ...login, allow: { domains: ['co.uk'] } } };
    const checked = await run(['check', file('wrong.yaml', wrong)]);
    assert.match(checked.stdout + checked.stderr, /login\.allow\.domains\[0\]: found "co\.uk"/);
  });

  it('[imp 6] validates every file before changing anything, and reports file, path, and problem', async () => {
    const [good, bad, twice] = [uniqueSlug('good'), uniqueSlug('bad'), uniqueSlug('twice')];
    const first = file('a.yaml', buildServerAt(good, upstream), buildServerAt(twice, upstream));
    const second = file('b.yaml', { ...buildServerAt(bad, upstream), colour: 'red', limits: { calls: 3 } });
    const withoutTools = buildServerAt(uniqueSlug('d'), upstream, { tools: [{}] });
    const third = file('c.yaml', buildServerAt(twice, upstream), withoutTools);
    const broken = file('d.yaml', 'name: [');
    const ended = await apply([folder]);
    assertFailed(ended, /^error: \d+ problems; nothing was changed\n/);
    for (const expected of [
      `${second}: limits.calls: `,
      `${third} (document 1): slug: "${twice}" is already the slug in ${first} (document 2)`,
      `${third} (document 2): tools[0].name: `,
      `${broken}: is not YAML: `,
    ])
      assert.ok(ended.stderr.includes(`  ${expected}`), `${expected}\n${ended.stderr}`);
    assert.equal(await getStatus(good), 404);
    for (const [name, text] of [
      ['petstore.yaml', 'openapi: 3.1.0\ninfo: { title: Pets, version: "1" }\npaths: {}\n'],
      ['curl.yaml', "curl -X POST https://api.example.com/things -d '{}'\n"],
    ] as const) {
      assertFailed(await apply([file(name, text)]), /toolhost import FILE/);
      assert.match((await run(['check', join(folder, name)])).stdout, /toolhost import FILE/);
    }
    assertFailed(await apply([join(root, 'nowhere')]), /nowhere/);
    assert.equal((await apply([folder, '--nonsense'])).code, 1);
  });

  it('[imp 6] takes secret values from the environment and from files, and prints none of them', async () => {
    const slug = uniqueSlug('sealed');
    const secret = 'v4lue-of-the-secret';
    writeFileSync(join(folder, 'other.txt'), 'an0ther-value\n');
    const config = buildServerAt(slug, recordingUpstream.url, {
      authentication: { type: 'Bearer', token: '{{SERVICE_KEY}}' },
      secrets: { SERVICE_KEY: { env: 'MY_KEY' }, OTHER: { file: 'other.txt' } },
    });
    const path = file('sealed.yaml', config);
    const named = ['--env', 'MY_KEY'];
    assertFailed(await apply([path, ...named]), /secrets\.SERVICE_KEY: the environment variable MY_KEY is not set/);
    const first = await apply([path, ...named], { MY_KEY: secret });
    assert.equal(first.code, 0);
    const key = await running.createKey();
    await running.callTool(slug, key, 'get');
    assert.equal(recordingUpstream.take().at(-1)?.headers.authorization, `Bearer ${secret}`);
    const repeated = await apply([path, ...named, '--json'], { MY_KEY: secret });
    assert.deepEqual(getResults(repeated), [slug, 'same']);
    const planned = await apply([path, ...named, '--dry-run', '--json'], { MY_KEY: 'n3w-value' });
    assert.deepEqual([planned.code, getChangedPaths(planned)], [2, ['secrets.SERVICE_KEY']]);
    const compared = await run(['diff', path, ...named], { MY_KEY: 'n3w-value' });
    const changed = await apply([path, ...named], { MY_KEY: 'n3w-value' });
    await running.callTool(slug, key, 'get');
    assert.equal(recordingUpstream.take().at(-1)?.headers.authorization, 'Bearer n3w-value');
    const refused = await apply([path, ...named], { MY_KEY: 'two\nlines-of-v4lue' });
    assert.equal(refused.code, 1);
    const outputs = [first, repeated, planned, compared, changed, refused];
    for (const { stdout, stderr } of outputs) assert.doesNotMatch(stdout + stderr, /v4lue|n3w-value|an0ther/);
  });

  it('diff and apply print and store nothing from a file that a link outside their folder points to [find F3]', async () => {
    const slug = uniqueSlug('outside');
    writeFileSync(join(root, 'outside.txt'), stringify(buildServerAt(slug, 'https://api.example.com')));
    symlinkSync('../outside.txt', join(folder, 'outside.yaml'));
    for (const ended of [await run(['diff', folder]), await apply([folder])]) {
      assertFailed(ended, /outside\.yaml: is a link to a file outside its folder/);
      assert.ok(!ended.stderr.includes(slug), ended.stderr);
    }
    assert.equal(await getStatus(slug), 404);
  });

  it('[find F3] limits a file of servers to secret files below its folder and to variables that the command names', async () => {
    const slug = uniqueSlug('helpful');
    writeFileSync(join(root, 'private-id'), 'pr1vate');
    writeFileSync(join(folder, 'own-id'), '0wn');
    symlinkSync(join(root, 'private-id'), join(folder, 'link'));
    symlinkSync(root, join(folder, 'up'));
    const config = (secrets: Json) =>
      buildServerAt(slug, 'https://collector.example.com', {
        authentication: { type: 'Bearer', token: '{{A}}' },
        headers: { 'X-B': '{{B}}' },
        secrets,
      });
    const outside = ['../private-id', 'link', 'up/private-id', join(root, 'private-id'), '../'];
    for (const path of outside) {
      file('helpful.yaml', config({ A: { file: path } }));
      for (const args of [[folder], [folder, '--dry-run'], [join(folder, 'helpful.yaml')]])
        assertFailed(await apply(args), /secrets\.A: the file \S+ is outside the folder of the configuration/);
    }
    file('helpful.yaml', config({ A: { file: 'own-id' }, B: { env: 'OTHER_TOKEN' } }));
    const other = { OTHER_TOKEN: 'unas7ed' };
    const unnamed =
      /secrets\.B: the command does not name the variable OTHER_TOKEN.* collector\.example\.com\. .* --env OTHER_TOKEN/;
    for (const args of [[folder], [folder, '--dry-run'], [folder, '--env', 'ANOTHER']])
      assertFailed(await apply(args, other), unnamed);
    assert.match((await run(['diff', folder], other)).stderr, /does not name the variable OTHER_TOKEN.*; not compared/);
    assert.equal(await getStatus(slug), 404);
    const named = ['--env', 'ANOTHER', '--env', 'OTHER_TOKEN'];
    const planned = await apply([folder, '--dry-run', ...named], other);
    assert.equal(planned.code, 2, planned.stderr);
    assert.match(planned.stdout, /secret A: from the file own-id, may reach collector\.example\.com\n/);
    assert.match(planned.stdout, /secret B: from the variable OTHER_TOKEN, may reach collector\.example\.com\n/);
    const { servers } = parseReport(await apply([folder, '--dry-run', '--json', ...named], other));
    const hosts = ['collector.example.com'];
    assert.deepEqual((servers[0] as Outcome & { secrets: unknown }).secrets, [
      { name: 'A', source: 'the file own-id', hosts },
      { name: 'B', source: 'the variable OTHER_TOKEN', hosts },
    ]);
    // A references file that the caller names may use anything that the caller can read.
    const references = join(root, 'references.yaml');
    writeFileSync(references, stringify({ [slug]: { A: { file: 'private-id' }, B: { env: 'OTHER_TOKEN' } } }));
    file('helpful.yaml', config({}));
    assert.equal((await apply([folder, '--secrets', references], other)).code, 0);
  });

  it('[imp 6] sets encrypted configuration fields by path, and rejects their values in a file', async () => {
    const slug = uniqueSlug('login');
    const oauth = {
      ...{ authorization_url: 'https://login.example.com/authorize', token_url: 'https://login.example.com/token' },
      ...{ client_id: 'client', client_secret: '********' },
    };
    const references = join(folder, 'secrets.yaml');
    mkdirSync(join(folder, 'servers'));
    const path = join(folder, 'servers', 'login.yaml');
    writeFileSync(path, stringify(buildServerAt(slug, upstream, { oauth })));
    writeFileSync(references, stringify({ [slug]: { 'oauth.client_secret': { env: 'CLIENT_SECRET' } } }));
    assertFailed(await apply([path]), /oauth\.client_secret: .*\{"oauth\.client_secret": \{"env": "NAME"\}\}/);
    const withSecrets = (CLIENT_SECRET: string, ...more: string[]) =>
      apply([path, '--secrets', references, ...more], { CLIENT_SECRET });
    const applied = await withSecrets('cl1ent-secret');
    assert.equal(applied.code, 0, applied.stderr);
    assert.deepEqual(getResults(await withSecrets('cl1ent-secret', '--json')), [slug, 'same']);
    // Without a source, the stored value does not change.
    assert.deepEqual(getResults(await apply([path, '--json'])), [slug, 'same']);
    const other = await withSecrets('other', '--dry-run', '--json');
    assert.deepEqual(getChangedPaths(other), ['oauth.client_secret']);
    writeFileSync(path, stringify(buildServerAt(slug, upstream, { oauth: { ...oauth, client_secret: 'lit3ral' } })));
    const literal = await apply([path]);
    assertFailed(literal, /oauth\.client_secret: contains a credential/);
    assert.doesNotMatch(literal.stderr, /lit3ral/);
    writeFileSync(path, stringify({ ...buildServerAt(slug, upstream), secrets: { KEY: 'lit3ral' } }));
    const value = await apply([path]);
    assert.match(value.stderr, /secrets\.KEY: allowed: \{ env: NAME \}/);
    assert.doesNotMatch(value.stderr, /lit3ral/);
  });

  it('[imp 6] --prune deletes only servers with the label that no file describes, and only with --yes', async () => {
    const [keep, drop] = [uniqueSlug('keep'), uniqueSlug('drop')];
    const [otherLabel, plain] = [uniqueSlug('foreign'), uniqueSlug('plain')];
    const label = uniqueSlug('team');
    await running.createServer(buildServerAt(plain, upstream));
    await apply([file('foreign.yaml', buildServerAt(otherLabel, upstream)), '--label', uniqueSlug('other')]);
    const path = file('team.yaml', buildServerAt(keep, upstream), buildServerAt(drop, upstream));
    assert.equal((await apply([path, '--label', label])).code, 0);
    file('team.yaml', buildServerAt(keep, upstream));
    const unlabelled = await apply([path, '--prune', '--yes']);
    assert.match(unlabelled.stderr, /name it with --label/);
    const dry = await apply([path, '--label', label, '--prune', '--dry-run', '--json']);
    assert.deepEqual([dry.code, getResults(dry)], [2, [keep, 'same', drop, 'pruned']]);
    const unconfirmed = await apply([path, '--label', label, '--prune']);
    assertFailed(unconfirmed, /would delete drop-\d+; nothing was changed\. Add --yes/);
    assert.equal(await getStatus(drop), 200);
    const pruned = await apply([path, '--label', label, '--prune', '--yes', '--json']);
    assert.deepEqual([pruned.code, getResults(pruned)], [0, [keep, 'same', drop, 'pruned']]);
    assert.deepEqual(await Promise.all([keep, drop, otherLabel, plain].map(getStatus)), [200, 404, 200, 200]);
    const relabeled = await apply([file('foreign.yaml', buildServerAt(otherLabel, upstream)), '--label', label]);
    assertFailed(relabeled, /belongs to the label other-\d+/);
  });

  it('[imp 6] does not overwrite changes made elsewhere unless --overwrite is given', async () => {
    const slug = uniqueSlug('shared');
    const path = file('shared.yaml', buildServerAt(slug, upstream, { description: 'One.' }));
    await apply([path]);
    const changed = await running.rest('PATCH', `/servers/${slug}`, { body: { description: 'From the dashboard.' } });
    assert.equal(changed.status, 200);
    const undone = /description: the server was changed elsewhere .*\(version 1, now 2\)/;
    for (const args of [[], ['--dry-run']]) assertFailed(await apply([path, ...args]), undone);
    // Changing another field is allowed once the file contains the change made elsewhere.
    file('shared.yaml', buildServerAt(slug, upstream, { description: 'From the dashboard.', name: 'Renamed' }));
    const merged = await apply([path, '--json']);
    assert.deepEqual([merged.code, getResults(merged)], [0, [slug, 'changed']]);
    await running.rest('PATCH', `/servers/${slug}`, { body: { description: 'Again.' } });
    const overwritten = await apply([path, '--overwrite', '--json']);
    assert.deepEqual(getResults(overwritten), [slug, 'changed']);
    assert.equal(((await getServer(slug)).config as Json).description, 'From the dashboard.');
  });

  it('[imp 6] reports which servers were applied when others fail', async () => {
    const path = file('many.yaml', ...['a', 'b', 'c'].map((name) => buildServerAt(uniqueSlug(name), upstream)));
    const limited = await startToolhost({ env: { QUOTAS: 'servers=2' } });
    try {
      const limitedEnv = { TOOLHOST_URL: limited.url, TOOLHOST_API_KEY: await limited.createKey() };
      const ended = await apply([path, '--json'], limitedEnv);
      const [a, b, c] = ['a', 'b', 'c'].map(uniqueSlug);
      assert.deepEqual([ended.code, getResults(ended)], [1, [a, 'created', b, 'created', c, 'failed']]);
      assert.match(parseReport(ended).servers[2]?.message ?? '', /servers/);
      const text = await apply([path], limitedEnv);
      assert.match(text.stdout, /^failed .* c-\d+ .*servers/m);
      assert.match(text.stdout, /^2 same, 1 failed$/m);
    } finally {
      await limited.stop();
    }
  });

  it('[imp 6] compares files with the service field by field', async () => {
    const slug = uniqueSlug('compared');
    const config = buildServerAt(slug, upstream, { description: 'One.' });
    const path = file('compared.yaml', config);
    const beforeApply = await run(['diff', path]);
    assert.deepEqual([beforeApply.code, beforeApply.stdout], [2, `${slug} (${path}): not on the service yet\n`]);
    await apply([path]);
    assert.deepEqual(await run(['diff', path]), { code: 0, stdout: '', stderr: '' });
    const tool = buildToolAt(`${upstream}/thing`, { timeout_ms: 500, input_schema: { page: { type: 'integer' } } });
    file('compared.yaml', {
      ...config,
      description: 'Two.',
      tools: [{ ...tool, name: 'other' }, tool],
      secrets: { KEY: { env: 'NOT_SET' } },
      limits: { concurrent_calls: 2 },
    });
    const { code, stdout, stderr } = await run(['diff', path, '--env', 'NOT_SET']);
    assert.equal(code, 2);
    for (const line of [
      '~ description: "One." → "Two."',
      '~ tools[get].timeout_ms: 10000 → 500',
      '+ tools[get].input_schema.page: {"type":"integer"}',
      '+ tools[other]\n',
      '+ limits.concurrent_calls: 2',
    ])
      assert.ok(stdout.includes(`  ${line}`), stdout);
    assert.match(stderr, /secrets\.KEY: the environment variable NOT_SET is not set; not compared/);
    const asReader = { TOOLHOST_API_KEY: await running.createKey({ scopes: ['manage:read'] }), NOT_SET: 'a-value' };
    const diffAsReader = await run(['diff', path, '--env', 'NOT_SET'], asReader);
    assert.equal(diffAsReader.code, 2);
    assert.match(diffAsReader.stderr, /secrets\.KEY: .*manage:write.*not compared/);
  });
});
