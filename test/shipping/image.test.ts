import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createGzip } from 'node:zlib';
import { root } from '../files.ts';
import { eventually } from '../support/eventually.ts';
import { findTestCode } from '../support/find-test-code.ts';
import { freshRequest } from '../support/fresh-request.ts';
import { createCleanRootCommand } from '../support/image/clean-root.ts';
import { type BuiltImage, runImageSteps } from '../support/image/image-steps.ts';
import { findFreePort } from '../support/upstreams/listener.ts';

const execFileAsync = promisify(execFile);
const commit = '0123456789abcdef0123456789abcdef01234567';
/** Compressed size of node:26-trixie-slim without Node, in MB: Debian and npm. */
const baseMegabytes = 35;

describe('the container image', () => {
  let folder: string;
  let image: BuiltImage;
  let buildCommand: (args: readonly string[]) => [string, ...string[]];
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'toolhost-image-'));
    const volume = mkdtempSync(join(folder, 'volume-'));
    image = await runImageSteps(folder, { TOOLHOST_COMMIT: commit });
    buildCommand = createCleanRootCommand(image, volume);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('[ship 2] prints its version and commit, and contains no other packages', async () => {
    const [program, ...args] = buildCommand([...image.entrypoint, '--version']);
    const { stdout } = await execFileAsync(program, args);
    assert.match(stdout, new RegExp(`^\\d+\\.\\d+\\.\\d+ \\(commit ${commit}\\)\n$`));
    assert.deepEqual(readdirSync(join(image.root, 'app')).toSorted(), ['LICENSE', 'bin', 'lib', 'package.json']);
  });

  it('[ship 2] contains no test, and neither do the sources from which it is built', () => {
    assert.deepEqual(findTestCode(join(image.root, 'app')), []);
    // The folder has all stages.
    assert.deepEqual(globSync('**/*.test.ts', { cwd: folder, exclude: ['**/node_modules'] }), []);
  });

  it('[ship 2] is smaller than 100 MB when compressed', async (t) => {
    const tar = spawn('tar', ['--create', '--directory', image.root, 'app', 'usr/local/bin/node'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let bytes = 0;
    for await (const chunk of tar.stdout.pipe(createGzip())) bytes += (chunk as Buffer).length;
    t.diagnostic(`${(bytes / 1e6).toFixed(1)} MB, plus ${baseMegabytes} MB of the base image`);
    assert.ok(bytes / 1e6 + baseMegabytes < 100);
  });

  /** Starts the image as an engine does, and resolves when it is ready. */
  async function startImage(settings: readonly string[]) {
    const [program, ...args] = buildCommand([...settings, ...image.entrypoint, ...image.command]);
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const output = text(child.stderr);
    const exited = once(child, 'exit') as Promise<[number | null]>;
    await new Promise((resolve, reject) => {
      createInterface(child.stdout).on('line', (line) => line.startsWith('toolhost ready') && resolve(line));
      exited.then(async () => reject(new Error(await output)));
    });
    return { child, exited, output };
  }

  it('[ship 2] serves a call with a read-only root file system, and stops on a signal', async () => {
    const port = await findFreePort();
    const settings = [`PORT=${port}`];
    const { child, exited } = await startImage(settings);
    try {
      // An overloaded service refuses calls, which happens right after the start on a busy machine.
      await eventually(async () => {
        const response = await fetch(`http://127.0.0.1:${port}/mcp/projects`, {
          method: 'POST',
          headers: { authorization: 'Bearer local-example-key', 'content-type': 'application/json' },
          body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_projects","arguments":{}}}',
        });
        assert.match(await response.text(), /Website relaunch/);
      });
      const [healthcheckProgram, ...healthcheckArgs] = buildCommand([...settings, ...image.healthcheck]);
      await execFileAsync(healthcheckProgram, healthcheckArgs);
      const [wrongPortProgram, ...wrongPortWords] = buildCommand([
        `PORT=${await findFreePort()}`,
        ...image.healthcheck,
      ]);
      await assert.rejects(execFileAsync(wrongPortProgram, wrongPortWords), { code: 1 });
      const [backupProgram, ...backupArgs] = buildCommand([...image.entrypoint, 'backup', '/data/first.backup']);
      assert.match((await execFileAsync(backupProgram, backupArgs)).stdout, /^Wrote /);
      child.kill('SIGTERM');
      assert.equal((await exited)[0], 0);
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('[ship 2] serves beyond its own loopback with the settings of docs/docker.md, and only as a name of this machine', async () => {
    const page = readFileSync(join(root, 'docs', 'docker.md'), 'utf8');
    const [command = ''] = /^docker run .*$/m.exec(page) ?? [];
    const trialSettings = [...command.matchAll(/--env (\S+)/g)].map(([, setting = '']) => setting);
    assert.deepEqual(trialSettings, ['LOCAL_MODE=container']);
    const port = await findFreePort();
    const settings = [...trialSettings, `PORT=${port}`];
    const { child, exited, output } = await startImage(settings);
    try {
      // As the engine does, this reaches the service at an address other than 127.0.0.1.
      const get = (path: string, host: string) =>
        freshRequest(`http://127.0.0.2:${port}${path}`, { headers: { host } });
      assert.equal((await get('/', `127.0.0.1:${port}`)).status, 200);
      const { status, text: page } = await get('/login', `localhost:${port}`);
      assert.deepEqual([status, /toolhost open/.test(page), /<form/.test(page)], [200, true, false]);
      for (const path of ['/', '/login', '/mcp/projects', '/.well-known/oauth-protected-resource/mcp/manage'])
        assert.equal((await get(path, `evil.example:${port}`)).status, 421, path);
      const [healthcheckProgram, ...healthcheckArgs] = buildCommand([...settings, ...image.healthcheck]);
      await execFileAsync(healthcheckProgram, healthcheckArgs);
      child.kill('SIGTERM');
      assert.equal((await exited)[0], 0);
      assert.match(await output, /Only publishing its port on 127\.0\.0\.1 keeps neighbors out/);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
