import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { Redactor } from '@toolhost/credentials/redactor';
import fc from 'fast-check';
import { getRunCount } from '../sets.ts';
import { getResultText, startOneTool } from '../support/one-tool.ts';
import { listCalls } from '../support/server-requests.ts';
import type { Json } from '../support/toolhost/toolhost.ts';
import { useFixture } from '../support/use-fixtures.ts';

type Encode = (text: string) => string;

const toBytes = (text: string) => [...Buffer.from(text)];
const hex = (code: number, length = 2) => code.toString(16).padStart(length, '0');
const encodeBytes =
  (encode: (byte: number) => string): Encode =>
  (text) =>
    toBytes(text).map(encode).join('');
const base64: Encode = (text) => Buffer.from(text).toString('base64');

/** Escape functions, which may be applied repeatedly. */
const escapes: Record<string, Encode> = {
  'as it is': (text) => text,
  percent: encodeBytes((byte) => `%${hex(byte)}`),
  'a part of a URL': encodeURIComponent,
  JSON: (text) => JSON.stringify(text).slice(1, -1),
  'JSON of PHP': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'JSON escapes': encodeBytes((byte) => `\\u${hex(byte, 4)}`),
  'HTML, decimal': encodeBytes((byte) => `&#${byte};`),
  'HTML, hex': encodeBytes((byte) => `&#x${hex(byte).toUpperCase()};`),
  'HTML, by name': (text) =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
};

const encodings: Record<string, Encode> = {
  base64,
  base64url: (text) => Buffer.from(text).toString('base64url'),
  'base64 behind a scheme': (text) => base64(`Bearer ${text}`),
  'base64 of an address': (text) => base64(`https://api.example.com/x?page=2&token=${text}&limit=10`),
  'base64 of JSON': (text) => base64(`{"id":17,"key":"${text}","next":true}`),
  'a token of three parts': (text) =>
    [`{"alg":"none"}`, `{"sub":"${text}"}`, 'signature']
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.'),
  hex: encodeBytes((byte) => hex(byte)),
};

const allEncodings = { ...escapes, ...encodings };
const encodeWith = (text: string, spells: readonly Encode[]) => spells.reduce((inner, spell) => spell(inner), text);

const letters = [...'abcdefghijkmnpqrsABCDEFGHJKLMNPQRS'];
/** Credentials that also contain characters that start escape sequences. */
const oddCredential = fc.string({
  unit: fc.constantFrom(...letters, ...'23456789', ...'/+-_.~=%&<>"\\\'^|'),
  minLength: 20,
  maxLength: 40,
});

/** Returns another credential of the same format, whose bytes have the same number of digits. */
const createOther: Encode = (text) => {
  const [from, to] = [
    'abcdefghijklmnopqrstuvwxyABCDEFGHIJKLMNOPQRSTUVWXY23456789',
    'bcaefghijklmnopqrstuvwxyzBCDEFGHIJKLMNOPQRSTUVWXYZ34567892',
  ];
  return text.replaceAll(/[a-yA-Y2-9]/g, (character) => to[from.indexOf(character)] ?? '');
};

/**
 * Returns the part of an encoded text that depends on the credential: from the first to the last character that differs
 * for another credential. Returns an empty text if another credential shifts the text behind it.
 */
function findDependentPart(token: string, spells: readonly Encode[]): string {
  let [text, changed] = [token, createOther(token)];
  for (const spell of spells) {
    [text, changed] = [spell(text), spell(changed)];
    // A Base64 step afterwards could make the lengths equal again.
    if (text.length !== changed.length) return '';
  }
  const changedIndexes = Array.from(text, (_, at) => at).filter((at) => text[at] !== changed[at]);
  return text.slice(changedIndexes[0], (changedIndexes.at(-1) ?? 0) + 1);
}

/** Asserts that a text contains no ten characters of a token, which no text contains by chance. */
function assertNoPart(text: string, token: string): void {
  for (let at = 0; at + 10 <= token.length; at++)
    assert.ok(!text.includes(token.slice(at, at + 10)), `${token.slice(at, at + 10)} of ${token} in ${text}`);
}

