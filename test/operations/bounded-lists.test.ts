import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { outputSchemaOf } from '../../src/operations/describe.ts';
import { operations } from '../../src/operations/index.ts';

type Schema = {
  type?: string;
  maxItems?: number;
  enum?: unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  anyOf?: Schema[];
};

/** Arrays of a schema that may be of any length, by their paths. */
function unbounded(schema: Schema, path: string, isPaged: boolean): string[] {
  const isFree = schema.type === 'array' && schema.maxItems === undefined && !isPaged;
  // A list of different fixed words is not longer than there are words.
  const isOfWords = schema.items?.enum !== undefined;
  return [
    ...(isFree && !isOfWords ? [path] : []),
    ...(schema.items ? unbounded(schema.items, `${path}[]`, false) : []),
    ...(schema.anyOf ?? []).flatMap((one) => unbounded(one, path, isPaged)),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
      unbounded(
        property,
        path === '' ? name : `${path}.${name}`,
        path === '' && 'next_cursor' in (schema.properties ?? {}),
      ),
    ),
  ];
}

describe('[find A4] the answer of an operation', () => {
  for (const op of Object.values(operations)) {
    it(`${op.name} has no list without a cursor or a most`, () => {
      assert.deepEqual(unbounded(outputSchemaOf(op) as Schema, '', false), []);
    });
  }

  it('with a cursor comes with a limit, and from the connection of reports', () => {
    for (const op of Object.values(operations)) {
      if (!('next_cursor' in op.output.shape)) continue;
      assert.ok('limit' in op.input.shape && 'cursor' in op.input.shape, op.name);
      assert.equal(op.isReport, true, op.name);
    }
  });
});
