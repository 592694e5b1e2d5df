import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, describe, it } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { getErrorText, getResultText, startOneTool } from '../support/one-tool.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';

const codings: [name: string, encode: (bytes: Buffer) => Buffer][] = [
  ['gzip', gzipSync],
  ['x-gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
];
/** Maximum length of a response that is decoded without a job thread. */
const threadThreshold = 64 * 1024;
const lengths = [2, threadThreshold - 1, threadThreshold, threadThreshold + 1, 5 * threadThreshold + 7];
const limitBytes = 1024 * 1024;

/** Returns JSON of exactly this many bytes. */
const createText = (length: number) => `"${'a'.repeat(length - 2)}"`;
/** Returns JSON that hardly compresses. */
const createNoise = (length: number) => `"${randomBytes(length / 2).toString('hex')}"`;

describe('compressed responses of upstreams', async () => {
  let response: { coding: string | string[]; body: Buffer };
  const oneTool = await startOneTool();
  oneTool.upstream.on('GET /packed', () => ({
    headers: { 'content-type': 'application/json', 'Content-Encoding': response.coding },
    body: response.body,
  }));
  const slug = await oneTool.createToolServer({ url: '/packed', response_limit_bytes: limitBytes });
  after(() => oneTool.stop());

  const countJobs = async () =>
    (await scrapeMetrics(oneTool.toolhost.url)).value('toolhost_jobs_total', { outcome: 'done' });

  for (const [coding, encode] of codings) {
    it(`decodes ${coding} of every length, and decodes and parses long responses on a job thread`, async () => {
      for (const length of lengths) {
        response = { coding, body: encode(Buffer.from(createText(length))) };
        const before = await countJobs();
        assert.equal(getResultText(await oneTool.call(slug)), createText(length));
        assert.equal((await countJobs()) - before, length > threadThreshold ? 2 : 0, `${length} bytes`);
      }
      response = { coding, body: encode(Buffer.from(createNoise(4 * threadThreshold))) };
      assert.equal(encode(Buffer.from(getResultText(await oneTool.call(slug)))).length, response.body.length);
    });

    it(`rejects ${coding} that is too long, truncated, or damaged`, async () => {
      response = { coding, body: encode(Buffer.alloc(8 * limitBytes, 'a')) };
      assert.match(getErrorText(await oneTool.call(slug)), /^the response is larger than 1048576 bytes/);
      for (const length of [threadThreshold / 2, 4 * threadThreshold]) {
        const encoded = encode(Buffer.from(createNoise(length)));
        for (const body of [encoded.subarray(0, -20), Buffer.concat([Buffer.from('damaged'), encoded])]) {
          response = { coding, body };
          const text = getErrorText(await oneTool.call(slug));
          assert.equal(text, 'the upstream responded with a body that cannot be decompressed');
        }
      }
    });
  }

  it('rejects an unknown coding, and two codings', async () => {
    for (const coding of ['constructor', ['gzip', 'gzip']]) {
      response = { coding, body: gzipSync('{}') };
      assert.equal(getErrorText(await oneTool.call(slug)), 'the upstream responded with an unknown content coding');
    }
  });
});
