import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, it } from 'node:test';
import { makeList, repeatToFit, times } from '../support/long-values.ts';
import { getResult, getText, type HttpReply, useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { buildToolAt } from '../support/upstream-configs.ts';

const megabytes = 1024 * 1024;

describe('CPU budget of upstream responses', () => {
  const toolhost = useCpuBudgetToolhost();

  describe('parsing', () => {
    let serverCount = 0;
    /** Calls a tool whose upstream sends this response, within the CPU budget. */
    const call = async (
      label: string,
      type: string,
      body: string | Buffer,
      tool: Json = {},
      upstreamStatus = 200,
    ): Promise<HttpReply> => {
      const slug = `answer-${++serverCount}`;
      const headers = { 'content-type': type };
      toolhost.upstream.on(`GET /${slug}`, () => ({ headers, body, status: upstreamStatus }));
      await toolhost.createServer({ slug, tools: [buildToolAt(`${toolhost.upstream.url}/${slug}`, tool)] });
      const reply = await toolhost.measure(label).call(slug, 'get');
      assert.equal(reply.status, 200, reply.text.slice(0, 500));
      return reply;
    };
    const callJson = (label: string, body: string, tool?: Json) => call(label, 'application/json', body, tool);

    it('[find A2] applies 100 response_fields to 10 MB of empty objects within the CPU budget', async () => {
      const response_fields = times(100, (i) => `field${i}.inner.value`);
      const json = makeList('{}', 10 * megabytes - 10);
      assert.equal(getText(await callJson('100 fields', json, { response_fields })), json);
    });

    it('[find A2] refuses to check 4.9 million numbers against an output_schema with 500 subschemas', async () => {
      const json = `{"list":${makeList('1', 9.8 * 1000 * 1000)}}`;
      const check = (items: Json) => {
        const output_schema = { type: 'object', properties: { list: { type: 'array', items } } };
        return callJson('4.9 million numbers', json, { output_schema });
      };
      const refused = await check({ allOf: times(500, (i) => ({ maximum: i + 10 })) });
      assert.equal(getResult(refused).isError, true);
      assert.match(getText(refused), /^The response has too many values\. Checking them against output_schema/);
      const checked = await check({ maximum: 3 });
      assert.notEqual(getResult(checked).isError, true, getText(checked).slice(0, 300));
    });

    it('[find A2] transforms, compacts, and passes through 10 MB of JSON within the CPU budget', async () => {
      const row = '{"id":1,"name":"a row of the answer","price":1.10}';
      const rows = `{"data":{"rows":${makeList(row, 9.9 * megabytes)}}}`;
      assert.equal(getText(await callJson('a transform', rows, { response_transform: 'data.rows.3' })), row);
      const prices = makeList('1.10', 9.9 * 1000 * 1000);
      assert.equal(getText(await callJson('prices', `{"prices":${prices}}`, { response_transform: 'prices' })), prices);
      const spaced = makeList('{ "a" : 1 }', 10 * megabytes - 20);
      assert.equal(getText(await callJson('white space', spaced)), spaced.replaceAll(' ', ''));
      const whole = makeList('{"a":1}', 10 * megabytes - 20);
      assert.equal(getText(await callJson('10 MB passed on', whole)), whole);
    });

    it('[find A2] replaces lone surrogates in 1 MB of escapes within the CPU budget', async () => {
      for (const escapes of ['\\ud83d', '\\ud83d\\ude00', '\\\\'.repeat(3)]) {
        const reply = await callJson(escapes, `{"a":"${repeatToFit(escapes, megabytes - 20)}\\ud83d"}`);
        assert.match(getText(reply).slice(-10), /\\ufffd"\}$/);
      }
    });

    it('[find A2] rejects multipart bodies with a million parts or without an end within the CPU budget', async () => {
      for (const body of [
        '--b\r\n\r\n\r\n'.repeat(1_000_000),
        `--b\r\n${'x'.repeat(9.9 * megabytes)}`,
        '--b'.repeat(3_300_000),
      ])
        assert.equal(getResult(await call('multipart', 'multipart/mixed; boundary=b', body)).isError, true);
    });

    it('[find A2] parses file names that invite backtracking within the CPU budget', async () => {
      for (const piece of ['.', ' ', '. ', ';', '"', '\\', ';a', '%2e']) {
        const head = `content-type: application/zip\r\ncontent-disposition: attachment; filename="a${piece.repeat(3900 / piece.length)}a"`;
        const body = `--b\r\n${head}\r\n\r\n\x01\xff\r\n`.repeat(50);
        const reply = await call(`names of ${piece}`, 'multipart/mixed; boundary=b', `${body}--b--`);
        const resources = getResult(reply).content.filter(({ type }) => type === 'resource');
        assert.equal(resources.length, 50, getText(reply));
      }
    });

    it('[find A2] converts large errors, texts in any character set, and files within the CPU budget', async () => {
      const long = 'Zeile für Zeile "Text"\n'.repeat(400_000);
      const error = await call('an error', 'text/plain', long, {}, 500);
      assert.match(getText(error), /^HTTP 500 .*\nZeile/);
      assert.ok(getText(error).length < 9000);
      for (const charset of ['utf-8', 'shift_jis', 'utf-16le', 'windows-1252', 'gb18030']) {
        const body = Buffer.from(long).subarray(0, 9 * megabytes);
        assert.ok(getText(await call(charset, `text/plain; charset=${charset}`, body)).length > megabytes);
      }
      const file = await call('a file', 'application/zip', Buffer.alloc(7 * megabytes, 0xfe));
      const { content } = getResult(file);
      assert.deepEqual([content.length, content[0]?.size], [1, undefined]);
      assert.match(
        getText(file),
        /^The response is a file: .+ \(application\/zip, 7340032 bytes\)\. Download it from http/,
      );
    });

    it('[find A2] selects response_fields whose names have colliding hashes within the CPU budget', async () => {
      // Many hash functions map "Aa" and "BB" to the same hash. Names of equal length built from them collide too.
      const names = times(128, (i) => i.toString(2).padStart(7, '0').replaceAll('0', 'Aa').replaceAll('1', 'BB'));
      const response_fields = names.slice(0, 100);
      const otherObjects = names.slice(100).map((name) => `{"${name}":1}`);
      const body = `[${times(12_000, (i) => otherObjects[i % otherObjects.length])}]`;
      const rejected = await callJson('other names', body, { response_fields });
      assert.match(getText(rejected), /^response_fields "\w+" does not exist in the response: /);
      const [first, last] = [names[0], names[99]];
      const swapped = makeList(`{"${last}":1,"${first}":2}`, 260_000);
      const reordered = await callJson('the same names', swapped, { response_fields });
      assert.equal(getText(reordered), makeList(`{"${first}":2,"${last}":1}`, 260_000));
    });

    for (const bytes of [262_144, 1_000_000]) {
      it(`[find A2] parses ${bytes} bytes of adversarial JSON and text within the CPU budget`, async () => {
        const fields = { response_fields: times(100, (i) => `f${i}`) };
        await callJson('escaped names', makeList('{"\\u0066\\u0039\\u0039":1}', bytes - 10), fields);
        await callJson('empty arrays', makeList('[]', bytes - 10), fields);
        const list = { items: { enum: times(500, (i) => [i]) } };
        await callJson('an enum of arrays', `{"list":${makeList('[[]]', bytes - 30)}}`, {
          output_schema: { type: 'object', properties: { list } },
        });
        const names = `{${times(bytes / 12, (i) => `"k${String(i).padStart(7)}":1`)}}`;
        await callJson('names', names, {
          output_schema: { type: 'object', additionalProperties: { type: 'integer' } },
        });
        const nested = `${'{"a":'.repeat(999)}${makeList('1.10', bytes - 12_000)}${'}'.repeat(999)}`;
        const makePath = (levels: number) => Array(levels).fill('a').join('.');
        await callJson('nested', nested, { response_transform: makePath(200) });
        await callJson('nested fields', nested, { response_fields: [`${makePath(90)}.b`, makePath(80)] });
        await call('text', 'text/plain', '"\n'.repeat(bytes / 2 - 1));
        await callJson('spaces', `[${' '.repeat(bytes - 10)}]`);
      });
    }
  });

  describe('truncation and continuation', () => {
    let serverCount = 0;

    for (const [label, body, tokens] of [
      ['small items just below the bytes of a thread', makeList('1', 255 * 1024), 200],
      ['objects of a megabyte', makeList('{"id":12345,"name":"name"}', megabytes), 200],
      ['objects of 8 MB', makeList('{"id":12345,"name":"name"}', 8 * megabytes), 100_000],
      ['numbers of 8 MB', makeList('1', 8 * megabytes), 200],
      ['one text of 8 MB', JSON.stringify({ text: '"\\é'.repeat(megabytes) }), 5000],
      ['backslashes', JSON.stringify('\\'.repeat(4 * megabytes)), 100_000],
      ['nested lists', `${'['.repeat(900)}${makeList('1', megabytes).slice(1, -1)}${']'.repeat(900)}`, 200],
    ] as const) {
      it(`truncates and continues a response within the CPU budget: ${label} [agent 3]`, async () => {
        const slug = `cut-${++serverCount}`;
        const headers = { 'content-type': 'application/json' };
        toolhost.upstream.on(`GET /${slug}`, () => ({ headers, body }));
        const tools = [buildToolAt(`${toolhost.upstream.url}/${slug}`)];
        await toolhost.createServer({ slug, max_response_tokens: tokens, tools });
        const reply = await toolhost.measure(`cut ${label}`).call(slug, 'get');
        const texts = getResult(reply).content.map(({ text }) => text ?? '');
        assert.ok(texts.join('').length <= tokens * 4);
        const cursor = /cursor "(.+?)"/.exec(texts.at(-1) ?? '')?.[1];
        assert.ok(cursor, texts.join().slice(-300));
        const more = await toolhost.measure(`read on: ${label}`).call(slug, 'read_more', JSON.stringify({ cursor }));
        assert.notEqual(getResult(more).isError, true, more.text.slice(0, 300));
      });
    }
  });

  it('stores, downloads, and uploads a 10 MB file within the CPU budget [agent 4]', async () => {
    const bytes = randomBytes(10 * megabytes - 1).fill('thk_', 0, 5 * megabytes);
    toolhost.upstream.on('GET /file', () => ({ headers: { 'content-type': 'application/zip' }, body: bytes }));
    toolhost.upstream.on('POST /file', () => ({ body: { taken: true } }));
    const url = `${toolhost.upstream.url}/file`;
    await toolhost.createServer({ slug: 'get', tools: [buildToolAt(url)] });
    const input_schema = { file: { type: 'string', content: 'base64' } };
    const tools = [buildToolAt(url, { method: 'POST', body: 'multipart', input_schema })];
    await toolhost.createServer({ slug: 'send', tools });
    const { content } = getResult(await toolhost.measure('a stored file').call('get', 'get'));
    const address = /https?:\S+/.exec(content.map(({ text }) => text).join())?.[0] ?? '';
    const got = await toolhost.assertWithinBudget('a download', async () =>
      Buffer.from(await (await fetch(address)).arrayBuffer()),
    );
    assert.ok(got.equals(bytes));
    const sent = await toolhost.measure('an upload').call('send', 'get', JSON.stringify({ file: address }));
    assert.notEqual(getResult(sent).isError, true, sent.text.slice(0, 300));
  });
});
