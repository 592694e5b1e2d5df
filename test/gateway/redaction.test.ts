import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { redactor } from '../../src/domain/credentials/redactor.ts';
import { type OneTool, startOneTool } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

type Spell = (text: string) => string;

const each =
  (spell: (code: number) => string): Spell =>
  (text) =>
    [...text].map((character) => spell(character.charCodeAt(0))).join('');
const hex = (code: number, length = 2) => code.toString(16).padStart(length, '0');
const base64 = (text: string) => Buffer.from(text).toString('base64');

/** Escapes, which may be escaped again. */
const escapes: Record<string, Spell> = {
  'as it is': (text) => text,
  percent: each((code) => `%${hex(code)}`),
  'percent in capitals': each((code) => `%${hex(code).toUpperCase()}`),
  encodeURIComponent,
  'JSON of PHP': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'JSON escapes': each((code) => `\\u${hex(code, 4)}`),
  'program escapes': each((code) => `\\x${hex(code)}`),
  octal: each((code) => `\\${code.toString(8).padStart(3, '0')}`),
  'HTML, decimal': each((code) => `&#${code};`),
  'HTML, hex': each((code) => `&#x${hex(code).toUpperCase()};`),
  'HTML, by name': (text) =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
};

/** Encodings and other cases. */
const encodings: Record<string, Spell> = {
  'as it is': (text) => text,
  'upper case': (text) => text.toUpperCase(),
  'lower case': (text) => text.toLowerCase(),
  base64,
  'base64 behind a scheme': (text) => base64(`Bearer ${text}`),
  'base64 of a pair': (text) => base64(`me:${text}`),
  'base64 inside JSON': (text) => base64(`{"a":"${text}"}`),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  hex: (text) => Buffer.from(text).toString('hex'),
  'hex in capitals': (text) => Buffer.from(text).toString('hex').toUpperCase(),
};

/** Only in bodies: header lines cannot hold these. */
const inBodies: Record<string, Spell> = {
  'UTF-16': (text) => [...text].join('\0'),
  'Base64 in lines': (text) => base64(`${text}${text}`).replaceAll(/.{20}/g, '$&\r\n'),
};

const credential = fc.string({
  unit: fc.constantFrom(...'abcdefghijkmnpqrsABCDEFGHJKLMNPQRS23456789', ...'/+-_.~=%&<>"\\\'^|'),
  minLength: 20,
  maxLength: 40,
});

/** Pieces of a credential that nobody could write by chance. */
function pieces(text: string): string[] {
  return Array.from({ length: text.length - 9 }, (_, at) => text.slice(at, at + 10));
}

