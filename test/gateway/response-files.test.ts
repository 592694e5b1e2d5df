import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { deflateRawSync, deflateSync } from 'node:zlib';
import { getResultText, startOneTool } from '../support/one-tool.ts';
import { buildJsonResponse, buildResponse } from '../support/response-caller.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { BINARY, PNG, WAV } from '../support/upstreams/content-upstream.ts';
import type { CannedResponse } from '../support/upstreams/recording-upstream.ts';
import { useFixture } from '../support/use-fixtures.ts';

describe('the content type of a tool result', () => {
  const fixture = useFixture(startOneTool);
  let slug: string;
  before(async () => {
    slug = await fixture.createToolServer({ url: '/answer' });
  });

  const call = (response: CannedResponse, target = slug) => {
    fixture.upstream.on('GET /answer', () => response);
    return fixture.call(target);
  };
  const getText = async (response: CannedResponse, target?: string) => getResultText(await call(response, target));
  const callForContent = async (type: string, body: string | Buffer, headers: CannedResponse['headers'] = {}) =>
    (await call(buildResponse(type, body, headers))).content;
  const text = (value: string) => [{ type: 'text', text: value }];

  it('[conf 5] is text for every human-readable media type', async () => {
    const types = [
      'application/x-ndjson',
      'application/jsonl',
      'application/json-seq',
      'application/geo+json-seq',
      'application/yaml',
      'application/x-yaml',
      'application/vnd.oai.openapi+yaml;version=3.1',
      'application/toml',
      'application/csv',
      'application/graphql',
      'application/javascript',
      'application/ecmascript; charset=utf-8',
      'application/sql',
      'application/x-www-form-urlencoded',
      'application/x-sh',
      'application/vnd.apple.mpegurl',
      'application/pem-certificate-chain',
      'APPLICATION/YAML',
      'application/vnd.example; charset=utf-8',
    ];
    for (const type of types) assert.deepEqual(await callForContent(type, 'a: 1\nb: ü\n'), text('a: 1\nb: ü\n'), type);
    for (const type of ['application/pdf', 'application/pdf; charset=utf-8', 'application/zip;charset=UTF-8'])
      assert.equal((await callForContent(type, BINARY))[1]?.type, 'resource', type);
  });

  it('[conf 5] is text if the body is text, whatever its media type says', async () => {
    const types = ['image/png', 'audio/mpeg', 'application/octet-stream', 'application/zip', 'application/vnd.odd'];
    for (const type of types)
      for (const body of ['{"a":1}', 'Grüße\t\x1b[1m\n', '\ufeffa'.repeat(400)])
        assert.deepEqual(await callForContent(type, body), text(body.replace(/^\ufeff/, '')), type);
    assert.deepEqual(await callForContent('application/octet-stream', Buffer.from('\ufeffé', 'utf16le')), text('é'));
    assert.deepEqual(await callForContent('application/vnd.odd; charset=gbk', gbk), text('你好'));
    for (const body of ['%PDF-1.4\n', 'a\0b', '\x01\x02', `${'a'.repeat(9000)}\0`])
      assert.equal((await callForContent('application/octet-stream', body))[1]?.type, 'resource', body.slice(-9));
  });

  it('[conf 5] is image only for the bytes of PNG, JPEG, GIF, and WebP', async () => {
    const images: [string, Buffer][] = [
      ['image/png', PNG],
      ['image/jpeg', Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0x10, 0x4a, 0x46])],
      ['image/gif', Buffer.from('GIF89a\x01\0\x01\0\0\0', 'latin1')],
      ['image/webp', Buffer.from('RIFF\x1a\0\0\0WEBPVP8L\0', 'latin1')],
    ];
    for (const [mimeType, bytes] of images) {
      const block = { type: 'image', data: bytes.toString('base64'), mimeType };
      const expected = [...text(`The response is a file: ${mimeType}, ${bytes.length} bytes.`), block];
      for (const declared of ['image/jpg', 'image/png', 'image/jpeg', 'application/octet-stream', 'audio/mpeg', ''])
        assert.deepEqual(await callForContent(declared, bytes), expected);
    }
    const bitmap = Buffer.concat([Buffer.from('BM'), Buffer.alloc(60)]);
    const tiff = Buffer.from('II*\0\b\0\0\0', 'latin1');
    const others: [declared: string, bytes: Buffer, mimeType: string][] = [
      ['image/tiff', tiff, 'image/tiff'],
      ['image/bmp', bitmap, 'image/bmp'],
      ['image/png', tiff, 'application/octet-stream'],
      ['image/jpg', bitmap, 'application/octet-stream'],
      ['image/webp', WAV, 'application/octet-stream'],
      ['image/avif', Buffer.from('\0\0\0\x1cftypavif', 'latin1'), 'image/avif'],
    ];
    for (const [declared, bytes, mimeType] of others) {
      const [description, block] = await callForContent(declared, bytes);
      assert.equal(description?.text, `The response is a file: ${mimeType}, ${bytes.length} bytes.`);
      assert.deepEqual([block?.type, (block?.resource as Json | undefined)?.mimeType], ['resource', mimeType]);
    }
  });

  it('[conf 5] decodes text by its byte order mark, its declared charset, UTF-8, or windows-1252', async () => {
    const decoded = 'Grüße – 10 €';
    const windows = Buffer.from([0x47, 0x72, 0xfc, 0xdf, 0x65, 0x20, 0x96, 0x20, 0x31, 0x30, 0x20, 0x80]);
    const cases: [string, Buffer][] = [
      ['text/csv', Buffer.from(decoded)],
      ['text/csv', windows],
      ['text/csv; charset=windows-1252', windows],
      ['text/csv; charset=who-knows', windows],
      ['text/csv; charset=who-knows', Buffer.from(decoded)],
      ['text/csv; charset="utf-8"', Buffer.from(`\ufeff${decoded}`)],
      ['text/plain', Buffer.from(`\ufeff${decoded}`, 'utf16le')],
      ['text/plain; charset=utf-16le', Buffer.from(decoded, 'utf16le')],
    ];
    for (const [type, body] of cases)
      assert.deepEqual(await callForContent(type, body), text(decoded), `${type} ${body.toString('hex')}`);
    const xml = '<?xml version="1.0" encoding="ISO-8859-2"?><a>\xb1</a>';
    assert.match(String((await callForContent('application/xml', Buffer.from(xml, 'latin1')))[0]?.text), /<a>ą<\/a>$/);
  });

  const gbk = Buffer.from([0xc4, 0xe3, 0xba, 0xc3]);
  it('[conf 5] decodes text, JSON, transformed results, and errors with the charset of the media type, byte order mark, or document', async () => {
    const samples: [charset: string, bytes: Buffer, words: string][] = [
      ['GBK', gbk, '你好'],
      ['gb2312', gbk, '你好'],
      ['gb18030', gbk, '你好'],
      ['shift_jis', Buffer.from([0x93, 0xfa, 0x96, 0x7b]), '日本'],
      ['euc-kr', Buffer.from([0xc7, 0xd1]), '한'],
      ['koi8-r', Buffer.from([0xc1]), 'а'],
      ['windows-1251', Buffer.from([0xe0]), 'а'],
      ['iso-8859-1', Buffer.from([0xb0]), '°'],
    ];
    const concatBytes = (start: string, bytes: Buffer, end: string) =>
      Buffer.concat([Buffer.from(start), bytes, Buffer.from(end)]);
    for (const [charset, bytes, decoded] of samples) {
      for (const [type, start, end] of [
        ['text/html', `<html><head><meta charset="${charset}"></head>`, '</html>'],
        ['text/html', `<meta http-equiv=Content-Type content="text/html; charset=${charset}">`, ''],
        ['application/xml', `<?xml version="1.0" encoding='${charset}'?><a>`, '</a>'],
      ] as const)
        assert.deepEqual(await callForContent(type, concatBytes(start, bytes, end)), text(`${start}${decoded}${end}`));
      const json = `{"error":"${decoded}"}`;
      const response = buildResponse(`application/json; charset=${charset}`, concatBytes('{"error":"', bytes, '"}'));
      assert.equal(await getText(response), json, charset);
      assert.equal(await getText({ ...response, status: 400 }), `HTTP 400 Bad Request\n${json}`, charset);
    }
    const transformed = await fixture.createToolServer({ url: '/answer', response_transform: 'unit' });
    const unit = Buffer.from('{"unit":"\xb0C"}', 'latin1');
    const utf16 = Buffer.from('\ufeff{"unit":"°C"}', 'utf16le');
    for (const body of [unit, utf16]) {
      assert.equal(await getText(buildJsonResponse(body), transformed), '"°C"');
      assert.match(await getText({ ...buildResponse('text/plain', body), status: 500 }), /\n\{"unit":"°C"\}$/);
    }
    const failedImage = { ...buildResponse('image/png', PNG), status: 500 };
    assert.equal(await getText(failedImage), 'HTTP 500 Internal Server Error');
    for (const type of ['application/x-amz-json-1.0', 'application/x-amz-json-1.1'])
      assert.deepEqual(await callForContent(type, '{ "TableNames": [] }'), text('{"TableNames":[]}'));
  });

  it('[conf 5] handles two Content-Type headers, raw deflate, and blank text', async () => {
    const headers = { ['content-type' as string]: ['text/html', 'application/json'] };
    assert.equal(await getText({ headers, body: '{ "a": 1 }' }), '{"a":1}');
    for (const deflate of [deflateRawSync, deflateSync])
      for (const json of ['{"a":1}', JSON.stringify({ a: 'x'.repeat(100_000) })]) {
        const compressed = buildResponse('application/json', deflate(json), { 'content-encoding': 'deflate' });
        assert.deepEqual((await call(compressed)).content, text(json));
      }
    const blank = text('The response contains only 4 whitespace characters.');
    for (const type of ['text/plain', 'application/json', ''])
      assert.deepEqual(await callForContent(type, ' \n\t '), blank);
  });

  it('[conf 5] converts JSON from another charset if the response declares it, and otherwise passes it on as text', async () => {
    const latin = Buffer.from('{"a":"\xfc"}', 'latin1');
    const utf16 = Buffer.from('{"a":"ü"}', 'utf16le');
    assert.equal(await getText(buildResponse('application/json; charset=iso-8859-1', latin)), '{"a":"ü"}');
    assert.equal(await getText(buildResponse('application/json; charset=utf-16le', utf16)), '{"a":"ü"}');
    for (const type of ['application/json', 'application/json; charset=who-knows']) {
      const content = await callForContent(type, latin);
      assert.equal(content[0]?.text, '{"a":"ü"}');
      assert.match(String(content[1]?.text), /passed on as text, because it is not valid UTF-8\.$/);
    }
  });

  const callForFileName = async (disposition: string) => {
    const [, block] = await callForContent('application/pdf', BINARY, { 'content-disposition': disposition });
    const { uri, _meta } = (block?.resource ?? {}) as { uri?: string; _meta?: Json };
    const name = _meta?.['toolhost/file_name'];
    const expectedUri = name === undefined ? '' : `/${encodeURIComponent(String(name))}`;
    assert.equal(uri, `urn:toolhost:answer${expectedUri}`);
    return name;
  };

  it('[conf 5] keeps the file name in the embedded resource', async () => {
    const euro = "UTF-8''%e2%82%ac%20rates.pdf";
    const cases: [string, string | undefined][] = [
      ['attachment; filename="Report Q3.pdf"', 'Report Q3.pdf'],
      ['attachment; filename=plain.pdf', 'plain.pdf'],
      ['attachment;FileName = "a\\"b;c.pdf" ; size=3', 'a_b;c.pdf'],
      [`attachment; filename="rates.pdf"; filename*=${euro}`, '€ rates.pdf'],
      [`inline; filename*=${euro}; filename="rates.pdf"`, '€ rates.pdf'],
      ["attachment; filename*=iso-8859-1'en'%A3.pdf", '£.pdf'],
      ["attachment; filename*=UTF-8''%ff.pdf; filename=fallback.pdf", 'fallback.pdf'],
      ["attachment; filename*=koi8-r''%c1.pdf; filename=fallback.pdf", 'fallback.pdf'],
      [`attachment; filename="${Buffer.from('Übersicht.pdf').toString('latin1')}"`, 'Übersicht.pdf'],
      ['attachment; filename="\xdcbersicht.pdf"', 'Übersicht.pdf'],
      ['attachment', undefined],
      ['attachment; filename=""', undefined],
      ['filename=bare.pdf', undefined],
      ['attachment; filename="never ends.pdf', undefined],
    ];
    for (const [disposition, name] of cases) assert.equal(await callForFileName(disposition), name, disposition);
    const [, image] = await callForContent('image/png', PNG, { 'content-disposition': 'inline; filename="dot.png"' });
    assert.deepEqual(image?._meta, { 'toolhost/file_name': 'dot.png' });
  });

  it('[conf 5] reduces the file name to at most 100 visible characters without a path', async () => {
    const cases: [string, string | undefined][] = [
      ['../../etc/passwd', 'passwd'],
      ['C:\\\\Windows\\\\evil.exe', 'evil.exe'],
      ['/', undefined],
      ['..', undefined],
      ['.bashrc', 'bashrc'],
      ['a<b>:c|d?.txt', 'a_b__c_d_.txt'],
      ['tab\there.txt', 'tabhere.txt'],
      [`${'x'.repeat(300)}.tar.gz`, `${'x'.repeat(97)}.gz`],
    ];
    for (const [requestedName, name] of cases)
      assert.equal(await callForFileName(`attachment; filename="${requestedName}"`), name, requestedName);
    const hidden = encodeURIComponent('in\u202Evoice\u200b\u0000\u0007\u2028fdp.exe\u2066');
    assert.equal(await callForFileName(`attachment; filename*=UTF-8''${hidden}`), 'invoicefdp.exe');
  });

  it('[conf 5] keeps the file names of multipart parts and detects text parts by the same rule', async () => {
    const yaml = 'Content-Type: application/yaml\r\nContent-Disposition: attachment; filename="a.yaml"\r\n\r\na: 1';
    const euro = "Content-Disposition: attachment; filename*=UTF-8''%E2%82%AC.bin";
    const body = `--b\r\n${yaml}\r\n--b\r\n${euro}\r\nContent-Type: application/octet-stream\r\n\r\n\0\x01\r\n--b--`;
    const buildFile = (name: string, mimeType: string, bytes: number, data: Json) => {
      const uri = `urn:toolhost:answer/${encodeURIComponent(name)}`;
      const resource = { uri, mimeType, ...data, _meta: { 'toolhost/file_name': name } };
      return [
        ...text(`The response is a file: ${name} (${mimeType}, ${bytes} bytes).`),
        { type: 'resource', resource },
      ];
    };
    assert.deepEqual(await callForContent('multipart/mixed; boundary=b', body), [
      ...buildFile('a.yaml', 'application/yaml', 4, { text: 'a: 1' }),
      ...buildFile('€.bin', 'application/octet-stream', 2, { blob: 'AAE=' }),
    ]);
  });
});
