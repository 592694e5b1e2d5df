import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { root } from '../files.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';
import { runToolhostCommand } from '../support/toolhost/toolhost-command.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../support/upstreams/recording-upstream.ts';
import type { GalleryCase, GalleryExample } from './case.ts';
import { codeExamples } from './code-cases.ts';
import { openExamples } from './open-cases.ts';
import { workExamples } from './work-cases.ts';

const gallery = join(root, 'examples', 'gallery');
const examples: GalleryExample[] = [...codeExamples, ...workExamples, ...openExamples];
const readExample = (name: string) => readFileSync(join(gallery, `${name}.yaml`), 'utf8');
/** Headers that every request has, or that follow from its body. */
const commonHeaders = [
  'host',
  'connection',
  'user-agent',
  'toolhost-hop',
  'content-length',
  'accept-encoding',
  'accept',
];

describe('example gallery', () => {
  let upstream: RecordingUpstream;
  let running: TestToolhost;
  let folder: string;
  let key: string;
  before(async () => {
    upstream = await startRecordingUpstream();
    running = await startToolhost({ egressPorts: [upstream.port] });
    key = await running.createKey();
    folder = mkdtempSync(join(tmpdir(), 'toolhost-gallery-'));
    for (const { name, origins } of examples) {
      const text = origins.reduce((all, origin) => all.replaceAll(origin, upstream.url), readExample(name));
      writeFileSync(join(folder, `${name}.yaml`), text);
    }
    const secrets = Object.assign({}, ...examples.map(({ env }) => env)) as Record<string, string>;
    const env = { TOOLHOST_URL: running.url, TOOLHOST_API_KEY: key, ...secrets };
    const applied = await runToolhostCommand(
      ['apply', folder, ...Object.keys(secrets).flatMap((name) => ['--env', name])],
      { env },
    );
    assert.equal(applied.code, 0, applied.stdout + applied.stderr);
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await Promise.all([running.stop(), upstream.close()]);
  });

  it('[imp 7] [agent 3] contains only documented, tested files that pass the check without a warning and limit their results', async () => {
    const names = examples.map(({ name }) => name).toSorted();
    const files = readdirSync(gallery).filter((file) => file.endsWith('.yaml'));
    assert.deepEqual(
      files.toSorted(),
      names.map((name) => `${name}.yaml`),
    );
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
      const tools = config.tools.map(({ name }) => name);
      assert.deepEqual(
        example.cases.map(({ tool }) => tool),
        tools,
      );
      for (const galleryCase of example.cases) await runCase(config.slug, example, galleryCase);
    });
  }

  async function runCase(slug: string, example: GalleryExample, galleryCase: GalleryCase): Promise<void> {
    upstream.take();
    upstream.on('*', () => ({
      body: galleryCase.response,
      headers: { 'content-type': 'application/json', ...galleryCase.responseHeaders },
    }));
    const path = `/servers/${slug}/tools/${galleryCase.tool}/call`;
    const reply = await running.rest('POST', path, { key, body: { arguments: galleryCase.args } });
    assert.equal(reply.status, 200, reply.text);
    const [request, ...more] = upstream.take();
    assert.deepEqual(more, []);
    assert.ok(request, `${galleryCase.tool}: ${reply.text}`);
    assert.equal(`${request.method} ${request.url}`, galleryCase.request);
    const expected = { ...example.headers, ...galleryCase.headers };
    const sent = Object.entries(request.headers).filter(([name]) => !commonHeaders.includes(name) || name in expected);
    const hasJson = galleryCase.body !== undefined && typeof galleryCase.body === 'object';
    const json = hasJson ? { 'content-type': 'application/json' } : {};
    assert.deepEqual(Object.fromEntries(sent), { ...json, ...expected }, galleryCase.tool);
    const body = request.body.toString();
    assert.deepEqual(hasJson ? (JSON.parse(body) as unknown) : body, galleryCase.body ?? '', galleryCase.tool);
    assert.equal(reply.body.is_error, false, reply.text);
    const lastText = (reply.body.content as Json[]).at(-1)?.text as string;
    assert.deepEqual(
      typeof galleryCase.result === 'string' ? lastText : (JSON.parse(lastText) as unknown),
      galleryCase.result,
      galleryCase.tool,
    );
    for (const secret of Object.values(example.env)) assert.ok(!reply.text.includes(secret));
  }
});
