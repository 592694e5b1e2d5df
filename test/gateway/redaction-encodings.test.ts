import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { type OneTool, startOneTool, textOf } from '../support/one-tool.ts';

type Spell = (text: string) => string;

const bytesOf = (text: string) => [...Buffer.from(text)];
const hexOf = (byte: number, length = 2) => byte.toString(16).padStart(length, '0');
const each =
  (spell: (byte: number) => string, separator = ''): Spell =>
  (text) =>
    bytesOf(text).map(spell).join(separator);
const base64: Spell = (text) => Buffer.from(text).toString('base64');

/** As the table of HTML5 names them, the first name of each. */
const names: Record<string, string> = {
  '\t': 'Tab',
  '\n': 'NewLine',
  '!': 'excl',
  '"': 'quot',
  '#': 'num',
  $: 'dollar',
  '%': 'percnt',
  '&': 'amp',
  "'": 'apos',
  '(': 'lpar',
  ')': 'rpar',
  '*': 'ast',
  '+': 'plus',
  ',': 'comma',
  '.': 'period',
  '/': 'sol',
  ':': 'colon',
  ';': 'semi',
  '<': 'lt',
  '=': 'equals',
  '>': 'gt',
  '?': 'quest',
  '@': 'commat',
  '[': 'lsqb',
  '\\': 'bsol',
  ']': 'rsqb',
  '^': 'Hat',
  _: 'lowbar',
  '`': 'grave',
  '{': 'lcub',
  '|': 'vert',
  '}': 'rcub',
};
/** Other names of the same characters. */
const otherNames: Record<string, string> = {
  '*': 'midast',
  '[': 'lbrack',
  ']': 'rbrack',
  _: 'UnderBar',
  '`': 'DiacriticalGrave',
  '{': 'lbrace',
  '|': 'VerticalLine',
  '}': 'rbrace',
  '<': 'LT',
};
const named =
  (table: Record<string, string>): Spell =>
  (text) =>
    text.replaceAll(/./gs, (character) => (table[character] ? `&${table[character]};` : character));

/** The lines of a hex dump: offset, bytes, and the text beside them. */
const dump =
  (offset: number, groups: RegExp, gutter: (text: string) => string): Spell =>
  (text) =>
    (text.match(/.{1,16}/gs) ?? [])
      .map((line, at) => {
        const bytes = each((byte) => hexOf(byte))(line)
          .replaceAll(groups, '$& ')
          .trim();
        const shown = line.replaceAll(/[^ -~]/g, '.');
        return `${hexOf(16 * at, offset)}${offset === 8 ? ':' : ''}  ${bytes.padEnd(48)}  ${gutter(shown)}`;
      })
      .join('\n');

const quotedPrintable: Spell = (text) =>
  text
    .replaceAll(/[^!-<>-~ ]/g, (character) => each((byte) => `=${hexOf(byte).toUpperCase()}`)(character))
    .replaceAll(/(?:=..|[^=]){30}(?=.)/g, '$&=\r\n');

const encodings: Record<string, Spell> = {
  percent: each((byte) => `%${hexOf(byte)}`),
  'a part of a URL': encodeURIComponent,
  'the script escape': each((byte) => `%u${hexOf(byte, 4)}`),
  JSON: (text) => JSON.stringify(text).slice(1, -1),
  'JSON of PHP': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'JSON escapes': each((byte) => `\\u${hexOf(byte, 4)}`),
  'escapes of Python': each((byte) => `\\U${hexOf(byte, 8)}`),
  'escapes of Ruby': each((byte) => `\\u{${hexOf(byte)}}`),
  'escapes of Perl': each((byte) => `\\x{${hexOf(byte)}}`),
  'HTML by name': named(names),
  'HTML by other names': named({ ...names, ...otherNames }),
  'HTML in hex': each((byte) => `&#x${hexOf(byte)};`),
  base64,
  'base64 of an address': (text) => base64(`https://api.example.com/x?page=2&token=${text}&limit=10`),
  'base64 of JSON': (text) => base64(`{"id":17,"key":"${text}","next":true}`),
  'a token of three parts': (text) =>
    [`{"alg":"none"}`, `{"sub":"${text}"}`, 'signature']
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.'),
  'Base64 in lines': (text) => base64(text).replaceAll(/.{16}(?=.)/g, '$&\r\n'),
  hex: each((byte) => hexOf(byte)),
  'hex with colons': each((byte) => hexOf(byte), ':'),
  'hex with blanks': each((byte) => hexOf(byte).toUpperCase(), ' '),
  'hex with dashes': each((byte) => hexOf(byte), '-'),
  'hex as numbers': each((byte) => `0x${hexOf(byte)}`, ', '),
  'a list of bytes': each(String, ', '),
  'a list of bytes in lines': (text) => JSON.stringify(bytesOf(text), undefined, 2),
  'a hex dump': dump(7, /.{2}/g, (line) => `|${line}|`),
  'a hex dump in groups': dump(8, /.{4}/g, (line) => line),
  'quoted-printable': quotedPrintable,
  'lines that are indented': (text) => text.replaceAll(/.{12}(?=.)/gs, '$&\r\n    '),
  'lines of YAML': (text) => text.replaceAll(/.{12}(?=.)/gs, '$&\\\n    '),
  tabs: (text) => text.replaceAll(/.{9}(?=.)/gs, '$&\t'),
  'places for a line break': (text) => text.replaceAll(/.{9}(?=.)/gs, '$&<wbr>'),
};

