import assert from 'node:assert/strict';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { eventually } from '../support/eventually.ts';
import { pluck } from '../support/pluck.ts';
import { startChildToolhost } from '../support/toolhost/child-toolhost.ts';
import { createTestFolder } from '../support/toolhost/command-world.ts';
import { toolhostProgram } from '../support/toolhost/toolhost-command.ts';
import { buildServerAt, buildToolAt } from '../support/upstream-configs.ts';
import { startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';

describe('toolhost dev', async () => {
  const upstream = await startRecordingUpstream();
  after(() => upstream.close());
  const folder = createTestFolder();
  const createConfig = (slug: string, more: object = {}) =>
    buildServerAt(slug, upstream.url, { authentication: { type: 'Bearer', token: '{{KEY}}' }, ...more });
  /** Saves the way careful editors do: writes another file, then renames it. */
  const save = (name: string, value: object | string) => {
    const draft = join(folder, `.${name}.draft`);
    writeFileSync(draft, typeof value === 'string' ? value : stringify(value));
    renameSync(draft, join(folder, name));
  };
  save('first.yaml', createConfig('first'));
  save('sealed.yaml', { ...createConfig('sealed'), secrets: { KEY: { env: 'DEV_KEY' } } });
  const env = { EGRESS_ALLOW: `127.0.0.1:${upstream.port}`, DEV_KEY: 'dev-value', HOME: folder };
  const args = ['dev', folder, '--env', 'DEV_KEY', '--env', 'NOT_SET'];
  const serving = await startChildToolhost(env, toolhostProgram, args);
  after(() => serving.end());
  const key = /^API key {4}(\S+)/m.exec(serving.output('stderr'))?.[1] ?? '';
  const post = (path: string, body: object) =>
    fetch(serving.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify(body),
    });
  const listToolNames = async (slug: string): Promise<unknown[] | number> => {
    const response = await post(`/mcp/${slug}`, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
    if (!response.ok) return response.status;
    return pluck(((await response.json()) as { result: { tools: object[] } }).result.tools, 'name');
  };
  const assertEventuallyServes = (slug: string, expected: string[] | number) =>
    eventually(async () => assert.deepEqual(await listToolNames(slug), expected));

  it('[imp 6] serves the files of a folder with secrets from the environment', async () => {
    assert.deepEqual(await listToolNames('first'), ['get']);
    assert.equal((await post('/api/v1/servers/sealed/tools/get/call', { arguments: {} })).status, 200);
    assert.equal(upstream.take().at(-1)?.headers.authorization, 'Bearer dev-value');
    assert.doesNotMatch(serving.output(), /dev-value/);
  });

  it('[imp 6] follows changes to several files, new files, and files that are removed and return', async () => {
    const other = [buildToolAt(`${upstream.url}/other`, { name: 'other' })];
    save('first.yaml', createConfig('first', { tools: other }));
    save('second.json', JSON.stringify(createConfig('second')));
    await assertEventuallyServes('first', ['other']);
    await assertEventuallyServes('second', ['get']);
    rmSync(join(folder, 'second.json'));
    await assertEventuallyServes('second', 404);
    save('second.json', JSON.stringify(createConfig('second', { tools: other })));
    await assertEventuallyServes('second', ['other']);
    // A new slug in the same file means another server.
    save('second.json', JSON.stringify(createConfig('third')));
    await assertEventuallyServes('third', ['get']);
    await assertEventuallyServes('second', 404);
  });

  it('[imp 6] keeps serving the previous version of an invalid file, and prints the problem', async () => {
    save('kept.yaml', createConfig('kept'));
    await assertEventuallyServes('kept', ['get']);
    const unset = { ...createConfig('kept'), secrets: { KEY: { env: 'NOT_SET' } } };
    for (const [broken, message] of [
      ['name: [', /kept\.yaml: is not YAML: /],
      [createConfig('kept', { tools: [{ name: 'x' }] }), /kept\.yaml: tools\[0\]\.url: /],
      [unset, /kept\.yaml: secrets\.KEY: .*NOT_SET is not set/],
      [createConfig('first'), /kept\.yaml: slug: "first" is already the slug in .*first\.yaml/],
    ] as const) {
      save('kept.yaml', broken);
      await eventually(() => assert.match(serving.output('stderr'), message));
      assert.deepEqual(await listToolNames('kept'), ['get'], String(message));
      save('kept.yaml', createConfig('kept'));
    }
    const tools = [buildToolAt(`${upstream.url}/fixed`, { name: 'fixed' })];
    save('kept.yaml', createConfig('kept', { tools }));
    await assertEventuallyServes('kept', ['fixed']);
  });

  it('[imp 6] exits with 0 on a signal that arrives while it applies files', async () => {
    const many = Array.from({ length: 40 }, (_, n) => `many-${n}`);
    for (const slug of many) save(`${slug}.yaml`, createConfig(slug));
    await eventually(async () => assert.notEqual(await listToolNames('many-0'), 404));
    assert.equal(await serving.end(), 0);
    assert.doesNotMatch(serving.output('stderr'), /\n\s+at /);
  });
});
