import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';
import type { Json, ToolCallResult } from '../support/toolhost/toolhost.ts';

describe('CPU budget of upstream responses', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost();
  });
  after(() => toolhost.stop());

  describe('parsing', () => {
    const megabytes = 1024 * 1024;

    let serverCount = 0;
    /** Calls a tool whose upstream sends this response, within the CPU budget of a request. Returns the result. */
    const getResult = async (
      label: string,
      type: string,
      body: string | Buffer,
      tool: Json = {},
    ): Promise<ToolCallResult> => {
      const slug = `answer-${++serverCount}`;
      toolhost.upstream.on(`GET /${slug}`, () => ({
        headers: { 'content-type': type },
        body,
        ...(tool.status !== undefined && { status: Number(tool.status) }),
      }));
      const { status: _, ...fields } = tool;
      const run = {
        name: 'run',
        description: 'Gets an answer of this test.',
        method: 'GET',
        url: `${toolhost.upstream.url}/${slug}`,
        ...fields,
      };
      const created = await toolhost.rest('POST', '/servers', { name: 'Answers', slug, tools: [run] });
      assert.equal(created.status, 201, created.text);
      const {
        status,
        body: reply,
        text,
      } = await toolhost.assertWithinBudget(label, () => toolhost.call(slug, 'run', '{}'));
      assert.equal(status, 200, text.slice(0, 500));
      return reply.result as ToolCallResult;
    };
    const makeList = (item: string, bytes: number) =>
      `[${Array(Math.floor(bytes / (item.length + 1)))
        .fill(item)
        .join(',')}]`;
    const getText = (result: ToolCallResult) => result.content[0]?.text ?? '';

    it('[find A2] applies 100 response_fields to 10 MB of empty objects within the CPU budget', async () => {
      const fields = Array.from({ length: 100 }, (_, i) => `field${i}.inner.value`);
      const json = makeList('{}', 10 * megabytes - 10);
      const result = await getResult('100 fields', 'application/json', json, { response_fields: fields });
      assert.equal(getText(result), json);
    });

    it('[find A2] refuses to check 4.9 million numbers against an output_schema with 500 subschemas', async () => {
      const parts = Array.from({ length: 500 }, (_, i) => ({ maximum: i + 10 }));
      const output_schema = { type: 'object', properties: { list: { type: 'array', items: { allOf: parts } } } };
      const json = `{"list":${makeList('1', 9.8 * 1000 * 1000)}}`;
      const result = await getResult('500 parts on 4.9 million numbers', 'application/json', json, { output_schema });
      assert.equal(result.isError, true);
      assert.match(getText(result), /^The response has too many values\. Checking them against output_schema/);
      const smallSchema = { type: 'object', properties: { list: { type: 'array', items: { maximum: 3 } } } };
      const checked = await getResult('one part on 4.9 million numbers', 'application/json', json, {
        output_schema: smallSchema,
      });
      assert.notEqual(checked.isError, true, getText(checked).slice(0, 300));
    });

    it('[find A2] transforms, compacts, and passes through 10 MB of JSON within the CPU budget', async () => {
      const rows = `{"data":{"rows":${makeList('{"id":1,"name":"a row of the answer","price":1.10}', 9.9 * megabytes)}}}`;
      const transformed = await getResult('a transform', 'application/json', rows, {
        response_transform: 'data.rows.3',
      });
      assert.equal(getText(transformed), '{"id":1,"name":"a row of the answer","price":1.10}');
      const prices = makeList('1.10', 9.9 * 1000 * 1000);
      assert.equal(
        getText(
          await getResult('prices', 'application/json', `{"prices":${prices}}`, { response_transform: 'prices' }),
        ),
        prices,
      );
      const spaced = makeList('{ "a" : 1 }', 10 * megabytes - 20);
      assert.equal(getText(await getResult('white space', 'application/json', spaced)), spaced.replaceAll(' ', ''));
      const whole = makeList('{"a":1}', 10 * megabytes - 20);
      assert.equal(getText(await getResult('10 MB passed on', 'application/json', whole)), whole);
    });

    it('[find A2] replaces lone surrogates in 1 MB of escapes within the CPU budget', async () => {
      for (const escapes of ['\\ud83d', '\\ud83d\\ude00', '\\\\'.repeat(3)]) {
        const text = escapes.repeat(Math.floor((megabytes - 20) / escapes.length));
        const result = await getResult(escapes, 'application/json', `{"a":"${text}\\ud83d"}`);
        assert.match(getText(result).slice(-10), /\\ufffd"\}$/);
      }
    });

    it('[find A2] rejects multipart bodies with a million parts or without an end within the CPU budget', async () => {
      for (const body of [
        '--b\r\n\r\n\r\n'.repeat(1_000_000),
        `--b\r\n${'x'.repeat(9.9 * megabytes)}`,
        '--b'.repeat(3_300_000),
      ]) {
        const result = await getResult('multipart', 'multipart/mixed; boundary=b', body);
        assert.equal(result.isError, true);
      }
    });

    it('[find A2] parses file names that invite backtracking within the CPU budget', async () => {
      for (const piece of ['.', ' ', '. ', ';', '"', '\\', ';a', '%2e']) {
        const head = `content-type: application/zip\r\ncontent-disposition: attachment; filename="a${piece.repeat(3900 / piece.length)}a"`;
        const body = `--b\r\n${head}\r\n\r\n\x01\xff\r\n`.repeat(50);
        const result = await getResult(`names of ${piece}`, 'multipart/mixed; boundary=b', `${body}--b--`);
        assert.equal(result.content.filter(({ type }) => type === 'resource').length, 50, getText(result));
      }
    });

    it('[find A2] converts large errors, texts in any character set, and files within the CPU budget', async () => {
      const long = 'Zeile für Zeile "Text"\n'.repeat(400_000);
      const error = await getResult('an error', 'text/plain', long, { status: 500 });
      assert.match(getText(error), /^HTTP 500 .*\nZeile/);
      assert.ok(getText(error).length < 9000);
      for (const charset of ['utf-8', 'shift_jis', 'utf-16le', 'windows-1252', 'gb18030']) {
        const result = await getResult(
          charset,
          `text/plain; charset=${charset}`,
          Buffer.from(long).subarray(0, 9 * megabytes),
        );
        assert.ok(getText(result).length > megabytes);
      }
      const file = await getResult('a file', 'application/zip', Buffer.alloc(7 * megabytes, 0xfe));
      assert.deepEqual([file.content.length, file.content[0]?.size], [1, undefined]);
      assert.match(
        getText(file),
        /^The response is a file: .+ \(application\/zip, 7340032 bytes\)\. Download it from http/,
      );
    });

    it('[find A2] selects response_fields whose names have colliding hashes within the CPU budget', async () => {
      // Many hash functions map "Aa" and "BB" to the same hash. Names of equal length built from them collide too.
      const bitPatterns = Array.from({ length: 128 }, (_, i) => i.toString(2).padStart(7, '0'));
      const names = bitPatterns.map((bits) => bits.replaceAll('0', 'Aa').replaceAll('1', 'BB'));
      const fields = names.slice(0, 100);
      const otherObjects = names.slice(100).map((name) => `{"${name}":1}`);
      const body = `[${Array.from({ length: 12_000 }, (_, i) => otherObjects[i % otherObjects.length]).join(',')}]`;
      const rejected = await getResult('other names', 'application/json', body, { response_fields: fields });
      assert.match(getText(rejected), /^response_fields "\w+" does not exist in the response: /);
      const [first, last] = [fields[0], fields[99]];
      const swapped = makeList(`{"${last}":1,"${first}":2}`, 260_000);
      const reordered = await getResult('the same names', 'application/json', swapped, { response_fields: fields });
      assert.equal(getText(reordered), makeList(`{"${first}":2,"${last}":1}`, 260_000));
    });

    for (const bytes of [262_144, 1_000_000]) {
      it(`[find A2] parses ${bytes} bytes of adversarial JSON and text within the CPU budget`, async () => {
        const fields = Array.from({ length: 100 }, (_, i) => `f${i}`);
        const object = '{"\\u0066\\u0039\\u0039":1}';
        await getResult('escaped names', 'application/json', makeList(object, bytes - 10), { response_fields: fields });
        await getResult('empty arrays', 'application/json', makeList('[]', bytes - 10), { response_fields: fields });
        const output_schema = {
          type: 'object',
          properties: { list: { items: { enum: Array.from({ length: 500 }, (_, i) => [i]) } } },
        };
        await getResult('an enum of arrays', 'application/json', `{"list":${makeList('[[]]', bytes - 30)}}`, {
          output_schema,
        });
        const names = `{${Array.from({ length: bytes / 12 }, (_, i) => `"k${String(i).padStart(7)}":1`).join(',')}}`;
        await getResult('names', 'application/json', names.slice(0), {
          output_schema: { type: 'object', additionalProperties: { type: 'integer' } },
        });
        const nested = `${'{"a":'.repeat(999)}${makeList('1.10', bytes - 12_000)}${'}'.repeat(999)}`;
        await getResult('nested', 'application/json', nested, { response_transform: Array(200).fill('a').join('.') });
        await getResult('nested fields', 'application/json', nested, {
          response_fields: [`${Array(90).fill('a').join('.')}.b`, Array(80).fill('a').join('.')],
        });
        await getResult('text', 'text/plain', '"\n'.repeat(bytes / 2 - 1));
        await getResult('spaces', 'application/json', `[${' '.repeat(bytes - 10)}]`);
      });
    }
  });

  describe('truncation and continuation', () => {
    const megabytes = 1024 * 1024;

    const makeList = (item: string, bytes: number) => `[${Array(Math.floor(bytes / (item.length + 1))).fill(item)}]`;
    const getTexts = ({ content }: ToolCallResult) => content.map(({ text }) => text ?? '');
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
        const url = `${toolhost.upstream.url}/${slug}`;
        const run = { name: 'run', description: 'Gets an answer of this test.', method: 'GET', url };
        const config = { name: 'Cut', slug, max_response_tokens: tokens, tools: [run] };
        assert.equal((await toolhost.rest('POST', '/servers', config)).status, 201);
        const reply = await toolhost.assertWithinBudget(`cut ${label}`, () => toolhost.call(slug, 'run', '{}'));
        const texts = getTexts(reply.body.result as ToolCallResult);
        assert.ok(texts.join('').length <= tokens * 4);
        const cursor = /cursor "(.+?)"/.exec(texts.at(-1) ?? '')?.[1];
        assert.ok(cursor, texts.join().slice(-300));
        const more = await toolhost.assertWithinBudget(`read on: ${label}`, () =>
          toolhost.call(slug, 'read_more', JSON.stringify({ cursor })),
        );
        assert.notEqual((more.body.result as ToolCallResult).isError, true, more.text.slice(0, 300));
      });
    }
  });

  describe('large files', () => {
    const megabytes = 1024 * 1024;

    it('stores, downloads, and uploads a 10 MB file within the CPU budget [agent 4]', async () => {
      const bytes = randomBytes(10 * megabytes - 1).fill('thk_', 0, 5 * megabytes);
      toolhost.upstream.on('GET /file', () => ({ headers: { 'content-type': 'application/zip' }, body: bytes }));
      toolhost.upstream.on('POST /file', () => ({ body: { taken: true } }));
      const tool = { name: 'run', description: 'A tool of this test.', url: `${toolhost.upstream.url}/file` };
      const file = { type: 'string', content: 'base64' };
      const get = { ...tool, method: 'GET' };
      const send = { ...tool, method: 'POST', body: 'multipart', input_schema: { file } };
      for (const [slug, one] of Object.entries({ get, send }))
        assert.equal((await toolhost.rest('POST', '/servers', { name: slug, slug, tools: [one] })).status, 201);
      const stored = await toolhost.assertWithinBudget('a stored file', () => toolhost.call('get', 'run', '{}'));
      const { content } = stored.body.result as ToolCallResult;
      const address = /https?:\S+/.exec(content.map(({ text }) => text).join())?.[0] ?? '';
      const got = await toolhost.assertWithinBudget('a download', async () =>
        Buffer.from(await (await fetch(address)).arrayBuffer()),
      );
      assert.ok(got.equals(bytes));
      const sent = await toolhost.assertWithinBudget('an upload', () =>
        toolhost.call('send', 'run', JSON.stringify({ file: address })),
      );
      assert.notEqual((sent.body.result as ToolCallResult).isError, true, sent.text.slice(0, 300));
    });
  });
});