describe('[sec A10] [sec M8] a credential that an upstream echoes', () => {
  let upstreamResponse: { status: number; message?: string; headers?: OutgoingHttpHeaders; body?: string | Buffer };
  const upstream = useFixture(async () => {
    const server = createServer((_, response) => {
      const { status, message = 'Said', headers = {}, body } = upstreamResponse;
      response.writeHead(status, message, headers).end(body);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const close = () => {
      server.close();
      server.closeAllConnections();
    };
    return { port, close };
  });
  const fixture = useFixture(() => startOneTool({ egressPorts: [upstream.port], env: { CALLS_PER_SECOND: '10000' } }));

  const serve = (tool: Json = {}, authentication: Json = { type: 'QueryParam', query_key: 'key' }) =>
    fixture.createToolServer({ url: `http://127.0.0.1:${upstream.port}/x`, ...tool }, { authentication });
  const callForResult = async (slug: string, token: string, next: typeof upstreamResponse) => {
    upstreamResponse = next;
    return JSON.stringify(await fixture.toolhost.callTool(slug, token, 'run'));
  };
  const callForError = async (slug: string, token: string, body: string) => {
    upstreamResponse = { status: 400, headers: { 'content-type': 'text/plain' }, body };
    return getResultText(await fixture.toolhost.callTool(slug, token, 'run'));
  };
  /** Creates a server whose calls are captured, and a function that returns the newest call with its capture. */
  const serveCaptured = async (tool: Json = {}) => {
    const { toolhost } = fixture;
    const slug = await serve(tool);
    const key = await toolhost.createKey();
    await toolhost.rest('POST', `/servers/${slug}/capture`, { key, body: { hours: 1 } });
    const getCapture = async () => {
      const [call] = await listCalls(toolhost, slug, '?limit=1');
      const { text } = await toolhost.rest('GET', `/calls/${call?.id}`, { key });
      assert.match(text, /"capture"/);
      return text;
    };
    return { slug, getCapture };
  };
  /** Returns a result with the escapes of its inner JSON removed. */
  const unescapeResult = (result: string) =>
    JSON.stringify(JSON.parse(result), (_, value) => value).replaceAll('\\\\', '\\');

  const assertRedacted = async (slug: string, token: string, spells: Encode[], wrap: Encode, name: string) => {
    const text = await callForError(slug, token, wrap(encodeWith(token, spells)));
    assert.match(text, /\[redacted\]/, name);
    const dependentPart = findDependentPart(token, spells);
    // Encoded length of eight credential characters, plus an adjacent line break as a named HTML entity.
    const length =
      Math.max(8, Math.ceil((8 * dependentPart.length) / token.length)) + (dependentPart.includes('&') ? 17 : 0);
    for (let at = 0; at + length <= dependentPart.length; at++) {
      const substring = dependentPart.slice(at, at + length);
      assert.ok(!text.includes(substring), `${name}: ${substring} of ${token} in ${text}`);
    }
  };

  it('is redacted in every common encoding', async () => {
    const slug = await serve();
    for (const [name, spell] of Object.entries(allEncodings)) {
      for (const token of [
        'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
        'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc_DEF-ghi123',
      ]) {
        await assertRedacted(slug, token, [spell], (text) => `No such key:\n${text}\nTry again.`, name);
        await assertRedacted(slug, token, [spell], (text) => `{"error":${JSON.stringify(`for "${text}"`)}}`, name);
      }
    }
    const token = 'sk-live/0123456789+abcdefghij';
    const message = await callForError(slug, token.toUpperCase(), `no ${token.toLowerCase()} here`);
    assert.match(message, /no \[redacted\] here/);
  });

  it('is redacted in a body, a header, and the reason phrase of a status (property)', async () => {
    const slug = await serve({ response_headers: ['X-Echo'] });
    const spelling = fc.record({
      outer: fc.constantFrom(...Object.keys(escapes)),
      inner: fc.constantFrom(...Object.keys(escapes), 'base64', 'base64url', 'base64 behind a scheme', 'hex'),
      // The end of a credential may form an escape sequence with the text behind it.
      before: fc.constantFrom('no ', '"', 'id="'),
      behind: fc.constantFrom(' here', '"', '\\', '41', 'lt;', 'n'),
    });
    const plain = { outer: 'as it is', inner: 'as it is', before: '"', behind: '"' };
    await fc.assert(
      fc.asyncProperty(oddCredential, spelling, async (token, { outer, inner, before, behind }) => {
        const text = encodeWith(token, [allEncodings[inner] as Encode, allEncodings[outer] as Encode]);
        const escapedText = JSON.stringify(text).slice(1, -1);
        const surrounded = `${before}${text}${behind}`;
        const body = `{"said":${JSON.stringify(surrounded)}}`;
        const headers = { 'x-echo': `id=${surrounded}`, 'retry-after': text };
        const failed = await callForResult(slug, token, { status: 403, message: `No ${surrounded}`, headers, body });
        // The body contains JSON inside JSON.
        for (const some of [escapedText, JSON.stringify(escapedText).slice(1, -1)])
          assert.ok(!failed.includes(some), `${inner}, ${outer}: ${failed}`);
        assert.match(failed, /redacted.*redacted/);
        const empty = await callForResult(slug, token, { status: 204, message: `No ${surrounded}`, headers });
        assert.ok(!empty.includes(escapedText), `${inner}, ${outer}: ${empty}`);
      }),
      {
        numRuns: getRunCount(150),
        examples: [
          ['aa<aaaaaaaaaaaaaaaa\\', { ...plain, inner: 'HTML, by name' }],
          ['36&cdefghijkmnpqrst%', { ...plain, outer: 'HTML, by name', behind: '41' }],
          ['abcdefghij\\<kmnpqrsABC\\', { ...plain, inner: 'HTML, by name', behind: 'n' }],
          ['abcdefghij\\%6eABCDEFGHJK', plain],
          ['a/aaaaaaaaaaaaaaaaaaa&', { ...plain, inner: 'JSON of PHP', behind: 'lt;' }],
        ],
      },
    );
  });

  it('is redacted with non-ASCII characters and emoji, in any common escape of them (property)', async () => {
    const slug = await serve({}, { type: 'Basic' });
    const encodeUnits: (spell: (unit: number) => string) => Encode = (spell) => (text) =>
      Array.from({ length: text.length }, (_, at) => spell(text.charCodeAt(at))).join('');
    const spells: Record<string, Encode> = {
      JSON: encodeUnits((unit) => `\\u${hex(unit, 4)}`),
      'JSON inside JSON': encodeUnits((unit) => `\\\\u${hex(unit, 4)}`),
      'a part of a URL': encodeURIComponent,
      'HTML by numbers': (text) => Array.from(text, (character) => `&#${character.codePointAt(0)};`).join(''),
    };
    const unit = fc.constantFrom(...'abcXYZ789', 'ü', 'Ж', '漢', '€', '😀', '🔑', '𝒳', '🏁');
    const secrets = fc.string({ unit, minLength: 8, maxLength: 20 });
    const examples = Object.keys(spells).map((name): [string, string] => ['a😀b🔑cdefgh', name]);
    await fc.assert(
      fc.asyncProperty(secrets, fc.constantFrom(...Object.keys(spells)), async (secret, name) => {
        const text = await callForError(slug, base64(`username:${secret}`), `no ${spells[name]?.(secret)} here`);
        assert.match(text, /no \[redacted\] here/, `${name}: ${text}`);
      }),
      { numRuns: getRunCount(150), examples },
    );
  });

  it('is not mistakenly found in words, numbers, dumps, and Base64 of other data', async () => {
    const slug = await serve();
    const words = ['missing\npassword\ntoken', '{\\"password\\":1', 'a=1%26password%3Dabc', '&quot;password&quot;'];
    for (const body of [...words, 'é\npassword\né', 'my\ntest\n12'])
      assert.ok((await callForError(slug, 'MyPassword1', body)).endsWith(body), body);
    const others = [
      'a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d 2026-01-02T03:04:05Z 127.0.0.1:8080',
      '00000000  73 6b 5f 74 65 73 74 5f  61 62 63 64 65 66 67 68  |sk_test_abcdefgh|',
      JSON.stringify(toBytes('sk_test_abcdefghijklmnopqrstuvwx')),
      base64('{"id":17,"key":"sk_test_abcdefghijklmnopqrstuvwx"}'),
      'deadbeef cafebabe 0x12, 0x34 &period; &nosuchname; a=3Db &lt;br&gt; 1=\n2',
    ];
    for (const body of others)
      assert.ok((await callForError(slug, 'sk_live_4eC39HqLyjWDarjtT1zdp7dc', body)).endsWith(body), body);
  });

  it('is redacted before a text is truncated, decoded, or parsed (property)', async () => {
    const slug = await serve({ response_headers: ['X-Echo'] });
    // URL parsing removes dot segments.
    const pathsWithDotSegments: [string, number][] = [
      ['live-key/of-an-upstream/.', 7],
      ['live-key/./of-an-upstream', 0],
      ['key/x/../of-the-upstream', 3],
    ];
    await fc.assert(
      fc.asyncProperty(oddCredential, fc.nat(110), async (token, before) => {
        const padded = `${'.'.repeat(before)}${token}`;
        const path = `/${padded.replaceAll(/[^\w/.~+-]/g, encodeURIComponent)}`;
        const half = token.length >> 1;
        const responses: (typeof upstreamResponse)[] = [
          { status: 403, message: padded, headers: { 'retry-after': padded } },
          { status: 403, headers: { 'content-type': 'text/plain' }, body: `${'x'.repeat(8185)}${token}` },
          { status: 204, message: padded, headers: { location: path } },
          { status: 302, headers: { location: `${path.slice(0, before + 5)}\t${path.slice(before + 5)}` } },
          { status: 302, headers: { location: `https://example.com/${'a/'.repeat(85 + (before % 20))}${path}` } },
        ];
        const percent = escapes.percent as Encode;
        const quoted = token.replaceAll(/["\\]/g, '\\$&').replaceAll(/[a-z]/g, '\\$&');
        for (const disposition of [
          `attachment; filename="${quoted}"`,
          `attachment; filename*=UTF-8''${percent(token)}`,
          `attachment; filename*=UTF-8''${percent(token.slice(0, half))}%E2%80%8B${percent(token.slice(half))}`,
          `attachment; filename="${'n'.repeat(70)}${quoted}"`,
        ]) {
          const headers = { 'content-type': 'application/pdf', 'content-disposition': disposition };
          responses.push({ status: 200, headers, body: Buffer.from([0xff, 0xfe]) });
        }
        for (const next of responses) {
          const text = decodeURIComponent(
            unescapeResult(await callForResult(slug, token, next)).replaceAll(/%(?![0-9a-f]{2})/gi, '%25'),
          );
          assertNoPart(text, token);
        }
      }),
      { numRuns: getRunCount(40), examples: pathsWithDotSegments },
    );
  });

  it('is in no text that the step budget of one event loop turn does not cover', () => {
    const token = 'sk-"live"\\0123456789';
    const quotedTwice = JSON.stringify({ said: JSON.stringify(`no ${token} here`).repeat(300) });
    for (const unit of ['QUJDabcd', '\\u0041%41', 'xxxxx', 'a%41 ', '\\"b']) {
      let searchedCount = 0;
      let skippedCount = 0;
      for (let length = 0; length < 200_000; length += 2000) {
        const redactor = new Redactor([token]);
        redactor.text(unit.repeat(length / unit.length));
        const clean = redactor.text(quotedTwice);
        assert.ok(!clean.includes('live'), `${length} characters of ${unit}`);
        if (clean === '[redacted]') skippedCount++;
        else searchedCount++;
      }
      assert.ok(searchedCount > 3 && skippedCount > 3, `${searchedCount} and ${skippedCount} of ${unit}`);
    }
  });

  it('is redacted in an error and its capture, whatever media type and charset the error declares', async () => {
    const { slug, getCapture } = await serveCaptured();
    const token = 'sk-live.0123456789+abcdefghij';
    const message = `no such key: ${token}`;
    const accented = Buffer.from(`${message} é`, 'utf16le');
    const bodies = {
      utf8: Buffer.from(message),
      utf16le: Buffer.from(message, 'utf16le'),
      utf16be: Buffer.from(message, 'utf16le').swap16(),
      'utf16le with a mark': Buffer.concat([Buffer.from([0xff, 0xfe]), accented]),
      latin1: Buffer.from(`${message} é`, 'latin1'),
    };
    const sets = ['', '; charset=utf-16le', '; charset=utf-16be', '; charset=iso-8859-1', '; charset=utf-8'];
    const types = ['text/plain', 'application/json', 'application/octet-stream', 'image/png', 'application/x-tar'];
    for (const [name, body] of Object.entries(bodies))
      for (const type of ['', ...types.flatMap((type) => sets.map((set) => type + set))]) {
        const headers = type === '' ? {} : { 'content-type': type };
        const result = await callForResult(slug, token, { status: 400, headers, body });
        for (const output of [result, await getCapture()]) assertNoPart(output.replaceAll(/\\u0000|\0/g, ''), token);
        if (name.startsWith('utf16') && !name.includes('mark')) assert.match(result, /no such key: \[redacted\]/, type);
      }
  });

  it('does not become the media type of a result or a message', async () => {
    const token = 'sk-live.0123456789';
    for (const tool of [{}, { response_transform: 'data' }]) {
      const slug = await serve(tool);
      for (const type of [`application/${token}`, `image/${token.toUpperCase()}`, `text/plain; charset=${token}`]) {
        const next = { status: 200, headers: { 'content-type': type }, body: Buffer.from([0xff, 0x00]) };
        assert.doesNotMatch(await callForResult(slug, token, next), /sk-live\.0/i);
      }
    }
  });

  it('is in captures neither in part nor as a key', async () => {
    const input_schema = { more: { type: 'object', optional: true } };
    const { slug, getCapture } = await serveCaptured({ method: 'POST', input_schema });
    const token = 'sk-live.0123456789+abcdefghij';
    for (const before of [990, 1000, 1010, 1020]) {
      const padded = `${'y'.repeat(before)}${token}`;
      upstreamResponse = { status: 400, headers: { 'x-long': padded, [`x-${token}`]: '1' }, body: 'no' };
      const more = { [token]: { [`a ${token.toUpperCase()}`]: 1 } };
      await fixture.toolhost.callTool(slug, token, 'run', { more });
      assertNoPart((await getCapture()).toLowerCase(), token);
    }
  });
});
