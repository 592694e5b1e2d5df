import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { openApi } from '../support/import/import-plans.ts';
import { startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';

const operation = (tag: string, summary: string) => ({ tags: [tag], summary });
const pets = openApi(
  {
    '/pets': { get: operation('pets', 'All pets of the shop'), post: operation('pets', 'A new pet of the shop') },
    '/owners/{id}': { get: operation('owners', 'One owner of some pets') },
  },
  { servers: [{ url: 'https://{shop}.example.com', variables: { shop: { default: 'your-shop' } } }] },
);

describe('toolhost import', () => {
  let folder: string;
  let service: TestToolhost;
  let key: string;
  let description: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-cli-'));
    description = join(folder, 'openapi.yaml');
    writeFileSync(description, stringify(pets));
    service = await startToolhost();
    key = await service.createKey();
  });
  after(async () => {
    await service.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('[imp 4] prints a plan without a service', async () => {
    const { code, stdout } = await runToolhostCommand(['import', description, '--plan']);
    assert.equal(code, 0);
    assert.match(stdout, /3 operations: 3 whole/);
    assert.match(stdout, /^2 +1 +0 +\d+ +pets$/m);
    assert.match(stdout, /Required: --set shop=…/);
    const utf16File = join(folder, 'wide.json');
    writeFileSync(utf16File, `\ufeff${JSON.stringify(pets)}`, 'utf16le');
    assert.match((await runToolhostCommand(['import', utf16File, '--plan'])).stdout, /3 operations: 3 whole/);
    const json = await runToolhostCommand(['import', '-', '--plan', '--json', '--list', 'all'], {
      input: JSON.stringify(pets),
    });
    const plan = JSON.parse(json.stdout) as { report: { tool: string }[] };
    assert.deepEqual(
      plan.report.map(({ tool }) => tool),
      ['list_pets', 'create_pet', 'get_owner'],
    );
  });

  it('[imp 4] writes a file that passes the check once all required questions are answered', async () => {
    const out = join(folder, 'pets.yaml');
    const command = ['import', description, '--out', out, '--include', 'pets', '--read-only'];
    const incomplete = await runToolhostCommand(command);
    assert.equal(incomplete.code, 1);
    assert.match(incomplete.stderr, /a required question is not answered\n +Required: --set shop=…/);
    assert.equal((await runToolhostCommand([...command, '--set', 'shop=acme'])).code, 0);
    assert.match(readFileSync(out, 'utf8'), /base_url: https:\/\/\{\{shop\}\}\.example\.com\n/);
    const { code, stdout } = await runToolhostCommand(['check', out]);
    assert.deepEqual([code, stdout], [0, `${out}: ok\n`]);
    const repeated = await runToolhostCommand([...command, '--server', 'https://x.example.com']);
    assert.deepEqual([repeated.code, /already exists\. Name another file/.test(repeated.stderr)], [1, true]);
  });

  it('[imp 4] creates the server in a running service', async () => {
    const { code, stdout, stderr } = await runToolhostCommand(
      [
        'import',
        description,
        '--set',
        'shop=acme',
        '--set',
        'credential=bearer',
        '--slug',
        'acme-pets',
        '--url',
        service.url,
      ],
      { env: { TOOLHOST_API_KEY: key } },
    );
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Created the server "Things" \(version 1\)[\s\S]*Set the secret TOKEN[\s\S]*Imported 3 tools/);
    assert.equal((await service.rest('GET', '/servers/acme-pets')).status, 200);
  });

  it('[imp 4] reports problems with the document, a --set value, or an --include pattern', async () => {
    const getError = async (args: string[], input = '') =>
      (await runToolhostCommand(['import', ...args], { input })).stderr;
    assert.match(await getError(['-', '--plan'], '{"a":1}'), /not an API description/);
    assert.match(await getError(['-', '--plan'], '<!doctype html><p>'), /a web page/);
    assert.match(await getError([description, '--plan', '--set', 'shp=x']), /answers\.shp: .*did you mean `shop`/);
    assert.match(
      await getError([description, '--out', '-', '--set', 'shop=a', '--include', 'cats']),
      /no operation was selected\n.*--include cats/,
    );
  });

  it('[imp 4] explains why a URL cannot be read, also when its response is cut off', async () => {
    const truncatingServer = createServer((_, response) => {
      response.writeHead(200, { 'Content-Length': '1000' });
      response.write('{', () => response.destroy());
    });
    await once(truncatingServer.listen(0, '127.0.0.1'), 'listening');
    const { port } = truncatingServer.address() as AddressInfo;
    const importError = async (url: string) => (await runToolhostCommand(['import', url, '--plan'])).stderr;
    const unknown = await importError('http://toolhost.invalid/openapi.json');
    assert.match(unknown, /openapi\.json cannot be read: its host name (is unknown|could not be resolved)/);
    assert.match(
      await importError(`http://127.0.0.1:${port}/openapi.json`),
      /openapi\.json cannot be read: it closed the connection before the end of the response/,
    );
    truncatingServer.close();
  });

  it('[imp 5] re-imports: prints what would change, and stores it with --apply', async () => {
    const env = { TOOLHOST_URL: service.url, TOOLHOST_API_KEY: key };
    const run = (...args: string[]) => runToolhostCommand(args, { env });
    const created = await run('import', description, '--include', '*', '--set', 'shop=acme', '--slug', 'again');
    assert.equal(created.code, 0, created.stderr);
    const changed = join(folder, 'changed.yaml');
    const changedDocument = structuredClone(pets) as { paths: { [path: string]: unknown } };
    changedDocument.paths['/pets'] = { get: operation('pets', 'Every pet that the shop has') };
    changedDocument.paths['/shops'] = { get: operation('shops', 'The shops that there are') };
    writeFileSync(changed, stringify(changedDocument));
    const plan = await run('reimport', 'again', changed);
    assert.deepEqual([plan.code, plan.stderr], [2, '']);
    assert.match(plan.stdout, /^list_pets changes: description$/m);
    assert.match(plan.stdout, /Removed: create_pet/);
    assert.match(plan.stdout, /New: GET \/shops/);
    const applied = await run('reimport', 'again', changed, '--add', '/shops', '--apply', '--json');
    assert.equal(applied.code, 0, applied.stderr);
    assert.deepEqual((JSON.parse(applied.stdout) as { added: string[] }).added, ['list_shops']);
    const unchanged = await run('reimport', 'again', changed);
    assert.equal(unchanged.code, 0);
    assert.match(unchanged.stdout, /^Nothing to apply\.$/m);
  });
});
