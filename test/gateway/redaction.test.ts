import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type OutgoingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { Redactor } from '../../src/domain/credentials/redactor.ts';
import { tries } from '../sets.ts';
import { type OneTool, startOneTool, textOf } from '../support/one-tool.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

type Spell = (text: string) => string;

const bytesOf = (text: string) => [...Buffer.from(text)];
const hex = (code: number, length = 2) => code.toString(16).padStart(length, '0');
const each =
  (spell: (byte: number) => string): Spell =>
  (text) =>
    bytesOf(text).map(spell).join('');
const base64: Spell = (text) => Buffer.from(text).toString('base64');

/** Escape functions, which may be applied repeatedly. */
const escapes: Record<string, Spell> = {
  'as it is': (text) => text,
  percent: each((byte) => `%${hex(byte)}`),
  'a part of a URL': encodeURIComponent,
  JSON: (text) => JSON.stringify(text).slice(1, -1),
  'JSON of PHP': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'JSON escapes': each((byte) => `\\u${hex(byte, 4)}`),
  'HTML, decimal': each((byte) => `&#${byte};`),
  'HTML, hex': each((byte) => `&#x${hex(byte).toUpperCase()};`),
  'HTML, by name': (text) =>
    text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
};

const encodings: Record<string, Spell> = {
  base64,
  base64url: (text) => Buffer.from(text).toString('base64url'),
  'base64 behind a scheme': (text) => base64(`Bearer ${text}`),
  'base64 of an address': (text) => base64(`https://api.example.com/x?page=2&token=${text}&limit=10`),
  'base64 of JSON': (text) => base64(`{"id":17,"key":"${text}","next":true}`),
  'a token of three parts': (text) =>
    [`{"alg":"none"}`, `{"sub":"${text}"}`, 'signature']
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.'),
  hex: each((byte) => hex(byte)),
};

const all = { ...escapes, ...encodings };
const spelt = (text: string, spells: readonly Spell[]) => spells.reduce((inner, spell) => spell(inner), text);

const letters = [...'abcdefghijkmnpqrsABCDEFGHJKLMNPQRS'];
const credential = fc.string({
  unit: fc.constantFrom(...letters, ...letters, ...'23456789', ...'/+-_.~=:@!$*^|{}[]`'),
  minLength: 20,
  maxLength: 40,
});
/** Credentials that also contain characters that start escape sequences. */
const oddCredential = fc.string({
  unit: fc.constantFrom(...letters, ...'23456789', ...'/+-_.~=%&<>"\\\'^|'),
  minLength: 20,
  maxLength: 40,
});

