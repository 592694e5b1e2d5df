import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { getRunCount } from '../../../../test/sets.ts';
import { pluck } from '../../../../test/support/pluck.ts';
import {
  type ConfigTool,
  mergeTools,
  type ToolChange,
  type ToolConflict,
  type ToolsByOperation,
} from './merge-tools.ts';

type Fields = { [name: string]: unknown };

const words = fc.constantFrom('a', 'b', 'c', 'd', 'toString');
const text = fc.constantFrom('one', 'two', 'three', 'four');
const field = fc.record(
  { type: fc.constantFrom('string', 'integer'), description: text, enum: fc.array(text, { maxLength: 2 }) },
  { requiredKeys: ['type'] },
);
const fields = fc.record(
  {
    description: text,
    url: text,
    title: text,
    headers: fc.dictionary(words, text, { maxKeys: 3 }),
    input_schema: fc.dictionary(words, field, { maxKeys: 3 }),
  },
  { requiredKeys: ['description', 'url', 'input_schema'] },
);
const operations = ['GET /a', 'GET /b', 'POST /a', 'DELETE /a', 'GET /c'];
const generated = fc
  .subarray(operations)
  .chain((some) => fc.tuple(...some.map((operation) => fields.map((more) => [operation, more] as const))));

/** Returns the tools of a document, with names derived from the operations. */
function createTools(entries: readonly (readonly [string, Fields])[]): ToolsByOperation {
  return new Map(
    entries.map(([operation, more]) => [
      operation,
      { name: operation.replaceAll(/\W+/g, '_').toLowerCase(), imported_from: operation, ...more },
    ]),
  );
}

type Edit = { of: number; kind: 'replace' | 'remove' | 'rename' | 'disable'; more: Fields; name: string };
const edit: fc.Arbitrary<Edit> = fc.record({
  of: fc.nat(6),
  kind: fc.constantFrom('replace', 'remove', 'rename', 'disable'),
  more: fields,
  name: fc.constantFrom('mine', 'get_c', 'other'),
});

/** Returns the tools of a server after people have edited them. */
function applyEdits(before: ToolsByOperation, edits: readonly Edit[]): ConfigTool[] {
  const tools: ConfigTool[] = [...before.values()].map((tool) => structuredClone(tool));
  tools.push({ name: 'by_hand', description: 'Written by hand.', url: 'one' });
  for (const { of, kind, more, name } of edits) {
    const index = of % Math.max(1, tools.length);
    const tool = tools[index];
    if (!tool) continue;
    if (kind === 'remove') tools.splice(index, 1);
    if (kind === 'replace') tools[index] = { ...tool, ...structuredClone(more) };
    if (kind === 'disable') tools[index] = { ...tool, disabled: true };
    if (kind === 'rename' && !tools.some((other) => other.name === name)) tools[index] = { ...tool, name };
  }
  return tools;
}

/** Returns every value of a tool by path; an array counts as one value. */
function listLeaves(value: unknown, path = ''): Map<string, string> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return new Map(value === undefined ? [] : [[path, JSON.stringify(value)]]);
  return new Map(Object.entries(value).flatMap(([name, entry]) => [...listLeaves(entry, `${path}/${name}`)]));
}

const coversPath = (covering: string, path: string) => `${path}/`.startsWith(`/${covering.replaceAll('.', '/')}/`);

/** Returns true if a conflict of the operation covers this path. */
const hasConflictAt = (conflicts: readonly ToolConflict[], operation: string, path: string) =>
  conflicts.some((conflict) => conflict.operation === operation && coversPath(conflict.path, path));

/** Returns true if a listed edit of the operation covers this path. */
const hasEditAt = (edits: readonly ToolChange[], operation: string, path: string) =>
  edits.some((edit) => edit.operation === operation && edit.fields.some((one) => coversPath(one.path, path)));

const keepYours = { shouldAdd: () => false, moves: new Map(), choose: () => 'yours' as const };

type Sides = { before: ToolsByOperation; now: ToolsByOperation; yours: ConfigTool[]; chosen: string[] };

/** Checks a property of the tools of two documents, those of a server with edits, and some chosen operations. */
function assertMerge(check: (sides: Sides) => void): void {
  const cases = [generated, generated, fc.array(edit, { maxLength: 6 }), fc.subarray(operations)] as const;
  const property = fc.property(...cases, (first, second, edits, chosen) => {
    const before = createTools(first);
    check({ before, now: createTools(second), yours: applyEdits(before, edits), chosen });
  });
  fc.assert(property, { numRuns: getRunCount(2000) });
}