const inLines = new Set([
  'Base64 in lines',
  'lines that are indented',
  'lines of YAML',
  'tabs',
  'places for a line break',
  'quoted-printable',
  'a hex dump',
  'a hex dump in groups',
]);

const letters = [...'abcdefghijkmnpqrsABCDEFGHJKLMNPQRS'];
const credential = fc.string({
  unit: fc.constantFrom(...letters, ...letters, ...letters, ...'23456789', ...'/+-_.~=:@!$*^|{}[]`'),
  minLength: 20,
  maxLength: 40,
});

/** Another credential of the same shape, whose bytes have as many digits. */
const other: Spell = (text) => {
  const [from, to] = [
    'abcdefghijklmnopqrstuvwxyABCDEFGHIJKLMNOPQRSTUVWXY23456789',
    'bcaefghijklmnopqrstuvwxyzBCDEFGHIJKLMNOPQRSTUVWXYZ34567892',
  ];
  return text.replaceAll(/[a-yA-Y2-9]/g, (character) => to[from.indexOf(character)] ?? '');
};

/**
 * What of a text is there because of the credential: from the first to the last character that another one changes. Nothing
 * where that moves what is behind it.
 */
function partOf(token: string, spells: readonly Spell[]): string {
  let [text, changed] = [token, other(token)];
  for (const spell of spells) {
    [text, changed] = [spell(text), spell(changed)];
    // Base64 around them may make them as long again.
    if (text.length !== changed.length) return '';
  }
  const places = Array.from(text, (_, at) => at).filter((at) => text[at] !== changed[at]);
  return text.slice(places[0], (places.at(-1) ?? 0) + 1);
}

