import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { assertAlwaysSync } from '../../../test/support/properties.ts';
import { scanJson } from './json-scan.ts';
import { sourceHash } from './json-wasm.ts';

const isJson = (text: string) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
const scan = (text: string, maxDepth = 100_000) => scanJson(Buffer.from(text), maxDepth);

/** Counts from the parsed value, independently of the scan. */
function measureShape(value: unknown): { depth: number; elements: number; names: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, elements: 0, names: 0 };
  const inner = Object.values(value).map(measureShape);
  return {
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    elements: 1 + Math.max(0, inner.length - 1) + inner.reduce((sum, { elements }) => sum + elements, 0),
    names: (Array.isArray(value) ? 0 : inner.length) + inner.reduce((sum, { names }) => sum + names, 0),
  };
}

describe('JSON validation without parsing', () => {
  it('accepts the texts that JSON.parse accepts, and counts the same as a walk over the value', () => {
    assertAlwaysSync(
      1000,
      [fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1, '\t', '\r\n  ')],
      (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        const scanned = scan(text);
        const compact = text === JSON.stringify(value);
        assert.deepEqual(scanned, { ...measureShape(value), isCompact: compact });
      },
    );
  });

  it('rejects the texts that JSON.parse rejects: with a byte changed, omitted, doubled, or inserted', () => {
    const fragments = [...'"\\{}[],:-01.eut \n\u0001é', 'E+', '\\u12', 'null'];
    const inputs = [fc.json({ maxDepth: 3 }), fc.nat(), fc.nat(2), fc.constantFrom(...fragments)] as const;
    assertAlwaysSync(5000, [...inputs], (text, at, removedLength, fragment) => {
      const cut = at % (text.length + 1);
      const changed = text.slice(0, cut) + fragment + text.slice(cut + removedLength);
      assert.equal(scan(changed) !== undefined, isJson(changed), changed);
    });
  });

  it('checks a long text like a short one, at any chunk boundary', () => {
    const chunkBytes = 65_536;
    assertAlwaysSync(1000, [fc.json({ maxDepth: 3 }), fc.nat(), fc.boolean()], (text, backOffset, isBroken) => {
      const tail = isBroken ? text.replace(/[\d"}\]lse]/, '') : text;
      // The end of the first chunk falls somewhere into the tail.
      const filler = 'x'.repeat(chunkBytes - 4 - (backOffset % (tail.length + 1)));
      const longText = `["${filler}",${tail}]`;
      assert.equal(scan(longText) !== undefined, isJson(longText), tail);
    });
  });

  it('escapes compact text like JSON.stringify, at any length', () => {
    const texts = fc.tuple(fc.jsonValue({ maxDepth: 4 }), fc.nat(70_000), fc.string({ unit: 'binary' }));
    assertAlwaysSync(300, [texts], ([value, length, oddText]) => {
      const text = JSON.stringify([value, '"'.repeat(length % 300), 'x'.repeat(length), oddText]);
      const chunks: Buffer[] = [];
      const add = (bytes: Buffer, length: number) => chunks.push(Buffer.from(bytes.subarray(0, length)));
      assert.ok(scanJson(Buffer.from(text), 1000, { add }));
      assert.equal(`"${Buffer.concat(chunks)}"`, JSON.stringify(text));
      assert.equal(chunks.length, Math.ceil(Buffer.byteLength(text) / 65_536));
    });
  });

  it('runs the module that npm run wasm compiled from its source', () => {
    const source = readFileSync(join(import.meta.dirname, '..', '..', '..', 'build', 'wasm', 'json.ts'));
    assert.equal(sourceHash, hash('sha256', source, 'hex'));
  });

  it('rejects texts that are nearly JSON, and accepts unusual but valid JSON', () => {
    const refused = [
      '~ ~{~[~"~"\\~"\\u~"\\u00g0"~"\t"~"\\x"~-~+1~01~-01~1.~.5~1.e1~1e~1e+~0x1~NaN~Infinity~tru~nul~truee~True',
      '[1,]~[,1]~{,}~{"a"}~{"a":}~{"a":1,}~{a:1}~{\'a\':1}~1 2~[1}~{"a":1]~]~}~,~:~[]]~{}{}~\ufeff1~/**/1~\u00a01~\v1',
    ];
    const accepted = '0~-0~-0.0e-0~1E10~1.5~""~"\\u00Ff\\b\\/"~"\u007f\u2028"~true~false~null~ [ ] ~{"":{}}';
    for (const text of refused.join('~').split('~')) assert.equal(scan(text), undefined, JSON.stringify(text));
    for (const text of accepted.split('~')) assert.notEqual(scan(text), undefined, JSON.stringify(text));
  });

  it('stops where nesting exceeds the limit', () => {
    assert.deepEqual(scan('[[[]]]', 3)?.depth, 3);
    assert.deepEqual(scan('[[[[garbage', 3)?.depth, 4);
    assert.deepEqual(scan('['.repeat(10_000_000), 1000)?.depth, 1001);
  });
});
