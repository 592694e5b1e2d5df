import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Validator } from '@cfworker/json-schema';
import fc from 'fast-check';
import { plainCheck } from '../../src/gateway/arguments/validate-arguments.ts';

const values = fc.oneof(
  fc.constantFrom('', 'a', 'é', '😀', '😀😀', 'ab', '\ud800', 'active', 'toString'),
  fc.constantFrom(0, -0, 1, 1.5, 7, Infinity, -Infinity, 2 ** 53),
  fc.constantFrom(true, false, null, undefined),
  fc.constant([]),
  fc.constant({}),
  fc.constant(JSON.rawJSON('1.10')),
);
const property = fc.record(
  {
    type: fc.constantFrom('string', 'integer', 'number', 'boolean'),
    minimum: fc.integer({ min: -2, max: 2 }),
    maximum: fc.integer({ min: -1, max: 8 }),
    minLength: fc.nat(3),
    maxLength: fc.nat(3),
    enum: fc.array(fc.constantFrom<unknown>('a', 'active', 1, true, 0), { minLength: 1, maxLength: 3 }),
    description: fc.constant('Says what it means'),
  },
  { requiredKeys: ['type'] },
);
const names = ['a', 'b', 'toString'];

describe('the quick test of arguments', () => {
  it('never accepts what the validator refuses', () => {
    let taken = 0;
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom(...names), property),
        fc.subarray(names),
        fc.dictionary(fc.constantFrom(...names, 'other'), values),
        (properties, required, args) => {
          const declared = required.filter((name) => Object.hasOwn(properties, name));
          const schema = { type: 'object', properties, required: declared, additionalProperties: false };
          if (!plainCheck(schema)?.(args)) return;
          taken++;
          assert.ok(new Validator(schema as never, '2020-12').validate(args).valid, JSON.stringify([schema, args]));
          for (const value of Object.values(args)) {
            if (typeof value === 'string') assert.ok(value.isWellFormed());
            if (typeof value === 'number') assert.ok(Number.isFinite(value));
          }
        },
      ),
      { numRuns: 5000 },
    );
    assert.ok(taken > 100, 'the usual arguments are taken');
  });

  for (const [why, schema] of [
    ['a keyword of its own', { type: 'string', pattern: 'a' }],
    ['a format that is checked', { type: 'string', format: 'date' }],
    ['an inner object', { type: 'object', properties: {} }],
    ['several types', { type: ['string', 'null'] }],
    ['no type', {}],
  ] as const) {
    it(`leaves ${why} to the validator`, () => {
      assert.equal(plainCheck({ type: 'object', properties: { a: schema } }), undefined);
    });
  }

  it('leaves rules about several arguments to the validator', () => {
    assert.equal(plainCheck({ type: 'object', properties: {}, dependentRequired: { a: ['b'] } }), undefined);
  });
});
