import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { root } from '../files.ts';
import { findTestCode } from '../support/find-test-code.ts';
import { freshCall } from '../support/fresh-request.ts';
import { startPostgres } from '../support/store/postgres.ts';
import { type ChildToolhost, startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { ensureNode } from '../support/toolhost/node-versions.ts';
import { packToolhost } from '../support/toolhost/packed-toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { useFixtures } from '../support/use-fixtures.ts';

const execFileAsync = promisify(execFile);

/**
 * Newest version of each maintained Node line at the time of writing. The last is the version that `package.json` pins.
 */
const nodeVersions = ['22.23.3', '24.21.0', process.versions.node];
/** A Node line that has reached its end of life. */
const unsupportedNode = '20.20.2';

/** Maximum start time of the service, in starts of an empty program. On a developer machine, that is 3 s. */
const maxStartRatio = 75;

type Manifest = { name: string; version: string };
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

function measureSize(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

/** Calls the first tool of the worked example, and returns the text of the result. */
async function callExample({ url, output }: ChildToolhost): Promise<string> {
  const { body, text } = await freshCall(url, 'projects', { tool: 'list_projects', key: 'local-example-key' });
  const { result } = body as { result?: { content: { text: string }[] } };
  assert.ok(result, `${text}\n${output()}`);
  return result.content[0]?.text ?? '';
}

describe('the npm package', () => {
  const fixtures = useFixtures();
  const postgres = fixtures.start(startPostgres);
  const packedToolhost = fixtures.start(packToolhost, ({ remove }) => remove());
  before(async () => {
    for (const version of [...nodeVersions, unsupportedNode]) await ensureNode(version);
  });

  /** Returns the environment of a person with this Node version. */
  async function createEnvironment(version: string): Promise<Record<string, string>> {
    const home = mkdtempSync(join(packedToolhost.folder, '..', 'home-'));
    return { PATH: `${await ensureNode(version)}:${process.env.PATH}`, HOME: home, DATA_DIR: join(home, 'data') };
  }

  it('[ship 1] is smaller than 40 MB when installed, has no dependencies, and contains the files for operators', (t) => {
    const modules = join(packedToolhost.folder, 'node_modules');
    const megabytes = measureSize(modules) / 1e6;
    t.diagnostic(
      `installed: ${megabytes.toFixed(1)} MB, packed: ${(statSync(packedToolhost.tarball).size / 1e6).toFixed(1)} MB`,
    );
    assert.ok(megabytes < 40, `${megabytes} MB`);
    assert.deepEqual(
      readdirSync(modules).filter((name) => !name.startsWith('.')),
      ['toolhost'],
    );
    for (const file of ['deploy/systemd/toolhost.service', 'docs/operations/alerts.yml'])
      assert.ok(existsSync(join(modules, 'toolhost', file)), file);
  });

  it('[ship 1] contains no test, although unit tests are next to the code', () => {
    assert.deepEqual(findTestCode(join(packedToolhost.folder, 'node_modules', 'toolhost')), []);
  });

  it('[ship 1] lists every included package with its hash (CycloneDX) and its license', () => {
    const sbom = JSON.parse(readFileSync(join(packedToolhost.lib, 'sbom.cdx.json'), 'utf8')) as Sbom;
    assert.equal(sbom.bomFormat, 'CycloneDX');
    assert.equal(sbom.metadata.component.purl, `pkg:npm/${manifest.name}@${manifest.version}`);
    const sourceMaps = globSync('apps/server/program/*.map', { cwd: packedToolhost.lib }).map(
      (path) => JSON.parse(readFileSync(join(packedToolhost.lib, path), 'utf8')) as { sources: string[] },
    );
    const sources = sourceMaps.flatMap((map) => map.sources).filter((path) => path.includes('node_modules/'));
    const getPackageName = (path: string) =>
      /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? assert.fail(path);
    const notice = readFileSync(join(packedToolhost.lib, 'NOTICE'), 'utf8');
    for (const name of ['kysely', 'react', 'pg-types', '@hono/node-server']) {
      const component = sbom.components.find((entry) => entry.name === name) ?? assert.fail(name);
      assert.ok(notice.includes(`## ${name} ${component.version} (MIT)`), name);
    }
    for (const { name, hashes } of sbom.components) assert.equal(hashes?.[0]?.alg, 'SHA-512', name);
    const componentNames = new Set(sbom.components.map(({ name }) => name));
    assert.deepEqual(new Set(sources.map(getPackageName)).difference(componentNames), new Set());
  });

  for (const version of nodeVersions) {
    it(`[ship 1] prints its version and commit, starts, and responds to a call on Node ${version}`, async (t) => {
      const env = await createEnvironment(version);
      const runToolhost = (...args: string[]) =>
        execFileAsync('npm', ['exec', '--no', '--', 'toolhost', ...args], { cwd: packedToolhost.folder, env });
      const { stdout } = await runToolhost('--version');
      const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim();
      assert.match(stdout, new RegExp(`^${manifest.version} \\(commit ${commit}(-modified)?\\)\n$`));
      const refusal = { stderr: /create a key with: npx toolhost keys create / };
      await assert.rejects(runToolhost('servers', 'list'), refusal);
      const startedAt = performance.now();
      const service = await startChildToolhost({ ...env, DEMO: '1' }, packedToolhost.program);
      const startMs = performance.now() - startedAt;
      t.after(() => service.end('SIGKILL'));
      const emptyStartedAt = performance.now();
      await execFileAsync('node', ['-e', '0'], { env });
      const emptyProgramMs = performance.now() - emptyStartedAt;
      const durations = `ready after ${startMs.toFixed()} ms; an empty program takes ${emptyProgramMs.toFixed()} ms`;
      t.diagnostic(`Node ${version}: ${durations}`);
      assert.ok(startMs < maxStartRatio * emptyProgramMs, durations);
      assert.match(await callExample(service), /Website relaunch/);
      const headers = { cookie: 'toolhost-session=username' };
      const page = await (await fetch(service.url, { headers })).text();
      const script = /src="([^"]+\.js)"/.exec(page)?.[1] ?? assert.fail(page);
      assert.equal((await fetch(new URL(script, service.url))).status, 200);
      assert.equal(await service.end(), 0);
      // Checked after the exit, so that every thread has run. Recommended commands must be those that this person
      // has, and Node must print no warning.
      assert.match(service.output('stderr'), /[ \n]toolhost keys create /);
      assert.doesNotMatch(service.output('stderr'), /Experimental|bin\/toolhost/);
    });

    it(`[ship 1] serves with workers on PostgreSQL on Node ${version}`, async (t) => {
      const env = await createEnvironment(version);
      const database = { DATABASE_URL: await postgres.createDatabase(), WORKERS: '2', DEMO: '1', PORT: '0' };
      const service = await startChildToolhost({ ...env, ...database }, packedToolhost.program);
      t.after(() => service.end('SIGKILL'));
      assert.match(await callExample(service), /Website relaunch/);
      assert.equal(await service.end(), 0, service.output());
    });
  }

  it('[ship 1] rejects an unsupported Node version with an error message', async () => {
    const { code, stdout, stderr } = await runToolhostCommand(['--version'], {
      program: packedToolhost.program,
      env: await createEnvironment(unsupportedNode),
    });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^toolhost: Node 22\.19 .*, and this is Node 20\.\d+\.\d+ \(\/.*\)\. Install .*\n$/);
  });

  it('[ship 1] contains source maps, with which stack traces name the sources', async () => {
    const thread = join(packedToolhost.lib, 'apps', 'server', 'program', 'sqlite-thread.js');
    const failedRun = execFileAsync(process.execPath, ['--enable-source-maps', thread]);
    await assert.rejects(failedRun, { message: /\/src\/store\/sqlite-thread\.ts:\d+/ });
  });
});

type Sbom = {
  bomFormat: string;
  metadata: { component: { purl: string } };
  components: { name: string; version: string; hashes?: { alg: string }[] }[];
};
