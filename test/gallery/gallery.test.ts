import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { root } from '../files.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { useToolhostWithUpstream } from '../support/toolhost/upstream-toolhost.ts';
import type { GalleryCase, GalleryExample } from './case.ts';
import { codeExamples } from './code-cases.ts';
import { openExamples } from './open-cases.ts';
import { workExamples } from './work-cases.ts';

const gallery = join(root, 'examples', 'gallery');
const examples: GalleryExample[] = [...codeExamples, ...workExamples, ...openExamples];
const readExample = (name: string) => readFileSync(join(gallery, `${name}.yaml`), 'utf8');
/** Headers that every request has, or that follow from its body. */
const commonHeaders = /^(host|connection|user-agent|toolhost-hop|content-length|accept(-encoding)?)$/;

describe('example gallery', () => {
  const { toolhost: running, upstream } = useToolhostWithUpstream();
  let folder: string;
  let key: string;
  before(async () => {
    key = await running.createKey();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-gallery-'));
    for (const { name, origins } of examples) {
      const text = origins.reduce((all, origin) => all.replaceAll(origin, upstream.url), readExample(name));
      writeFileSync(join(folder, `${name}.yaml`), text);
    }
    const secrets = Object.assign({}, ...examples.map(({ env }) => env)) as Record<string, string>;
    const env = { TOOLHOST_URL: running.url, TOOLHOST_API_KEY: key, ...secrets };
    const options = Object.keys(secrets).flatMap((name) => ['--env', name]);
    const applied = await runToolhostCommand(['apply', folder, ...options], { env });
    assert.equal(applied.code, 0, applied.stdout + applied.stderr);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('[imp 7] [agent 3] contains only documented, tested files that pass the check without a warning and limit their results', async () => {
    const names = examples.map(({ name }) => name).toSorted();
    const files = readdirSync(gallery).filter((file) => file.endsWith('.yaml'));
    assert.equal(files.toSorted().join(), names.map((name) => `${name}.yaml`).join());
    for (const name of names) {
      const { max_response_tokens } = parse(readExample(name)) as { max_response_tokens?: number };
      assert.equal(max_response_tokens, 20_000, name);
    }
    const { code, stdout } = await runToolhostCommand(['check', gallery]);
    assert.deepEqual([code, stdout.match(/warning.*/g)], [0, null], stdout);
    const readme = readFileSync(join(gallery, 'README.md'), 'utf8');
    for (const { name, env } of examples) {
      assert.ok(readme.includes(`(${name}.yaml)`), name);
      for (const variable of Object.keys(env)) assert.ok(readme.includes(variable), variable);
    }
  });

  for (const example of examples) {
    const config = parse(readExample(example.name)) as { slug: string; tools: { name: string }[] };

    it(`[imp 7] ${example.name}: every tool sends the documented request and returns the documented result`, async () => {
      const calledTools = example.cases.map(({ call: [tool] }) => tool);
      assert.deepEqual(
        calledTools,
        config.tools.map(({ name }) => name),
      );
      for (const galleryCase of example.cases) await runCase(config.slug, example, galleryCase);
    });
  }

  async function runCase(slug: string, example: GalleryExample, galleryCase: GalleryCase): Promise<void> {
    const { call, request: expectedRequest, headers, body: sentBody, response, responseHeaders } = galleryCase;
    const [tool, args] = call;
    upstream.take();
    upstream.on('*', () => ({ body: response, headers: { 'content-type': 'application/json', ...responseHeaders } }));
    const reply = await running.rest('POST', `/servers/${slug}/tools/${tool}/call`, { key, body: { arguments: args } });
    assert.equal(reply.status, 200, reply.text);
    const [request, ...more] = upstream.take();
    assert.deepEqual(more, []);
    assert.ok(request, `${tool}: ${reply.text}`);
    assert.equal(`${request.method} ${request.url}`, expectedRequest);
    const expected = { ...example.headers, ...headers };
    const sent = Object.entries(request.headers).filter(([name]) => !commonHeaders.test(name) || name in expected);
    const hasJson = sentBody !== undefined && typeof sentBody === 'object';
    const json = hasJson ? { 'content-type': 'application/json' } : {};
    assert.deepEqual(Object.fromEntries(sent), { ...json, ...expected }, tool);
    const body = request.body.toString();
    assert.deepEqual(hasJson ? (JSON.parse(body) as unknown) : body, sentBody ?? '', tool);
    assert.equal(reply.body.is_error, false, reply.text);
    const lastText = (reply.body.content as Json[]).at(-1)?.text as string;
    const result = galleryCase.result ?? response;
    assert.deepEqual(typeof result === 'string' ? lastText : (JSON.parse(lastText) as unknown), result, tool);
    for (const secret of Object.values(example.env)) assert.ok(!reply.text.includes(secret));
  }
});
