import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { releaseSlab, takeSlab } from './slabs.ts';

describe('slabs', () => {
  it('[find B2] belong to one owner at a time (property)', () => {
    const lengths = fc.oneof(fc.nat(70_000), fc.constantFrom(0, 4095, 4096, 4097, 65_536, 65_537));
    const steps = fc.array(fc.record({ length: lengths, released: fc.nat(), isTwice: fc.boolean() }), {
      maxLength: 300,
    });
    fc.assert(
      fc.property(steps, (sequence) => {
        const owned: { bytes: Buffer; mark: number }[] = [];
        for (const [index, { length, released, isTwice }] of sequence.entries()) {
          const mark = index % 251;
          owned.push({ bytes: takeSlab(length).fill(mark), mark });
          if (released % 3 > 0) continue;
          const [{ bytes }] = owned.splice(released % owned.length, 1) as unknown as [{ bytes: Buffer }];
          releaseSlab(bytes);
          if (isTwice) releaseSlab(bytes);
        }
        for (const { bytes, mark } of owned) assert.ok(bytes.every((byte) => byte === mark));
        for (const { bytes } of owned) releaseSlab(bytes);
      }),
    );
  });

  it('are used again for any length of their size', () => {
    const first = takeSlab(20_000);
    releaseSlab(first);
    const second = takeSlab(30_000);
    assert.equal(second.length, 30_000);
    assert.equal(second.buffer, first.buffer);
    assert.notEqual(takeSlab(20_000).buffer, second.buffer);
  });

  it('are never memory that was not taken here, is part of a pool, or was transferred', () => {
    const foreign = Buffer.allocUnsafeSlow(32_768);
    releaseSlab(foreign);
    assert.notEqual(takeSlab(32_768).buffer, foreign.buffer);
    const pooled = takeSlab(100);
    releaseSlab(pooled);
    const transferred = takeSlab(16_384);
    structuredClone(transferred.buffer, { transfer: [transferred.buffer as ArrayBuffer] });
    releaseSlab(transferred);
    assert.equal(takeSlab(16_384).length, 16_384);
  });
});
