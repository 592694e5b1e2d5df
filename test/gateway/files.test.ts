import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import { callerToken, getResultText, startOneTool } from '../support/one-tool.ts';
import { createFileBytes, getFileUrl } from '../support/result-files.ts';
import { setSecret } from '../support/server-requests.ts';
import { startToolhost, type ToolCallResult } from '../support/toolhost/toolhost.ts';
import { PNG } from '../support/upstreams/content-upstream.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

const inlineBytes = 256 * 1024;
const statefulHeaders = { 'mcp-protocol-version': '2025-06-18' };

describe('a file in a tool result', () => {
  const fixture = useFixture(startOneTool);
  let slug: string;
  let upstreamResponse: CannedResponse;
  before(async () => {
    fixture.upstream.on('GET /file', () => upstreamResponse);
    slug = await fixture.createToolServer({ url: '/file' });
  });

  const run = { name: 'run', arguments: {} };
  const call = async (headers: Record<string, string> = statefulHeaders, targetSlug = slug, token = callerToken) => {
    const { body, text } = await fixture.toolhost.rpc(targetSlug, token, 'tools/call', run, headers);
    assert.ok(body.result, text);
    return body.result as ToolCallResult;
  };
  const callLimited = async (limited: string) => (await call(statefulHeaders, limited)).content[1]?.type;
  const respondWith = (body: Buffer, type = 'application/pdf', headers: CannedResponse['headers'] = {}) => {
    upstreamResponse = { headers: { 'content-type': type, ...headers }, body };
  };
  const download = async (url: string) => Buffer.from(await (await fetch(url)).arrayBuffer());
  const getLink = ({ content }: ToolCallResult) => {
    const link = content.find(({ type }) => type === 'resource_link');
    assert.ok(link, JSON.stringify(content).slice(0, 500));
    return link as unknown as { uri: string; name: string; mimeType: string; size: number };
  };

  it('[agent 4] becomes a link with name, type, and size above 256 KiB, and stays a content block below', async () => {
    for (const type of ['application/pdf', 'image/png', 'audio/mpeg', 'application/x-unknown']) {
      const start = type === 'image/png' ? PNG : Buffer.alloc(0);
      respondWith(createFileBytes(inlineBytes, start), type);
      assert.ok(['resource', 'image', 'audio'].includes(String((await call()).content[1]?.type)), type);
      const body = createFileBytes(inlineBytes + 1, start);
      respondWith(body, type, { 'content-disposition': 'attachment; filename="a report.pdf"' });
      const result = await call();
      const { uri, ...linkFields } = getLink(result);
      const expectedLink = { type: 'resource_link', name: 'a report.pdf', mimeType: type, size: inlineBytes + 1 };
      assert.deepEqual(linkFields, expectedLink);
      assert.match(uri, new RegExp(`^${fixture.toolhost.url}/files/file_\\w{22}$`));
      assert.ok(getResultText(result).includes(uri));
      assert.equal(result.content.length, 2);
      assert.ok(body.equals(await download(uri)), type);
    }
  });

  it('[agent 4] is never created for a text, which stays text at any size', async () => {
    for (const type of ['text/html', 'image/svg+xml', 'application/xml', 'application/pdf;charset=utf-8', '']) {
      respondWith(Buffer.alloc(inlineBytes + 1, 'a'), type);
      const { content } = await call();
      assert.deepEqual([content.length, content[0]?.type], [1, 'text'], type);
    }
  });

  it('[agent 4] is named after the tool if the upstream sends no file name', async () => {
    for (const [type, name, mimeType] of [
      ['application/pdf', 'run.pdf', 'application/pdf'],
      ['image/jpeg', 'run.bin', 'application/octet-stream'],
      ['image/tiff', 'run.tiff', 'image/tiff'],
      ['application/x-unknown', 'run.bin', 'application/x-unknown'],
      ['APPLICATION/ZIP; q=1', 'run.zip', 'application/zip'],
      ['nonsense', 'run.bin', 'application/octet-stream'],
      ['application/x-javascript2+html', 'run.bin', 'application/octet-stream'],
      ['', 'run.bin', 'application/octet-stream'],
    ] as const) {
      respondWith(Buffer.alloc(inlineBytes + 1, 0xff), type);
      const link = getLink(await call());
      assert.deepEqual([link.name, link.mimeType], [name, mimeType], type);
      assert.equal((await fetch(link.uri)).headers.get('content-type'), mimeType);
    }
  });

  it('[agent 4] is text with the URL for clients of old protocol versions', async () => {
    respondWith(createFileBytes(inlineBytes + 1));
    for (const headers of [{}, { 'mcp-protocol-version': '2025-03-26' }] as Record<string, string>[]) {
      const result = await call(headers);
      assert.equal(result.content.map(({ type }) => type).join(), 'text');
      assert.equal((await fetch(getFileUrl(result))).status, 200);
    }
    const statelessReply = await fixture.toolhost.statelessRpc(slug, callerToken, 'tools/call', run);
    getLink(statelessReply.body.result as ToolCallResult);
  });

  it('[agent 4] is saved by a browser, never displayed, and never executed', async () => {
    respondWith(createFileBytes(inlineBytes + 1));
    const { uri } = getLink(await call());
    const { headers } = await fetch(uri, { headers: { accept: 'text/html' } });
    const expected = {
      'content-type': 'application/pdf',
      'content-disposition': `attachment; filename="run.pdf"; filename*=UTF-8''run.pdf`,
      'content-length': String(inlineBytes + 1),
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    };
    for (const [name, value] of Object.entries(expected)) assert.equal(headers.get(name), value, name);
    assert.equal((await fetch(uri, { headers: { origin: 'https://elsewhere.example' } })).status, 403);
  });

  it('[agent 4] has a safe name, whatever name the upstream sends', async () => {
    const head = Buffer.alloc(inlineBytes + 1, 0xff);
    const parts = ['"', '\\', '/', '..', ';', '%0d%0a', '%', "'", '*', '\u202e', 'ü', '\u0000', '<', '😀', '.exe'];
    for (const name of [parts.join(''), parts.toReversed().join('a'), ...parts.map((part) => `a${part}b.pdf`)]) {
      const header = `attachment; filename*=UTF-8''${encodeURIComponent(name)}`;
      respondWith(head, 'application/pdf', { 'content-disposition': header });
      const link = getLink(await call());
      assert.doesNotMatch(link.name, /[/\\\p{Cc}\p{Cf}"<>]/u);
      const disposition = (await fetch(link.uri, { method: 'HEAD' })).headers.get('content-disposition') ?? '';
      const [, plain = '', extended = ''] =
        /^attachment; filename="([^"\\%]*)"; filename\*=UTF-8''([\w!#$&+.^`|~%-]+)$/.exec(disposition) ?? [];
      assert.match(plain, /^[\x20-\x7e]+$/);
      assert.equal(decodeURIComponent(extended), link.name);
    }
  });

  it('[agent 4] can be downloaded unchanged, whole and in ranges', async () => {
    const sizes = fc.oneof(
      fc.integer({ min: inlineBytes + 1, max: inlineBytes + 400_000 }),
      fc.constantFrom(2 * 192 * 1024, 2 * 192 * 1024 + 1, 3 * 192 * 1024 - 1),
    );
    const position = fc.option(fc.nat(800_000));
    const ranges = fc.array(fc.tuple(position, position), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(sizes, ranges, async (size, requestedRanges) => {
        const body = createFileBytes(size);
        respondWith(body, 'application/octet-stream');
        const { uri, size: statedSize } = getLink(await call());
        assert.equal(statedSize, size);
        assert.ok(body.equals(await download(uri)));
        for (const [from, to] of requestedRanges) {
          const reply = await fetch(uri, { headers: { range: `bytes=${from ?? ''}-${to ?? ''}` } });
          const got = Buffer.from(await reply.arrayBuffer());
          const isInvalid = from === null ? to === null : to !== null && to < from;
          const first = from ?? Math.max(0, size - (to ?? 0));
          const end = from === null || to === null ? size : to + 1;
          if (isInvalid) assert.deepEqual([reply.status, got.length], [200, size]);
          else if (first >= size) assert.deepEqual([reply.status, got.length], [416, 0]);
          else {
            assert.equal(reply.status, 206);
            assert.equal(reply.headers.get('content-range'), `bytes ${first}-${Math.min(end, size) - 1}/${size}`);
            assert.ok(got.equals(body.subarray(first, end)));
          }
        }
      }),
      { numRuns: 12 },
    );
  });

  it('[agent 4] responds to HEAD without a body and rejects other methods', async () => {
    respondWith(createFileBytes(inlineBytes + 1));
    const { uri } = getLink(await call());
    const head = await fetch(uri, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(inlineBytes + 1)]);
    const post = await fetch(uri, { method: 'POST', body: 'x' });
    assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD']);
  });

  it('[agent 4] can be downloaded without a credential or by the caller that got the URL, and by no other caller', async () => {
    respondWith(createFileBytes(inlineBytes + 1));
    const { toolhost } = fixture;
    const forwarding = await fixture.createToolServer({ url: '/file' }, { authentication: { type: 'Bearer' } });
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    const stored = await fixture.createToolServer({ url: '/file' }, { authentication });
    await setSecret(toolhost, stored, 'KEY', 'secret');
    const [key, other] = [await toolhost.createKey(), await toolhost.createKey()];
    const foreignKey = await toolhost.createKey({ workspace: 'elsewhere' });
    for (const [of, token, others] of [
      [forwarding, callerToken, ['another-token', key, foreignKey]],
      [stored, key, [other, foreignKey, 'some-token', callerToken]],
    ] as const) {
      const { uri } = getLink(await call(statefulHeaders, of, token));
      const statusWith = async (authorization?: string) =>
        (await fetch(uri, { headers: authorization === undefined ? {} : { authorization } })).status;
      assert.equal(await statusWith(), 200);
      assert.equal(await statusWith(`Bearer ${token}`), 200);
      for (const invalid of [...others.map((other) => `Bearer ${other}`), 'Basic dTpw', 'Bearer', 'nonsense'])
        assert.equal(await statusWith(invalid), 404, invalid);
      assert.equal((await fetch(`${uri.slice(0, -1)}${uri.endsWith('x') ? 'y' : 'x'}`)).status, 404);
      await toolhost.rest('DELETE', `/servers/${of}`);
      assert.equal(await statusWith(), 404);
    }
  });

  it('[agent 4] stays in the result up to 256 KiB in total for a multipart response', async () => {
    const parts = [100_000, 150_000, 60_000, 12_000, 300_000].map((size) => createFileBytes(size));
    const note = 'x","type":"attached_file","file":0} and {"type":"attached_file","file":0}';
    const buildHead = (n: number) =>
      `\r\n--b\r\nContent-Type: application/zip\r\nContent-Disposition: attachment; filename=${n}.zip\r\n\r\n`;
    const body = Buffer.concat([
      Buffer.from(`--b\r\nContent-Type: text/plain\r\n\r\n${note}`),
      ...parts.flatMap((part, n) => [Buffer.from(buildHead(n)), part]),
      Buffer.from('\r\n--b--'),
    ]);
    respondWith(body, 'multipart/mixed; boundary=b');
    const { content } = await call();
    const entries = content.map(({ type, name }) => name ?? type);
    const firstFiles = ['text', 'resource', 'text', 'resource', 'text', '2.zip'];
    assert.deepEqual(entries, ['text', ...firstFiles, 'text', 'resource', 'text', '4.zip']);
    assert.equal(content[0]?.text, note);
    assert.ok(parts[2]?.equals(await download(String(content[6]?.uri))));
    assert.ok(parts[4]?.equals(await download(String(content[10]?.uri))));
  });

  it('[agent 4] becomes a link if its Base64 exceeds the response limit, except an image', async () => {
    const limited = await fixture.createToolServer({ url: '/file' }, { max_response_tokens: 1000 });
    respondWith(createFileBytes(2999));
    assert.equal(await callLimited(limited), 'resource');
    respondWith(createFileBytes(3001));
    getLink(await call(statefulHeaders, limited));
    respondWith(createFileBytes(inlineBytes, PNG), 'image/png');
    assert.equal(await callLimited(limited), 'image');
  });

  it('[agent 4] follows the headers that the tool selects', async () => {
    const shown = await fixture.createToolServer({ url: '/file', response_headers: ['X-Pages'] });
    respondWith(createFileBytes(inlineBytes + 1), 'application/pdf', { 'x-pages': '7' });
    const { content } = await call(statefulHeaders, shown);
    assert.deepEqual([content[0]?.text, content[2]?.type], ['X-Pages: 7', 'resource_link']);
  });

  it('[agent 4] is returned by a trial call with its URL', async () => {
    const body = createFileBytes(inlineBytes + 1);
    respondWith(body);
    const reply = await fixture.toolhost.rest('POST', `/servers/${slug}/tools/run/call`, { body: { arguments: {} } });
    const { uri } = getLink({ content: reply.body.content as ToolCallResult['content'] });
    assert.ok(body.equals(await download(uri)));
  });

  it('[agent 4] is counted in metrics', async () => {
    const metrics = await (await fetch(`${fixture.toolhost.url}/metrics`)).text();
    for (const event of ['kept', 'served', 'missing'])
      assert.match(metrics, new RegExp(`toolhost_files_total\\{event="${event}"\\} [1-9]`));
  });

  it('[agent 4] counts toward the rejection limit if its URL is invented', async (t) => {
    const options = { env: { REFUSALS_PER_MINUTE: '5' }, runtimeOptions: { clock: () => 0 } };
    const limited = await startToolhost(options);
    t.after(() => limited.stop());
    for (const [n, status] of [404, 404, 404, 404, 404, 429, 429, 429].entries())
      assert.equal((await fetch(`${limited.url}/files/file_${String(n).repeat(22)}`)).status, status);
  });
});
