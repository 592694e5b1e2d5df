import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { getRunCount } from '../../../../../../test/sets.ts';
import { createChoice, getFieldState, toggleField, toResponseFields } from './field-choice.ts';

const paths = ['a', 'b', 'b.c', 'b.d', 'b.d.e', 'b.d.f', 'bc', 'bc.d'];
const fields = paths.map((path) => ({ path, bytes: 8, times: 1, objects: 0, around: 0 }));

describe('field selection in the dashboard', () => {
  it('[agent 3] is fully represented by the saved paths, whatever the order of clicks', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...paths), { maxLength: 12 }), (clicks) => {
        let choice = createChoice(fields, undefined);
        for (const path of clicks) {
          const before = getFieldState(choice, path);
          choice = toggleField(choice, path);
          assert.equal(getFieldState(choice, path), before === 'out' ? 'kept' : 'out', path);
          const saved = toResponseFields(choice);
          if (saved?.length === 0) continue;
          const restored = createChoice(fields, saved);
          for (const { path: otherPath } of fields)
            assert.equal(getFieldState(restored, otherPath), getFieldState(choice, otherPath), otherPath);
        }
      }),
      { numRuns: getRunCount(1000) },
    );
  });
});