describe('[sec A10] [sec M8] a credential that an upstream has encoded', () => {
  const status = 400;
  let one: OneTool;
  let slug: string;
  before(async () => {
    one = await startOneTool({ env: { CALLS_PER_SECOND: '10000' } });
    slug = await one.serve({ method: 'GET' }, { authentication: { type: 'Bearer' } });
  });
  after(() => one.stop());

  const said = async (token: string, body: string) => {
    one.upstream.on('*', () => ({ status, headers: { 'content-type': 'text/plain' }, body }));
    return textOf(await one.toolhost.callTool(slug, token, 'run', {}));
  };
  const spelt = (text: string, spells: readonly Spell[]) => spells.reduce((inner, spell) => spell(inner), text);
  const assertNoneLeft = async (token: string, spells: Spell[], around: (text: string) => string, what: string) => {
    const shown = await said(token, around(spelt(token, spells)));
    assert.match(shown, /\[redacted\]/, what);
    const part = partOf(token, spells);
    // Eight characters of a credential, in whatever length they are written, and a line break by its name beside them.
    const length = Math.max(8, Math.ceil((8 * part.length) / token.length)) + (part.includes('&') ? 17 : 0);
    for (let at = 0; at + length <= part.length; at++) {
      const piece = part.slice(at, at + length);
      // What fills the columns of a dump, as an address has it.
      if (/^[ %027C|]+$/.test(piece)) continue;
      assert.ok(!shown.includes(piece), `${what}: ${piece} of ${token} in ${shown}`);
    }
  };

  for (const [name, spell] of Object.entries(encodings)) {
    it(`is found in ${name}`, async () => {
      for (const token of [
        'sk_live_4eC39HqLyjWDarjtT1zdp7dc',
        'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abc_DEF-ghi123',
      ]) {
        await assertNoneLeft(token, [spell], (text) => `No such key:\n${text}\nTry again.`, name);
        await assertNoneLeft(token, [spell], (text) => `{"error":${JSON.stringify(`for "${text}"`)}}`, name);
      }
    });
  }

  it('is found in up to three of them within each other', async () => {
    const some = fc.array(fc.constantFrom(...Object.keys(encodings)), { minLength: 1, maxLength: 3 });
    const places = {
      words: (text: string) => `no ${text} here`,
      element: (text: string) => `<p>${text}</p>`,
      attribute: (text: string) => `id="${text}"`,
      list: (text: string) => `[${text}]\n`,
    };
    const around = fc.constantFrom(...Object.values(places));
    await fc.assert(
      fc.asyncProperty(credential, some, around, async (token, chosen, place) => {
        const spells = chosen.map((name) => encodings[name] as Spell);
        // Nobody cuts the lines of a hex dump, or lines that were cut already.
        fc.pre(chosen.filter((name) => inLines.has(name)).length <= 1);
        // The equals signs of an address are not quoted then, and may be read with what follows.
        fc.pre(!(chosen.includes('quoted-printable') && chosen.includes('base64 of an address')));
        // One that is longer is cut.
        fc.pre(spelt(token, spells).length < 36 * token.length);
        await assertNoneLeft(token, spells, place, chosen.join(', then '));
      }),
      {
        numRuns: 400,
        examples: [
          ['|9F2-irMM-4dPhH6BBqqDHabcdef', ['a hex dump in groups'], places.words],
          ['|9F2-ir^M-4dPhH6B]q!DH', ['a hex dump in groups', 'a part of a URL'], places.words],
          ['eMh5nP}DJ9f$dBGbjSLqP{cr/pDMc_rhbs4', ['a token of three parts', 'a list of bytes', 'base64'], places.list],
        ],
      },
    );
  });

  it('is not seen in numbers, dumps and Base64 of something else', async () => {
    const others = [
      'a1b2c3d4-e5f6-4a7b-8c9d-0e1f2a3b4c5d 2026-01-02T03:04:05Z 127.0.0.1:8080',
      '00000000  73 6b 5f 74 65 73 74 5f  61 62 63 64 65 66 67 68  |sk_test_abcdefgh|',
      JSON.stringify(bytesOf('sk_test_abcdefghijklmnopqrstuvwx')),
      base64('{"id":17,"key":"sk_test_abcdefghijklmnopqrstuvwx"}'),
      'deadbeef cafebabe 0x12, 0x34 &period; &nosuchname; a=3Db &lt;br&gt; 1=\n2',
      `sum=${'0123456789abcdef'.repeat(4)}`,
    ];
    for (const body of others) {
      const shown = await said('sk_live_4eC39HqLyjWDarjtT1zdp7dc', body);
      assert.ok(shown.endsWith(body), shown);
    }
    const texts = fc.string({ unit: fc.constantFrom(...'0123456789abcdef :,-=&%;x\n'), minLength: 1, maxLength: 3000 });
    await fc.assert(
      fc.asyncProperty(texts, async (body) => {
        assert.ok((await said('sk_live_4eC39HqLyjWDarjtT1zdp7dc', body)).endsWith(body));
      }),
      { numRuns: 50 },
    );
  });

  it('is found with letters that are not ASCII, by their names', async () => {
    const token = base64('somebody:Schlüssel:Ärger');
    const basic = await one.serve({ method: 'GET' }, { authentication: { type: 'Basic' } });
    for (const spelt of ['Schl&uuml;ssel&colon;&Auml;rger', 'schlüssel:Ärger', 'Schl%C3%BCssel&#58;&#196;rger']) {
      one.upstream.on('*', () => ({ status, headers: { 'content-type': 'text/plain' }, body: `no ${spelt} here` }));
      assert.match(textOf(await one.toolhost.callTool(basic, token, 'run', {})), /no \[redacted\] here/);
    }
  });

  it('is found with characters of any language and pictures, in any usual escape of them', async () => {
    const basic = await one.serve({ method: 'GET' }, { authentication: { type: 'Basic' } });
    const units: (spell: (unit: number) => string) => Spell = (spell) => (text) =>
      Array.from({ length: text.length }, (_, at) => spell(text.charCodeAt(at))).join('');
    const points: (spell: (point: number) => string) => Spell = (spell) => (text) =>
      Array.from(text, (character) => spell(character.codePointAt(0) ?? 0)).join('');
    const spells: Record<string, Spell> = {
      JSON: units((unit) => `\\u${hexOf(unit, 4)}`),
      'JSON, all but ASCII': units((unit) => (unit < 0x80 ? String.fromCharCode(unit) : `\\u${hexOf(unit, 4)}`)),
      'JSON inside JSON': units((unit) => `\\\\u${hexOf(unit, 4)}`),
      'the script escape': units((unit) => `%u${hexOf(unit, 4)}`),
      'a part of a URL': encodeURIComponent,
      'escapes of Ruby': points((point) => `\\u{${hexOf(point)}}`),
      'escapes of Python': points((point) => `\\U${hexOf(point, 8)}`),
      'HTML by numbers': points((point) => `&#${point};`),
      'HTML by halves': units((unit) => `&#x${hexOf(unit)};`),
    };
    const unit = fc.constantFrom(...'abcXYZ789', 'ü', 'Ж', '漢', '€', '😀', '🔑', '𝒳', '🏁');
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit, minLength: 8, maxLength: 20 }),
        fc.constantFrom(...Object.keys(spells)),
        async (secret, name) => {
          const spelt = spells[name]?.(secret) ?? '';
          one.upstream.on('*', () => ({ status, headers: { 'content-type': 'text/plain' }, body: `no ${spelt} here` }));
          const shown = textOf(await one.toolhost.callTool(basic, base64(`somebody:${secret}`), 'run', {}));
          assert.match(shown, /no \[redacted\] here/, `${name}: ${shown}`);
        },
      ),
      { numRuns: 150, examples: Object.keys(spells).map((name): [string, string] => ['a😀b🔑cdefgh', name]) },
    );
  });
});
