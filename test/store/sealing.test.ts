import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { AppError } from '../../src/errors.ts';
import { createKeyring, type Keyring } from '../../src/store/sealing/sealing.ts';

const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const ring = createKeyring([first]);
const text = fc.string({ unit: 'binary', maxLength: 300 }).map((value) => value.toWellFormed());

const refuses = (keyring: Keyring, sealed: string, context: string, why = /stored secret/) =>
  assert.throws(
    () => keyring.open(sealed, context),
    (error) => error instanceof AppError && error.kind === 'internal' && why.test(error.message),
  );

describe('the keyring', () => {
  it('opens a sealed value to the original text, and seals it differently each time', () => {
    fc.assert(
      fc.property(text, text, (value, context) => {
        const sealed = ring.seal(value, context);
        assert.equal(ring.open(sealed, context), value);
        assert.notEqual(ring.seal(value, context), sealed);
      }),
    );
  });

  it('rejects a sealed value with a different context', () => {
    fc.assert(
      fc.property(text, text, text, (value, context, other) => {
        fc.pre(context !== other);
        refuses(ring, ring.seal(value, context), other, /cannot be opened/);
      }),
    );
  });

  it('rejects a sealed value if any character was changed or removed', () => {
    const sealed = ring.seal('a value of some length', 'context');
    for (let at = 0; at < sealed.length; at += 1) {
      refuses(ring, sealed.slice(0, at), 'context');
      const other = sealed[at] === 'A' ? 'B' : 'A';
      // The last base64 character contains unused bits.
      if (at < sealed.length - 1) refuses(ring, sealed.slice(0, at) + other + sealed.slice(at + 1), 'context');
    }
  });

  it('rejects made-up sealed values', () => {
    const id = ring.seal('x', 'context').split('.')[1];
    const letters = fc.string({ unit: fc.constantFrom(...'AZaz09-_'), maxLength: 40 });
    fc.assert(
      fc.property(letters, letters, (iv, data) =>
        refuses(ring, `v1.${id}.${iv}.${data}`, 'context', /cannot be opened/),
      ),
    );
    for (const junk of ['', '.', '...', 'v1', `v2.${id}.AAAA.AAAA`, 'v1.0000000.AAAA.AAAA', 'v1.KEY IDS!.AAAA.AAAA'])
      refuses(ring, junk, 'context', /cannot be opened/);
    refuses(ring, 'v1.00000000.AAAA.AAAA', 'context', /not in MASTER_KEY/);
  });

  it('[find C2] reports a missing key, except for values that come from a client', () => {
    const missing: string[] = [];
    const told = createKeyring([first], { onMissingKey: (id) => missing.push(id) });
    const foreign = createKeyring([second]).seal('x', 'context');
    const own = told.seal('x', 'context');
    assert.equal(told.openFromClient(own, 'context'), 'x');
    for (const made of [foreign, 'v1.00000000.AAAA.AAAA', own.slice(0, -2), own.replace('v1', 'v2'), 'v1', ''])
      assert.equal(told.openFromClient(made, 'context'), undefined);
    assert.equal(told.openFromClient(own, 'other'), undefined);
    for (const junk of ['', 'v1..AAAA', `v1.${'x'.repeat(100)}.AAAA.AAAA`, 'v2.00000000.AAAA.AAAA'])
      refuses(told, junk, 'context', /cannot be opened/);
    assert.deepEqual(missing, []);
    refuses(told, foreign, 'context', /not in MASTER_KEY/);
    assert.deepEqual(missing, [foreign.split('.')[1]]);
  });

  it('opens values with any of its keys, and seals with its first key', () => {
    const before = ring.seal('old', 'context');
    const rotated = createKeyring([second, first]);
    assert.equal(rotated.open(before, 'context'), 'old');
    const afterwards = rotated.seal('new', 'context');
    assert.equal(createKeyring([second]).open(afterwards, 'context'), 'new');
    refuses(ring, afterwards, 'context', /not in MASTER_KEY/);
    refuses(createKeyring([second]), before, 'context', /not in MASTER_KEY/);
    assert.throws(() => createKeyring([]), /needs a key/);
  });

  it('rejects authentication codes that do not match the text, purpose, and key', () => {
    const mac = ring.mac('text', 'purpose');
    assert.equal(ring.verifyMac(mac, 'text', 'purpose'), true);
    assert.equal(createKeyring([second, first]).verifyMac(mac, 'text', 'purpose'), true);
    for (const [given, of, purpose] of [
      [mac, 'text', 'other'],
      [mac, 'other', 'purpose'],
      [mac.slice(1), 'text', 'purpose'],
      ['', 'text', 'purpose'],
      [mac, 'xt', 'purpose\0te'],
    ] as const) {
      assert.equal(ring.verifyMac(given, of, purpose), false);
    }
    assert.equal(createKeyring([second]).verifyMac(mac, 'text', 'purpose'), false);
  });
});