describe('[sec A10] [sec M8] what an upstream echoes', () => {
  let one: OneTool;
  let server: Server;
  let answer: { status: number; message?: string; headers?: OutgoingHttpHeaders; body?: string | Buffer };
  let url: string;
  before(async () => {
    server = createServer((_, response) => {
      const { status, message = 'Said', headers = {}, body } = answer;
      response.writeHead(status, message, headers).end(body);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    url = `http://127.0.0.1:${port}`;
    one = await startOneTool({ egress: [port], env: { CALLS_PER_SECOND: '10000' } });
  });
  after(async () => {
    await one.stop();
    server.close();
    server.closeAllConnections();
  });

  const serve = (tool: Json = {}) =>
    one.serve({ url: `${url}/x`, ...tool }, { authentication: { type: 'QueryParam', query_key: 'key' } });
  const resultOf = async (slug: string, token: string, next: typeof answer) => {
    answer = next;
    return JSON.stringify(await one.toolhost.callTool(slug, token, 'run'));
  };
  /** The characters of a result that were in the JSON of its texts. */
  const shown = (result: string) => JSON.stringify(JSON.parse(result), (_, value) => value).replaceAll('\\\\', '\\');

  it('is recognised in every usual spelling, wherever it is', async () => {
    const slug = await serve({ response_headers: ['X-Echo'] });
    const spelling = fc.record({
      outer: fc.constantFrom(...Object.keys(escapes)),
      middle: fc.constantFrom(...Object.keys(escapes)),
      inner: fc.constantFrom(...Object.keys(encodings)),
      // The end of a credential and what is behind it may be an escape together.
      before: fc.constantFrom('no ', '"', 'id="'),
      behind: fc.constantFrom(' here', '"', '\\', '41', 'lt;', 'n'),
    });
    const plain = { outer: 'as it is', middle: 'as it is', inner: 'as it is', before: '"', behind: '"' };
    await fc.assert(
      fc.asyncProperty(credential, spelling, async (token, { outer, middle, inner, before, behind }) => {
        const spelt = escapes[outer]?.(escapes[middle]?.(encodings[inner]?.(token) ?? '') ?? '') ?? '';
        const held = JSON.stringify(spelt).slice(1, -1);
        const said = `${before}${spelt}${behind}`;
        const body = `{"said":${JSON.stringify(said)}}`;
        const headers = { 'x-echo': `id=${said}`, 'retry-after': spelt };
        const failed = await resultOf(slug, token, { status: 403, message: `No ${said}`, headers, body });
        // In the body it is JSON inside JSON.
        for (const some of [held, JSON.stringify(held).slice(1, -1)])
          assert.ok(!failed.includes(some), `${inner}, ${middle}, ${outer}: ${failed}`);
        assert.match(failed, /redacted.*redacted/);
        const empty = await resultOf(slug, token, { status: 204, message: `No ${said}`, headers });
        assert.ok(!empty.includes(held), `${inner}, ${middle}, ${outer}: ${empty}`);
      }),
      {
        numRuns: 150,
        examples: [
          ['aa<aaaaaaaaaaaaaaaa\\', { ...plain, middle: 'HTML, by name' }],
          ['36&cdefghijkmnpqrst%', { ...plain, outer: 'HTML, by name', behind: '41' }],
          ['abcdefghij\\<kmnpqrsABC\\', { ...plain, middle: 'HTML, by name', behind: 'n' }],
          ['abcdefghij\\%6eABCDEFGHJK', plain],
        ],
      },
    );
  });

  it('is not seen in words that are only like a part of it', async () => {
    const slug = await serve();
    const texts = ['missing\npassword\ntoken', '{\\"password\\":1', 'a=1%26password%3Dabc', '&quot;password&quot;'];
    for (const body of [...texts, 'é\npassword\né', 'my\ntest\n12']) {
      const failed = await resultOf(slug, 'MyPassword1', { status: 400, body });
      assert.ok(failed.includes(JSON.stringify(body).slice(1, -1)), failed);
    }
  });

  it('is recognised in UTF-16 and in lines of Base64', async () => {
    const slug = await serve();
    const token = 'sk-live/0123456789+abcdefghij';
    for (const spell of Object.values(inBodies)) {
      const failed = await resultOf(slug, token, { status: 400, body: `no ${spell(token)} here` });
      assert.match(failed, /no .{0,8}\[redacted\].{0,20} here/);
      assert.ok(!failed.includes(spell(token).slice(4, 16)), failed);
    }
  });

  it('is recognised before a text is cut, decoded or taken apart', async () => {
    const slug = await serve({ response_headers: ['X-Echo'] });
    await fc.assert(
      fc.asyncProperty(credential, fc.nat(110), async (token, before) => {
        const padded = `${'.'.repeat(before)}${token}`;
        const path = `/${padded.replaceAll(/[^\w/.~+-]/g, encodeURIComponent)}`;
        const half = token.length >> 1;
        const apart: (typeof answer)[] = [
          { status: 403, message: padded, headers: { 'retry-after': padded } },
          { status: 204, message: padded, headers: { location: path } },
          { status: 302, headers: { location: `${path.slice(0, before + 5)}\t${path.slice(before + 5)}` } },
          { status: 302, headers: { location: `https://example.com/${'a/'.repeat(85 + (before % 20))}${path}` } },
        ];
        const percent = escapes.percent as Spell;
        const quoted = token.replaceAll(/["\\]/g, '\\$&').replaceAll(/[a-z]/g, '\\$&');
        for (const disposition of [
          `attachment; filename="${quoted}"`,
          `attachment; filename*=UTF-8''${percent(token)}`,
          `attachment; filename*=UTF-8''${percent(token.slice(0, half))}%E2%80%8B${percent(token.slice(half))}`,
          `attachment; filename="${'n'.repeat(70)}${quoted}"`,
        ]) {
          const headers = { 'content-type': 'application/pdf', 'content-disposition': disposition };
          apart.push({ status: 200, headers, body: Buffer.from([0xff, 0xfe]) });
        }
        for (const next of apart) {
          const text = decodeURIComponent(
            shown(await resultOf(slug, token, next)).replaceAll(/%(?![0-9a-f]{2})/gi, '%25'),
          );
          for (const piece of pieces(token)) assert.ok(!text.includes(piece), `${piece} of ${token} in ${text}`);
        }
      }),
      // Segments of dots, which parsing of a URL takes away.
      {
        numRuns: 40,
        examples: [
          ['live-key/of-an-upstream/.', 7],
          ['live-key/./of-an-upstream', 0],
          ['key/x/../of-the-upstream', 3],
        ],
      },
    );
  });

  it('is in no text for which those before it have left too little of the work of one turn', () => {
    const token = 'sk-"live"\\0123456789';
    const said = JSON.stringify({ said: JSON.stringify(`no ${token} here`).repeat(300) });
    for (const unit of ['QUJDabcd', '\\u0041%41', 'xxxxx', 'a%41 ', '\\"b']) {
      let searched = 0;
      let left = 0;
      for (let length = 0; length < 200_000; length += 2000) {
        const one = redactor([token]);
        one.text(unit.repeat(length / unit.length));
        const clean = one.text(said);
        assert.ok(!clean.includes('live'), `${length} characters of ${unit}`);
        if (clean === '[redacted]') left++;
        else searched++;
      }
      assert.ok(searched > 3 && left > 3, `${searched} and ${left} of ${unit}`);
    }
  });

  it('does not become the media type of a result or a message', async () => {
    const token = 'sk-live.0123456789';
    for (const tool of [{}, { response_transform: 'data' }]) {
      const slug = await serve(tool);
      for (const type of [`application/${token}`, `image/${token.toUpperCase()}`, `text/plain; charset=${token}`]) {
        const next = { status: 200, headers: { 'content-type': type }, body: Buffer.from([0xff, 0x00]) };
        assert.doesNotMatch(await resultOf(slug, token, next), /sk-live\.0/i);
      }
    }
  });

  it('leaves headers alone that only objects have', async () => {
    const names = ['constructor', '__proto__', 'toString', 'X-Echo'];
    const slug = await serve({ response_headers: names });
    const result = await resultOf(slug, 'sk-live.0123456789', { status: 200, headers: { 'x-echo': '1' }, body: '{}' });
    assert.deepEqual((JSON.parse(result) as { content: Json[] }).content[0]?.text, 'X-Echo: 1');
  });

  it('stands in captures neither in part nor as a name', async () => {
    const { toolhost } = one;
    const input_schema = { more: { type: 'object', optional: true } };
    const slug = await serve({ method: 'POST', input_schema });
    const key = await toolhost.key();
    await toolhost.rest('POST', `/servers/${slug}/capture`, { key, body: { hours: 1 } });
    const token = 'sk-live.0123456789+abcdefghij';
    for (const before of [990, 1000, 1010, 1020]) {
      const padded = `${'y'.repeat(before)}${token}`;
      answer = { status: 400, headers: { 'x-long': padded, [`x-${token}`]: '1' }, body: 'no' };
      const more = { [token]: { [`a ${token.toUpperCase()}`]: 1 } };
      await toolhost.callTool(slug, token, 'run', { more });
      const { body } = await toolhost.rest('GET', `/calls?slug=${slug}&limit=1`, { key });
      const { text } = await toolhost.rest('GET', `/calls/${(body.calls as Json[])[0]?.id}`, { key });
      assert.match(text, /"capture"/);
      for (const piece of pieces(token)) assert.ok(!text.toLowerCase().includes(piece), `${piece}: ${text}`);
    }
  });
});
