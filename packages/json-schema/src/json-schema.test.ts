import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Validator } from '@cfworker/json-schema';
import { toExactNumber } from '@toolhost/json/json';
import { readJson } from '@toolhost/json/json-reader';
import fc from 'fast-check';
import { getRunCount } from '../../../test/sets.ts';
import { assertAlwaysSync } from '../../../test/support/properties.ts';
import { compileSchema } from './compile-schema.ts';
import { StepBudget, StepLimitExceeded } from './step-budget.ts';

const scalars = fc.constantFrom<unknown>(
  ...[null, true, false, 0, 1, -1, 1.5, 0.3, 10, 'a', 'ab', '😀', '', '2024-02-29', 'x@y.z'],
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalars,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', 'toString'), tie('value'), { maxKeys: 3 }),
  ),
}));
const count = fc.nat(3);
const types = ['string', 'number', 'integer', 'boolean', 'null', 'array', 'object'];
const names = fc.subarray(['a', 'b', 'c', 'toString']);

/** Keywords that contain no schema. */
const plainKeywords = {
  type: fc.oneof(fc.constantFrom(...types), fc.subarray(types, { minLength: 1 })),
  const: value,
  enum: fc.array(value, { maxLength: 3 }),
  minimum: fc.integer({ min: -1, max: 2 }),
  exclusiveMaximum: fc.integer({ min: 0, max: 11 }),
  multipleOf: fc.constantFrom(1, 0.1, 2, 1.5),
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minProperties: count,
  maxProperties: count,
  required: names,
  dependentRequired: fc.dictionary(fc.constantFrom('a', 'b'), names),
  $ref: fc.constantFrom('#/$defs/one', '#two'),
};

/** Generates one keyword with its value. */
const oneKeyword = (keywords: Record<string, fc.Arbitrary<unknown>>) =>
  fc.oneof(
    ...Object.entries(keywords).map(([keyword, limit]) => limit.map((keywordValue) => ({ [keyword]: keywordValue }))),
  );

const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const inner = tie('schema');
  const list = fc.array(inner, { minLength: 1, maxLength: 3 });
  const map = fc.dictionary(fc.constantFrom('a', 'b', 'toString'), inner, { maxKeys: 3 });
  const fill = (keywords: string[], arbitrary: fc.Arbitrary<unknown>) =>
    Object.fromEntries(keywords.map((keyword) => [keyword, arbitrary]));
  const schemaKeywords = {
    ...fill(['additionalProperties', 'propertyNames', 'items', 'contains', 'not', 'if', 'then', 'else'], inner),
    ...fill(['prefixItems', 'allOf', 'anyOf', 'oneOf'], list),
    ...fill(['properties', 'dependentSchemas'], map),
  };
  const someKeywords = (keywords: Record<string, fc.Arbitrary<unknown>>) =>
    fc.array(oneKeyword(keywords), { maxLength: 4 }).map((objects) => Object.assign({}, ...objects) as object);
  return {
    schema: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.boolean(),
      someKeywords(plainKeywords),
      someKeywords({ ...plainKeywords, ...schemaKeywords }),
    ),
  };
});

const withDefinitions = fc.tuple(schema, schema, schema).map(([root, one, two]) => {
  const withoutRefs = (definition: unknown) =>
    JSON.parse(JSON.stringify(definition, (key, inner: unknown) => (key === '$ref' ? undefined : inner))) as object;
  const [first, second] = [withoutRefs(one), withoutRefs(two)];
  return {
    ...(typeof root === 'object' ? root : {}),
    $defs: { one: first, two: typeof second === 'object' ? { ...second, $anchor: 'two' } : { $anchor: 'two' } },
  };
});

describe('validation against a JSON Schema', () => {
  it('agrees with another validator for any schema and value', () => {
    const outcomeCounts = { true: 0, false: 0 };
    assertAlwaysSync(4000, [withDefinitions, value], (root, instance) => {
      const expected = new Validator(structuredClone(root) as never, '2020-12').validate(instance).valid;
      const compiled = compileSchema(root);
      outcomeCounts[`${expected}`]++;
      assert.equal(compiled.isValid(instance, new StepBudget(1e6)), expected);
      for (const kind of ['first fault', 'faults'] as const) {
        const faults = compiled.violations(instance, new StepBudget(1e6), kind);
        assert.equal(faults.length === 0, expected, JSON.stringify(faults));
      }
    });
    assert.ok(Math.min(...Object.values(outcomeCounts)) > getRunCount(300), JSON.stringify(outcomeCounts));
  });

  it('stops at its step limit for any schema and value', () => {
    const parts = { allOf: Array.from({ length: 900 }, () => ({ items: { maxLength: 5, enum: ['x', 1] } })) };
    const compiled = compileSchema({ type: 'array', ...parts });
    const list = Array.from({ length: 10_000 }, () => 1);
    assert.throws(() => compiled.isValid(list, new StepBudget(1e6)), StepLimitExceeded);
    assert.equal(compiled.isValid(list.slice(0, 10), new StepBudget(1e6)), true);
  });
});

describe('JSON parsing with exact numbers', () => {
  const number = fc.oneof(
    fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?$/),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  );
  const { text } = fc.letrec<{ text: string }>((tie) => ({
    text: fc.oneof(
      { depthSize: 'small' },
      number,
      fc.string({ unit: 'grapheme' }).map((string) => JSON.stringify(string)),
      fc.constantFrom('true', 'false', 'null', '"\\u00e9\\n"', '"1.10"'),
      fc.array(tie('text')).map((items) => `[${items.join(',')}]`),
      fc
        .uniqueArray(fc.tuple(fc.constantFrom('a', '', '__proto__', '\\"q', 'é'), tie('text')), {
          selector: ([name]) => name,
        })
        .map((pairs) => `{${pairs.map(([name, inner]) => `"${name}":${inner}`).join(',')}}`),
    ),
  }));

  it('returns the original text, and the values that JSON.parse returns', () => {
    assertAlwaysSync(3000, [text], (json) => {
      const value = readJson(` ${json}\n`, toExactNumber);
      assert.equal(JSON.stringify(value), JSON.stringify(JSON.parse(json, reviveWithSource)));
    });
  });

  it('rejects the texts that JSON.parse rejects', () => {
    fc.assert(
      fc.property(
        text,
        fc.nat(),
        fc.constantFrom('', ',', '"', '0', '.', '-', 'e', '}', ']', '\u0001', 'x', ' '),
        (json, at, fragment) => {
          const cut = at % (json.length + 1);
          const changed = json.slice(0, cut) + fragment + json.slice(cut + 1);
          assert.equal(
            isAccepted(() => readJson(changed, toExactNumber)),
            isAccepted(() => JSON.parse(changed)),
            changed,
          );
        },
      ),
      { numRuns: getRunCount(3000) },
    );
  });
});

function reviveWithSource(_name: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? JSON.rawJSON(context.source) : value;
}

function isAccepted(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}
