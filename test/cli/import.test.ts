import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { openApi } from '../support/import/import-plans.ts';
import { pluck } from '../support/pluck.ts';
import { assertFailed, createTestFolder, startCommandService } from '../support/toolhost/command-world.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

const operation = (tag: string, summary: string) => ({ tags: [tag], summary });
const pets = openApi(
  {
    '/pets': { get: operation('pets', 'All pets of the shop'), post: operation('pets', 'A new pet of the shop') },
    '/owners/{id}': { get: operation('owners', 'One owner of some pets') },
  },
  { servers: [{ url: 'https://{shop}.example.com', variables: { shop: { default: 'your-shop' } } }] },
);

describe('toolhost import and reimport', async () => {
  const folder = createTestFolder();
  const description = join(folder, 'openapi.yaml');
  writeFileSync(description, stringify(pets));
  const upstream = await startRecordingUpstream();
  after(() => upstream.close());
  const { running, run } = await startCommandService({ egressPorts: [upstream.port] });
  const runOffline = (args: readonly string[], input = '') => runToolhostCommand(['import', ...args], { input });

  it('[imp 4] prints a plan without a service', async () => {
    const { code, stdout } = await runOffline([description, '--plan']);
    assert.equal(code, 0);
    assert.match(stdout, /3 operations: 3 whole/);
    assert.match(stdout, /^2 +1 +0 +\d+ +pets$/m);
    assert.match(stdout, /Required: --set shop=…/);
    const utf16File = join(folder, 'wide.json');
    writeFileSync(utf16File, `\ufeff${JSON.stringify(pets)}`, 'utf16le');
    assert.match((await runOffline([utf16File, '--plan'])).stdout, /3 operations: 3 whole/);
    const json = await runOffline(['-', '--plan', '--json', '--list', 'all'], JSON.stringify(pets));
    const plan = JSON.parse(json.stdout) as { report: { tool: string }[] };
    assert.deepEqual(pluck(plan.report, 'tool'), ['list_pets', 'create_pet', 'get_owner']);
  });

  it('[imp 4] writes a file that passes the check once all required questions are answered', async () => {
    const out = join(folder, 'pets.yaml');
    const args = [description, '--out', out, '--include', 'pets', '--read-only'];
    assertFailed(await runOffline(args), /a required question is not answered\n +Required: --set shop=…/);
    assert.equal((await runOffline([...args, '--set', 'shop=acme'])).code, 0);
    assert.match(readFileSync(out, 'utf8'), /base_url: https:\/\/\{\{shop\}\}\.example\.com\n/);
    const { code, stdout } = await runToolhostCommand(['check', out]);
    assert.deepEqual([code, stdout], [0, `${out}: ok\n`]);
    const repeated = await runOffline([...args, '--server', 'https://x.example.com']);
    assertFailed(repeated, /already exists\. Name another file/);
  });

  it('[imp 4] creates the server in a running service', async () => {
    const settings = ['--set', 'shop=acme', '--set', 'credential=bearer', '--slug', 'acme-pets'];
    const { code, stdout, stderr } = await run(['import', description, ...settings]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Created the server "Things" \(version 1\)[\s\S]*Set the secret TOKEN[\s\S]*Imported 3 tools/);
    assert.equal((await running.rest('GET', '/servers/acme-pets')).status, 200);
  });

  it('[imp 4] adds a description to a server, and re-imports the one that --prefix names', async () => {
    const settings = ['--set', 'shop=acme', '--include', '*'];
    assert.equal((await run(['import', description, ...settings, '--slug', 'two-apis'])).code, 0);
    const add = ['import', description, ...settings, '--into', 'two-apis'];
    assertFailed(await run(add), /--into SLUG and --prefix PREFIX belong together/);
    assertFailed(await run([...add, '--prefix', 'b', '--slug', 'x']), /Omit --slug/);
    const added = await run([...add, '--prefix', 'b']);
    assert.match(added.stdout, /Changed the server .*\n.*Tools: 6\./);
    const planned = await runOffline([
      description,
      ...settings,
      '--into',
      'two-apis',
      '--prefix',
      'b',
      '--plan',
      '--list',
      'all',
    ]);
    assert.match(planned.stdout, /→ b_list_pets/);
    assertFailed(await run(['reimport', 'two-apis', description]), /prefix: required/);
    const { code, stdout } = await run(['reimport', 'two-apis', description, '--prefix', 'b']);
    assert.deepEqual([code, /unchanged tools: 6/.test(stdout)], [0, true], stdout);
  });

  it('[imp 3] creates a server whose credential each person brings', async () => {
    const settings = [
      '--set',
      'shop=acme',
      '--set',
      'credential=bearer',
      '--set',
      'access=person',
      '--slug',
      'own-pets',
    ];
    const { code, stdout, stderr } = await run(['import', description, ...settings]);
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stdout, /Set the secret/);
    const { config, server } = (await running.rest('GET', '/servers/own-pets')).body as { config: Json; server: Json };
    assert.deepEqual(config.login, { fields: [{ name: 'TOKEN', label: 'Bearer token' }] });
    assert.equal(server.access, 'login');
  });

  it('[imp 4] reports problems with the document, a --set value, or an --include pattern', async () => {
    assertFailed(await runOffline(['-', '--plan'], '{"a":1}'), /not an API description/);
    assertFailed(await runOffline(['-', '--plan'], '<!doctype html><p>'), /a web page/);
    const misspelled = await runOffline([description, '--plan', '--set', 'shp=x']);
    assertFailed(misspelled, /--set shp=…: .*did you mean `shop`/);
    const unselected = await runOffline([description, '--out', '-', '--set', 'shop=a', '--include', 'cats']);
    assertFailed(unselected, /no operation was selected\n.*--include cats/);
  });

  it('[imp 4] explains why a URL cannot be read, also when its response is cut off', async () => {
    const truncatingServer = createServer((_, response) => {
      response.writeHead(200, { 'Content-Length': '1000' });
      response.write('{', () => response.destroy());
    });
    await once(truncatingServer.listen(0, '127.0.0.1'), 'listening');
    const { port } = truncatingServer.address() as AddressInfo;
    for (const [url, reason] of [
      ['http://toolhost.invalid', 'its host name (is unknown|could not be resolved)'],
      [`http://127.0.0.1:${port}`, 'it closed the connection before the end of the response'],
    ])
      assertFailed(
        await runOffline([`${url}/openapi.json`, '--plan']),
        new RegExp(`openapi\\.json cannot be read: ${reason}`),
      );
    truncatingServer.close();
  });

  it('[imp 5] re-imports: prints what would change, and stores it with --apply', async () => {
    const created = await run(['import', description, '--include', '*', '--set', 'shop=acme', '--slug', 'again']);
    assert.equal(created.code, 0, created.stderr);
    const changed = join(folder, 'changed.yaml');
    const changedDocument = structuredClone(pets) as { paths: { [path: string]: unknown } };
    changedDocument.paths['/pets'] = { get: operation('pets', 'Every pet that the shop has') };
    changedDocument.paths['/shops'] = { get: operation('shops', 'The shops that there are') };
    writeFileSync(changed, stringify(changedDocument));
    const plan = await run(['reimport', 'again', changed]);
    assert.deepEqual([plan.code, plan.stderr], [2, '']);
    assert.match(plan.stdout, /^list_pets changes: description$/m);
    assert.match(plan.stdout, /Removed: create_pet/);
    assert.match(plan.stdout, /New: GET \/shops/);
    const applied = await run(['reimport', 'again', changed, '--add', '/shops', '--apply', '--json']);
    assert.equal(applied.code, 0, applied.stderr);
    assert.deepEqual((JSON.parse(applied.stdout) as { added: string[] }).added, ['list_shops']);
    const unchanged = await run(['reimport', 'again', changed]);
    assert.equal(unchanged.code, 0);
    assert.match(unchanged.stdout, /^Nothing to apply\.$/m);
  });

  it('[imp 5] checks the API description, watches it, and lists what has changed', async () => {
    const serveDescription = (summary: string) => {
      const paths = { '/pets': { get: { operationId: 'listPets', summary } } };
      const document = openApi(paths, { servers: [{ url: upstream.url }] });
      upstream.on('GET /api.json', () => ({ body: document }));
    };
    serveDescription('All pets of the shop');
    const url = `${upstream.url}/api.json`;
    const body = { mode: 'create', url, slug: 'pets', include: ['*'] };
    const created = await running.rest('POST', '/import', { body });
    assert.equal(created.status, 200, created.text);
    assert.match((await run(['servers', 'list'])).stdout, /IMPORT.*\n.*imported/);
    const watched = await run(['reimport', 'pets', '--watch', 'daily', '--check']);
    assert.equal(watched.code, 0, watched.stderr);
    const report = /checked every day; next check: .*\npets: Nothing has changed since the last import\./;
    assert.match(watched.stdout, report);
    serveDescription('Every pet of the shop');
    const changed = await run(['reimport', 'pets', '--check']);
    assert.deepEqual([changed.code, /1 tool changes/.test(changed.stdout)], [2, true], changed.stdout);
    assert.match((await run(['servers', 'list'])).stdout, /changed/);
    assert.match(changed.stdout, /Next: .*toolhost reimport pets$/m);
    const { stdout: planned } = await run(['reimport', 'pets']);
    assert.match(planned, /: 1 tool changes; preserved edits: 0, unchanged tools: 0, /);
    assert.match(planned, /^list_pets changes: description$/m);
    assert.match(planned, /^Next: .*toolhost reimport pets --apply/m);
    assert.equal((await run(['reimport', 'pets', '--apply'])).code, 0);
    assert.equal((await run(['reimport', 'pets', '--check'])).code, 0);
    upstream.on('GET /api.json', () => ({ status: 404, body: {} }));
    const failed = await run(['reimport', 'pets', '--check', '--json']);
    assert.equal(failed.code, 1);
    assert.match((JSON.parse(failed.stdout) as { imported: { error: string } }).imported.error, /HTTP 404/);
    assert.match((await run(['reimport', 'pets', 'openapi.json', '--check'])).stderr, /Omit this argument/);
    assert.match((await run(['reimport', 'pets', '--watch', 'never'])).stdout, /no longer watched/);
  });
});
