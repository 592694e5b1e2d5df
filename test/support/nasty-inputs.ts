import fc from 'fast-check';

const names = [
  '__proto__',
  'constructor',
  'toString',
  'a',
  'a.b',
  '$ref',
  'type',
  'properties',
  '',
  '\u{1f600}',
  'x-mcp-header',
];
const pieces = [
  'a',
  '\\"',
  '\\\\',
  '\\u0000',
  '\\ud800',
  '\\u00e9',
  'é',
  '😀',
  '\u0301\u0323',
  '\ufdfa',
  '(a+)+$',
  '{{A}}',
  '%25',
  '<!--',
  '1.10,',
  ' ',
];
const numbers = [
  '1',
  '1.10',
  '-0',
  '1e308',
  '1E-400',
  '12345678901234567890.10',
  `0.${'0'.repeat(50)}1`,
  `1e${'0'.repeat(60)}9`,
];

/** Repeats a fragment as often as it fits into this many bytes. */
function filled(piece: string, bytes: number, mostTimes: number): string[] {
  const times = Math.min(mostTimes, Math.floor(bytes / (Buffer.byteLength(piece) + 1)));
  return Array.from({ length: Math.max(1, times) }, () => piece);
}

/** Just below the maximum number of elements and names in a body. */
const most = { elements: 59_000, names: 28_000 };

/** Generates the JSON texts that cost the most work within these limits for bytes, elements, and repeated names. */
export function nastyJson(bytes: number, { elements, names: mostNames } = most): fc.Arbitrary<string> {
  /** Number of repeated fragments: the maximum number of elements in a body, or fewer. */
  const count = fc.constantFrom(30, 1000, 28_000, elements);
  const scalar = fc.oneof(
    fc.constantFrom(...numbers),
    fc.constantFrom(...pieces).map((piece) => `"${piece}"`),
    fc.constantFrom('{}', '[]', 'null', 'true', '[[[[[1]]]]]'),
  );
  const text = fc.constantFrom(...pieces).map((piece) => `"${filled(piece, bytes / 2, bytes).join('')}"`);
  const name = fc.constantFrom(...pieces).map((piece) => `{"x${filled(piece, bytes / 2, bytes).join('')}":{"a":1}}`);
  const list = fc.tuple(scalar, count).map(([item, most]) => `[${filled(item, bytes, most).join(',')}]`);
  const wide = fc.tuple(scalar, count).map(([item, most]) => {
    const members = filled(`"n0000":${item}`, bytes, Math.min(most, 28_000));
    return `{${members.map((_, i) => `"n${i.toString(36)}":${item}`).join(',')}}`;
  });
  const same = fc
    .tuple(fc.constantFrom(...names), scalar, count)
    .map(
      ([name, item, most]) =>
        `{${filled(`${JSON.stringify(name)}:${item}`, bytes, Math.min(most, mostNames)).join(',')}}`,
    );
  const deep = fc.tuple(fc.constantFrom('[', '{"a":'), fc.constantFrom(50, 63, 1000)).map(([open, levels]) => {
    const inner = `[${filled('1.10', bytes - 6 * levels, 50_000).join(',')}]`;
    return open.repeat(levels) + inner + (open === '[' ? ']' : '}').repeat(levels);
  });
  const parts = fc.constantFrom('allOf', 'anyOf', 'prefixItems', 'required', 'enum').chain((keyword) =>
    fc.constantFrom('{"$ref":"#a"}', '{"pattern":"(a+)+$"}', '{"maxLength":3}', '"a"', '[[1]]').map((part) => {
      return `{"type":"object","$anchor":"a","properties":{"a":{"${keyword}":[${filled(part, bytes, 10_000).join(',')}]}}}`;
    }),
  );
  return fc.oneof(text, name, list, wide, same, deep, parts);
}

/** Generates texts of many small fragments, as in forms, queries, and headers. */
export function nastyText(bytes: number): fc.Arbitrary<string> {
  const separators = [
    '&',
    '=',
    ';',
    ',',
    '%',
    '+',
    '/',
    '.',
    ' ',
    '"',
    '\\',
    '--b\r\n',
    'a=b&',
    'a=b; ',
    '%2525',
    '%c0%af',
    'q=0.1,',
    ':a/',
    'é',
    '😀',
    '\u0301\u0323',
    '\ufdfa',
    '가',
    '%EA%B0%80',
    '\n',
  ];
  return fc
    .array(fc.constantFrom(...separators), { minLength: 1, maxLength: 3 })
    .map((some) => some.join(''))
    .map((piece) => piece.repeat(Math.floor(bytes / Buffer.byteLength(piece))));
}