describe('merging of re-imported tools', () => {
  it('[imp 5] loses no edit, and updates every unedited value from the document', () => {
    assertMerge(({ before, now, yours }) => {
      const { tools, conflicts, edits } = mergeTools(yours, before, now, keepYours);
      for (const [index, mine] of yours.entries()) {
        const after = listLeaves(tools[index]);
        const operation = mine.imported_from;
        const theirs = operation === undefined ? undefined : now.get(operation);
        if (operation === undefined || !theirs) {
          assert.deepEqual(tools[index], operation === undefined ? mine : { ...mine, disabled: true });
          continue;
        }
        const [a, b, c] = [listLeaves(before.get(operation) ?? {}), listLeaves(mine), listLeaves(theirs)];
        for (const path of new Set([...a.keys(), ...b.keys(), ...c.keys()])) {
          if (path === '/name') continue;
          const isEdited = a.get(path) !== b.get(path);
          const isConflict = hasConflictAt(conflicts, operation, path);
          if (isEdited) assert.equal(after.get(path), b.get(path), path);
          if (isEdited && b.get(path) !== c.get(path))
            assert.ok(isConflict || hasEditAt(edits, operation, path), `${path} is reported`);
          else if (!isConflict) assert.equal(after.get(path), c.get(path), path);
        }
      }
    });
  });

  it('[imp 5] reports a conflict exactly where both sides changed a value differently', () => {
    assertMerge(({ before, now, yours }) => {
      const { conflicts } = mergeTools(yours, before, now, keepYours);
      const { tools: theirsTaken } = mergeTools(yours, before, now, { ...keepYours, choose: () => 'theirs' });
      const getField = (value: unknown, name: string) =>
        Object.hasOwn(value as Fields, name) ? (value as Fields)[name] : undefined;
      for (const { tool, operation, path, yours: mine, theirs } of conflicts) {
        assert.notDeepEqual(mine, theirs);
        const index = yours.findIndex(({ name }) => name === tool);
        const taken = path.split('.').reduce<unknown>(getField, theirsTaken[index]);
        if (path !== 'name') assert.deepEqual(taken, theirs, `${operation} ${path}`);
      }
      for (const mine of yours) {
        const operation = mine.imported_from ?? '';
        const theirs = now.get(operation);
        if (!theirs) continue;
        const [a, b, c] = [listLeaves(before.get(operation) ?? {}), listLeaves(mine), listLeaves(theirs)];
        for (const path of new Set([...b.keys(), ...c.keys()])) {
          const differ = new Set([a.get(path), b.get(path), c.get(path)]).size === 3;
          if (differ) assert.ok(hasConflictAt(conflicts, operation, path), path);
        }
      }
    });
  });

  it('[imp 5] changes nothing if the document is unchanged or the merge is repeated', () => {
    assertMerge(({ before, now, yours }) => {
      const unchanged = mergeTools(yours, before, before, keepYours);
      assert.deepEqual(unchanged.tools, yours);
      assert.deepEqual([unchanged.changed, unchanged.conflicts, unchanged.added, unchanged.gone], [[], [], [], []]);
      const once = mergeTools(yours, before, now, { ...keepYours, shouldAdd: () => true });
      const twice = mergeTools(once.tools, now, now, { ...keepYours, shouldAdd: () => true });
      assert.deepEqual(twice.tools, once.tools);
      assert.deepEqual([twice.added, twice.conflicts], [[], []]);
    });
  });

  it('[imp 5] keeps tool names unique, and offers new operations without adding them', () => {
    assertMerge(({ before, now, yours, chosen }) => {
      const shouldAdd = (operation: string) => chosen.includes(operation);
      const merged = mergeTools(yours, before, now, { shouldAdd, moves: new Map(), choose: () => 'theirs' });
      assert.equal(new Set(pluck(merged.tools, 'name')).size, merged.tools.length);
      const importedOperations = new Set(pluck(yours, 'imported_from'));
      const newOperations = [...now.keys()].filter((operation) => !importedOperations.has(operation));
      assert.equal(merged.added.length, newOperations.filter(shouldAdd).length);
      const offered = newOperations.filter((operation) => !shouldAdd(operation));
      assert.deepEqual(pluck(merged.offered, 'operation'), offered);
    });
  });
});
