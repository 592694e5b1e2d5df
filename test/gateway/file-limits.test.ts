import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterEach, before, describe, it } from 'node:test';
import { localWorkspace } from '../../apps/server/src/config.ts';
import { maxStoredFiles } from '../../apps/server/src/store/calls/files.ts';
import { eventually } from '../support/eventually.ts';
import { freshRequest } from '../support/fresh-request.ts';
import { startOneTool } from '../support/one-tool.ts';
import { buildZipResponse, createFileBytes, getFileUrl } from '../support/result-files.ts';
import { getTexts } from '../support/server-requests.ts';
import { scrapeMetrics } from '../support/toolhost/scrape-metrics.ts';
import type { ToolCallResult } from '../support/toolhost/toolhost.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

const megabyte = 1024 * 1024;

describe('the storage of result files', () => {
  let slug: string;
  let upstreamResponse: CannedResponse;
  /** Offset of the clock that detects slow readers. */
  let clockOffsetMs = 0;
  const runtimeOptions = { runningClock: () => performance.now() + clockOffsetMs };
  const env = { SERVER_HOSTS: '*.tools.localhost', TRUSTED_PROXIES: '1' };
  const fixture = useFixture(() => startOneTool({ env, runtimeOptions }));
  before(async () => {
    fixture.upstream.on('GET /file', () => upstreamResponse);
    const views = { part: { tools: ['run'] } };
    slug = await fixture.createToolServer({ url: '/file' }, { authentication: { type: 'Bearer' }, views });
  });
  const deleteFiles = () => fixture.toolhost.running.app.runner.db.deleteFrom('files').execute();
  afterEach(async () => void (await deleteFiles()));

  const joinTexts = (result: ToolCallResult) => getTexts(result).join('\n');
  const createFile = async (size: number) => {
    upstreamResponse = buildZipResponse(createFileBytes(size));
    return getFileUrl(await fixture.call(slug));
  };
  const run = { name: 'run', arguments: {} };
  const getFileCount = async (event: string) =>
    (await scrapeMetrics(fixture.toolhost.url)).value('toolhost_files_total', { event });
  /** Starts a download that reads nothing after the response head. */
  async function startDownload(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    const sent = request(url, { agent: false, headers });
    sent.end();
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    response.on('error', () => undefined);
    return response;
  }

  /** Starts downloads and returns those that the limits allow for this URL and caller. */
  const startDownloads = async (count: number, url: string, headers: Record<string, string>) => {
    const open: IncomingMessage[] = [];
    for (let n = 0; n < count; n++) {
      const response = await startDownload(url, headers);
      if (response.statusCode === 200) open.push(response);
      else assert.deepEqual([response.statusCode, response.headers['retry-after']], [429, '5']);
    }
    return open;
  };
  const createFileForKey = async () => {
    const { toolhost } = fixture;
    const key = await toolhost.createKey();
    const stored = await fixture.createToolServer({ url: '/file' }, { authentication: { type: 'Bearer', token: 'x' } });
    const url = getFileUrl(await toolhost.callTool(stored, key, 'run'));
    return { url, headers: { authorization: `Bearer ${key}` } };
  };

  it('[agent 4] allows 20 concurrent downloads per workspace, and an aborted one frees its slot and is counted', async () => {
    await createFile(10 * megabyte);
    const before = await getFileCount('cut');
    const { url, headers } = await createFileForKey();
    const open = await startDownloads(21, url, headers);
    assert.equal(open.length, 20);
    for (const response of open) response.destroy();
    await eventually(async () => assert.equal(await getFileCount('cut'), before + 20));
    const next = await startDownload(url, headers);
    assert.equal(next.statusCode, 200);
    next.destroy();
    await eventually(async () => assert.equal(await getFileCount('cut'), before + 21));
  });

  it('[find A6] leaves downloads for others if one IP address without an API key sends many tokens', async () => {
    await createFile(10 * megabyte);
    const key = await createFileForKey();
    const url = getFileUrl(await fixture.call(await fixture.createToolServer({ url: '/file' })));
    const before = await getFileCount('cut');
    const open: IncomingMessage[] = [];
    for (const tokenHeaders of [{}, { authorization: 'Bearer made-up' }, { authorization: 'Bearer another' }])
      open.push(...(await startDownloads(8, url, { 'x-forwarded-for': '203.0.113.1', ...tokenHeaders })));
    assert.equal(open.length, 7, 'one address gets half of the free slots');
    const others = await startDownloads(13, key.url, key.headers);
    assert.equal(others.length, 13);
    for (const response of [...open, ...others]) response.destroy();
    await eventually(async () => assert.equal(await getFileCount('cut'), before + 20));
  });

  it('[find A6] gives the slot of an unverified slow reader to a caller with an API key when all slots are in use', async () => {
    const url = await createFile(10 * megabyte);
    const key = await createFileForKey();
    const before = await getFileCount('cut');
    const open: IncomingMessage[] = [];
    for (let n = 1; open.length < 20; n++) {
      assert.ok(n < 20, `${open.length} downloads`);
      open.push(...(await startDownloads(8, url, { 'x-forwarded-for': `203.0.113.${n}` })));
    }
    const verifiedDownload = await eventually(async () => {
      clockOffsetMs += 2000;
      const response = await startDownload(key.url, key.headers);
      assert.equal(response.statusCode, 200);
      return response;
    });
    await eventually(async () => assert.equal(await getFileCount('cut'), before + 1));
    assert.equal((await startDownload(url, { 'x-forwarded-for': '203.0.113.1' })).statusCode, 429);
    for (const response of [...open, verifiedDownload]) response.destroy();
    await eventually(async () => assert.equal(await getFileCount('cut'), before + 21));
  });

  it('[agent 4] leaves a download for another workspace, however many downloads some workspaces start', async () => {
    const { toolhost, upstream } = fixture;
    const createFileUrl = async (workspace: string) => {
      const key = await toolhost.createKey({ workspace });
      const run = { name: 'run', description: 'Gets the file.', method: 'GET', url: `${upstream.url}/file` };
      const config = { name: 'Files', slug: workspace, authentication: { type: 'Bearer', token: 'x' }, tools: [run] };
      const created = await toolhost.rest('POST', '/servers', { key, body: config });
      assert.equal(created.status, 201, created.text);
      return getFileUrl(await toolhost.callTool(workspace, key, 'run'));
    };
    upstreamResponse = buildZipResponse(createFileBytes(10 * megabyte));
    const open: IncomingMessage[] = [];
    for (let n = 0; n < 6; n++) {
      const url = await createFileUrl(`greedy-${n}`);
      for (let count = 0; count < 20; count++) open.push(await startDownload(url));
    }
    assert.ok(open.filter(({ statusCode }) => statusCode === 200).length <= 100);
    const other = await startDownload(await createFileUrl('modest'));
    assert.equal(other.statusCode, 200);
    for (const response of [...open, other]) response.destroy();
  });

  it('[agent 4] returns an explanation instead of a link if it is full, and counts it', async () => {
    const { db } = fixture.toolhost.running.app.runner;
    const row = { workspace_id: localWorkspace.id, server_id: 'srv', address: 'x', caller: 'x', sealed_head: '' };
    const at = Date.now() - 8 * 60_000;
    const values = { ...row, unverified_caller: null, id: 'full', at, bytes: maxStoredFiles.bytes };
    await db.insertInto('files').values(values).execute();
    upstreamResponse = buildZipResponse(createFileBytes(megabyte));
    const result = await fixture.call(slug);
    assert.match(
      joinTexts(result),
      /^The response is a file: run\.zip \(application\/zip, 1048576 bytes\)\. It is too large for the result, and it has no URL: the files of the last ten minutes fill the file storage of this workspace; call the tool again in \d+ seconds, or request less data\.$/,
    );
    assert.notEqual(result.isError, true);
    assert.equal(await getFileCount('full'), 1);
    await db.deleteFrom('files').where('id', '=', 'full').execute();
    assert.match(joinTexts(await fixture.call(slug)), /Download it from /);
  });

  it('[agent 4] leaves space for others if one IP address without a verified credential sends many tokens', async () => {
    await deleteFiles();
    const open = await fixture.createToolServer({ url: '/file' });
    upstreamResponse = buildZipResponse(createFileBytes(10 * megabyte));
    const callFrom = async (address: string, token: string) => {
      const headers = { 'x-forwarded-for': address };
      const { body } = await fixture.toolhost.rpc(open, token, 'tools/call', run, headers);
      return joinTexts(body.result as ToolCallResult);
    };
    for (let n = 0; n < 5; n++) assert.match(await callFrom('203.0.113.1', `token-${n}`), /Download it from /);
    assert.match(
      await callFrom('203.0.113.1', 'another'),
      /it has no URL: the files of the last ten minutes fill the share of the file storage that unverified callers/,
    );
    for (const address of ['203.0.113.2', '2001:db8::1'])
      assert.match(await callFrom(address, 'token-1'), /Download it from /);
    for (let n = 0; n < 2; n++)
      assert.match(await callFrom('203.0.113.1', await fixture.toolhost.createKey()), /Download it from /);
  });

  it('[agent 4] keeps the link when a result with a long text and a large file is truncated', async () => {
    const head = '--b\r\nContent-Type: text/plain\r\n\r\n';
    const next = '\r\n--b\r\nContent-Type: application/zip\r\n\r\n';
    const bytes = createFileBytes(megabyte);
    for (const [tokens, lines] of [
      [200, 1000],
      [300, 1000],
      [200, 159],
      [200, 100],
    ] as const) {
      const limited = await fixture.createToolServer({ url: '/file' }, { max_response_tokens: tokens });
      const body = Buffer.concat([Buffer.from(head + 'line\n'.repeat(lines) + next), bytes, Buffer.from('\r\n--b--')]);
      upstreamResponse = { headers: { 'content-type': 'multipart/mixed; boundary=b' }, body };
      const result = await fixture.call(limited);
      const text = joinTexts(result);
      assert.ok(text.length <= 4 * tokens, `${tokens}: ${text.length} characters`);
      assert.equal(/\[Truncated: this is .+ Get the remainder with read_more and cursor /.test(text), lines > 100);
      const reply = await fetch(getFileUrl(result));
      assert.ok(bytes.equals(Buffer.from(await reply.arrayBuffer())));
    }
  });

  it('[agent 4] serves the file of a view only to its caller, at the server host and at the common host', async () => {
    const { port, host } = new URL(fixture.toolhost.url);
    const ownHost = `${slug}.tools.localhost:${port}`;
    upstreamResponse = buildZipResponse(createFileBytes(megabyte));
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: run };
    const options = { key: 'caller', body, headers: { host: ownHost } };
    const reply = await freshRequest(`${fixture.toolhost.url}/mcp/part`, options);
    const url = new URL(getFileUrl(reply.body.result as ToolCallResult));
    assert.equal(url.host, ownHost);
    const statusAt = async (hostHeader: string, authorization?: string) => {
      const headers = { host: hostHeader, ...(authorization !== undefined && { authorization }) };
      return (await freshRequest(fixture.toolhost.url + url.pathname, { headers })).status;
    };
    const other = await fixture.createToolServer({ url: '/file' });
    for (const [status, hostHeader, authorization] of [
      [200, ownHost],
      [200, host],
      [200, ownHost, 'Bearer caller'],
      [404, ownHost, 'Bearer another'],
      [404, `${other}.tools.localhost:${port}`],
    ] as const)
      assert.equal(await statusAt(hostHeader, authorization), status, hostHeader);
  });
});