/** Returns another credential of the same format, whose bytes have the same number of digits. */
const other: Spell = (text) => {
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
function partOf(token: string, spells: readonly Spell[]): string {
  let [text, changed] = [token, other(token)];
  for (const spell of spells) {
    [text, changed] = [spell(text), spell(changed)];
    // A Base64 step afterwards could make the lengths equal again.
    if (text.length !== changed.length) return '';
  }
  const places = Array.from(text, (_, at) => at).filter((at) => text[at] !== changed[at]);
  return text.slice(places[0], (places.at(-1) ?? 0) + 1);
}

/** Returns all substrings of ten characters, which no text contains by chance. */
function pieces(text: string): string[] {
  return Array.from({ length: text.length - 9 }, (_, at) => text.slice(at, at + 10));
}

describe('[sec A10] [sec M8] a credential that an upstream echoes', () => {
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

  const serve = (tool: Json = {}, authentication: Json = { type: 'QueryParam', query_key: 'key' }) =>
    one.serve({ url: `${url}/x`, ...tool }, { authentication });
  const resultOf = async (slug: string, token: string, next: typeof answer) => {
    answer = next;
    return JSON.stringify(await one.toolhost.callTool(slug, token, 'run'));
  };
  const said = async (slug: string, token: string, body: string) => {
    answer = { status: 400, headers: { 'content-type': 'text/plain' }, body };
    return textOf(await one.toolhost.callTool(slug, token, 'run'));
  };
  /** Returns a result with the escapes of its inner JSON removed. */
  const shown = (result: string) => JSON.stringify(JSON.parse(result), (_, value) => value).replaceAll('\\\\', '\\');

  const assertNoneLeft = async (slug: string, token: string, spells: Spell[], around: Spell, what: string) => {
    const text = await said(slug, token, around(spelt(token, spells)));
    assert.match(text, /\[redacted\]/, what);
    const part = partOf(token, spells);
    // Encoded length of eight credential characters, plus an adjacent line break as a named HTML entity.
    const length = Math.max(8, Math.ceil((8 * part.length) / token.length)) + (part.includes('&') ? 17 : 0);
    for (let at = 0; at + length <= part.length; at++) {
      const piece = part.slice(at, at + length);
      assert.ok(!text.includes(piece), `${what}: ${piece} of ${token} in ${text}`);
    }
  };

  it('is redacted in every common encoding', async () => {
    const slug = await serve();
    for (const [name, spell] of Object.entries(all)) {
      for (const token of [
        'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
        'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc_DEF-ghi123',
      ]) {
        await assertNoneLeft(slug, token, [spell], (text) => `No such key:\n${text}\nTry again.`, name);
        await assertNoneLeft(slug, token, [spell], (text) => `{"error":${JSON.stringify(`for "${text}"`)}}`, name);
      }
    }
    const token = 'sk-live/0123456789+abcdefghij';
    assert.match(await said(slug, token.toUpperCase(), `no ${token.toLowerCase()} here`), /no \[redacted\] here/);
  });

  it('is redacted in an encoding that is escaped twice (property)', async () => {
    const slug = await serve();
    const escaped = fc.array(fc.constantFrom(...Object.keys(escapes)), { minLength: 1, maxLength: 2 });
    const some = fc.tuple(fc.constantFrom(...Object.keys(all)), escaped).map(([inner, outer]) => [inner, ...outer]);
    const places = {
      words: (text: string) => `no ${text} here`,
      element: (text: string) => `<p>${text}</p>`,
      attribute: (text: string) => `id="${text}"`,
      list: (text: string) => `[${text}]\n`,
    };
    const around = fc.constantFrom(...Object.values(places));
    await fc.assert(
      fc.asyncProperty(credential, some, around, async (token, chosen, place) => {
        const spells = chosen.map((name) => all[name] as Spell);
        // A longer text is truncated.
        fc.pre(spelt(token, spells).length < 36 * token.length);
        await assertNoneLeft(slug, token, spells, place, chosen.join(', then '));
      }),
      { numRuns: tries(400) },
    );
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
        const text = spelt(token, [all[inner] as Spell, all[outer] as Spell]);
        const held = JSON.stringify(text).slice(1, -1);
        const around = `${before}${text}${behind}`;
        const body = `{"said":${JSON.stringify(around)}}`;
        const headers = { 'x-echo': `id=${around}`, 'retry-after': text };
        const failed = await resultOf(slug, token, { status: 403, message: `No ${around}`, headers, body });
        // The body contains JSON inside JSON.
        for (const some of [held, JSON.stringify(held).slice(1, -1)])
          assert.ok(!failed.includes(some), `${inner}, ${outer}: ${failed}`);
        assert.match(failed, /redacted.*redacted/);
        const empty = await resultOf(slug, token, { status: 204, message: `No ${around}`, headers });
        assert.ok(!empty.includes(held), `${inner}, ${outer}: ${empty}`);
      }),
      {
        numRuns: tries(150),
        examples: [
          ['aa<aaaaaaaaaaaaaaaa\\', { ...plain, inner: 'HTML, by name' }],
          ['36&cdefghijkmnpqrst%', { ...plain, outer: 'HTML, by name', behind: '41' }],
          ['abcdefghij\\<kmnpqrsABC\\', { ...plain, inner: 'HTML, by name', behind: 'n' }],
          ['abcdefghij\\%6eABCDEFGHJK', plain],
        ],
      },
    );
  });

  it('is redacted with non-ASCII characters and emoji, in any common escape of them (property)', async () => {
    const slug = await serve({}, { type: 'Basic' });
    const units: (spell: (unit: number) => string) => Spell = (spell) => (text) =>
      Array.from({ length: text.length }, (_, at) => spell(text.charCodeAt(at))).join('');
    const spells: Record<string, Spell> = {
      JSON: units((unit) => `\\u${hex(unit, 4)}`),
      'JSON inside JSON': units((unit) => `\\\\u${hex(unit, 4)}`),
      'a part of a URL': encodeURIComponent,
      'HTML by numbers': (text) => Array.from(text, (character) => `&#${character.codePointAt(0)};`).join(''),
    };
    const unit = fc.constantFrom(...'abcXYZ789', 'ü', 'Ж', '漢', '€', '😀', '🔑', '𝒳', '🏁');
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit, minLength: 8, maxLength: 20 }),
        fc.constantFrom(...Object.keys(spells)),
        async (secret, name) => {
          const text = await said(slug, base64(`somebody:${secret}`), `no ${spells[name]?.(secret)} here`);
          assert.match(text, /no \[redacted\] here/, `${name}: ${text}`);
        },
      ),
      { numRuns: tries(150), examples: Object.keys(spells).map((name): [string, string] => ['a😀b🔑cdefgh', name]) },
    );
  });

  it('is not mistakenly found in words, numbers, dumps, and Base64 of other data', async () => {
    const slug = await serve();
    const words = ['missing\npassword\ntoken', '{\\"password\\":1', 'a=1%26password%3Dabc', '&quot;password&quot;'];
    for (const body of [...words, 'é\npassword\né', 'my\ntest\n12'])
      assert.ok((await said(slug, 'MyPassword1', body)).endsWith(body), body);
    const others = [
      'a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d 2026-01-02T03:04:05Z 127.0.0.1:8080',
      '00000000  73 6b 5f 74 65 73 74 5f  61 62 63 64 65 66 67 68  |sk_test_abcdefgh|',
      JSON.stringify(bytesOf('sk_test_abcdefghijklmnopqrstuvwx')),
      base64('{"id":17,"key":"sk_test_abcdefghijklmnopqrstuvwx"}'),
      'deadbeef cafebabe 0x12, 0x34 &period; &nosuchname; a=3Db &lt;br&gt; 1=\n2',
    ];
    for (const body of others)
      assert.ok((await said(slug, 'sk_live_4eC39HqLyjWDarjtT1zdp7dc', body)).endsWith(body), body);
  });

  it('is redacted before a text is truncated, decoded, or parsed (property)', async () => {
    const slug = await serve({ response_headers: ['X-Echo'] });
    await fc.assert(
      fc.asyncProperty(oddCredential, fc.nat(110), async (token, before) => {
        const padded = `${'.'.repeat(before)}${token}`;
        const path = `/${padded.replaceAll(/[^\w/.~+-]/g, encodeURIComponent)}`;
        const half = token.length >> 1;
        const apart: (typeof answer)[] = [
          { status: 403, message: padded, headers: { 'retry-after': padded } },
          { status: 403, headers: { 'content-type': 'text/plain' }, body: `${'x'.repeat(8185)}${token}` },
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
      // Dot segments, which URL parsing removes.
      {
        numRuns: tries(40),
        examples: [
          ['live-key/of-an-upstream/.', 7],
          ['live-key/./of-an-upstream', 0],
          ['key/x/../of-the-upstream', 3],
        ],
      },
    );
  });

  it('is in no text that the step budget of one event loop turn does not cover', () => {
    const token = 'sk-"live"\\0123456789';
    const said = JSON.stringify({ said: JSON.stringify(`no ${token} here`).repeat(300) });
    for (const unit of ['QUJDabcd', '\\u0041%41', 'xxxxx', 'a%41 ', '\\"b']) {
      let searched = 0;
      let left = 0;
      for (let length = 0; length < 200_000; length += 2000) {
        const one = new Redactor([token]);
        one.text(unit.repeat(length / unit.length));
        const clean = one.text(said);
        assert.ok(!clean.includes('live'), `${length} characters of ${unit}`);
        if (clean === '[redacted]') left++;
        else searched++;
      }
      assert.ok(searched > 3 && left > 3, `${searched} and ${left} of ${unit}`);
    }
  });

  it('is redacted in an error and its capture, whatever media type and charset the error declares', async () => {
    const { toolhost } = one;
    const slug = await serve();
    const key = await toolhost.key();
    await toolhost.rest('POST', `/servers/${slug}/capture`, { key, body: { hours: 1 } });
    const token = 'sk-live.0123456789+abcdefghij';
    const said = `no such key: ${token}`;
    const accented = Buffer.from(`${said} é`, 'utf16le');
    const bodies = {
      utf8: Buffer.from(said),
      utf16le: Buffer.from(said, 'utf16le'),
      utf16be: Buffer.from(said, 'utf16le').swap16(),
      'utf16le with a mark': Buffer.concat([Buffer.from([0xff, 0xfe]), accented]),
      latin1: Buffer.from(`${said} é`, 'latin1'),
    };
    const sets = ['', '; charset=utf-16le', '; charset=utf-16be', '; charset=iso-8859-1', '; charset=utf-8'];
    const types = ['text/plain', 'application/json', 'application/octet-stream', 'image/png', 'application/x-tar'];
    for (const [name, body] of Object.entries(bodies))
      for (const type of ['', ...types.flatMap((one) => sets.map((set) => one + set))]) {
        const headers = type === '' ? {} : { 'content-type': type };
        const result = await resultOf(slug, token, { status: 400, headers, body });
        const { body: listed } = await toolhost.rest('GET', `/calls?slug=${slug}&limit=1`, { key });
        const { text } = await toolhost.rest('GET', `/calls/${(listed.calls as Json[])[0]?.id}`, { key });
        assert.match(text, /"capture"/);
        for (const shown of [result, text]) {
          const visible = shown.replaceAll(/\\u0000|\0/g, '');
          for (const piece of pieces(token)) assert.ok(!visible.includes(piece), `${name} as ${type}: ${shown}`);
        }
        if (name.startsWith('utf16') && !name.includes('mark')) assert.match(result, /no such key: \[redacted\]/, type);
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

  it('is in captures neither in part nor as a key', async () => {
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
