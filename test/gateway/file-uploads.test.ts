import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { callerToken, getResultText, startOneTool } from '../support/one-tool.ts';
import { createFileBytes, getFileUrl } from '../support/result-files.ts';
import { setSecret } from '../support/server-requests.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

const megabyte = 1024 * 1024;
const file = { type: 'string', content: 'base64' };
const uploadTool = { method: 'POST', url: '/up', body: 'file', input_schema: { file } };

describe('a file upload by file URL', () => {
  const fixture = useFixture(startOneTool);
  let [fileServer, wholeBodyServer, multipartServer, key] = ['', '', '', ''];
  let bytes: Buffer;
  before(async () => {
    const disposition = { 'content-disposition': 'attachment; filename="Bericht ü.pdf"' };
    fixture.upstream.on('GET /file', () => ({
      headers: { 'content-type': 'application/pdf', ...disposition },
      body: bytes,
    }));
    fixture.upstream.on('POST /up', () => ({ body: { taken: true } }));
    const serve = async (tool: Json) => {
      const slug = await fixture.createToolServer(tool, { authentication: { type: 'Bearer', token: '{{KEY}}' } });
      await setSecret(fixture.toolhost, slug, 'KEY', 'secret');
      return slug;
    };
    fileServer = await serve({ url: '/file' });
    wholeBodyServer = await serve(uploadTool);
    const files = { type: 'array', items: { type: 'string' }, content: 'base64' };
    const input_schema = { files, note: { type: 'string' }, file: { ...file, optional: true } };
    multipartServer = await serve({ ...uploadTool, body: 'multipart', input_schema });
    key = await fixture.toolhost.createKey();
  });
  const call = (slug: string, args: Json, token = key) => fixture.toolhost.callTool(slug, token, 'run', args);
  const createFile = async (size: number) => {
    bytes = createFileBytes(size);
    return getFileUrl(await call(fileServer, {}));
  };
  const callForRequest = async (slug: string, args: Json) => {
    fixture.upstream.take();
    const result = await call(slug, args);
    assert.notEqual(result.isError, true, getResultText(result));
    const [request] = fixture.upstream.take();
    return request ?? assert.fail('nothing was sent');
  };
  const callForError = async (slug: string, args: Json, token = key) => {
    fixture.upstream.take();
    const result = await call(slug, args, token);
    assert.deepEqual([result.isError, fixture.upstream.take()], [true, []]);
    return getResultText(result);
  };

  it('[agent 4] sends the bytes, type, and name of the file, as the whole body and as parts', async () => {
    for (const size of [256 * 1024 + 1, 3 * 192 * 1024, megabyte + 7]) {
      const address = await createFile(size);
      const raw = await callForRequest(wholeBodyServer, { file: address });
      assert.ok(bytes.equals(raw.body), `${size}`);
      assert.equal(raw.headers['content-type'], 'application/pdf');
      const base64 = Buffer.from('plain').toString('base64');
      const { body } = await callForRequest(multipartServer, { files: [address, base64, address], note: address });
      assert.equal(body.toString('latin1').split(bytes.toString('latin1')).length, 3);
      const text = body.toString('utf8');
      assert.equal(text.split('filename="Bericht ü.pdf"').length, 3);
      // An argument that accepts no file is sent as text, even if it is a file URL.
      assert.ok(text.includes(`name="note"\r\n\r\n${address}\r\n`));
    }
  });

  it('[agent 4] works only for the caller that got the URL, in its workspace, for ten minutes', async () => {
    const address = await createFile(megabyte);
    const other = await fixture.toolhost.createKey();
    const foreignKey = await fixture.toolhost.createKey({ workspace: 'elsewhere' });
    const unknownFileError = /^file: there is no file for you at this URL; a file URL works for ten minutes/;
    const invented = address.slice(0, -3) + (address.endsWith('abc') ? 'xyz' : 'abc');
    const config = { name: 'Foreign', slug: 'foreign', authentication: { type: 'Bearer', token: '{{KEY}}' } };
    const tool = { ...uploadTool, name: 'run', description: 'Takes a file of another workspace.' };
    const tools = [{ ...tool, url: `${fixture.upstream.url}/up` }];
    await fixture.toolhost.rest('POST', '/servers', { key: foreignKey, body: { ...config, tools } });
    await fixture.toolhost.rest('PUT', '/servers/foreign/secrets/KEY', { key: foreignKey, body: { value: 'secret' } });
    for (const [slug, url, token] of [
      [wholeBodyServer, address, other],
      [wholeBodyServer, invented, key],
      ['foreign', address, foreignKey],
    ] as const)
      assert.match(await callForError(slug, { file: url }, token), unknownFileError);
    const { db } = fixture.toolhost.running.app.runner;
    await db
      .updateTable('files')
      .set((row) => ({ at: row.eb('at', '-', 600_000) }))
      .execute();
    assert.match(await callForError(wholeBodyServer, { file: address }), unknownFileError);
    assert.equal((await fetch(address)).status, 404);
  });

  it('[agent 4] accepts no other URL and sends no request to fetch one', async () => {
    const address = await createFile(megabyte);
    const { origin, pathname, host } = new URL(address);
    const upstream = fixture.upstream.url;
    const addresses = [
      ...[`${upstream}/file`, `${origin}/mcp/${fileServer}`, `${upstream}${pathname}`, `url:${address}`],
      ...[`${address}?x=1`, `${address}#x`, `${address}/`, ` ${address}`, `file://${pathname}`],
      ...[`${origin}/x/..${pathname}`, `${origin}//files/${pathname.slice(7)}`, `http://user:pass@${host}${pathname}`],
      ...[`HTTP://${host}${pathname}`, `https://${host}${pathname}`],
    ];
    for (const invalid of addresses)
      assert.match(await callForError(wholeBodyServer, { file: invalid }), /^file: is not Base64; /, invalid);
  });

  it('[agent 4] sends at most 10 MiB of files in one call', async () => {
    const address = await createFile(10 * megabyte);
    assert.equal((await callForRequest(wholeBodyServer, { file: address })).body.length, 10 * megabyte);
    const callWithFiles = (count: number) =>
      callForError(multipartServer, { files: Array(count).fill(address), note: '' });
    assert.match(await callWithFiles(2), /^files: the files of this call have more/);
    assert.match(await callWithFiles(101), /^files: found 101 files; allowed: at most 100$/);
  });

  it('[agent 4] never sends an API key of this service that is contained in a file', async () => {
    for (const at of [0, 192 * 1024 - 20, 300_000]) {
      await createFile(400_000);
      bytes.write(` ${key} `, at);
      const message = await callForError(wholeBodyServer, { file: getFileUrl(await call(fileServer, {})) });
      assert.match(message, /the request contains an API key or a token of this service/);
    }
  });

  it('[agent 4] is previewed with the name and size of the file', async () => {
    const address = await createFile(megabyte);
    const path = `/servers/${multipartServer}/tools/run/preview`;
    const reply = await fixture.toolhost.rest('POST', path, { body: { arguments: { files: [address], note: 'x' } } });
    assert.equal(reply.status, 200, reply.text);
    for (const pattern of [/\(1048576 bytes\)/, /Bericht ü\.pdf/]) assert.match(reply.text, pattern);
  });

  it('[agent 4] works between servers that forward no credential, for anyone with the URL', async () => {
    const open = await fixture.createToolServer({ url: '/file' });
    const up = await fixture.createToolServer(uploadTool);
    bytes = createFileBytes(megabyte);
    const address = getFileUrl(await call(open, {}, callerToken));
    fixture.upstream.take();
    assert.notEqual((await call(up, { file: address }, 'another-token')).isError, true);
    assert.ok(fixture.upstream.take()[0]?.body.equals(bytes));
  });
});
