import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { errorOf, type OneTool, startOneTool, textOf } from '../support/one-tool.ts';

const codings: [name: string, encode: (bytes: Buffer) => Buffer][] = [
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
];
/** Maximum length of a response that is decoded without a job thread. */
const boundary = 64 * 1024;
const lengths = [2, boundary - 1, boundary, boundary + 1, 5 * boundary + 7];
const limitBytes = 1024 * 1024;

/** Returns JSON of exactly this many bytes. */
const text = (length: number) => `"${'a'.repeat(length - 2)}"`;
/** Returns JSON that hardly compresses. */
const noise = (length: number) => `"${randomBytes(length / 2).toString('hex')}"`;

describe('compressed responses of upstreams', () => {
  let one: OneTool;
  let slug: string;
  let answer: { coding: string; body: Buffer };
  before(async () => {
    one = await startOneTool({ env: { CALLS_PER_SECOND: '0' } });
    one.upstream.on('GET /packed', () => ({
      headers: { 'content-type': 'application/json', 'content-encoding': answer.coding },
      body: answer.body,
    }));
    slug = await one.serve({ url: '/packed', response_limit_bytes: limitBytes });
  });
  after(() => one.stop());

  const jobs = async () => {
    const metrics = await (await fetch(`${one.toolhost.url}/metrics`)).text();
    return Number(/^toolhost_jobs_total\{outcome="done"\} (\d+)$/m.exec(metrics)?.[1] ?? 0);
  };

  for (const [coding, encode] of codings) {
    it(`decodes ${coding} of every length, and decodes and parses long responses on a job thread`, async () => {
      for (const length of lengths) {
        answer = { coding, body: encode(Buffer.from(text(length))) };
        const before = await jobs();
        assert.equal(textOf(await one.call(slug)), text(length));
        assert.equal((await jobs()) - before, length > boundary ? 2 : 0, `${length} bytes`);
      }
      answer = { coding, body: encode(Buffer.from(noise(4 * boundary))) };
      assert.equal(encode(Buffer.from(textOf(await one.call(slug)))).length, answer.body.length);
    });

    it(`rejects ${coding} that is too long, truncated, or damaged`, async () => {
      answer = { coding, body: encode(Buffer.alloc(8 * limitBytes, 'a')) };
      assert.match(errorOf(await one.call(slug)), /^the response is larger than 1048576 bytes/);
      for (const length of [boundary / 2, 4 * boundary]) {
        const whole = encode(Buffer.from(noise(length)));
        answer = { coding, body: whole.subarray(0, -20) };
        assert.match(errorOf(await one.call(slug)), /^the upstream responded with a body that cannot be decompressed$/);
        answer = { coding, body: Buffer.concat([Buffer.from('damaged'), whole]) };
        assert.match(errorOf(await one.call(slug)), /^the upstream responded with a body that cannot be decompressed$/);
      }
    });
  }
});
