import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { compactJson } from '../../src/domain/json/json-cursor.ts';
import { fieldTree, keepFields } from '../../src/domain/json/response-fields.ts';
import { type DotPath, findPart } from '../../src/domain/json/response-transform.ts';

type Value = null | number | string | boolean | Value[] | { [name: string]: Value };

const names = ['a', 'b', 'é', '', 'q"', '0', '1', '__proto__'];
const name = fc.constantFrom(...names);
const { value } = fc.letrec<{ value: Value }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', maxDepth: 5 },
    fc.constantFrom<Value>(null, true, 1, 'x', '', '{"a":[1]}', 'é\\"', '\n'),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 5 }).map(Object.fromEntries),
  ),
}));
const path = fc.array(name, { minLength: 1, maxLength: 4 });

/** Gives a number from 0 to `to`. */
type Noise = (to: number) => number;

/** JSON text with white space, escapes and repeated names, none of which changes its value. */
function written(value: Value, noise: Noise): string {
  const space = () => ['', ' ', '\n\t', ''][noise(3)] as string;
  const text = (string: string) =>
    noise(3) === 0 && string !== ''
      ? `"${[...string].map((c) => (c.length === 1 ? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}` : c)).join('')}"`
      : JSON.stringify(string);
  const all = (open: string, items: string[], close: string) =>
    open + space() + items.map((item) => item + space()).join(`,${space()}`) + close;
  if (Array.isArray(value))
    return all(
      '[',
      value.map((item) => written(item, noise)),
      ']',
    );
  if (typeof value === 'string') return text(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).flatMap(([key, inner]) => {
    const pair = (of: Value) => `${text(key)}${space()}:${space()}${written(of, noise)}`;
    return noise(4) === 0 ? [pair([1, { a: 2 }]), pair(inner)] : [pair(inner)];
  });
  return all('{', pairs, '}');
}

const document = fc.tuple(value, fc.noShrink(fc.infiniteStream(fc.nat()))).map(([given, stream]) => {
  const noise: Noise = (to) => (stream.next().value as number) % (to + 1);
  return { value: given, text: written(given, noise) };
});

/** The same as `findPart`, on values. */
function partOf(given: Value, [key, ...rest]: DotPath): Value | undefined {
  if (key === undefined) return given;
  if (typeof given !== 'object' || given === null) return undefined;
  if (Array.isArray(given))
    return /^(0|[1-9]\d*)$/.test(key) && given.length > Number(key)
      ? partOf(given[Number(key)] as Value, rest)
      : undefined;
  return Object.hasOwn(given, key) ? partOf(given[key] as Value, rest) : undefined;
}

/** The same as `keepFields`, on values. */
function keptOf(given: Value, paths: readonly DotPath[]): Value {
  if (Array.isArray(given)) return given.map((item) => keptOf(item, paths));
  if (typeof given !== 'object' || given === null) return given;
  const whole = paths.filter(
    (wanted) => !paths.some((other) => other.length < wanted.length && other.every((key, i) => key === wanted[i])),
  );
  const kept = [...new Set(whole.map(([key]) => key as string))]
    .filter((key) => Object.hasOwn(given, key))
    .map((key): [string, Value] => {
      const inner = given[key] as Value;
      const rest = whole.filter(([first]) => first === key).map((wanted) => wanted.slice(1));
      if (rest.some((wanted) => wanted.length === 0)) return [key, inner];
      return [key, typeof inner === 'object' && inner !== null ? keptOf(inner, rest) : {}];
    });
  return Object.fromEntries(kept);
}

describe('parts of JSON text', () => {
  it('equal those found by parsing: response_transform', () => {
    let found = 0;
    fc.assert(
      fc.property(document, path, ({ value: given, text }, wanted) => {
        const expected = partOf(given, wanted);
        if (expected === undefined) {
          assert.throws(() => findPart(Buffer.from(text), wanted), /does not exist in the answer/, text);
          return;
        }
        found++;
        const { from, end } = findPart(Buffer.from(text), wanted);
        assert.deepEqual(JSON.parse(Buffer.from(text).toString('utf8', from, end)), expected, text);
      }),
      { numRuns: 4000 },
    );
    assert.ok(found > 100, String(found));
  });

  it('equal those found by parsing, in the order of their paths: response_fields', () => {
    fc.assert(
      fc.property(document, fc.array(path, { minLength: 1, maxLength: 5 }), ({ value: given, text }, paths) => {
        const kept = keepFields(Buffer.from(text), fieldTree(paths)).toString();
        const expected = JSON.stringify(keptOf(given, paths));
        assert.equal(JSON.stringify(JSON.parse(kept)), expected, text);
        assert.equal(compactJson(Buffer.from(kept)).toString(), kept, 'is compact');
      }),
      { numRuns: 4000 },
    );
  });

  it('keep everything but the white space between tokens', () => {
    fc.assert(
      fc.property(document, ({ value: given, text }) => {
        const compact = compactJson(Buffer.from(text)).toString();
        assert.deepEqual(JSON.parse(compact), given);
        assert.equal(compact.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').match(/\s/), null);
      }),
      { numRuns: 1000 },
    );
  });
});
