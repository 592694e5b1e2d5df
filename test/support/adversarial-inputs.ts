import fc from 'fast-check';

/** Number of inputs per endpoint. The seed is fixed to reproduce failures. `PRICE_RUNS` and `PRICE_SEED` change both. */
export const runs = Number(process.env.PRICE_RUNS ?? 3);
export const seed = Number(process.env.PRICE_SEED ?? 7);

const prototypeNames = ['__proto__', 'constructor', 'toString'];
const objectNames = [...prototypeNames, 'a', 'a.b', '$ref', 'type', 'properties', '', '\u{1f600}', 'x-mcp-header'];
const escapes = ['\\"', '\\\\', '\\u0000', '\\ud800', '\\u00e9'];
const plainTexts = ['(a+)+$', '{{A}}', '%25', '<!--', '1.10,', ' '];
const fragments = ['a', ...escapes, 'é', '😀', '\u0301\u0323', '\ufdfa', ...plainTexts];
const longNumbers = ['12345678901234567890.10', `0.${'0'.repeat(50)}1`, `1e${'0'.repeat(60)}9`];
const numbers = ['1', '1.10', '-0', '1e308', '1E-400', ...longNumbers];

/** Repeats a fragment as often as it fits into this many bytes. */
function repeatToFit(fragment: string, bytes: number, maxRepeats: number): string[] {
  const times = Math.min(maxRepeats, Math.floor(bytes / (Buffer.byteLength(fragment) + 1)));
  return Array(Math.max(1, times)).fill(fragment);
}

/** Just below the maximum number of elements and names in a body. */
const defaultMaxima = { elements: 59_000, names: 28_000 };

/** Generates the JSON texts that cost the most work within these limits for bytes, elements, and repeated names. */
export function adversarialJson(bytes: number, { elements, names: maxNames } = defaultMaxima): fc.Arbitrary<string> {
  /** Number of repeated fragments: the maximum number of elements in a body, or fewer. */
  const count = fc.constantFrom(30, 1000, 28_000, elements);
  const scalar = fc.oneof(
    fc.constantFrom(...numbers),
    fc.constantFrom(...fragments).map((fragment) => `"${fragment}"`),
    fc.constantFrom('{}', '[]', 'null', 'true', '[[[[[1]]]]]'),
  );
  const text = fc.constantFrom(...fragments).map((fragment) => `"${repeatToFit(fragment, bytes / 2, bytes).join('')}"`);
  const name = fc
    .constantFrom(...fragments)
    .map((fragment) => `{"x${repeatToFit(fragment, bytes / 2, bytes).join('')}":{"a":1}}`);
  const list = fc
    .tuple(scalar, count)
    .map(([item, maxRepeats]) => `[${repeatToFit(item, bytes, maxRepeats).join(',')}]`);
  const wide = fc.tuple(scalar, count).map(([item, maxRepeats]) => {
    const members = repeatToFit(`"n0000":${item}`, bytes, Math.min(maxRepeats, 28_000));
    return `{${members.map((_, i) => `"n${i.toString(36)}":${item}`).join(',')}}`;
  });
  const repeatedNames = fc
    .tuple(fc.constantFrom(...objectNames), scalar, count)
    .map(
      ([name, item, maxRepeats]) =>
        `{${repeatToFit(`${JSON.stringify(name)}:${item}`, bytes, Math.min(maxRepeats, maxNames)).join(',')}}`,
    );
  const deep = fc.tuple(fc.constantFrom('[', '{"a":'), fc.constantFrom(50, 63, 1000)).map(([open, levels]) => {
    const inner = `[${repeatToFit('1.10', bytes - 6 * levels, 50_000).join(',')}]`;
    return open.repeat(levels) + inner + (open === '[' ? ']' : '}').repeat(levels);
  });
  const keywordLists = fc.constantFrom('allOf', 'anyOf', 'prefixItems', 'required', 'enum').chain((keyword) =>
    fc.constantFrom('{"$ref":"#a"}', '{"pattern":"(a+)+$"}', '{"maxLength":3}', '"a"', '[[1]]').map((element) => {
      return `{"type":"object","$anchor":"a","properties":{"a":{"${keyword}":[${repeatToFit(element, bytes, 10_000).join(',')}]}}}`;
    }),
  );
  return fc.oneof(text, name, list, wide, repeatedNames, deep, keywordLists);
}

/** Generates texts of many small fragments, as in forms, queries, and headers. */
export function adversarialText(bytes: number): fc.Arbitrary<string> {
  const signs = [...'&=;,%+/. "\\', '--b\r\n', 'a=b&', 'a=b; ', '%2525', '%c0%af', 'q=0.1,', ':a/'];
  const separators = [...signs, 'é', '😀', '\u0301\u0323', '\ufdfa', '가', '%EA%B0%80', '\n'];
  return fc
    .array(fc.constantFrom(...separators), { minLength: 1, maxLength: 3 })
    .map((chosen) => chosen.join(''))
    .map((fragment) => fragment.repeat(Math.floor(bytes / Buffer.byteLength(fragment))));
}
