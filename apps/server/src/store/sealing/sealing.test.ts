import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { AppError } from '@toolhost/errors/errors';
import fc from 'fast-check';
import { createKeyring, type Keyring } from './sealing.ts';

const [first, second] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const ring = createKeyring([first]);
const text = fc.string({ unit: 'binary', maxLength: 300 }).map((value) => value.toWellFormed());

const assertRefused = (keyring: Keyring, sealed: string, context: string, pattern = /stored secret/) =>
  assert.throws(
    () => keyring.open(sealed, context),
    (error) => error instanceof AppError && error.kind === 'internal' && pattern.test(error.message),
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
        assertRefused(ring, ring.seal(value, context), other, /cannot be opened/);
      }),
    );
  });

  it('rejects a sealed value if any character was changed or removed', () => {
    const sealed = ring.seal('a value of some length', 'context');
    for (let at = 0; at < sealed.length; at += 1) {
      assertRefused(ring, sealed.slice(0, at), 'context');
      const other = sealed[at] === 'A' ? 'B' : 'A';
      // The last base64 character contains unused bits.
      if (at < sealed.length - 1) assertRefused(ring, sealed.slice(0, at) + other + sealed.slice(at + 1), 'context');
    }
  });

  it('rejects made-up sealed values', () => {
    const id = ring.seal('x', 'context').split('.')[1];
    const letters = fc.string({ unit: fc.constantFrom(...'AZaz09-_'), maxLength: 40 });
    fc.assert(
      fc.property(letters, letters, (iv, data) =>
        assertRefused(ring, `v1.${id}.${iv}.${data}`, 'context', /cannot be opened/),
      ),
    );
    for (const junk of ['', '.', '...', 'v1', `v2.${id}.AAAA.AAAA`, 'v1.0000000.AAAA.AAAA', 'v1.KEY IDS!.AAAA.AAAA'])
      assertRefused(ring, junk, 'context', /cannot be opened/);
    assertRefused(ring, 'v1.00000000.AAAA.AAAA', 'context', /not in MASTER_KEY/);
  });

  it('[find C2] reports a missing key, except for values that come from a client', () => {
    const missing: string[] = [];
    const reportingKeyring = createKeyring([first], { onMissingKey: (id) => missing.push(id) });
    const foreignSealed = createKeyring([second]).seal('x', 'context');
    const ownSealed = reportingKeyring.seal('x', 'context');
    assert.equal(reportingKeyring.openFromClient(ownSealed, 'context'), 'x');
    const changed = [ownSealed.slice(0, -2), ownSealed.replace('v1', 'v2')];
    for (const sealed of [foreignSealed, ...changed, 'v1.00000000.AAAA.AAAA', 'v1', ''])
      assert.equal(reportingKeyring.openFromClient(sealed, 'context'), undefined);
    assert.equal(reportingKeyring.openFromClient(ownSealed, 'other'), undefined);
    for (const junk of ['', 'v1..AAAA', `v1.${'x'.repeat(100)}.AAAA.AAAA`, 'v2.00000000.AAAA.AAAA'])
      assertRefused(reportingKeyring, junk, 'context', /cannot be opened/);
    assert.deepEqual(missing, []);
    assertRefused(reportingKeyring, foreignSealed, 'context', /not in MASTER_KEY/);
    assert.deepEqual(missing, [foreignSealed.split('.')[1]]);
  });

  it('opens values with any of its keys, and seals with its first key', () => {
    const before = ring.seal('old', 'context');
    const rotated = createKeyring([second, first]);
    assert.equal(rotated.open(before, 'context'), 'old');
    const afterwards = rotated.seal('new', 'context');
    assert.equal(createKeyring([second]).open(afterwards, 'context'), 'new');
    assertRefused(ring, afterwards, 'context', /not in MASTER_KEY/);
    assertRefused(createKeyring([second]), before, 'context', /not in MASTER_KEY/);
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
