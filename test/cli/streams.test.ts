import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import {
  buildConfig,
  buildValidResponse,
  respondJson,
  startAdversarialService,
} from '../support/toolhost/adversarial-service.ts';
import { createTestFolder } from '../support/toolhost/command-world.ts';
import { toolhostProgram } from '../support/toolhost/toolhost-command.ts';

describe('streams and files of commands', async () => {
  const service = await startAdversarialService();
  after(() => service.close());
  const folder = createTestFolder();
  writeFileSync(join(folder, 'bad.yaml'), 'name: bad\n');

  /** Runs a bash script in which `t` is `toolhost`. */
  const bash = (script: string) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      const env = { PATH: process.env.PATH ?? '', HOME: folder, ...service.env };
      const options = { env, cwd: folder, timeout: 60_000 };
      const fullScript = `t() { '${toolhostProgram}' "$@"; }; set -o pipefail; ${script}`;
      execFile('bash', ['--norc', '-c', fullScript], options, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
      );
    });
  const respondHonestly = () => service.respondWith(respondJson(buildValidResponse));

  it('[ship 7] reports a full disk behind standard output in one sentence', async () => {
    respondHonestly();
    const sentence = /^error: cannot write to standard output: ENOSPC[^\n]*\n$/;
    const commands = ['servers list', 'servers list --json', 'schema', '--help', 'completion bash', 'export one'];
    for (const command of commands) {
      const { code, stderr } = await bash(`t ${command} > /dev/full`);
      assert.equal(code, 1, `${command} ${stderr}`);
      assert.match(stderr, command.endsWith('--json') ? /^\{"error":.*ENOSPC.*\}\n$/ : sentence, command);
    }
  });

  it('[ship 7] exits silently when its reader exits, and keeps its exit code', async () => {
    respondHonestly();
    for (const [script, code] of Object.entries({
      't servers list | head -n 0': 0,
      't schema | true': 0,
      't check bad.yaml | true': 1,
    }))
      assert.partialDeepStrictEqual(await bash(script), { code, stderr: '' });
  });

  it('[ship 7] completes its work when messages cannot be written', async () => {
    respondHonestly();
    for (const [index, stderr] of ['2> /dev/full', '2>&-', '2> >(true)'].entries()) {
      const { code } = await bash(`t export one two --out out-${index} ${stderr}`);
      assert.equal(code, 0, stderr);
      assert.deepEqual(readdirSync(join(folder, `out-${index}`)), ['one.yaml', 'two.yaml'], stderr);
    }
  });

  it('[ship 7] keeps the previous file when the disk is full, and leaves no part of the new one', async () => {
    respondHonestly();
    const out = join(folder, 'full');
    assert.equal((await bash('t export one --out full')).code, 0);
    const before = readFileSync(join(out, 'one.yaml'), 'utf8');
    service.respondWith(
      respondJson((path) => {
        const original = buildValidResponse(path) as object | undefined;
        const config = buildConfig(path.split('/')[2] ?? '', { description: 'x'.repeat(5000) });
        return path.endsWith('/limits') || !original ? original : { ...original, config };
      }),
    );
    // The limit allows the command no file larger than a block, as if the disk were full.
    for (const slug of ['one', 'two']) {
      const { code, stderr } = await bash(`ulimit -f 1; t export ${slug} --out full`);
      assert.equal(code, 1, stderr);
      assert.match(stderr, new RegExp(`^error: full/${slug}\\.yaml: cannot be written: EFBIG[^\\n]*\\n$`));
    }
    assert.deepEqual(readdirSync(out), ['one.yaml']);
    assert.equal(readFileSync(join(out, 'one.yaml'), 'utf8'), before);
    const description = join(folder, 'openapi.json');
    writeFileSync(description, openApi('x'.repeat(1500)));
    mkdirSync(join(folder, 'imported'));
    writeFileSync(join(folder, 'imported/api.yaml'), 'before');
    const imported = await bash("ulimit -f 1; t import openapi.json --include '*' --out imported/api.yaml --force");
    assert.equal(imported.code, 1, imported.stderr);
    assert.match(imported.stderr, /^error: imported\/api\.yaml: cannot be written: /m);
    assert.deepEqual(readdirSync(join(folder, 'imported')), ['api.yaml']);
    assert.equal(readFileSync(join(folder, 'imported/api.yaml'), 'utf8'), 'before');
  });

  it('[ship 7] writes an import into a device without replacing it by a file', async () => {
    writeFileSync(join(folder, 'openapi.json'), openApi('short'));
    const write = "t import openapi.json --include '*' --out pipe --force";
    const { code, stdout } = await bash(`mkfifo pipe; cat pipe & ${write}; code=$?; wait; test -p pipe && exit $code`);
    assert.equal(code, 0);
    assert.match(stdout, /^name: /m);
  });

  const openApi = (description: string) => {
    const get = { operationId: 'list', description, responses: { 200: { description: 'ok' } } };
    const info = { title: 'API', version: '1', description };
    const servers = [{ url: 'https://api.example.com' }];
    return JSON.stringify({ openapi: '3.0.0', info, servers, paths: { '/things': { get } } });
  };
});
